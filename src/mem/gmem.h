/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one door to guest memory. A target describes what it can read as regions and one copying
 * read function; every range is checked here against the regions before that function sees it.
 * Nothing returns a pointer into guest memory: copy once, then decide.
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

/* One of several copies that are asked for at once. */
struct uni_gmem_piece {
	const struct uni_gmem_region *r;
	uint64_t offset;
	void *buf;
	size_t len;
};

struct uni_gmem_ops {
	/*
	 * Copies len bytes at `offset` of region r; the range is inside r. 0, or -UNI_EFAULT when
	 * nothing backs it, -UNI_EGONE when the target ended. All or nothing.
	 */
	int (*read)(
		void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len);
	/*
	 * Optional, where one request for many pieces costs little more than one for one: how many
	 * of them, from the first on, were copied whole; or as read().
	 */
	int (*read_many)(void *ctx, const struct uni_gmem_piece *piece, size_t nr);
	void (*close)(void *ctx); /* may be NULL */
};

/* What the addresses of the regions are. */
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
 * How many bytes an address space fetches (and caches) at once, a power of two. A process_vm_readv
 * of 4096 bytes costs the same 1.2 us as one of 16, so that is the default; where each byte costs,
 * as in gdb packets, a target asks for less, before any address space is made. Rounded up to what
 * is allowed.
 */
#define UNI_GMEM_GRANULE_MIN 64
#define UNI_GMEM_GRANULE_MAX 4096
void uni_gmem_set_granule(struct uni_gmem *m, size_t bytes);
size_t uni_gmem_granule(const struct uni_gmem *m);

/*
 * A copy costs no more than its bytes, as out of a mapping: an address space then keeps none of the
 * page tables' entries, and looks at the clock less often.
 */
void uni_gmem_set_direct(struct uni_gmem *m);
bool uni_gmem_is_direct(const struct uni_gmem *m);

/*
 * Copies [gpa, gpa + len) to buf, crossing adjacent regions if it must. 0, -UNI_ERANGE if any byte
 * is outside every region, else what the target said. buf is unspecified on failure. No allocation.
 */
int uni_gmem_read(struct uni_gmem *m, uni_gpa gpa, void *buf, size_t len);

/*
 * Copies pieces of len bytes each at once: how many, from the first on. 0 if the target cannot, or
 * not now; that is no error, they can still be read one by one. No allocation.
 */
#define UNI_GMEM_MANY_MAX 32
bool uni_gmem_can_read_many(const struct uni_gmem *m);
size_t uni_gmem_read_many(
	struct uni_gmem *m, const uni_gpa *gpa, void *const *buf, size_t len, size_t nr);

#endif
