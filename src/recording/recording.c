/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading. Nothing in the folder is trusted: sizes are checked, memory is one packet a vCPU. */
#include "recording/recording_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "obj/usym.h"
#include "recording/ctf.h"
#include "recording/folder.h"
#include "recording/sjson.h"
#include "recording/stats.h"

static int merge_each(const struct uni_recording *r, enum uni_ctf_stream kind,
	const struct uni_rtaker *to, uint64_t *torn_ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_rmerge *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return uni_err_nomem(err);
	rc = uni_rmerge_open(m, r->path, &r->session, kind, err);
	if (rc < 0)
		return rc;
	rc = uni_rmerge_run(m, to);
	if (torn_ret != NULL)
		*torn_ret = m->torn;
	uni_rmerge_close(m);
	return rc;
}

int uni_recording_each(struct uni_recording *r, int (*fn)(void *ctx, const struct uni_sample *s),
	void *ctx, uint64_t *torn_ret, struct uni_err *err)
{
	const struct uni_rtaker to = { .sample = fn, .ctx = ctx };

	return merge_each(r, UNI_CTF_SAMPLES, &to, torn_ret, err);
}

int uni_recording_each_exit(struct uni_recording *r,
	int (*fn)(void *ctx, const struct uni_stream_exit *e), void *ctx, uint64_t *torn_ret,
	struct uni_err *err)
{
	const struct uni_rtaker to = { .exit = fn, .ctx = ctx };

	return merge_each(r, UNI_CTF_EXITS, &to, torn_ret, err);
}

static int recount_streams(struct uni_recording *r, struct uni_recounts *c,
	enum uni_ctf_stream kind, struct uni_rmerge *m, struct uni_err *err)
{
	const bool exits = kind == UNI_CTF_EXITS;
	const struct uni_rtaker to = { .sample = exits ? NULL : uni_recount_sample,
		.exit = exits ? uni_recount_exit : NULL,
		.ctx = c };
	int rc = uni_rmerge_open(m, r->path, &r->session, kind, err);

	if (rc < 0)
		return rc;
	(void)uni_rmerge_run(m, &to);
	uni_rmerge_close(m);
	uni_recount_lost(c, m);
	return 0;
}

static int recount_samples(struct uni_recording *r, struct uni_err *err)
{
	_cleanup_free_ struct uni_rmerge *m = malloc(sizeof(*m));
	struct uni_recounts *c = uni_recounts_create(r, NULL);
	int rc = 0;

	if (c == NULL || m == NULL)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = recount_streams(r, c, UNI_CTF_SAMPLES, m, err);
	if (rc == 0)
		rc = recount_streams(r, c, UNI_CTF_EXITS, m, err);
	if (rc == 0)
		uni_recounts_sum(c, &r->sum);
	uni_recounts_destroy(c);
	return rc;
}

/*
 * A recorder whose disk was full has counted samples that it could not write, and session.json has
 * their states. So they are counted again from the samples that are there.
 */
static bool counts_too_much(const struct uni_record_stats *st)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++) {
		if (__builtin_add_overflow(sum, st->state[i], &sum))
			return true;
	}
	return sum > st->weight;
}

static int recount_written(struct uni_recording *r, struct uni_err *err)
{
	_cleanup_free_ struct uni_record_stats *said =
		calloc(r->session.nr_guests + 1, sizeof(*said));
	bool any = false;
	int rc;

	if (said == NULL)
		return uni_err_nomem(err);
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		struct uni_record_stats *st = &r->session.guest[i]->stats;

		said[i] = *st;
		any = any || (!r->session.guest[i]->meta.aggregate && counts_too_much(st));
		*st = (struct uni_record_stats){ .times = st->times, .nr_times = st->nr_times };
	}
	rc = any ? recount_samples(r, err) : 0;
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		struct uni_record_stats *st = &r->session.guest[i]->stats;

		if (any)
			uni_record_stats_take_shares(&said[i], st);
		*st = said[i];
	}
	return rc;
}

int uni_recording_find_vcpus(struct uni_recording *r, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	uint32_t all = 0;
	int rc = uni_sdir_open(r->path, &fd, err);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < r->session.nr_guests; i++)
		all += r->session.guest[i]->meta.nr_vcpus;
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		struct uni_record_meta *m = &r->session.guest[i]->meta;
		uint32_t more = uni_sdir_nr_vcpus(fd, i, m->nr_vcpus) - m->nr_vcpus;

		more = uni_min(more, UNI_SESSION_VCPUS_MAX - all);
		m->nr_vcpus = m->info.nr_vcpus = m->nr_vcpus + more;
		all += more;
	}
	return 0;
}

/* Samples without names are still worth reading, and names may come from elsewhere. */
static int load_names(struct uni_recording *r, struct uni_recorded_names *n, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name;
	int rc;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/%s/%s.usym", r->path, UNI_SDIR_SYMBOLS, n->id);
	if (uni_strbuf_failed(&name))
		return uni_err_nomem(err);
	if (n->id[0] == '\0' || uni_door_access(name.s, F_OK) != 0)
		return 0;
	rc = uni_symtab_load(name.s, &n->symtab, &n->err);
	return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "%s", n->err.msg) : 0;
}

bool uni_recording_has_names(const struct uni_recording *r, const char *id)
{
	_cleanup_strbuf_ struct uni_strbuf name;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/%s/%s.usym", r->path, UNI_SDIR_SYMBOLS, id);
	return id[0] != '\0' && !uni_strbuf_failed(&name) && uni_door_access(name.s, F_OK) == 0;
}

static int find_names(struct uni_recording *r, const char *id, uint32_t *ret, struct uni_err *err)
{
	struct uni_recorded_names n = { .id = id };
	int rc;

	for (*ret = 0; *ret < r->names.nr; ++*ret) {
		if (strcmp(r->names.v[*ret].id, id) == 0)
			return 0;
	}
	rc = load_names(r, &n, err);
	if (rc == 0 && !uni_vec_push(&r->names, n)) {
		uni_symtab_destroy(n.symtab);
		rc = uni_err_nomem(err);
	}
	return rc;
}

/* The names of all images of a guest that has several. */
static int join_names(struct uni_recording *r, uint32_t guest, struct uni_err *err)
{
	const struct uni_record_meta *m = &r->session.guest[guest]->meta;
	struct uni_symtab_part part[UNI_IMAGES_MAX];
	const struct uni_symtab *main_one = r->names.v[r->names_of[guest]].symtab;
	size_t nr = 0;

	if (m->nr_more == 0 || main_one == NULL)
		return 0;
	part[nr++] = (struct uni_symtab_part){ .symtab = main_one };
	for (uint32_t i = 0; i < m->nr_more; i++) {
		uint32_t at;
		int rc = find_names(r, m->more[i].id, &at, err);

		if (rc != 0)
			return rc;
		if (r->names.v[at].symtab != NULL)
			part[nr++] = (struct uni_symtab_part){ .symtab = r->names.v[at].symtab,
				.delta = m->bias - m->more[i].bias };
	}
	return uni_symtab_join(part, nr, &r->join[guest], err);
}

static int load_symbols(struct uni_recording *r, struct uni_err *err)
{
	int rc = 0;

	for (uint32_t g = 0; rc == 0 && g < r->session.nr_guests; g++) {
		rc = find_names(r, r->session.guest[g]->meta.image_id, &r->names_of[g], err);
		if (rc == 0)
			rc = join_names(r, g, err);
	}
	return rc;
}

int uni_recording_open_bare(const char *path, struct uni_recording **ret, struct uni_err *err)
{
	struct uni_recording *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return uni_err_nomem(err);
	r->path = strdup(path);
	if (r->path == NULL)
		rc = uni_err_nomem(err);
	else
		rc = uni_session_load(path, &r->session, err);
	if (rc == 0)
		rc = load_symbols(r, err);
	if (rc == 0 && !r->session.closed)
		rc = uni_recording_find_vcpus(r, err);
	if (rc < 0) {
		uni_recording_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int uni_recording_open(const char *path, struct uni_recording **ret, struct uni_err *err)
{
	struct uni_recording *r = NULL;
	int rc = uni_recording_open_bare(path, &r, err);

	if (rc == 0)
		rc = r->session.closed ? recount_written(r, err) : recount_samples(r, err);
	if (rc < 0) {
		uni_recording_close(r);
		return rc;
	}
	uni_session_sum(&r->session, &r->sum);
	*ret = r;
	return 0;
}

void uni_recording_close(struct uni_recording *r)
{
	if (r == NULL)
		return;
	uni_session_free_parsed(&r->session);
	for (size_t i = 0; i < UNI_GUEST_MAX; i++)
		uni_symtab_destroy(r->join[i]);
	for (size_t i = 0; i < r->names.nr; i++)
		uni_symtab_destroy(r->names.v[i].symtab);
	uni_vec_free(&r->names);
	uni_recorded_part_destroy(r->part);
	free(r->path);
	free(r);
}

bool uni_recording_was_closed(const struct uni_recording *r)
{
	return r->session.closed;
}

uint32_t uni_recording_nr_guests(const struct uni_recording *r)
{
	return r->session.nr_guests;
}

struct uni_recorded_guest uni_recording_guest(const struct uni_recording *r, uint32_t guest)
{
	const struct uni_session_guest *g = r->session.guest[guest];
	const struct uni_recorded_names *n = &r->names.v[r->names_of[guest]];

	return (struct uni_recorded_guest){ .meta = &g->meta,
		.stats = &g->stats,
		.shown = r->part != NULL ? &r->part->stats[guest] : &g->stats,
		.watch = g->watch,
		.nr_watch = g->nr_watch,
		.thread = g->thread,
		.nr_thread = g->nr_thread,
		.symtab = r->join[guest] != NULL ? r->join[guest] : n->symtab,
		.symtab_problem = n->err.code != 0 ? n->err.msg : NULL };
}

const char *uni_recording_path(const struct uni_recording *r)
{
	return r->path;
}

const struct uni_record_meta *uni_recording_meta(const struct uni_recording *r)
{
	return &r->session.guest[0]->meta;
}

const struct uni_record_stats *uni_recording_stats(const struct uni_recording *r)
{
	return &r->sum;
}
