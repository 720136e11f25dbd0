/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing a guest's events-vcpuN: packets as they come from its rings (trace/ring.h). */
#ifndef UNI_RECORDING_RING_STREAM_H
#define UNI_RECORDING_RING_STREAM_H

#include "base/err.h"
#include "recording/traced.h"

struct uni_tstream; /* opaque */

/* For guest number `guest` in the session with the folder dir_fd (borrowed). A stream is made with
 * its first packet. */
int uni_tstream_create(int dir_fd, uint32_t guest, const uint8_t uuid[16],
	const struct uni_ring_info *info, struct uni_tstream **ret, struct uni_err *err);
/* NULL-safe. */
void uni_tstream_destroy(struct uni_tstream *t);

/*
 * Sets where this CPU's stream begins: earlier losses and records are not of this trace.
 * extra_before: how many of the earlier words are no events (struct uni_trace_sub). Without this
 * call the stream begins with the boot: data overwritten before the first packet counts as lost. It
 * may be called again until something is put.
 */
void uni_tstream_begin(struct uni_tstream *t, uint32_t cpu, uint64_t now, uint64_t words_before,
	uint64_t extra_before, uint64_t guest_lost);

/*
 * Records of CPU 0 at the beginning of the stream, after its mark and at its time. They are the
 * state before the trace, as the host knows it. They are whole extended records, without a time,
 * and count as neither words nor events. At most UNI_TRACE_SUB_SIZE / 16 words. Returns 0 or
 * -UNI_ENOMEM.
 */
int uni_tstream_state(struct uni_tstream *t, const uint64_t *words, size_t nr);
/* The same at the end: they get the time of the newest record. After uni_tstream_end() of all
 * CPUs. */
void uni_tstream_last(struct uni_tstream *t);

/* Appends one sub-buffer, as uni_ring_packet_fn gets it (arg is the stream). If the disk is full,
 * the sub-buffer counts as lost, and the first such failure is kept. Always returns 0. */
int uni_tstream_put(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content);

/* Writes the final numbers of the guest's lost events and overwritten words, for readers. */
void uni_tstream_end(struct uni_tstream *t, uint32_t cpu, uint64_t guest_lost,
	uint64_t words_before, uint64_t extra_before);

/* Packets, words and losses so far. */
void uni_tstream_stats(const struct uni_tstream *t, uint32_t cpu, struct uni_record_trace_cpu *ret);
/* 0, or -errno of the first packet that could not be written. */
int uni_tstream_errno(const struct uni_tstream *t);

#endif
