/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of every call, as QEMU's plugin writes them into a file (uniscope/exact.h), into a
 * session. Nothing in the file is trusted: packets are copied, and then read as a guest's.
 */
#ifndef UNI_RECORDING_EXACT_CALLS_H
#define UNI_RECORDING_EXACT_CALLS_H

#include "base/err.h"
#include "recording/ring_stream.h"
#include "recording/traced.h"

struct uni_exact_calls; /* opaque */

/* As long as it is open, the guest waits where it would overwrite records that were not taken.
 * -UNI_ENOENT: no such file. -UNI_EBUSY: another reader has it. */
int uni_exact_calls_open(const char *path, struct uni_exact_calls **ret, struct uni_err *err);
void uni_exact_calls_close(struct uni_exact_calls *c); /* NULL-safe */

/* For the session's description: what is known before the first record. *ret is zeroed first. */
int uni_exact_calls_describe(
	const struct uni_exact_calls *c, struct uni_record_trace *ret, struct uni_err *err);
/* The counts of the streams, at the end. */
void uni_exact_calls_count(const struct uni_exact_calls *c, struct uni_record_trace *ret);

/* Takes whole sub-buffers; *nr_ret: how many. */
int uni_exact_calls_poll(
	struct uni_exact_calls *c, struct uni_tstream *out, uint64_t *nr_ret, struct uni_err *err);
/* Takes the rest: QEMU has ended, or its newest records do not matter. */
int uni_exact_calls_end(struct uni_exact_calls *c, struct uni_tstream *out, struct uni_err *err);

/* Does the QEMU that writes it live? */
bool uni_exact_calls_goes_on(const struct uni_exact_calls *c);

#endif
