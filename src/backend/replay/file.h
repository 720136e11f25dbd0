/* SPDX-License-Identifier: BSD-2-Clause */
/* A replay file in memory: docs/formats/replay.md. Everything in it is hostile. */
#ifndef UNI_BACKEND_REPLAY_FILE_H
#define UNI_BACKEND_REPLAY_FILE_H

#include "base/err.h"
#include "base/vec.h"
#include "backend/target.h"

#define UNI_REPLAY_MAGIC       "UNIREPLY"
#define UNI_REPLAY_VERSION     1u
#define UNI_REPLAY_HEADER      64u
#define UNI_REPLAY_REGIONS_MAX 4096u
#define UNI_REPLAY_VCPU_BYTES  96u /* of one vCPU, without r[] */

enum uni_replay_record {
	UNI_REPLAY_BLOCK = 1,
	UNI_REPLAY_SNAPSHOT = 2,
};

struct uni_replay_block {
	uint64_t addr;
	size_t offset; /* of its bytes in the file */
	uint32_t snap;
};

struct uni_replay_file {
	const uint8_t *data; /* borrowed */
	const struct uni_arch *arch;
	uint32_t nr_vcpus, block;
	enum uni_gmem_space space;
	bool at_blocks; /* UNI_REPLAY_AT_BLOCKS */
	UNI_VEC(struct uni_gmem_region) region;
	UNI_VEC(struct uni_replay_block) blocks; /* by addr, snap, offset */
	UNI_VEC(size_t) snap;			 /* offsets of the registers */
	bool truncated;				 /* the last record is incomplete */
};

extern const struct uni_target_ops uni_target_replay;

/*
 * data is borrowed for the life of ret. uni_replay_file_deinit() ends that; it is not needed after
 * a failure.
 */
int uni_replay_file_init(
	struct uni_replay_file *ret, const void *data, size_t size, struct uni_err *err);
void uni_replay_file_deinit(struct uni_replay_file *f);
/* snap and vcpu must exist. */
void uni_replay_file_regs(
	const struct uni_replay_file *f, size_t snap, unsigned vcpu, struct uni_regs *ret);
/* Reads memory at the time of snapshot snap. -UNI_EFAULT: some of it was not saved. */
int uni_replay_file_read(
	const struct uni_replay_file *f, size_t snap, uint64_t addr, void *buf, size_t len);

#endif
