/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/slices.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define TRIES	   50
#define TRY_NAP_NS (2 * UNI_NSEC_PER_MSEC)

int uni_trace_write_job(struct uni_target *t, struct uni_patch_job *job)
{
	const struct timespec nap = uni_ns_timespec(TRY_NAP_NS);
	int rc = uni_patch_run(t, job);

	for (int i = 0; rc == -UNI_EAGAIN && i < TRIES; i++) {
		(void)nanosleep(&nap, NULL);
		rc = uni_patch_run(t, job);
	}
	return rc;
}

bool uni_trace_fits_one(const struct uni_target *t, const struct uni_trace_plan *p)
{
	return t->ops->write_places == 0 || p->code.nr <= t->ops->write_places;
}

/* Places of code, and the words if they come with them, by rising gpa. */
static size_t make_slice(
	const struct uni_trace_plan *p, size_t at, size_t nr, bool with_keys, struct uni_patch *to)
{
	size_t n = nr;

	if (nr != 0)
		memcpy(to, p->code.v + at, nr * sizeof(*to));
	if (with_keys && p->keys.nr != 0) {
		memcpy(to + n, p->keys.v, p->keys.nr * sizeof(*to));
		n += p->keys.nr;
		qsort(to, n, sizeof(*to), uni_trace_by_gpa);
	}
	return n;
}

int uni_trace_write(
	struct uni_target *t, const struct uni_trace_plan *p, bool on, struct uni_trace_stops *ret)
{
	const size_t most = t->ops->write_places != 0 ? t->ops->write_places : p->code.nr;
	_cleanup_free_ struct uni_patch *slice =
		calloc(uni_min(most, p->code.nr) + p->keys.nr + 1, sizeof(*slice));
	size_t at = 0;
	int rc = slice != NULL ? 0 : -UNI_ENOMEM;

	ret->bad_va = 0;
	do {
		size_t nr = uni_min(most, p->code.nr - at);
		bool with_keys = on ? at + nr == p->code.nr : at == 0;
		struct uni_patch_job job = { .patch = slice };
		struct timespec rest;

		if (rc == 0) {
			job.nr = make_slice(p, at, nr, with_keys, slice);
			rc = uni_trace_write_job(t, &job);
		}
		if (rc != 0) {
			ret->bad_va = job.bad < job.nr ? slice[job.bad].va : 0;
			return rc;
		}
		ret->longest_ns = uni_max(ret->longest_ns, job.pause_ns);
		ret->nr++;
		at += nr;
		rest = uni_ns_timespec(at < p->code.nr ? job.pause_ns : 0);
		(void)nanosleep(&rest, NULL);
	} while (at < p->code.nr);
	return 0;
}
