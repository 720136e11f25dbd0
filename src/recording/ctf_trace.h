/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams guest-N/events-vcpuN: a guest's own sub-buffers (uniscope/trace_abi.h) as packets.
 * Only their 128-byte header is made anew; the records are as the guest wrote them.
 */
#ifndef UNI_RECORDING_CTF_TRACE_H
#define UNI_RECORDING_CTF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "recording/traced.h"
#include "uniscope/trace_abi.h"

#define UNI_CTF_EVENTS 16 /* stream_id of CPU 0, and so on: each has a clock of its own */

/* Clocks, streams and events for metadata; trace->nr_cpus is not 0. */
void uni_ctf_metadata_trace(
	struct uni_strbuf *out, const struct uni_record_trace *trace, uint64_t realtime_offset_ns);

/* Numbers of the packet before, from which those of the next one follow. */
struct uni_ctf_trace_state {
	uint64_t seq;	     /* packets so far */
	uint64_t guest_seq;  /* of the last sub-buffer; 0: none yet */
	uint64_t next_words; /* words_before of the next, if nothing is lost in between */
	uint64_t end;	     /* its ts_end */
	uint64_t next_extra; /* and its extra_before */
	uint64_t lost_words; /* that are known to be missing by now */
	uint64_t lost_extra; /* of these: no events */
	uint64_t base_lost;  /* the guest's count of lost events when the stream began */
	uint64_t lost;	     /* lost events since, according to the guest */
};

/* Beyond these a guest lies, and readers of CTF give up. */
#define UNI_CTF_TIME_MAX (UINT64_C(1) << 61) /* cycles */
#define UNI_CTF_LOST_MAX (UINT64_C(1) << 62)

/* Time at which the packet for the stream begins: not before the end of the packet ahead of it. */
uint64_t uni_ctf_trace_begin(
	const struct uni_ctf_trace_state *st, const struct uni_trace_sub *from);

/*
 * Header of the packet for the stream, from the guest's: `content` bytes, header included, are
 * valid. Times and
 * losses that go back are raised, numbers follow on. `end` is the last record's time; `closed`: the
 * sub-buffer has an end of its own.
 */
void uni_ctf_trace_header(struct uni_ctf_trace_state *st, const struct uni_trace_sub *from,
	size_t content, uint64_t end, bool closed, const uint8_t uuid[16], uint32_t cpu,
	struct uni_trace_sub *ret);

#endif
