/* SPDX-License-Identifier: BSD-2-Clause */
/* From a guest's rings into a session: while it runs, or their content at one moment. */
#ifndef UNI_TRACING_RECORD_H
#define UNI_TRACING_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/recording.h"
#include "tracing/clock.h"
#include "tracing/host_time.h"
#include "tracing/open_promises.h"
#include "tracing/thread_names.h"
#include "tracing/tracer.h"
#include "recording/ring_stream.h"

struct uni_trecord_state {
	uint64_t elapsed_ns, events, lost;
};

/* Watches a recording while it is made, on its thread. It gets the packets of the stream, and the
 * content of open sub-buffers (uni_ring_peek()). A result other than 0 ends the recording. */
struct uni_trecord_cfg;
struct uni_trecord_watcher {
	/* Number of words of each CPU when the stream began, since the boot. Names are known. */
	int (*begin)(void *ctx, const struct uni_trecord_cfg *cfg, const uint64_t *words);
	int (*packet)(void *ctx, unsigned cpu, const struct uni_trace_sub *packet, size_t content);
	/* After a look at all CPUs: their numbers of words at that look. */
	int (*looked)(void *ctx, const uint64_t *words);
	void *ctx;
};

struct uni_trecord_cfg {
	struct uni_target *t;
	struct uni_tracer *tracer;
	struct uni_tstream *out;
	struct uni_tclock *clock;
	struct uni_thost *host;	  /* NULL: the host's times are not wanted */
	struct uni_tnames *names; /* NULL: its threads are not known */
	bool promises;		  /* promises that are open at the beginning are recorded, too */
	struct uni_topen_namer namer; /* where names and promises are set */
	bool held;		      /* the stream begins with what the rings hold already */
	uint64_t names_each_ns;	      /* look for threads that came meanwhile so often; 0: never */
	/* Names were taken, but for those of the end; the guest runs. May be NULL. */
	void (*on_names)(void *ctx);
	uint64_t duration_ns;	 /* 0: until *stop or the guest's end */
	const atomic_bool *stop; /* NULL: none */
	bool whole;		 /* at the end all is fetched, however long that takes */
	/* Now and then, of the caller's thread; may be NULL. */
	void (*on_progress)(void *ctx, const struct uni_trecord_state *st);
	void *ctx;
	const struct uni_trecord_watcher *watcher; /* NULL: nobody */
};

enum uni_trecord_end {
	UNI_TRECORD_TIME, /* the time was up */
	UNI_TRECORD_STOP, /* *stop, or the watcher */
	UNI_TRECORD_LOST, /* another tool chose functions: new records are not the requested ones */
	UNI_TRECORD_GONE, /* the guest ended, and its last records are lost */
};

/* Before tracing is switched on: the stream begins with records from now on, unless cfg->held. */
int uni_trecord_begin(const struct uni_trecord_cfg *cfg, struct uni_err *err);
/* For a snapshot, before its end: relates the guest's clocks to the host's, if it records. */
void uni_trecord_look(const struct uni_trecord_cfg *cfg);
/* Streams until something ends it. If the guest ended, the stream has its open sub-buffers as of
 * the last look, *unseen_ns_ret before its end was noticed; else that is 0. */
int uni_trecord_run(const struct uni_trecord_cfg *cfg, enum uni_trecord_end *ret,
	uint64_t *unseen_ns_ret, struct uni_err *err);
/*
 * Gets the rest: holds the guest while it copies open sub-buffers, unless the guest is gone.
 * *pause_ns_ret: the longest time for which it was stopped, 0 for a dead guest. For a snapshot this
 * is all: every sub-buffer in the rings.
 */
int uni_trecord_end(const struct uni_trecord_cfg *cfg, uint64_t *pause_ns_ret, struct uni_err *err);

/* May the guest be recording now, so that silence means something? A stopped guest does not
 * record. */
bool uni_trecord_runs(const struct uni_trecord_cfg *cfg);
/* Clocks and counts of each CPU into the session's description; drops an end_ns that its clock
 * cannot express. */
void uni_trecord_describe(const struct uni_trecord_cfg *cfg, struct uni_record_trace *ret);

#endif
