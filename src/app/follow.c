/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/follow.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "app/quality.h"
#include "app/signals.h"
#include "app/term.h"
#include "backend/method.h"
#include "sampling/sampler.h"

#define AGAIN_NS (200 * UNI_NSEC_PER_MSEC)

static const char *method_of(const struct uni_guest *g)
{
	return uni_sampler_method(g->t);
}

/* Addresses must mean the same in both parts of the session, and so must what is counted. */
static bool is_same(const struct uni_follow *f, const struct uni_guest *before,
	const struct uni_guest *now, const char **why_ret)
{
	*why_ret = "only the sampler in the host's kernel can go on with --exits and --aggregate";
	if (f->in_kernel && (uni_method_flags(method_of(now)) & UNI_METHOD_KERNEL) == 0)
		return false;
	if (before->image == NULL || now->image == NULL) {
		*why_ret = "its image is not known";
		return before->image == now->image;
	}
	*why_ret = "it runs another image, or at another address: record that one by itself";
	return before->bias == now->bias &&
	       strcmp(uni_image_id(before->image), uni_image_id(now->image)) == 0;
}

/* A guest is a process here, or a domain. */
static const char *has_of(const struct uni_target_info *in)
{
	return in->pid > 0 ? "pid" : "domain";
}

static unsigned number_of(const struct uni_target_info *in)
{
	return in->pid > 0 ? (unsigned)in->pid : (unsigned)in->domid;
}

/* The part that begins now. */
static void add_gap(struct uni_follow *f, const char *method_before, const struct uni_guest *g,
	uint64_t gone_ns)
{
	struct uni_record_gap gap = {
		.begin_ns = gone_ns, .end_ns = uni_now_ns(), .pid = g->info.pid
	};

	(void)snprintf(gap.method, sizeof(gap.method), "%s", method_of(g));
	(void)uni_text_clean(gap.why, sizeof(gap.why), g->info.why, strlen(g->info.why));
	(void)uni_record_add_gap(f->meta, &gap);
	if (f->quiet)
		return;
	uni_note("%s goes on after %.1f s: %s %u", f->how.target,
		(double)(gap.end_ns - gone_ns) / 1e9, has_of(&g->info), number_of(&g->info));
	if (strcmp(gap.method, method_before) != 0) {
		char way[UNI_QUALITY_METHOD];

		uni_quality_way(way, gap.method, false, gap.why);
		uni_note("%s: from now on %s", f->how.target, way);
	}
}

#define SAY_AFTER_NS (3 * UNI_NSEC_PER_SEC)

void uni_hindrance_tell(
	struct uni_hindrance *h, const char *name, int rc, const struct uni_err *err)
{
	uint64_t now_ns = uni_now_ns();

	if (rc == -UNI_ENOENT || rc == -UNI_EGONE)
		h->since_ns = 0;
	else if (h->since_ns == 0)
		h->since_ns = now_ns;
	else if (!h->said && now_ns - h->since_ns >= SAY_AFTER_NS) {
		uni_note("%s cannot be recorded yet: %s", name, err->msg);
		h->said = true;
	}
}

/* One try; *ret stays NULL if there is no such guest yet. */
static int open_again(struct uni_follow *f, struct uni_guest **ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_guest *g = calloc(1, sizeof(*g));
	struct uni_attach_args how = f->how;
	char text[16];
	int rc;

	if (g == NULL)
		return uni_err_nomem(err);
	if (f->left_pid != 0) { /* Its name says of two VMMs that they have it. */
		int pid = uni_standing_other(how.target, f->left_pid);

		if (pid == 0)
			return uni_err_set(err, UNI_ENOENT, "no other guest named %s", how.target);
		(void)snprintf(text, sizeof(text), "%d", pid);
		how.target = text;
	}
	rc = uni_guest_open(g, &how, err);
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

static bool wait_for_it(struct uni_follow *f, struct uni_guest **ret)
{
	const struct timespec nap = uni_ns_timespec(AGAIN_NS);
	uint64_t begin_ns = uni_now_ns();
	struct uni_hindrance hindrance = { 0 };
	struct uni_err err = { 0 };
	int rc;

	while (!atomic_load(uni_signals_stop()) && uni_now_ns() < f->until_ns) {
		pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER; /* nothing is held */

		uni_signals_suspend(&gate);
		err = (struct uni_err){ 0 };
		rc = open_again(f, ret, &err);
		if (rc == 0) {
			uni_progress_end();
			return true;
		}
		if (!f->quiet)
			uni_hindrance_tell(&hindrance, f->how.target, rc, &err);
		uni_progress("waiting for %s to be there again (%.0f s)", f->how.target,
			(double)(uni_now_ns() - begin_ns) / 1e9);
		(void)nanosleep(&nap, NULL);
	}
	uni_progress_end();
	if (!f->quiet)
		uni_note("%s was not there again%s%s", f->how.target,
			err.msg[0] != '\0' ? ": " : "", err.msg);
	return false;
}

bool uni_follow_has_moved(struct uni_follow *f, const struct uni_standing *s)
{
	uint64_t now_ns = uni_now_ns();

	if (s->held != UNI_HELD_VMM || now_ns - f->looked_ns < UNI_NSEC_PER_SEC)
		return false;
	f->looked_ns = now_ns;
	return uni_standing_other(f->how.target, s->g->info.pid) != 0;
}

bool uni_follow_again(struct uni_follow *f, const struct uni_guest *before, uint64_t gone_ns)
{
	char method[sizeof(f->meta->gap[0].method)];
	struct uni_guest *g = NULL;
	const char *why;

	if (f->meta->nr_gap == UNI_GAPS_MAX)
		return false;
	f->left_pid = before->info.pid > 0 && !uni_process_is_ending(before->info.pid)
			      ? before->info.pid
			      : 0;
	if (!f->quiet && f->left_pid != 0)
		uni_note("another VMM has %s now", f->how.target);
	else if (!f->quiet)
		uni_note("the %s of %s, %s%u, has ended: waiting for its next one",
			before->info.pid > 0 ? "VMM" : "domain", f->how.target,
			before->info.pid > 0 ? "pid " : "", number_of(&before->info));
	(void)snprintf(method, sizeof(method), "%s", method_of(before));
	while (wait_for_it(f, &g) && !is_same(f, before, g, &why)) {
		bool ends = g->info.pid > 0 && uni_process_is_ending(g->info.pid);

		if (ends) { /* Its memory went first: its image is not known. */
			drop_guest(g);
			g = NULL;
			continue;
		}
		uni_note("%s is there again, %s %u, but is not recorded further: %s", f->how.target,
			has_of(&g->info), number_of(&g->info), why);
		drop_guest(g);
		return false;
	}
	if (g == NULL)
		return false;
	add_gap(f, method, g, gone_ns);
	drop_guest(f->now);
	f->now = g;
	return true;
}

void uni_follow_count(struct uni_follow *f, const struct uni_record_stats *st)
{
	uint32_t i = f->meta->nr_gap;

	/* Behind it may be gaps that begin no part. */
	while (i != 0 && !uni_record_gap_is_part(&f->meta->gap[--i]))
		;
	f->meta->gap[i].weight = st->weight;
	f->meta->gap[i].pauses = st->pause.nr;
}

void uni_follow_deinit(struct uni_follow *f)
{
	drop_guest(f->now);
	f->now = NULL;
}

void uni_follow_restores(
	const struct uni_guest *g, const char *name, bool quiet, struct uni_record_meta *meta)
{
	struct uni_stream_back b;

	while (g->t->ops->stream_back != NULL && g->t->ops->stream_back(g->t, &b)) {
		if (!quiet)
			uni_note("%s%sa snapshot was restored: the guest's clock went back by "
				 "%.1f s",
				name, name[0] != '\0' ? ": " : "", (double)b.back_ns / 1e9);
		(void)uni_record_add_gap(meta, &(struct uni_record_gap){ .begin_ns = b.begin_ns,
						       .end_ns = b.end_ns,
						       .pid = g->info.pid,
						       .back_ns = b.back_ns });
	}
}
