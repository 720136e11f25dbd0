/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the hooks and the ring. */
#ifndef UNI_GUEST_RING_H
#define UNI_GUEST_RING_H

#include "uniscope/trace_abi.h"

/* A record whose first word's upper half is `first` (id, payload). Returns -1 if it was lost. */
int uni_trace_write(struct uni_trace_cpu *c, uint64_t first, const uint64_t *words, unsigned nr);

/* Bytes of a record, which are NUL-padded to whole words. */
struct uni_trace_piece {
	const void *from;
	uint32_t bytes;
};
/* An extended record of these. Returns -1 if it was lost. */
int uni_trace_write_pieces(
	struct uni_trace_cpu *c, unsigned class, const struct uni_trace_piece *piece, unsigned nr);

/* `bytes` at `at` are written now: the last ones close the sub-buffer. If `bytes` is negative, they
 * are taken back. */
void uni_trace_written(uint64_t at, int32_t bytes);

/* The record at `at` has `extra` words that are no events. None of its bytes is written yet. */
void uni_trace_extra(struct uni_trace_cpu *c, uint64_t at, uint64_t extra);

/* Its last byte is written: the host may take it. */
void uni_trace_close(struct uni_trace_sub *s);

/* Each CPU writes a SYNC before its next record, and checks whether its ring is to stop. */
void uni_trace_ask_all(void);

/* All rings stop or go on as head.frozen says: this CPU's now, others' with their next record. */
void uni_trace_settle_all(void);

/* boot.c, if the guest links it: gives this CPU a ring in static memory, if calls are to be
 * recorded before uni_trace_init(). Returns whether it has one now. */
int uni_trace_boot(struct uni_trace_cpu *c) __attribute__((weak));

/* Begins that ring; uni_trace_init() keeps it for this CPU. */
void uni_trace_begin(struct uni_trace_cpu *c, void *mem, uint64_t size);

/* Architecture: fills kinds and hooks; any address of the traced text. */
void uni_trace_machine_init(struct uni_trace_head *h);
uint64_t uni_trace_text(void);

#endif
