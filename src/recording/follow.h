/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session while it is recorded. Each look returns only new samples and exits, so its time depends
 * on their number only. They come in the order of time. The newest ones wait for a later look if a
 * vCPU's data is not there yet.
 */
#ifndef UNI_RECORDING_FOLLOW_H
#define UNI_RECORDING_FOLLOW_H

#include "recording/recording.h"

struct uni_follow; /* opaque */

/* -UNI_ENOTSUP: it was closed. Calls are not passed on: see recording/follow_calls.h. patience_ns:
 * a vCPU without data for that long does not delay the others. */
int uni_follow_open(
	const char *path, uint64_t patience_ns, struct uni_follow **ret, struct uni_err *err);
void uni_follow_close(struct uni_follow *f); /* NULL-safe */
/* Its statistics count only what was passed on; borrowed. */
struct uni_recording *uni_follow_recording(struct uni_follow *f);

/* A result other than 0 ends the look, and is returned. NULL: not called. */
struct uni_follow_taker {
	int (*sample)(void *ctx, const struct uni_sample *s);
	int (*exit)(void *ctx, const struct uni_stream_exit *e);
	void *ctx;
};

/* Passes on everything new. -UNI_EAGAIN: the session has to be opened and read again. It has ended,
 * has other images than before, or has new samples that are older than some that were passed on. */
int uni_follow_look(struct uni_follow *f, const struct uni_follow_taker *to, struct uni_err *err);
uint64_t uni_follow_torn(const struct uni_follow *f); /* packets that were skipped */

#endif
