/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "app/record.h"
#include "top/run.h"
#include "recording/ctf.h"
#include "recording/places.h"
#include "recording/stats.h"

/* The recorder has more spare packets than this, whatever the streams: nothing is lost. */
#define FLUSH_BYTES  (3 * UNI_CTF_PACKET_MAX)
#define SAMPLE_BYTES (2 * UNI_CTF_STACK_MIN + 32u) /* without frames, at most */

struct save {
	struct uni_top_run *run;
	struct uni_recorder *rec;
	struct uni_record_stats *stats; /* one a guest */
	struct uni_err *err;
	size_t since_flush; /* bytes, at most */
};

static int save_sample(void *ctx, const struct uni_sample *s)
{
	struct save *save = ctx;

	if (s->guest >= save->run->nr_guests)
		return 0;
	uni_recorder_sample(save->rec, s);
	save->stats[s->guest].samples++;
	uni_record_stats_count(&save->stats[s->guest], s);
	/* Here the disk may keep us waiting. */
	save->since_flush += SAMPLE_BYTES + s->nr * 9u;
	if (save->since_flush < FLUSH_BYTES)
		return 0;
	save->since_flush = 0;
	return uni_recorder_flush(save->rec, save->err);
}

/* The run's statistics, but of the samples only those that are saved. */
static void begin_stats(const struct save *save)
{
	const struct uni_top_run *r = save->run;
	struct uni_history_info info;

	uni_history_info(r->top.history, &info);
	for (uint32_t i = 0; i < r->nr_guests; i++) {
		struct uni_record_stats *st = &save->stats[i];

		uni_feed_guest_stats(r->feed, i, st);
		st->samples = st->weight = st->truncated = 0;
		memset(st->stop, 0, sizeof(st->stop));
		memset(st->state, 0, sizeof(st->state));
		if (info.kept != 0 && info.oldest_ns > st->begin_ns)
			st->begin_ns = info.oldest_ns;
		st->end_ns = uni_max(info.newest_ns, st->end_ns);
	}
}

static int begin_guests(struct save *save, const char *path)
{
	const struct uni_top_run *r = save->run;
	int rc = uni_recorder_create(path, &r->guest[0].meta, false, &save->rec, save->err);
	uint32_t number = 0;

	for (uint32_t i = 0; rc == 0 && i < r->nr_guests; i++) {
		if (i != 0)
			rc = uni_recorder_add_guest(
				save->rec, &r->guest[i].meta, &number, save->err);
		if (rc == 0)
			rc = uni_record_add_symbols(save->rec, number, r->g[i], save->err);
	}
	return rc;
}

static int write_all(struct save *save, const char *path)
{
	struct uni_guest_result result[UNI_GUEST_MAX];
	uint32_t nr = save->run->nr_guests;
	int rc = begin_guests(save, path), rc2;

	if (save->rec == NULL)
		return rc;
	if (rc == 0)
		rc = uni_history_each(save->run->top.history, save_sample, save);
	for (uint32_t i = 0; i < nr; i++)
		result[i] = (struct uni_guest_result){ .stats = &save->stats[i] };
	rc2 = uni_recorder_close(save->rec, result, nr, rc == 0 ? save->err : NULL);
	return rc != 0 ? rc : rc2;
}

/* Without them the session is as good as it was on the screen. */
static void add_places(const struct uni_top_run *r, const char *path)
{
	const struct uni_image_search search = uni_search_of(&r->args->debug_dirs);
	const char *note = NULL;

	for (uint32_t i = 0; i < r->nr_guests; i++) {
		const struct uni_guest *g = r->g[i];

		if (g->image != NULL && g->symtab == NULL)
			(void)uni_session_add_places(path, g->image, &search, &note, NULL);
		for (size_t k = 0; k < g->nr_more; k++)
			(void)uni_session_add_places(path, g->more[k].image, &search, &note, NULL);
	}
}

int uni_top_run_save(struct uni_top_run *r, char **path_ret, struct uni_err *err)
{
	_cleanup_free_ char *path = r->args->output != NULL
					    ? uni_session_name(r->args->output)
					    : uni_record_default_output(r->g[0], r->nr_guests);
	_cleanup_free_ struct uni_record_stats *stats = calloc(r->nr_guests, sizeof(*stats));
	struct save save = { .run = r, .stats = stats, .err = err };
	int rc;

	if (stats == NULL || path == NULL)
		return uni_err_nomem(err);
	begin_stats(&save);
	rc = write_all(&save, path);
	for (uint32_t i = 0; i < r->nr_guests; i++)
		uni_record_stats_deinit(&stats[i]);
	if (rc != 0)
		return rc;
	add_places(r, path);
	*path_ret = uni_take(path);
	return 0;
}
