/* SPDX-License-Identifier: BSD-2-Clause */
/* Promise events as a timeline of records, for exporters that take those of a guest's rings. */
#ifndef UNI_PROMISE_TIMELINE_H
#define UNI_PROMISE_TIMELINE_H

#include "promise/event.h"
#include "trace/timeline.h"

struct uni_promise_timeline; /* opaque */

struct uni_promise_timeline *uni_promise_timeline_create(void); /* NULL: out of memory */
/* A uni_promise_event_fn; arg is the timeline. 0 or -UNI_ENOMEM. */
int uni_promise_timeline_add(void *arg, const struct uni_promise_event *event);
/* All that was added, to be read once; t must outlive it. */
struct uni_timeline uni_promise_timeline_get(struct uni_promise_timeline *t);
void uni_promise_timeline_destroy(struct uni_promise_timeline *t); /* NULL-safe */

#endif
