/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exact counts of a guest, as QEMU's plugin wrote them (uniscope/exact.h) and as a session keeps
 * them in guest-N/exact. They are copied once and checked; nothing in them is trusted.
 */
#ifndef UNI_RECORDING_EXACT_H
#define UNI_RECORDING_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "uniscope/exact.h"

struct uni_exact; /* immutable */
struct uni_record_stats;
struct uni_recorder;
struct uni_image;

/* An image of the guest, and what its addresses have more in the counts than in its file. */
struct uni_exact_image {
	struct uni_image *image;
	uint64_t bias;
};

/* Places for programs that the guest loads: 4 GiB each. Nothing of a guest is there. */
#define UNI_EXACT_PROGRAM(i) (UINT64_C(0x600000000000) + ((uint64_t)(i) << 32))
static inline bool uni_exact_is_program(uint64_t addr)
{
	return addr >= UNI_EXACT_PROGRAM(0) && addr < UNI_EXACT_PROGRAM(4096);
}

/* Writes a file with functions and code, for the plugin. image[0] is the one that counting begins
 * with. Calls of functions whose names match none of the globs are not recorded; without globs all
 * are. -UNI_ENOENT: image[0] has no names, or none matches. */
struct uni_exact_choice {
	const char *const *glob;
	size_t nr_globs;
	uint64_t depth; /* no deeper calls are recorded; 0: all are */
};
int uni_exact_write_table(const struct uni_exact_image *image, size_t nr,
	const struct uni_exact_choice *choice, const char *path, struct uni_err *err);
/* Was that file written for an image with the same code and functions? -UNI_EMISMATCH: for another
 * one. Without the file nobody knows: 0. only_ret: which calls are recorded; "" all. */
int uni_exact_check_table(
	const char *path, struct uni_image *image, char *only_ret, size_t cap, struct uni_err *err);

/* data is copied. -UNI_EFORMAT. */
int uni_exact_parse(const void *data, size_t size, struct uni_exact **ret, struct uni_err *err);
/* The file that the plugin writes, also while it does. */
int uni_exact_take(const char *path, struct uni_exact **ret, struct uni_err *err);
/* Bytes that a session will need for what is in that file now. */
uint64_t uni_exact_room(const char *path);
/* Loads the counts of a session. -UNI_ENOENT: it has none. */
int uni_exact_load(
	const char *session, unsigned guest, struct uni_exact **ret, struct uni_err *err);
bool uni_exact_is_there(const char *session, unsigned guest);
int uni_exact_save(
	const struct uni_exact *e, const char *session, unsigned guest, struct uni_err *err);
void uni_exact_destroy(struct uni_exact *e); /* NULL-safe */

/* UNI_EXACT_RUNS: they were read while QEMU wrote them, and need not be of one moment. */
enum uni_exact_state uni_exact_state(const struct uni_exact *e);
const char *uni_exact_state_name(const struct uni_exact *e); /* in English; static */
/* Was that counted, in this mode and state? */
bool uni_exact_knows(const struct uni_exact *e, enum uni_exact_stat stat);
enum uni_exact_mode uni_exact_mode(const struct uni_exact *e);
uint32_t uni_exact_nr_vcpus(const struct uni_exact *e);
uint64_t uni_exact_stat(const struct uni_exact *e, enum uni_exact_stat stat);
/* Executed since the image's first instruction, and before it. */
uint64_t uni_exact_insns(const struct uni_exact *e);
uint64_t uni_exact_before(const struct uni_exact *e);
/* How far image[0] ran from where it is linked (modulo 2^64); 0: it ran there. */
uint64_t uni_exact_moved(const struct uni_exact *e);

const struct uni_exact_function *uni_exact_functions(const struct uni_exact *e, uint32_t *nr_ret);
const struct uni_exact_node *uni_exact_nodes(const struct uni_exact *e, uint32_t *nr_ret);

/* All of it, as in the file, checked; borrowed. */
struct uni_exact_parts {
	const struct uni_exact_block *block;
	const uint8_t *length;
	const struct uni_exact_cut *cut;
	uint32_t nr_blocks, nr_cuts;
};

struct uni_exact_parts uni_exact_parts(const struct uni_exact *e);

/* An instruction, and how often it was executed to its end. */
struct uni_exact_insn {
	uint64_t addr, count;
	uint32_t length;
};

/* By address, each once; the caller's to free. -UNI_ENOMEM. */
int uni_exact_count_insns(const struct uni_exact *e, struct uni_exact_insn **ret, size_t *nr_ret);

struct uni_exact_total {
	uint64_t insns, calls;
};

/* In the order of the functions; the caller's to free. -UNI_ENOMEM. */
int uni_exact_count_functions(
	const struct uni_exact *e, struct uni_exact_total **ret, uint32_t *nr_ret);

/* One sample for each context that executed something, its weight the number of instructions. */
int uni_exact_samples(const struct uni_exact *e, struct uni_recorder *rec,
	struct uni_record_stats *stats, struct uni_err *err);

#endif
