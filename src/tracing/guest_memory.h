/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest's memory by virtual address, while it runs, for data that does not move: its trace rings,
 * its code. Translations are made once, through the page tables of a vCPU at that moment. */
#ifndef UNI_TRACING_GUEST_MEMORY_H
#define UNI_TRACING_GUEST_MEMORY_H

#include "base/err.h"
#include "backend/target.h"
#include "trace/ring.h"

struct uni_tmem; /* opaque */

/* Stops the guest for a moment, to see where its page tables are. t must outlive it. */
int uni_tmem_open(struct uni_target *t, struct uni_tmem **ret, struct uni_err *err);
void uni_tmem_close(struct uni_tmem *m); /* NULL-safe */

/* Copies [va, va + len). No allocation but for places seen for the first time. */
int uni_tmem_read(void *m, uint64_t va, void *buf, size_t len);
/* The physical address of va; *len_ret: length of the contiguous mapping from there on. */
int uni_tmem_where(struct uni_tmem *m, uint64_t va, uint64_t *gpa_ret, uint64_t *len_ret);
/* Is the mapping executable? 0, not known, if the target's memory is virtual. */
int uni_tmem_check_exec(struct uni_tmem *m, uint64_t va);
/* uni_tmem_read() as a source of rings. */
struct uni_ring_source uni_tmem_source(struct uni_tmem *m);

/*
 * Looks through everything that is mapped for a trace ring's head (uniscope/trace_abi.h).
 * -UNI_ENOENT: there is none; -UNI_ENOTSUP: this target's memory cannot be looked through.
 */
int uni_tmem_find_head(struct uni_tmem *m, uint64_t *ret, struct uni_err *err);

#endif
