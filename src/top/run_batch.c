/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "top/batch.h"
#include "top/run.h"
#include "top/signals.h"

#define NAP_NS	 (50 * UNI_NSEC_PER_MSEC)
#define BEGIN_NS (10 * UNI_NSEC_PER_SEC) /* for a target to get ready; then we go on without */

/* Until the time has come, or there is no more to come. False: the user wants no more. */
static bool wait_until(struct uni_top_run *r, uint64_t deadline_ns, bool *ended_ret)
{
	for (;;) {
		uint64_t now_ns = uni_now_ns();
		struct timespec ts = uni_ns_timespec(uni_min(deadline_ns, now_ns + NAP_NS));

		if (uni_top_asked_to_end())
			return false;
		if (uni_top_asked_to_suspend())
			uni_top_run_suspend(r);
		*ended_ret = uni_feed_ended(r->feed);
		uni_top_run_drain(r);
		if (*ended_ret || now_ns >= deadline_ns)
			return true;
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

/* Waits until something is known. A target may need longer than an interval to get ready, and a
 * snapshot of that time would be empty. So the first interval begins with the sampling. */
static uint64_t wait_for_begin(struct uni_top_run *r)
{
	uint64_t now_ns = uni_now_ns(), give_up_ns = now_ns + BEGIN_NS;
	struct timespec nap = uni_ns_timespec(NAP_NS);

	for (;;) {
		uni_feed_status(r->feed, &r->status);
		if (r->status.at_ns != 0 || r->status.ended || now_ns >= give_up_ns ||
			uni_top_asked_to_end())
			break;
		if (uni_top_asked_to_suspend())
			uni_top_run_suspend(r);
		(void)nanosleep(&nap, NULL);
		now_ns = uni_now_ns();
	}
	return r->status.stats.begin_ns != 0 ? r->status.stats.begin_ns : now_ns;
}

/* 0, 1: the reader has gone away, or -UNI_E*. */
static int print_batch(struct uni_top_run *r, uint64_t number, struct uni_err *err)
{
	struct uni_batch_opts opts = { .guest = r->title,
		.names = r->guest,
		.max_rows = r->args->rows,
		.tree = r->args->function != NULL };
	_cleanup_strbuf_ struct uni_strbuf text;
	struct uni_sink *out = NULL;
	int e;

	uni_strbuf_init(&text);
	if (uni_sink_open_strbuf(&text, &out) != 0)
		return uni_err_nomem(err);
	if (r->args->json)
		uni_batch_json(&r->top, &opts, number, out);
	else
		uni_batch_text(&r->top, &opts, number, out);
	if (uni_sink_close(out, err) != 0)
		return -UNI_ENOMEM;
	/* All of a snapshot or nothing, as far as a pipe permits. */
	e = uni_write_full(STDOUT_FILENO, text.s, text.len);
	if (e == -EPIPE)
		return 1;
	if (e != 0)
		return uni_err_set(
			err, UNI_EIO, "cannot write to standard output: %s", strerror(-e));
	return 0;
}

/* A guest that ended is no failure, a sampler that could not begin is. */
static int batch_result(const struct uni_top_run *r, struct uni_err *err)
{
	const struct uni_feed_status *st = &r->top.last;

	if (!st->ended || st->rc == 0)
		return 0;
	*err = st->err;
	return st->rc;
}

int uni_top_run_batch(struct uni_top_run *r, struct uni_err *err)
{
	uint64_t interval_ns = (uint64_t)(r->args->interval * 1e9);
	uint64_t limit_ns = (uint64_t)(r->args->duration * 1e9);
	uint64_t deadline_ns = wait_for_begin(r);
	uint64_t end_ns = limit_ns != 0 ? deadline_ns + limit_ns : UINT64_MAX;
	bool ended = false;
	int rc = 0;

	if (!r->args->window_given)
		r->top.window_ns = interval_ns;
	for (uint64_t i = 1; !ended && rc == 0; i++) {
		deadline_ns = uni_min(deadline_ns + interval_ns, end_ns);
		if (!wait_until(r, deadline_ns, &ended))
			break;
		rc = uni_top_run_refresh(r, err);
		if (rc == 0)
			rc = batch_result(r, err);
		if (rc == 0)
			rc = print_batch(r, i, err);
		if (i == r->args->count || deadline_ns == end_ns)
			break;
	}
	return rc == 1 ? 0 : rc;
}
