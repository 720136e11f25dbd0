/* SPDX-License-Identifier: BSD-2-Clause */
/* What `trace threads`, `why`, `wakeups` and `findings` share: a model from whatever FILE is. */
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

/* On stderr: what a trace of MirageOS lacks, if anything. */
void uni_promises_say_damage(const char *path, const struct uni_mirage_stats *st);
/*
 * Adds what FILE (called path, opened as in) has to b, which is to be finished then. Nothing,
 * without an error, if it is a session that has none.
 */
int uni_promises_read(struct uni_promise_builder *b, const char *path, const struct uni_input *in,
	const struct uni_promises_args *args, struct uni_err *err);

/*
 * FILE is a session, or a trace ring of MirageOS ("-": from stdin). What is missing or damaged is
 * said on stderr. Close in any case where this returned 0.
 */
int uni_promises_open(struct uni_promises *ret, const char *path,
	const struct uni_promises_args *args, struct uni_err *err);
/* The same with another output than stdout. */
int uni_promises_open_to(struct uni_promises *ret, const char *path, const char *output,
	const struct uni_promises_args *args, struct uni_err *err);
/* Only the events, by time, and the label of nobody that ends a trace; a negative return of fn ends
 * it and is returned. */
int uni_promises_each(const char *path, const struct uni_promises_args *args,
	uni_promise_event_fn fn, void *arg, struct uni_err *err);
/*
 * When that guest's trace was stopped, if all that the session says of time agrees, else it is said
 * on stderr that it is not believed; 0: not known.
 */
uint64_t uni_promises_end_ns(const struct uni_recording *rec, uint32_t guest);
/* rc: of what was done with it; or the output's failure. The exit status. */
int uni_promises_close(struct uni_promises *p, int rc, struct uni_err *err);

/* A promise by number (0x... as well) or by name, the newest of that name. */
int uni_promises_find(
	const struct uni_promises *p, const char *text, uint32_t *ret, struct uni_err *err);

#endif
