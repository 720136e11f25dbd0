/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are too many to be sent to a page whole. It asks for what it shows: rows of intervals
 * at the resolution of its screen, and sums by node of the call tree for a range of time. Neither
 * takes longer because there are more calls. docs/formats/live.md has the replies.
 */
#ifndef UNI_PAGE_STORE_H
#define UNI_PAGE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct uni_page_store; /* opaque */

struct uni_page_store *uni_page_store_create(void);    /* NULL: out of memory */
void uni_page_store_destroy(struct uni_page_store *s); /* NULL-safe */
/* A row of that thread, of its calls on that vCPU; its number, or -UNI_ENOMEM. */
int64_t uni_page_store_row(struct uni_page_store *s, uint32_t thread, uint32_t depth, uint16_t cpu);
/* Calls of a row in the order of time; node is that of the tree. */
int uni_page_store_add(
	struct uni_page_store *s, uint32_t row, uint64_t start, uint64_t dur, uint32_t node);
/*
 * All calls are there: the index, and sums of pieces of the time. parent[] of nr nodes, that of the
 * root is the root, number 0. Rows have new numbers, by thread, depth and vCPU.
 */
int uni_page_store_finish(struct uni_page_store *s, const uint32_t *parent, uint32_t nr);

/* ret[]: of each node the time in it, with what it called. */
void uni_page_store_totals(const struct uni_page_store *s, uint64_t *ret);
/* Replies have other numbers of nodes than what was added: map[], the store's now; below nr. */
void uni_page_store_set_map(struct uni_page_store *s, uint32_t *map, uint32_t nr);

struct uni_page_row {
	uint32_t thread, depth;
	uint16_t cpu;
	size_t nr;
};
/* Whose calls; -1: all. */
struct uni_page_who {
	int64_t thread, cpu;
};
uint32_t uni_page_store_nr_rows(const struct uni_page_store *s);
struct uni_page_row uni_page_store_get_row(const struct uni_page_store *s, uint32_t row);
uint64_t uni_page_store_nr(const struct uni_page_store *s); /* calls */
uint64_t uni_page_store_begin(const struct uni_page_store *s);
uint64_t uni_page_store_end(const struct uni_page_store *s);

struct uni_blob;
/* Columns of the rows from `first` on, as a page's data have them: gap, dur, node, nr. t0, t1 and
 * the gaps are since the begin. */
void uni_page_store_put_rows(const struct uni_page_store *s, struct uni_blob *b, uint64_t t0,
	uint64_t t1, uint32_t px, uint32_t first, uint32_t nr);
/*
 * ret[]: for each node the time in it, but not in what it called, of t0 <= t < t1. 0 or
 * -UNI_ENOMEM.
 */
int uni_page_store_sums(const struct uni_page_store *s, uint64_t t0, uint64_t t1,
	struct uni_page_who who, uint64_t *ret);
/* The same as columns n.gap and n.self, without what is 0. */
int uni_page_store_put_sums(const struct uni_page_store *s, struct uni_blob *b, uint64_t t0,
	uint64_t t1, struct uni_page_who who);

/* The same as whole replies. -UNI_ENOMEM. */
int uni_page_store_reply_rows(const struct uni_page_store *s, uint64_t t0, uint64_t t1, uint32_t px,
	uint32_t first, uint32_t nr, struct uni_strbuf *ret);
int uni_page_store_reply_sums(const struct uni_page_store *s, uint64_t t0, uint64_t t1,
	struct uni_page_who who, struct uni_strbuf *ret);

#endif
