/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only access to guest memory. A target describes its readable memory as regions, with one read
 * function that copies. Every range is checked here against the regions before that function sees
 * it. Nothing returns a pointer into guest memory: copy once, then decide.
 */
#ifndef UNI_MEM_GMEM_H
#define UNI_MEM_GMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mem/addr.h"

struct uni_gmem_region {
	uint64_t start;	 /* GPA, bytes (GVA when the space is UNI_GMEM_VIRTUAL) */
	uint64_t size;	 /* bytes, not 0; may end exactly at 2^64 */
	uint64_t cookie; /* the target's own: an HVA, a file offset */
};

/* One of several copies that are requested at once. */
struct uni_gmem_piece {
	const struct uni_gmem_region *r;
	uint64_t offset;
	void *buf;
	size_t len;
};

struct uni_gmem_ops {
	/*
	 * Copies len bytes at `offset` of region r; the range is inside r. Returns 0; -UNI_EFAULT
	 * when no memory is there; -UNI_EGONE when the target has ended. All or nothing.
	 */
	int (*read)(
		void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len);
	/*
	 * Optional: for targets where many pieces in one request cost little more than one piece.
	 * Returns how many pieces, from the first on, were copied whole; or an error as read().
	 */
	int (*read_many)(void *ctx, const struct uni_gmem_piece *piece, size_t nr);
	/*
	 * Optional, for addresses of UNI_GMEM_VIRTUAL: may the guest execute what is there? NULL:
	 * the target does not know.
	 */
	bool (*is_code)(void *ctx, uint64_t va);
	void (*close)(void *ctx); /* may be NULL */
};

/* The kind of the regions' addresses. */
enum uni_gmem_space {
	UNI_GMEM_PHYSICAL, /* guest physical: page tables are walked by us */
	UNI_GMEM_VIRTUAL,  /* guest virtual: the target translates (plain gdb stub, a process) */
};

struct uni_gmem; /* opaque; owned by the target that made it */

/* Copies the regions (sorted and checked for overlap here). ctx is passed to the ops. */
int uni_gmem_create(const struct uni_gmem_ops *ops, void *ctx, enum uni_gmem_space space,
	const struct uni_gmem_region *regions, size_t nr, struct uni_gmem **ret,
	struct uni_err *err);
/* Replaces the regions, for memory hot-plug; not while a sample is being taken. */
int uni_gmem_set_regions(
	struct uni_gmem *m, const struct uni_gmem_region *regions, size_t nr, struct uni_err *err);
void uni_gmem_destroy(struct uni_gmem *m); /* NULL-safe; calls ops->close */

enum uni_gmem_space uni_gmem_space(const struct uni_gmem *m);
size_t uni_gmem_nr_regions(const struct uni_gmem *m);
const struct uni_gmem_region *uni_gmem_region(const struct uni_gmem *m, size_t i); /* or NULL */

/*
 * The number of bytes that an address space fetches (and caches) at once, a power of two. The
 * default is 4096: a process_vm_readv of 4096 bytes takes 1.2 us, as one of 16 bytes does. If each
 * byte costs, as in gdb packets, a target asks for less, before any address space is made. Rounded
 * up to an allowed size.
 */
#define UNI_GMEM_GRANULE_MIN 64
#define UNI_GMEM_GRANULE_MAX 4096
void uni_gmem_set_granule(struct uni_gmem *m, size_t bytes);
size_t uni_gmem_granule(const struct uni_gmem *m);

/*
 * Tells that a copy costs no more than its bytes, as it does from a mapping. Then an address space
 * caches no page-table entries, and reads the clock less often.
 */
void uni_gmem_set_direct(struct uni_gmem *m);
bool uni_gmem_is_direct(const struct uni_gmem *m);

/* Is the byte in a region? */
bool uni_gmem_has(const struct uni_gmem *m, uni_gpa gpa);
/* And can it be code, as far as the target knows? */
bool uni_gmem_may_be_code(const struct uni_gmem *m, uni_gpa gpa);

/*
 * Copies [gpa, gpa + len) to buf, across adjacent regions if needed. Returns 0; -UNI_ERANGE if any
 * byte is outside every region; else the target's error. buf is unspecified on failure. No
 * allocation.
 */
int uni_gmem_read(struct uni_gmem *m, uni_gpa gpa, void *buf, size_t len);

/*
 * Copies pieces of len bytes each at once. Returns how many were copied, from the first on. 0: the
 * target cannot do so, or not now. That is no error: read them one by one. No allocation.
 */
#define UNI_GMEM_MANY_MAX 32
bool uni_gmem_can_read_many(const struct uni_gmem *m);
size_t uni_gmem_read_many(
	struct uni_gmem *m, const uni_gpa *gpa, void *const *buf, size_t len, size_t nr);

#endif
