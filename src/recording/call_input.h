/* SPDX-License-Identifier: BSD-2-Clause */
/* The function calls of a session, for their decoders (trace/input.h). */
#ifndef UNI_RECORDING_CALL_INPUT_H
#define UNI_RECORDING_CALL_INPUT_H

#include "base/err.h"
#include "recording/recording.h"
#include "trace/input.h"

struct uni_tinput; /* opaque */

/* Opens the streams of one guest; rec must outlive it. -UNI_ENOENT: this guest was not traced. The
 * files are mapped: a session that is still being recorded has its data until now. */
int uni_tinput_open(const struct uni_recording *rec, uint32_t guest, struct uni_tinput **ret,
	struct uni_err *err);
void uni_tinput_close(struct uni_tinput *t); /* NULL-safe */
/* Borrowed. */
const struct uni_trace_input *uni_tinput_get(const struct uni_tinput *t);
/* The first traced guest of a session. -UNI_ENOENT: there is none. */
int uni_tinput_find(const struct uni_recording *rec, uint32_t *guest_ret, struct uni_err *err);

/* Parts of it, for readers that follow a session (recording/follow_calls.h). The first fills
 * everything but streams and names, the second is a CPU's clock. The third makes the names; the
 * caller frees *ret. */
void uni_tinput_describe(const struct uni_record_trace *trace, struct uni_trace_input *ret);
struct uni_trace_clock uni_tinput_clock(const struct uni_record_clock *c);
int uni_tinput_names(const struct uni_recorded_guest *g, struct uni_trace_thread_name **ret,
	struct uni_trace_input *in, struct uni_err *err);

#endif
