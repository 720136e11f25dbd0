/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "config.h"
#include "app/call_profile.h"
#include "app/page_code.h"
#include "app/promises.h"
#include "app/quality.h"
#include "app/term.h"
#include "app/timeline.h"
#include "page/page.h"
#include "profile/copy.h"
#include "format/mirage/mirage.h"
#include "recording/call_input.h"

#define FILE_MAX ((size_t)4 << 30)

struct report {
	struct uni_source_args *args;
	struct uni_input in;
	struct uni_source source;
	struct uni_call_source *calls;
	struct uni_promise_builder *promises;
	const struct uni_promise_model *model;
	struct uni_strbuf quality;
	struct uni_timeline timeline;
	struct uni_profile *diff;
	bool has_source;
	struct uni_page_code code;
	const struct uni_opt_list *hide; /* NULL: nothing */
};

static int open_promises(struct report *r, struct uni_err *err)
{
	const struct uni_promises_args args = { .guest = r->args->guest };
	int rc;

	r->promises = uni_promise_builder_create();
	if (r->promises == NULL)
		return uni_err_nomem(err);
	rc = uni_promises_read(r->promises, r->args->path, r->args->in, &args, err);
	if (rc != 0)
		return rc;
	r->model = uni_promise_builder_finish(r->promises);
	if (r->model->all.nr == 0)
		r->model = NULL;
	return 0;
}

static int put_quality(struct report *r)
{
	const struct uni_sample_filter shown = { .guest = r->args->build.filter.guest,
		.on_cpu = !r->args->off_cpu,
		.off_cpu = r->args->off_cpu };
	struct uni_sink *out;
	int rc = uni_sink_open_strbuf(&r->quality, &out);

	if (rc != 0)
		return rc;
	uni_quality_print(r->source.rec, &shown, out);
	return uni_sink_close(out, NULL);
}

static int open_session(struct report *r, struct uni_err *err)
{
	int rc;

	r->args->no_profile = true;
	r->args->calls_too = true;
	rc = uni_source_open(r->args, &r->source, err);
	if (rc != 0)
		return rc;
	r->has_source = true;
	if (put_quality(r) != 0)
		return uni_err_nomem(err);
	if (!uni_source_was_traced(r->source.rec, r->args->build.filter.guest))
		return 0;
	rc = uni_call_source_open(r->args, &r->calls, err);
	if (rc == 0)
		r->timeline = *uni_call_source_get(r->calls);
	return rc == 0 ? open_promises(r, err) : rc;
}

/* Their profiles as one with two columns. */
static int open_both(struct report *r, const char *before, struct uni_err *err)
{
	struct uni_source_args args = *r->args;
	struct uni_source old;
	int rc = uni_source_open(r->args, &r->source, err);

	if (rc != 0)
		return rc;
	r->has_source = true;
	if (r->source.rec != NULL && put_quality(r) != 0)
		return uni_err_nomem(err);
	args.path = before;
	args.build.filter.threads = NULL;
	rc = uni_source_open(&args, &old, err);
	if (rc != 0)
		return rc;
	if (uni_source_is_trace(&old) || uni_source_is_trace(&r->source)) {
		rc = uni_call_profile_check(&old, before, &r->source, r->args->path, err);
		if (rc == 0)
			rc = uni_call_profile_diff(&args, r->args, "", false, &r->diff, err);
	} else if (uni_profile_diff(old.profile, r->source.profile, false, &r->diff) != 0) {
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory comparing two profiles");
	} else {
		rc = uni_source_compared(r->diff, before, r->args->path, err);
	}
	uni_source_close(&old);
	return rc;
}

static int open_all(struct report *r, struct uni_err *err)
{
	const struct uni_importer *named;
	const struct uni_input *in;
	int rc;

	if (r->args->in == NULL) {
		rc = uni_input_open(r->args->path, FILE_MAX, &r->in, err);
		if (rc != 0)
			return rc;
		r->args->in = &r->in;
	}
	in = r->args->in;
	if (in->folder != NULL && uni_importer_of_folder(in->folder) == NULL)
		return open_session(r, err);
	if (in->folder != NULL ? uni_mirage_is_folder(in->folder)
			       : (r->args->format == NULL && uni_mirage_is(in->data, in->size)))
		return open_promises(r, err);
	named = r->args->format != NULL ? uni_importer_by_name(r->args->format) : NULL;
	if (named != NULL && (named->gives & UNI_GIVES_CALLS) != 0) {
		rc = uni_call_source_open(r->args, &r->calls, err);
		if (rc == 0)
			r->timeline = *uni_call_source_get(r->calls);
		return rc;
	}
	rc = uni_source_open(r->args, &r->source, err);
	r->has_source = rc == 0;
	return rc;
}

static const char *base_of(const char *path, char ret[UNI_TEXT_MAX])
{
	size_t len = strlen(path);
	const char *slash;

	while (len > 1 && path[len - 1] == '/')
		len--;
	slash = memrchr(path, '/', len);
	if (strcmp(path, "-") == 0) {
		path = "recording";
		len = strlen(path);
	} else if (slash != NULL && (size_t)(slash + 1 - path) < len) {
		len -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	(void)uni_text_clean(ret, UNI_TEXT_MAX, path, len);
	return ret;
}

static struct uni_page_input input_of(
	struct report *r, const struct uni_build_opts *opts, char title[UNI_TEXT_MAX])
{
	return (struct uni_page_input){ .title = base_of(r->args->path, title),
		.version = UNISCOPE_VERSION,
		.quality = r->quality.s,
		.hide = r->hide != NULL ? r->hide->items.v : NULL,
		.nr_hide = r->hide != NULL ? r->hide->items.nr : 0,
		.rec = r->diff == NULL ? r->source.rec : NULL,
		.opts = opts,
		.profile = r->diff != NULL ? r->diff : r->source.profile,
		.timeline = r->calls != NULL ? &r->timeline : NULL,
		.promises = r->model,
		.code = r->code.functions.v,
		.nr_code = r->code.functions.nr,
		.lines = r->code.lines };
}

static void note_left(const struct report *r, const struct uni_page_left *left)
{
	if (left->missing != 0)
		uni_note("%s: %" PRIu64
			 " samples or exits could not be read: the stream is damaged (%" PRIu64
			 " torn packets)",
			r->args->path, left->missing, left->torn);
	else if (left->torn != 0)
		uni_note("%s: %" PRIu64 " torn packets were passed over: the stream is damaged",
			r->args->path, left->torn);
	if (left->samples != 0)
		uni_note("%s: the last %" PRIu64
			 " samples and exits are not in the page: it holds %" PRIu64 " of each",
			r->args->path, left->samples, UNI_PAGE_SAMPLES_MAX);
	if (left->calls != 0)
		uni_note("%s: the last %" PRIu64 " calls are not in the page: it holds %" PRIu64,
			r->args->path, left->calls, UNI_PAGE_CALLS_MAX);
}

static void note_promises(const struct report *r, const struct uni_page_left *left)
{
	if (left->promises != 0)
		uni_note("%s: %" PRIu64
			 " threads and promises are not in the page: it holds the first %" PRIu64
			 " and those that something is wrong with",
			r->args->path, left->promises, UNI_PAGE_PROMISES_MAX);
	if (left->promise_parts != 0)
		uni_note("%s: %" PRIu64 " runs, waits and others of threads are not in the page",
			r->args->path, left->promise_parts);
}

/* Notes on the parts that --thread and similar options have chosen or left out. */
static void note_choice(const struct report *r)
{
	const struct uni_build_opts *b = &r->args->build;

	if (r->calls == NULL)
		return;
	if (r->args->thread != NULL && r->model != NULL)
		uni_note("%s: --thread chooses among calls and samples: the timeline of threads "
			 "and promises is whole",
			r->args->path);
	if (b->filter.on_cpu || b->filter.off_cpu)
		uni_note("%s: %s chooses among samples: the calls of the trace are whole",
			r->args->path, b->filter.on_cpu ? "--on-cpu" : "--off-cpu");
}

static int write_page(
	struct report *r, struct report *beside, struct uni_sink *out, struct uni_err *err)
{
	struct uni_build_opts opts = r->args->build;
	char title[UNI_TEXT_MAX], other_title[UNI_TEXT_MAX];
	struct uni_page_input in = input_of(r, &opts, title), other;
	struct uni_page_left left;
	int rc;

	opts.symtab = r->source.symtab;
	if (beside != NULL) {
		other = input_of(beside, &opts, other_title);
		other.rec = NULL;
		other.profile = NULL;
		in.beside = &other;
	}
	rc = uni_page_write(&in, out, &left, err);
	if (rc == 0) {
		note_left(r, &left);
		note_promises(r, &left);
	}
	return rc;
}

static int write_data(struct report *r, const char *title, const struct uni_page_whole *whole,
	struct uni_strbuf *ret, struct uni_page_store **store_ret, struct uni_err *err)
{
	struct uni_build_opts opts = r->args->build;
	char name[UNI_TEXT_MAX];
	struct uni_page_input in = input_of(r, &opts, name);
	struct uni_page_left left = { 0 };
	struct uni_sink *out;
	int rc;

	opts.symtab = r->source.symtab;
	in.title = title != NULL ? title : in.title;
	in.whole = *whole;
	if (uni_sink_open_strbuf(ret, &out) != 0)
		return uni_err_nomem(err);
	rc = uni_page_write_data(&in, out, &left, err);
	if (uni_sink_close(out, NULL) != 0 && rc == 0)
		rc = uni_err_nomem(err);
	*store_ret = left.store;
	if (rc == 0) {
		note_left(r, &left);
		note_promises(r, &left);
	}
	return rc;
}

static void report_init(struct report *r, struct uni_source_args *args)
{
	*r = (struct report){ .args = args };
	uni_strbuf_init(&r->quality);
}

/* A page has all samples, and shows the guest's time on a CPU at first (viewer/src/page.ts). */
static void hold_all(struct uni_source_args *args)
{
	args->every = !args->on_cpu && !args->off_cpu;
}

static void report_deinit(struct report *r)
{
	uni_page_code_deinit(&r->code);
	uni_profile_destroy(r->diff);
	if (r->has_source)
		uni_source_close(&r->source);
	uni_call_source_close(r->calls);
	uni_promise_builder_destroy(r->promises);
	uni_strbuf_deinit(&r->quality);
	uni_input_close(&r->in);
}

static int open_beside(struct report *r, struct report *beside, struct uni_err *err)
{
	int rc = open_all(beside, err);

	if (rc == 0 && (r->model == NULL || beside->model == NULL))
		rc = uni_err_set(err, UNI_EINVAL,
			"%s has no threads or promises: there is no timeline to lay beside another",
			(r->model == NULL ? r : beside)->args->path);
	return rc;
}

static int write_file(
	struct report *r, struct report *beside, const char *output, struct uni_err *err)
{
	struct uni_sink *out;
	int rc = uni_sink_open_file(output, &out, err);

	if (rc != 0)
		return rc;
	rc = write_page(r, beside, out, err);
	note_choice(r);
	if (rc != 0) {
		uni_sink_abort(out);
		return rc;
	}
	return uni_sink_close(out, err);
}

int uni_page_report(
	struct uni_source_args *args, const struct uni_page_args *page, struct uni_err *err)
{
	struct uni_source_args other = *args;
	struct report r, beside;
	int rc;

	if (page->code && page->before != NULL)
		return uni_err_set(
			err, UNI_EUSAGE, "--code is of one recording: not with --before");
	if (page->before != NULL && page->beside != NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"give one of --before (one picture of the difference) and --beside (two "
			"timelines)");
	other.path = page->beside;
	report_init(&r, args);
	report_init(&beside, &other);
	r.hide = &page->hide;
	if (page->before == NULL)
		hold_all(args);
	hold_all(&other);
	rc = page->before != NULL ? open_both(&r, page->before, err) : open_all(&r, err);
	if (rc == 0 && page->code)
		rc = uni_page_code_make(
			&(struct uni_page_code_args){ .src = args, .source = &page->source },
			&r.source, &r.code, err);
	if (rc == 0 && page->beside != NULL)
		rc = open_beside(&r, &beside, err);
	if (rc == 0)
		rc = write_file(&r, page->beside != NULL ? &beside : NULL, page->output, err);
	if (rc == 0 && r.calls != NULL)
		uni_call_source_note(r.calls);
	if (rc == 0 && beside.calls != NULL)
		uni_call_source_note(beside.calls);
	report_deinit(&beside);
	report_deinit(&r);
	return rc;
}

int uni_page_compared(const struct uni_profile *tree, const struct uni_page_diff *diff,
	const char *title, const char *output, struct uni_err *err)
{
	const struct uni_page_input in = {
		.title = title, .version = UNISCOPE_VERSION, .profile = tree, .diff = diff
	};
	struct uni_sink *out;
	int rc = uni_sink_open_file(output, &out, err);

	if (rc != 0)
		return rc;
	rc = uni_page_write(&in, out, NULL, err);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

int uni_page_build(struct uni_source_args *args, const char *title,
	const struct uni_page_whole *whole, struct uni_strbuf *ret,
	struct uni_page_store **store_ret, struct uni_err *err)
{
	struct report r;
	int rc;

	report_init(&r, args);
	hold_all(args);
	rc = open_all(&r, err);
	if (rc == 0)
		rc = write_data(&r, title, whole, ret, store_ret, err);
	if (rc == 0 && r.calls != NULL)
		uni_call_source_note(r.calls);
	report_deinit(&r);
	return rc;
}
