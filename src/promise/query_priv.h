/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_PROMISE_QUERY_PRIV_H
#define UNI_PROMISE_QUERY_PRIV_H

#include "promise/query.h"

/* Is it a lost wake-up: did its signal come before the wait, and never since? */
bool uni_promise_missed(const struct uni_promise_model *m, const struct uni_promise_wait *w);

/* An open wait for a lock: its waiter has run since, and nothing tells that it still waits. */
bool uni_promise_may_have_given_up(const struct uni_promise_wait *w);

/* Time until its end, or the end of the trace. */
uint64_t uni_promise_life(const struct uni_promise_model *m, const struct uni_promise *p);

/* Minimum time in [from, to) for which the host ran the guest. */
uint64_t uni_promise_on_cpu_ns(const struct uni_promise_model *m, uint64_t from, uint64_t to);

/* Adds promises that starved, and whether that is in doubt. Returns 0 or -UNI_ENOMEM. */
int uni_promise_starved(
	const struct uni_promise_model *m, uint64_t busy_ns, struct uni_findings *ret);

#endif
