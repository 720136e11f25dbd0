/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function calls of a session while it is recorded: an input (trace/input.h) that grows at its
 * end, packet by packet.
 */
#ifndef UNI_RECORDING_FOLLOW_CALLS_H
#define UNI_RECORDING_FOLLOW_CALLS_H

#include "base/err.h"
#include "recording/recording.h"
#include "trace/input.h"

struct uni_tfollow; /* opaque */

/* Follows the calls of one guest; rec must outlive it. -UNI_ENOTSUP: the way in which it is
 * recorded is not known, or this process has no room for it. */
int uni_tfollow_open(const struct uni_recording *rec, uint32_t guest, uint64_t patience_ns,
	struct uni_tfollow **ret, struct uni_err *err);
void uni_tfollow_close(struct uni_tfollow *f); /* NULL-safe */
/* Borrowed; live. */
const struct uni_trace_input *uni_tfollow_input(const struct uni_tfollow *f);

/* Finds new packets and names. *until_ret is a time by CPU 0's counter: nothing older can come,
 * except from a CPU that is behind the others by patience_ns. */
int uni_tfollow_look(struct uni_tfollow *f, uint64_t *until_ret, struct uni_err *err);

#endif
