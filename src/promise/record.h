/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread and promise events among the records of a guest's ring (uniscope/promise.h). */
#ifndef UNI_PROMISE_RECORD_H
#define UNI_PROMISE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "promise/event.h"
#include "trace/record.h"
#include "trace/timeline.h"

/*
 * Converts an extended record of class `cls` and `nr` words, at `time` ns on that CPU; the text is
 * borrowed from the words. ns_per_cycle: for the guest's counter. False: it is none of these, or is
 * invalid.
 */
bool uni_promise_of_record(uint16_t cls, const uint64_t *words, unsigned nr, uint32_t cpu,
	uint64_t time, double ns_per_cycle, struct uni_promise_event *ret);

#define UNI_PROMISE_WORDS 2048 /* maximum of a record; longer texts are cut */

/* The reverse, with cycles of 1 ns; returns the number of words. Not for kind LOST. */
unsigned uni_promise_to_record(
	const struct uni_promise_event *e, uint64_t words[UNI_PROMISE_WORDS], uint16_t *cls_ret);

/*
 * The same of an event that `tl` has just read, its losses included. False: it is of another kind.
 */
bool uni_promise_of_call(const struct uni_timeline *tl, const struct uni_call_event *e,
	struct uni_promise_event *ret);

#endif
