/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "recording/recording_priv.h"

struct uni_follow {
	struct uni_recording *rec;
	struct uni_recounts *counts;
	struct uni_rmerge samples, exits;
	const struct uni_follow_taker *to;
};

int uni_follow_open(
	const char *path, uint64_t patience_ns, struct uni_follow **ret, struct uni_err *err)
{
	struct uni_follow *f = calloc(1, sizeof(*f));
	int rc;

	if (f == NULL)
		return uni_err_nomem(err);
	rc = uni_recording_open_bare(path, &f->rec, err);
	if (rc == 0 && f->rec->session.closed)
		rc = uni_err_set(err, UNI_ENOTSUP, "%s does not go on", path);
	if (rc == 0) {
		f->counts = uni_recounts_create(f->rec, NULL);
		if (f->counts == NULL)
			rc = uni_err_nomem(err);
	}
	if (rc != 0) {
		uni_follow_close(f);
		return rc;
	}
	uni_rmerge_follow(
		&f->samples, f->rec->path, &f->rec->session, UNI_CTF_SAMPLES, patience_ns);
	uni_rmerge_follow(&f->exits, f->rec->path, &f->rec->session, UNI_CTF_EXITS, patience_ns);
	*ret = f;
	return 0;
}

void uni_follow_close(struct uni_follow *f)
{
	if (f == NULL)
		return;
	uni_rmerge_close(&f->samples);
	uni_rmerge_close(&f->exits);
	uni_recounts_destroy(f->counts);
	uni_recording_close(f->rec);
	free(f);
}

struct uni_recording *uni_follow_recording(struct uni_follow *f)
{
	return f->rec;
}

uint64_t uni_follow_torn(const struct uni_follow *f)
{
	return f->samples.torn + f->exits.torn;
}

/* How counters of its CPUs go with the host's time. */
static bool is_same_trace(const struct uni_record_trace *x, const struct uni_record_trace *y)
{
	bool same = x->nr_cpus == y->nr_cpus && strcmp(x->mode, y->mode) == 0 &&
		    memcmp(x->info.uuid, y->info.uuid, sizeof(x->info.uuid)) == 0;

	for (uint32_t i = 0; same && i < x->nr_cpus; i++) {
		const struct uni_record_clock *a = &x->cpu[i].clock, *b = &y->cpu[i].clock;

		same = a->cycles == b->cycles && a->ns == b->ns && a->hz == b->hz &&
		       a->error_ns == b->error_ns;
	}
	return same;
}

/* By what addresses are named. */
static bool is_same_guest(const struct uni_session_guest *a, const struct uni_session_guest *b)
{
	const struct uni_record_meta *x = &a->meta, *y = &b->meta;

	if (memcmp(a->uuid, b->uuid, sizeof(a->uuid)) != 0 || x->bias != y->bias ||
		strcmp(x->image_id, y->image_id) != 0 || x->nr_more != y->nr_more ||
		!is_same_trace(&x->trace, &y->trace))
		return false;
	for (uint32_t i = 0; i < x->nr_more; i++) {
		if (x->more[i].bias != y->more[i].bias || strcmp(x->more[i].id, y->more[i].id) != 0)
			return false;
	}
	return true;
}

static bool is_same(const struct uni_session *a, const struct uni_session *b)
{
	bool same = a->closed == b->closed && a->nr_guests == b->nr_guests;

	for (uint32_t i = 0; same && i < a->nr_guests; i++)
		same = is_same_guest(a->guest[i], b->guest[i]);
	return same;
}

/* Names that were not written yet when it was opened. */
static bool has_new_names(const struct uni_recording *r)
{
	for (size_t i = 0; i < r->names.nr; i++) {
		if (r->names.v[i].symtab == NULL && r->names.v[i].err.code == 0 &&
			uni_recording_has_names(r, r->names.v[i].id))
			return true;
	}
	return false;
}

/* Threads and vCPUs appear over time, and callers need the names of threads. */
static int look_at_session(struct uni_follow *f, struct uni_err *err)
{
	struct uni_session now = { 0 }, *old = &f->rec->session;
	int rc = uni_session_load(f->rec->path, &now, err);

	if (rc != 0)
		return rc;
	if (!is_same(old, &now) || has_new_names(f->rec)) {
		uni_session_free_parsed(&now);
		return -UNI_EAGAIN;
	}
	for (uint32_t i = 0; i < now.nr_guests; i++) {
		struct uni_session_guest *to = old->guest[i], *from = now.guest[i];

		free(to->thread);
		to->thread = from->thread;
		to->nr_thread = from->nr_thread;
		to->cap_thread = from->cap_thread;
		from->thread = NULL;
		from->nr_thread = 0;
		to->meta.threads = from->meta.threads;
	}
	uni_session_free_parsed(&now);
	return uni_recording_find_vcpus(f->rec, err);
}

static int on_sample(void *ctx, const struct uni_sample *s)
{
	struct uni_follow *f = ctx;
	int rc = uni_recount_sample(f->counts, s);

	return rc == 0 && f->to->sample != NULL ? f->to->sample(f->to->ctx, s) : rc;
}

static int on_exit_seen(void *ctx, const struct uni_stream_exit *e)
{
	struct uni_follow *f = ctx;
	int rc = uni_recount_exit(f->counts, e);

	return rc == 0 && f->to->exit != NULL ? f->to->exit(f->to->ctx, e) : rc;
}

int uni_follow_look(struct uni_follow *f, const struct uni_follow_taker *to, struct uni_err *err)
{
	const struct uni_rtaker samples = { .sample = on_sample, .ctx = f };
	const struct uni_rtaker exits = { .exit = on_exit_seen, .ctx = f };
	int rc = look_at_session(f, err);

	f->to = to;
	if (rc == 0)
		rc = uni_rmerge_more(&f->samples, &samples, err);
	if (rc == 0)
		rc = uni_rmerge_more(&f->exits, &exits, err);
	uni_recount_lost(f->counts, &f->samples);
	uni_recount_lost(f->counts, &f->exits);
	uni_recounts_sum(f->counts, &f->rec->sum);
	return rc;
}
