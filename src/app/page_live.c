/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/page_live.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "app/live_calls.h"
#include "app/promises.h"
#include "app/quality.h"
#include "app/symbols.h"
#include "config.h"
#include "recording/follow.h"

/* A vCPU without data for this long does not delay the others. The time grows if data came later
 * than that. */
#define PATIENCE_NS	(3 * UNI_NSEC_PER_SEC)
#define PATIENCE_MAX_NS (60 * UNI_NSEC_PER_SEC)

struct uni_page_live {
	const struct uni_source_args *args;
	struct uni_page_whole whole;
	struct uni_build_opts opts;
	struct uni_symtab *symtab; /* of args->symbols */
	char *path;
	uint64_t patience_ns;
	struct uni_follow *follow; /* with growing; NULL: nothing was read yet */
	struct uni_page_growing *growing;
	struct uni_live_calls *calls; /* NULL: it has none */
	bool whole_only;	      /* there is too much to show new data alone */
};

struct uni_page_live *uni_page_live_create(
	const struct uni_source_args *args, const struct uni_page_whole *whole)
{
	struct uni_page_live *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->args = args;
	l->whole = *whole;
	return l;
}

static void close_followed(struct uni_page_live *l)
{
	uni_live_calls_close(l->calls);
	uni_page_growing_destroy(l->growing);
	uni_follow_close(l->follow);
	l->calls = NULL;
	l->growing = NULL;
	l->follow = NULL;
}

void uni_page_live_destroy(struct uni_page_live *l)
{
	if (l == NULL)
		return;
	close_followed(l);
	uni_symtab_destroy(l->symtab);
	free(l->path);
	free(l);
}

static int begin_following(struct uni_page_live *l, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&l->args->debug_dirs);
	struct uni_recording *rec;
	int rc = uni_follow_open(l->path, l->patience_ns, &l->follow, err);

	if (rc == 0 && l->args->symbols != NULL && l->symtab == NULL)
		rc = uni_symbols_load(l->args->symbols, &search, NULL, &l->symtab, err);
	if (rc != 0)
		return rc;
	rec = uni_follow_recording(l->follow);
	l->opts = l->args->build;
	l->opts.symtab = l->symtab;
	if (uni_page_growing_create(rec, &l->opts, &l->whole, &l->growing) != 0)
		return uni_err_nomem(err);
	rc = uni_live_calls_open(
		rec, l->args, l->symtab, &l->whole, l->patience_ns, &l->calls, err);
	if (rc == -UNI_ENOENT)
		*err = (struct uni_err){ 0 };
	return rc == -UNI_ENOENT ? 0 : rc;
}

static int look_for_more(struct uni_page_live *l, struct uni_err *err)
{
	struct uni_follow_taker to = { uni_page_growing_sample, uni_page_growing_exit, NULL };
	int rc = l->follow == NULL ? begin_following(l, err) : 0;

	to.ctx = l->growing;
	if (rc == 0)
		rc = uni_follow_look(l->follow, &to, err);
	if (rc == 0 && l->calls != NULL)
		rc = uni_live_calls_look(l->calls, err);
	/* It stays so. */
	if (rc == -UNI_ENOTSUP && l->calls != NULL)
		l->whole_only = uni_page_calls_too_many(uni_live_calls_page(l->calls));
	/* After a failure in the middle everything is opened again. */
	if (rc != 0)
		close_followed(l);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}

/* Threads and promises are read whole. */
static int read_promises(struct uni_page_live *l, struct uni_promise_builder **builder_ret,
	const struct uni_promise_model **ret, struct uni_err *err)
{
	const struct uni_promises_args args = { .quick = true };
	struct uni_input in = { 0 };
	int rc;

	if (l->calls == NULL || !uni_page_calls_told(uni_live_calls_page(l->calls)))
		return 0;
	*builder_ret = uni_promise_builder_create();
	if (*builder_ret == NULL)
		return uni_err_nomem(err);
	rc = uni_input_session(l->path, &in, err);
	if (rc != 0)
		return rc;
	rc = uni_promises_read(*builder_ret, l->path, &in, &args, err);
	if (rc == 0)
		*ret = uni_promise_builder_finish(*builder_ret);
	if (rc == 0 && (*ret)->all.nr == 0)
		*ret = NULL;
	uni_input_close(&in);
	return rc;
}

static int write_with(struct uni_page_live *l, const char *title,
	const struct uni_promise_model *promises, struct uni_strbuf *ret, struct uni_err *err)
{
	struct uni_recording *rec = uni_follow_recording(l->follow);
	_cleanup_strbuf_ struct uni_strbuf quality;
	struct uni_page_input in = { .title = title,
		.version = UNISCOPE_VERSION,
		.rec = rec,
		.opts = &l->opts,
		.growing = l->growing,
		.calls = l->calls != NULL ? uni_live_calls_page(l->calls) : NULL,
		.promises = promises,
		.whole = l->whole };
	struct uni_sample_filter shown = { .on_cpu = true };
	struct uni_page_left left = { 0 };
	struct uni_sink *out;
	int rc;

	uni_strbuf_init(&quality);
	if (uni_sink_open_strbuf(&quality, &out) != 0)
		return uni_err_nomem(err);
	shown.guest = l->opts.filter.guest;
	uni_quality_print(rec, &shown, out);
	rc = uni_sink_close(out, err);
	in.quality = quality.s;
	if (rc != 0 || uni_sink_open_strbuf(ret, &out) != 0)
		return uni_err_nomem(err);
	rc = uni_page_write_data(&in, out, &left, err);
	if (uni_sink_close(out, NULL) != 0 && rc == 0)
		rc = uni_err_nomem(err);
	return rc;
}

static int write_it(
	struct uni_page_live *l, const char *title, struct uni_strbuf *ret, struct uni_err *err)
{
	const struct uni_promise_model *promises = NULL;
	struct uni_promise_builder *builder = NULL;
	int rc = read_promises(l, &builder, &promises, err);

	if (rc == 0)
		rc = write_with(l, title, promises, ret, err);
	uni_promise_builder_destroy(builder);
	return rc;
}

static bool begin_path(struct uni_page_live *l, const char *path)
{
	if (l->path != NULL && strcmp(l->path, path) == 0)
		return true;
	close_followed(l);
	free(l->path);
	l->path = strdup(path);
	l->patience_ns = PATIENCE_NS;
	l->whole_only = false;
	return l->path != NULL;
}

int uni_page_live_build(struct uni_page_live *l, const char *path, const char *title,
	struct uni_strbuf *ret, struct uni_err *err)
{
	int rc;

	if (l->args->guest != NULL || l->args->thread != NULL || l->args->exits != NULL)
		return -UNI_ENOTSUP;
	if (!begin_path(l, path))
		return uni_err_nomem(err);
	if (l->whole_only)
		return -UNI_ENOTSUP;
	rc = look_for_more(l, err);
	if (rc == -UNI_EAGAIN) {
		l->patience_ns = uni_min(2 * l->patience_ns, (uint64_t)PATIENCE_MAX_NS);
		rc = look_for_more(l, err);
	}
	return rc == 0 ? write_it(l, title, ret, err) : rc;
}
