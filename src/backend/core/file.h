/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of a core: each vCPU's registers, and the place of guest memory in the file.
 * Everything in it is hostile; the memory that we need is limited by the file's own size.
 */
#ifndef UNI_BACKEND_CORE_FILE_H
#define UNI_BACKEND_CORE_FILE_H

#include "arch/arch.h"
#include "base/vec.h"
#include "mem/gmem.h"
#include "backend/core/elf.h"
#include "backend/target.h"

extern const struct uni_target_ops uni_target_core;

struct uni_core_arch;

struct uni_core_file {
	const char *kind; /* "QEMU dump", for messages */
	const struct uni_arch *arch;
	const struct uni_core_arch *ops; /* the architecture's formats of vCPUs */
	enum uni_gmem_space space;
	UNI_VEC(struct uni_regs) vcpu;		/* at most UNI_VCPU_MAX */
	UNI_VEC(struct uni_gmem_region) region; /* the cookie is an offset in the file */
	uint64_t nr_vcpus;			/* in the file, which may have more than we keep */
	uint64_t mem_bytes;			/* bytes that the headers describe */
	uint64_t missing;			/* bytes of these behind the file's end */
	bool inferred; /* some memory is not described, but follows from the rest */
};

/* The caller zeroes f, and calls uni_core_file_deinit() also on failure. */
int uni_core_file_elf(struct uni_core_file *f, const struct uni_core_src *src, struct uni_err *err);
/* Plain memory from base on, of arch (NULL: x86_64). regs is text; see uni_core_regs_text(). */
int uni_core_file_raw(struct uni_core_file *f, const struct uni_core_src *src,
	const struct uni_arch *arch, uint64_t base, const char *regs, struct uni_err *err);
/*
 * Adds system registers that the file lacks, as text, for all vCPUs; "": none. -UNI_ENOTSUP: the
 * page tables still cannot be found.
 */
int uni_core_file_complete(struct uni_core_file *f, const char *sysregs, struct uni_err *err);
void uni_core_file_deinit(struct uni_core_file *f);

/*
 * Reads registers as text: NAME=HEX, or NAME and a hexadecimal number at the start of a line; skips
 * other names. CPU#N begins the next vCPU. So it reads QEMU's `info registers -a` and gdb's `info
 * registers`. Without CR3 (TTBR0 and TTBR1) there is no paging. CR3 alone means 64-bit paging (48
 * bits, 4 KiB granules).
 */
int uni_core_regs_text(struct uni_core_file *f, const char *text, struct uni_err *err);

/* Adds a vCPU, or only counts it when there are too many. */
int uni_core_add_vcpu(struct uni_core_file *f, const struct uni_regs *regs, struct uni_err *err);
/* Adds memory, as far as the file has it. */
int uni_core_add_memory(struct uni_core_file *f, const struct uni_core_src *src, uint64_t start,
	uint64_t offset, uint64_t size, struct uni_err *err);
/*
 * Sorts the regions, joins those that are adjacent in both memory and file, and removes overlaps.
 * With `bridge`, a gap between two regions that has the same size in both is joined, too.
 */
void uni_core_join_memory(struct uni_core_file *f, bool bridge);

/*
 * A format of cores. The first format whose sniff() returns true is opened; open() fills f; ph are
 * e's.
 */
struct uni_core_format {
	bool (*sniff)(struct uni_core_file *f, const struct uni_core_elf *e,
		const struct uni_core_ph *ph);
	int (*open)(struct uni_core_file *f, const struct uni_core_elf *e,
		const struct uni_core_ph *ph, struct uni_err *err);
};
extern const struct uni_core_format *const uni_core_formats[]; /* ends with NULL */

/*
 * Reads Linux' notes of threads or vCPUs, and memory: a process's (virtual) or a guest's
 * (physical).
 */
int uni_core_read_notes(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, bool guest, struct uni_err *err);

/* Calls fn for each note of that name and type; *nr_ret: their number. */
int uni_core_each_note(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, const char *name, uint32_t type,
	int (*fn)(struct uni_core_file *f, const struct uni_core_note *n, struct uni_err *err),
	uint64_t *nr_ret, struct uni_err *err);

#define UNI_CORE_XEN_VCPU 5168u /* bytes of a vcpu_guest_context of x86_64 */

/*
 * An architecture's vCPUs in cores. Readers return false if there are too few bytes. NULL: the
 * architecture does not have this format.
 */
struct uni_core_arch {
	const struct uni_arch *arch;
	bool (*prstatus)(const uint8_t *desc, size_t size, struct uni_regs *ret); /* Linux */
	bool (*qemu)(const uint8_t *desc, size_t size, struct uni_regs *ret);
	bool (*xen)(const uint8_t *ctx, size_t size, bool pv, struct uni_regs *ret);
	bool qemu_notes; /* QEMU writes Linux' notes */
	/*
	 * Sets usual values for unknown registers. False: the MMU is on, but the place of its
	 * tables is not known.
	 */
	bool (*complete)(struct uni_regs *r);
	unsigned needs_one_of[3];   /* sys[] indices: complete() needs one of them */
	const char *no_tables;	    /* message if complete() fails; NULL: dumps always have them */
	const char *pc, *registers; /* text: what a user must give */
	const char *wait;	    /* code of the instruction with which a vCPU waits */
	uint8_t wait_bytes;
};
extern const struct uni_core_arch uni_core_x86_64, uni_core_aarch64;
const struct uni_core_arch *uni_core_arch_of(const struct uni_arch *arch); /* NULL: none */

#endif
