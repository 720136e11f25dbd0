/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/record.h"
#include "cli/top/run.h"
#include "session/ctf.h"
#include "session/places.h"
#include "session/stats.h"

/* The recorder has more spare packets than this, whatever the streams: nothing is lost. */
#define FLUSH_BYTES  (3 * UNI_CTF_PACKET_MAX)
#define SAMPLE_BYTES (2 * UNI_CTF_STACK_MIN + 32u) /* without frames, at most */

struct save {
	struct uni_recorder *rec;
	struct uni_record_stats stats;
	struct uni_err *err;
	size_t since_flush; /* bytes, at most */
};

static int save_sample(void *ctx, const struct uni_sample *s)
{
	struct save *save = ctx;

	uni_recorder_sample(save->rec, s);
	save->stats.samples++;
	uni_record_stats_count(&save->stats, s);
	/* Here the disk may keep us waiting. */
	save->since_flush += SAMPLE_BYTES + s->nr * 9u;
	if (save->since_flush < FLUSH_BYTES)
		return 0;
	save->since_flush = 0;
	return uni_recorder_flush(save->rec, save->err);
}

/* The run's statistics, but of the samples only those that are saved. */
static void begin_stats(const struct uni_top_run *r, struct uni_record_stats *st)
{
	struct uni_history_info info;

	uni_history_info(r->top.history, &info);
	*st = r->top.last.stats;
	st->samples = st->weight = st->truncated = 0;
	memset(st->stop, 0, sizeof(st->stop));
	memset(st->state, 0, sizeof(st->state));
	if (info.kept != 0 && info.oldest_ns > st->begin_ns)
		st->begin_ns = info.oldest_ns;
	st->end_ns = info.newest_ns > st->end_ns ? info.newest_ns : st->end_ns;
}

static int write_all(struct uni_top_run *r, struct save *save, struct uni_err *err)
{
	const struct uni_guest_result result = { .stats = &save->stats };
	int rc = 0, rc2;

	if (r->symtab != NULL)
		rc = uni_recorder_add_symtab(save->rec, 0, r->symtab, err);

	if (rc == 0)
		rc = uni_history_each(r->top.history, save_sample, save);
	rc2 = uni_recorder_close(save->rec, &result, 1, rc == 0 ? err : NULL);
	return rc != 0 ? rc : rc2;
}

int uni_top_run_save(struct uni_top_run *r, char **path_ret, struct uni_err *err)
{
	_cleanup_free_ char *path = r->args->output != NULL ? uni_session_name(r->args->output)
							    : uni_record_default_output(r->g);
	const struct uni_image_search search = uni_search_of(&r->args->debug_dirs);
	struct save save = { .err = err };
	const char *note = NULL;
	int rc;

	if (path == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = uni_recorder_create(path, r->meta, false, &save.rec, err);
	if (rc != 0)
		return rc;
	begin_stats(r, &save.stats);
	rc = write_all(r, &save, err);
	if (rc != 0)
		return rc;
	/* Without them the session is as good as it was on the screen. */
	if (r->g->image != NULL && r->own_symtab != NULL)
		(void)uni_session_add_places(path, r->g->image, &search, &note, NULL);
	*path_ret = uni_take(path);
	return 0;
}
