/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hooks and the ring know of each other. */
#ifndef UNI_GUEST_RING_H
#define UNI_GUEST_RING_H

#include "uniscope/trace_abi.h"

/* A record whose first word's upper half is `first` (id, payload). Returns -1 if it was lost. */
int uni_trace_write(struct uni_trace_cpu *c, uint64_t first, const uint64_t *words, unsigned nr);

/* `bytes` at `at` are written now: the last ones close the sub-buffer. Negative: they are not
 * again. */
void uni_trace_written(uint64_t at, int32_t bytes);

/* Its last byte is written: the host may take it. */
void uni_trace_close(struct uni_trace_sub *s);

/* Architecture: fills kinds and hooks; any address of the traced text. */
void uni_trace_machine_init(struct uni_trace_head *h);
uint64_t uni_trace_text(void);

#endif
