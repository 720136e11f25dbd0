/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared code of `trace threads`, `why`, `wakeups` and `findings`: a model from any kind of
 * FILE. */
#ifndef UNI_APP_PROMISES_H
#define UNI_APP_PROMISES_H

#include "base/sink.h"
#include "app/input.h"
#include "app/options.h"
#include "format/mirage/mirage.h"
#include "promise/model.h"
#include "recording/recording.h"

struct uni_promises_args {
	const char *guest;
	bool quick; /* leave out names that the image alone has: it is not loaded */
};

#define UNI_PROMISES_OPTIONS(a)                                                               \
	{                                                                                     \
		0, "guest", UNI_OPT_STR, &(a).guest, "N|NAME",                                \
			"this guest, of a session with several (default: the first that was " \
			"traced)",                                                            \
			NULL, NULL                                                            \
	}

struct uni_promises {
	struct uni_promise_builder *builder;
	const struct uni_promise_model *m; /* builder's */
	struct uni_sink *out;
};

/* Reports damage and losses of a MirageOS trace on stderr, if there are any. */
void uni_promises_say_damage(const char *path, const struct uni_mirage_stats *st);
/*
 * Adds what FILE (called path, opened as in) has to b, which is to be finished then. Nothing,
 * without an error, if it is a session that has none.
 */
int uni_promises_read(struct uni_promise_builder *b, const char *path, const struct uni_input *in,
	const struct uni_promises_args *args, struct uni_err *err);

/* FILE is a session, or a trace ring of MirageOS ("-": from stdin). Losses and damage are reported
 * on stderr. Close it in any case if this returned 0. */
int uni_promises_open(struct uni_promises *ret, const char *path,
	const struct uni_promises_args *args, struct uni_err *err);
/* The same with another output than stdout. */
int uni_promises_open_to(struct uni_promises *ret, const char *path, const char *output,
	const struct uni_promises_args *args, struct uni_err *err);
/* Only the events, by time, and the label of nobody that ends a trace; a negative return of fn ends
 * it and is returned. */
int uni_promises_each(const char *path, const struct uni_promises_args *args,
	uni_promise_event_fn fn, void *arg, struct uni_err *err);
/* The time at which that guest's trace was stopped, if all times in the session agree. If they do
 * not, a message on stderr says that it is ignored. 0: not known. */
uint64_t uni_promises_end_ns(const struct uni_recording *rec, uint32_t guest);
/* rc: result of the caller's work. Returns the exit status, also for a failure of the output. */
int uni_promises_close(struct uni_promises *p, int rc, struct uni_err *err);

/* A promise by number (also 0x...) or by name, the newest of that name. */
int uni_promises_find(
	const struct uni_promises *p, const char *text, uint32_t *ret, struct uni_err *err);

#endif
