/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are too many to be sent to a page whole. The page requests what it shows: rows of
 * intervals at the resolution of its screen, and sums by node for a range of time. The time for
 * both does not depend on the number of calls. docs/formats/live.md has the replies.
 */
#ifndef UNI_PAGE_STORE_H
#define UNI_PAGE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct uni_page_store; /* opaque */

struct uni_page_store *uni_page_store_create(void);    /* NULL: out of memory */
void uni_page_store_destroy(struct uni_page_store *s); /* NULL-safe */
/*
 * Makes a row for that thread's calls at that depth on that vCPU. Returns its number, or
 * -UNI_ENOMEM.
 */
int64_t uni_page_store_row(struct uni_page_store *s, uint32_t thread, uint32_t depth, uint16_t cpu);
/* Adds calls of a row in the order of time; node is the number in the tree. */
int uni_page_store_add(
	struct uni_page_store *s, uint32_t row, uint64_t start, uint64_t dur, uint32_t node);
/*
 * Call it after the last call was added: makes the index, and the sums of slices of time. parent[]
 * has nr nodes; the root is number 0 and its own parent. Rows get new numbers, by thread, depth and
 * vCPU.
 */
int uni_page_store_finish(struct uni_page_store *s, const uint32_t *parent, uint32_t nr);

/* ret[]: for each node, the time in it and in the functions that it called. */
void uni_page_store_totals(const struct uni_page_store *s, uint64_t *ret);
/* From now on replies have other node numbers: map[], which the store takes over; below nr. */
void uni_page_store_set_map(struct uni_page_store *s, uint32_t *map, uint32_t nr);

struct uni_page_row {
	uint32_t thread, depth;
	uint16_t cpu;
	size_t nr;
};
/* Selects the calls; -1: all. */
struct uni_page_who {
	int64_t thread, cpu;
};
uint32_t uni_page_store_nr_rows(const struct uni_page_store *s);
struct uni_page_row uni_page_store_get_row(const struct uni_page_store *s, uint32_t row);
uint64_t uni_page_store_nr(const struct uni_page_store *s); /* calls */
uint64_t uni_page_store_begin(const struct uni_page_store *s);
uint64_t uni_page_store_end(const struct uni_page_store *s);

struct uni_blob;
/*
 * Puts columns of the rows from `first` on, in the form of a page's data: gap, dur, node, nr. t0,
 * t1 and the gaps count from the begin.
 */
void uni_page_store_put_rows(const struct uni_page_store *s, struct uni_blob *b, uint64_t t0,
	uint64_t t1, uint32_t px, uint32_t first, uint32_t nr);
/*
 * ret[]: for each node, its own time in t0 <= t < t1, without the functions that it called. 0 or
 * -UNI_ENOMEM.
 */
int uni_page_store_sums(const struct uni_page_store *s, uint64_t t0, uint64_t t1,
	struct uni_page_who who, uint64_t *ret);
/* The same as columns n.gap and n.self, without zeros. */
int uni_page_store_put_sums(const struct uni_page_store *s, struct uni_blob *b, uint64_t t0,
	uint64_t t1, struct uni_page_who who);

/* The same as complete replies. -UNI_ENOMEM. */
int uni_page_store_reply_rows(const struct uni_page_store *s, uint64_t t0, uint64_t t1, uint32_t px,
	uint32_t first, uint32_t nr, struct uni_strbuf *ret);
int uni_page_store_reply_sums(const struct uni_page_store *s, uint64_t t0, uint64_t t1,
	struct uni_page_who who, struct uni_strbuf *ret);

#endif
