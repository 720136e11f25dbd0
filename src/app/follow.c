/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/follow.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "app/signals.h"
#include "app/term.h"

#define AGAIN_NS (200 * UNI_NSEC_PER_MSEC)

/* Addresses must mean the same in both parts of the session. */
static bool is_same(
	const struct uni_guest *before, const struct uni_guest *now, const char **why_ret)
{
	if (before->image == NULL || now->image == NULL) {
		*why_ret = "its image is not known";
		return before->image == now->image;
	}
	*why_ret = "it runs another image, or at another address: record that one by itself";
	return before->bias == now->bias &&
	       strcmp(uni_image_id(before->image), uni_image_id(now->image)) == 0;
}

/* One try; *ret stays NULL if there is no such guest yet. */
static int open_again(struct uni_follow *f, struct uni_guest **ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_guest *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return uni_err_nomem(err);
	rc = uni_guest_open(g, &f->how, err);
	if (rc == 0)
		*ret = uni_take(g);
	return rc;
}

static void drop_guest(struct uni_guest *g)
{
	if (g != NULL)
		uni_guest_close(g);
	free(g);
}

static bool wait_for_it(struct uni_follow *f, struct uni_guest **ret, bool quiet)
{
	const struct timespec nap = uni_ns_timespec(AGAIN_NS);
	uint64_t begin_ns = uni_now_ns();
	struct uni_err err = { 0 };

	while (!atomic_load(uni_signals_stop()) && uni_now_ns() < f->until_ns) {
		pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER; /* nothing is held */

		uni_signals_suspend(&gate);
		err = (struct uni_err){ 0 };
		if (open_again(f, ret, &err) == 0) {
			uni_progress_end();
			return true;
		}
		uni_progress("waiting for %s to be there again (%.0f s)", f->how.target,
			(double)(uni_now_ns() - begin_ns) / 1e9);
		(void)nanosleep(&nap, NULL);
	}
	uni_progress_end();
	if (!quiet)
		uni_note("%s was not there again%s%s", f->how.target,
			err.msg[0] != '\0' ? ": " : "", err.msg);
	return false;
}

bool uni_follow_again(
	struct uni_follow *f, const struct uni_guest *before, uint64_t gone_ns, bool quiet)
{
	struct uni_guest *g = NULL;
	const char *why;
	int pid = before->info.pid;

	if (f->nr_gap == UNI_GAPS_MAX)
		return false;
	if (!quiet)
		uni_note("the VMM of %s, pid %d, has ended: waiting for its next one",
			f->how.target, pid);
	if (!wait_for_it(f, &g, quiet))
		return false;
	if (!is_same(before, g, &why)) {
		uni_note("%s is there again, pid %d, but is not recorded further: %s",
			f->how.target, g->info.pid, why);
		drop_guest(g);
		return false;
	}
	f->gap[f->nr_gap] = (struct uni_record_gap){
		.begin_ns = gone_ns, .end_ns = uni_now_ns(), .pid = g->info.pid
	};
	if (!quiet)
		uni_note("%s goes on after %.1f s: pid %d", f->how.target,
			(double)(f->gap[f->nr_gap].end_ns - gone_ns) / 1e9, g->info.pid);
	f->nr_gap++;
	drop_guest(f->now);
	f->now = g;
	return true;
}

void uni_follow_deinit(struct uni_follow *f)
{
	drop_guest(f->now);
	f->now = NULL;
}
