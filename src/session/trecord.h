/* SPDX-License-Identifier: BSD-2-Clause */
/* From a guest's rings into a session: as it runs, or what they hold at one moment. */
#ifndef UNI_SESSION_TRECORD_H
#define UNI_SESSION_TRECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "session/recording.h"
#include "session/tclock.h"
#include "session/tnames.h"
#include "session/tracer.h"
#include "session/tstream.h"

struct uni_trecord_state {
	uint64_t elapsed_ns, words, lost;
};

struct uni_trecord_cfg {
	struct uni_target *t;
	struct uni_tracer *tracer;
	struct uni_tstream *out;
	struct uni_tclock *clock;
	struct uni_tnames *names; /* NULL: its threads are not known */
	uint64_t duration_ns;	  /* 0: until *stop or the guest's end */
	const atomic_bool *stop;  /* NULL: none */
	/* Now and then, of the caller's thread; may be NULL. */
	void (*on_progress)(void *ctx, const struct uni_trecord_state *st);
	void *ctx;
};

enum uni_trecord_end {
	UNI_TRECORD_TIME, /* the time was up */
	UNI_TRECORD_STOP, /* *stop */
	UNI_TRECORD_GONE, /* the guest ended: what its open sub-buffers held is gone with it */
};

/* Before tracing is switched on: the stream begins with what is recorded from now on. */
int uni_trecord_begin(const struct uni_trecord_cfg *cfg, struct uni_err *err);
/* Streams until something ends it. */
int uni_trecord_run(
	const struct uni_trecord_cfg *cfg, enum uni_trecord_end *ret, struct uni_err *err);
/*
 * The rest: holds the guest while what is not closed is copied, unless it is gone. *pause_ns_ret:
 * how long. For a snapshot this is all: every sub-buffer that the rings hold.
 */
int uni_trecord_end(const struct uni_trecord_cfg *cfg, uint64_t *pause_ns_ret, struct uni_err *err);

/* Clocks and counts of each CPU into the session's description. */
void uni_trecord_describe(const struct uni_trecord_cfg *cfg, struct uni_record_trace *ret);

#endif
