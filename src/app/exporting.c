/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/exporting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/call_profile.h"
#include "app/promises.h"
#include "app/summary.h"
#include "app/term.h"
#include "format/exits.h"
#include "recording/exact.h"
#include "profile/calls.h"

#define MAX_INPUT ((size_t)4 << 30)

/* The data for one format. */
struct one {
	const struct uni_exporter *e;
	const char *by; /* calls are added up: "", "time", "count"; NULL: samples are */
	struct uni_view view;
	struct uni_call_source *calls;
	struct uni_profile *tree; /* of calls */
	struct uni_strbuf lost;
};

static int open_input(struct uni_exporting *x, struct uni_err *err)
{
	/* A format that needs only stacks may not need the whole text at once. */
	bool part = x->walked && x->calls == NULL && x->src.exits == NULL;
	int rc = x->has_input ? 0
		 : part	      ? uni_input_open_part(x->src.path, MAX_INPUT, &x->in, err)
			      : uni_input_open(x->src.path, MAX_INPUT, &x->in, err);

	x->has_input = rc == 0;
	x->src.in = &x->in;
	return rc;
}

int uni_exporting_open(struct uni_exporting *x, struct uni_err *err)
{
	int rc;

	if (x->opened)
		return 0;
	rc = open_input(x, err);
	if (rc != 0)
		return rc;
	x->src.keep_log = x->keep_log;
	x->src.unordered = x->before != NULL;
	x->src.walked = x->walked;
	x->src.quiet = true;
	x->src.piled = x->piled;
	x->src.calls_too = true;
	rc = uni_source_open(&x->src, &x->s, err);
	if (rc != 0)
		return rc;
	x->opened = true;
	return x->before != NULL ? uni_exporting_open_before(x, err) : 0;
}

static bool has_trace(const struct uni_exporting *x)
{
	if (x->s.importer != NULL)
		return (x->s.importer->gives & UNI_GIVES_CALLS) != 0;
	return x->s.rec != NULL && uni_source_was_traced(x->s.rec, (struct uni_only){ 0 });
}

/* Threads and promises, and no calls. */
static bool has_promises_only(const struct uni_exporting *x)
{
	return x->s.importer != NULL && (x->s.importer->gives & UNI_GIVES_PROMISES) != 0;
}

/* A trace alone: its calls are all that there is to add up. */
static bool is_trace_alone(const struct uni_exporting *x)
{
	return x->src.exits == NULL && x->before == NULL && uni_source_is_trace(&x->s);
}

/* A text that is read as calls, and need not be read as a profile to know that. */
static bool is_text_of_calls(const struct uni_exporting *x)
{
	const struct uni_importer *i = NULL;

	if (x->in.folder == NULL)
		i = x->src.format != NULL ? uni_importer_by_name(x->src.format)
					  : uni_importer_sniff(x->in.data, x->in.size);
	return i != NULL && (i->gives & UNI_GIVES_CALLS) != 0;
}

/* A format of calls or profiles that shows a profile of this. */
static bool shows_profile(const struct uni_exporting *x, const struct uni_exporter *e)
{
	return (e->needs & UNI_OR_PROFILE) != 0 && x->calls == NULL &&
	       (x->before != NULL || x->src.exits != NULL ||
		       (x->opened && !has_trace(x) && !has_promises_only(x)));
}

static bool needs_calls(const struct uni_exporting *x, const struct uni_exporter *e)
{
	return (e->needs & UNI_NEEDS_TIMELINE) != 0 && !shows_profile(x, e);
}

static bool wants_calls(const struct uni_exporting *x, const struct one *o)
{
	const struct uni_exporter *e = o->e;

	return o->by != NULL || needs_calls(x, e) ||
	       ((e->needs & UNI_TAKES_ALL) != 0 && x->src.exits == NULL && x->before == NULL &&
		       has_trace(x));
}

/* Only calls: the input is a text of calls, or the user asked for them. */
static bool only_calls(const struct uni_exporting *x, const struct one *o)
{
	return o->by != NULL || needs_calls(x, o->e) || x->s.importer != NULL;
}

static int check_samples(
	const struct uni_exporting *x, const struct uni_exporter *e, struct uni_err *err)
{
	if ((e->needs & UNI_NEEDS_SAMPLES) == 0)
		return 0;
	if (x->calls != NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s holds single samples: it cannot show calls", e->name);
	if (is_trace_alone(x))
		return uni_err_set(err, UNI_ENOENT, "%s holds single samples, and %s none: a trace",
			e->name, x->src.path);
	if (x->s.rec == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s needs single samples, and %s is an aggregate: import it first", e->name,
			x->src.path);
	if ((e->needs & UNI_NEEDS_EXACT) != 0 &&
		!uni_exact_is_there(uni_recording_path(x->s.rec), 0))
		return uni_err_set(err, UNI_ENOTSUP,
			"%s holds exact counts, and %s has none: `uniscope run --exact` makes them",
			e->name, x->src.path);
	if (x->src.exits != NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s holds single samples: it cannot show exits", e->name);
	if (x->before != NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s holds single samples: it cannot show a difference", e->name);
	return 0;
}

/* Opens calls or samples, by the kind of input. */
static int open_either(struct uni_exporting *x, const struct uni_exporter *e, struct uni_err *err)
{
	int rc = open_input(x, err);

	if (rc != 0 || (e->needs & UNI_OR_PROFILE) == 0 || x->calls != NULL ||
		(x->before == NULL && is_text_of_calls(x)))
		return rc;
	return uni_exporting_open(x, err);
}

/* Can the input be written in this format? Returns 0, or the reason in err. */
static int check_export(struct uni_exporting *x, const struct uni_exporter *e, struct uni_err *err)
{
	int rc = 0;

	if (x->calls != NULL && x->calls[0] != '\0' && strcmp(x->calls, "count") != 0 &&
		strcmp(x->calls, "time") != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"--calls=%s: calls are added up by time or by count", x->calls);
	if (x->calls != NULL && (e->needs & UNI_NEEDS_SAMPLES) != 0)
		return check_samples(x, e, err);
	if (x->before != NULL && (e->needs & UNI_NEEDS_TIMELINE) != 0 &&
		(e->needs & UNI_OR_PROFILE) == 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s shows single calls: it cannot show a difference", e->name);
	if (x->opened && x->calls == NULL && (e->needs & UNI_TAKES_PROMISES) != 0 &&
		has_promises_only(x))
		return 0;
	if ((e->needs & UNI_OR_PROFILE) != 0 && (rc = open_either(x, e, err)) != 0)
		return rc;
	if (shows_profile(x, e))
		return 0;
	if (x->calls != NULL || (e->needs & UNI_NEEDS_TIMELINE) != 0)
		return x->opened && !has_trace(x) && !has_promises_only(x)
			       ? uni_err_set(
					 err, UNI_ENOTSUP, "%s has no function trace", x->src.path)
			       : 0;
	rc = uni_exporting_open(x, err);
	return rc == 0 ? check_samples(x, e, err) : rc;
}

/* From a trace it takes only promises. */
static bool is_of_promises(const struct uni_exporter *e)
{
	return (e->needs & UNI_TAKES_PROMISES) != 0 && (e->needs & UNI_TAKES_ALL) == 0;
}

static int open_calls(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	int rc = open_input(x, err);

	if (rc == 0 && x->src.thread != NULL && is_of_promises(o->e))
		rc = uni_err_set(err, UNI_ENOTSUP,
			"%s shows threads and promises together: --thread cannot choose among them",
			o->e->name);
	if (rc == 0 && uni_part_has_time(&x->src.part) && is_of_promises(o->e))
		rc = uni_err_set(err, UNI_ENOTSUP,
			"%s shows all threads and promises: --from and --to cannot choose among "
			"them",
			o->e->name);
	if (rc == 0 && only_calls(x, o))
		rc = uni_calls_args_check(&x->src, err);
	if (rc == 0)
		rc = uni_call_source_open(&x->src, &o->calls, err);
	if (rc != 0)
		return rc;
	o->view.timeline = uni_call_source_get(o->calls);
	if (o->by == NULL && (o->e->needs & UNI_TAKES_PROMISES) != 0)
		return 0;
	if (o->by == NULL && uni_call_source_has_calls(o->calls) && !x->looked) {
		rc = uni_call_source_lacks_calls(&x->src, &x->no_calls, err);
		x->looked = rc == 0;
	}
	if (rc != 0 || (uni_call_source_has_calls(o->calls) && (o->by != NULL || !x->no_calls)))
		return rc;
	return uni_err_set(err, UNI_ENOTSUP,
		"%s has threads and promises, and no function calls: %s cannot show it (mirage, "
		"chrome, fxt and perfetto can%s)",
		x->src.path, o->by == NULL ? o->e->name : "--calls",
		uni_call_source_has_calls(o->calls)
			? ""
			: ", and formats of profiles show how long each ran");
}

static int add_up(const struct uni_exporting *x, struct one *o, bool count, struct uni_err *err)
{
	struct uni_profile_calls added;
	int rc = uni_call_profile_make(
		o->view.timeline, count, x->src.build.per_thread, NULL, &o->tree, &added, err);

	o->view.profile = o->tree;
	return rc;
}

static bool adds_up_to_0(const struct uni_profile *p)
{
	return !(uni_profile_node(p, UNI_NODE_ROOT)->total > 0.0);
}

/* For a format that shows them one by one, when they have times. */
static int reopen_calls(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	o->view.timeline = NULL;
	if ((o->e->needs & UNI_TAKES_CALLS) == 0 || strcmp(o->by, "count") == 0)
		return 0;
	uni_call_source_close(o->calls);
	o->calls = NULL;
	return open_calls(x, o, err);
}

/* A tree of calls, for formats that know of nothing else. Calls without ends are counted. */
static int build_calls(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	int rc = add_up(x, o, o->by != NULL && strcmp(o->by, "count") == 0, err);

	if (rc != 0 || o->by == NULL)
		return rc;
	if (!adds_up_to_0(o->tree))
		return reopen_calls(x, o, err);
	if (o->by[0] != '\0')
		return 0;
	uni_profile_destroy(o->tree);
	o->tree = NULL;
	uni_call_source_close(o->calls);
	o->calls = NULL;
	rc = open_calls(x, o, err);
	if (rc == 0)
		rc = add_up(x, o, true, err);
	o->view.timeline = NULL;
	if (rc == 0 && !adds_up_to_0(o->tree))
		uni_note("%s has no times of its calls: the numbers of calls are written",
			x->src.path);
	return rc;
}

/* Opens the threads and promises, once for all formats. */
static int open_promises(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	const struct uni_promises_args args = { .guest = x->src.guest };
	int rc = 0;

	if ((o->e->needs & UNI_TAKES_ALL) == 0 || (o->e->needs & UNI_TAKES_PROMISES) == 0 ||
		o->by != NULL || x->src.exits != NULL || x->before != NULL ||
		x->src.thread != NULL || uni_part_has_time(&x->src.part))
		return 0;
	if (x->promises == NULL && ((x->s.rec != NULL && has_trace(x)) || has_promises_only(x))) {
		x->promises = uni_promise_builder_create();
		rc = x->promises == NULL
			     ? uni_err_nomem(err)
			     : uni_promises_read(x->promises, x->src.path, &x->in, &args, err);
		if (rc == 0)
			x->model = uni_promise_builder_finish(x->promises);
	}
	if (x->model != NULL && x->model->all.nr + x->model->counts.nr != 0)
		o->view.promises = x->model;
	return rc;
}

static int name_sides(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	if (x->before != NULL && x->sides == NULL &&
		asprintf(&x->sides, "%s, compared with %s", x->src.path, x->before) < 0) {
		x->sides = NULL;
		return uni_err_nomem(err);
	}
	o->view.title = x->sides;
	return 0;
}

static int prepare_view(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	bool alone = o->by == NULL && (o->e->needs & UNI_NEEDS_PROFILE) != 0 && is_trace_alone(x);
	int rc = open_promises(x, o, err);

	if (rc == 0)
		rc = name_sides(x, o, err);
	if (rc != 0)
		return rc;
	if (o->by != NULL && x->before != NULL) {
		rc = open_input(x, err);
		if (rc == 0)
			rc = uni_exporting_compare_calls(x, o->by, err);
		o->view.profile = x->diff;
		return rc;
	}
	if (alone)
		o->by = "";
	if (wants_calls(x, o)) {
		rc = open_calls(x, o, err);
		if (rc == 0 && (o->e->needs & UNI_NEEDS_PROFILE) != 0)
			rc = build_calls(x, o, err);
		if (rc == 0 && alone && adds_up_to_0(o->tree))
			rc = uni_err_set(err, UNI_ENOENT,
				"%s holds no samples, and its trace no calls%s (uniscope trace "
				"threads shows what else is in it)",
				x->src.path, x->src.thread != NULL ? " of that thread" : "");
		if (rc == 0 && alone && !x->told)
			uni_note("%s holds no samples: these are the functions of its trace, as "
				 "with --calls",
				x->src.path);
		if (rc != 0 || o->tree != NULL || only_calls(x, o))
			return rc;
	}
	if (o->calls == NULL && x->s.threads != NULL && x->s.threads->nr_guests == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no samples of a thread %s (--calls: what its trace has of it)",
			x->src.path, x->src.thread);
	o->view.profile = x->diff != NULL ? x->diff : x->s.profile;
	o->view.samples = x->diff != NULL ? NULL : x->s.rec;
	o->view.symtab = x->s.symtab;
	o->view.filter = &x->src.build.filter;
	o->view.build = &x->src.build;
	o->view.mangled = x->src.build.naming.mangled;
	return 0;
}

static int write_to(struct one *o, const struct uni_export_opt *opts, size_t nr_opts,
	const char *path, struct uni_err *err)
{
	struct uni_sink *out;
	int rc;

	if (o->e->write_folder != NULL && strcmp(path, "-") == 0)
		return uni_err_set(err, UNI_EUSAGE, "%s is a folder: name it with -o", o->e->name);
	if (o->e->write_folder != NULL)
		return o->e->write_folder(&o->view, opts, nr_opts, path, err);
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	rc = o->e->write(&o->view, opts, nr_opts, out, err);
	if (rc != 0) {
		uni_sink_abort(out);
		return rc;
	}
	return uni_sink_close(out, err);
}

/* Reports parts of the file that were not written: samples or calls, promises. */
static void say_left(const struct uni_exporting *x, const struct one *o)
{
	const struct uni_importer *i = x->opened ? x->s.importer : NULL;
	uint64_t samples = o->calls != NULL ? uni_call_source_nr_samples(o->calls) : 0;

	if (i != NULL && i->lost != NULL && o->view.promises == NULL && o->view.timeline == NULL &&
		o->view.profile == x->s.profile)
		uni_note("%s: %s", x->src.path, i->lost);
	if (o->view.timeline != NULL && o->by == NULL &&
		(x->src.thread != NULL || uni_part_has_time(&x->src.part)) &&
		(o->e->needs & UNI_TAKES_PROMISES) != 0)
		uni_note("%s: threads and promises of the trace are not in it: %s chooses among "
			 "calls",
			o->e->name, x->src.thread != NULL ? "--thread" : "--from or --to");
	if (x->src.exits != NULL || x->before != NULL || x->calls != NULL)
		return;
	if (o->view.profile != NULL && o->view.timeline == NULL && o->by == NULL && has_trace(x))
		uni_note("%s: the calls of the trace are not in it: --calls writes them instead of "
			 "samples",
			o->e->name);
	if (o->view.profile == NULL && o->view.timeline != NULL && samples != 0)
		uni_note("%s: the %" PRIu64 " samples of %s are not in it", o->e->name, samples,
			x->src.path);
}

static void say_lost(const struct uni_exporting *x, const struct one *o)
{
	const struct uni_recording *rec = o->view.samples;
	const char *line = o->lost.s;
	bool exits = (o->e->needs & UNI_TAKES_EXITS) == 0 && uni_view_has_exits(&o->view);

	if (o->e->lost != NULL && rec != NULL && !uni_recording_meta(rec)->aggregate)
		uni_note("not in the format %s: %s%s", o->e->name, o->e->lost,
			exits ? ", VM exits (--exits has them)" : "");
	if (o->tree != NULL)
		uni_note("not in the format %s: each call, with its time%s (they are added up)",
			o->e->name, x->src.build.per_thread ? " and vCPU" : ", vCPU and thread");
	while (*line != '\0') {
		size_t len = strcspn(line, "\n");

		uni_note("%s: %.*s", o->e->name, (int)len, line);
		line += len + (line[len] == '\n');
	}
}

/* Once, whatever the number of formats. */
static void say_doubts(struct uni_exporting *x, const struct one *o)
{
	if (o->view.samples == NULL && x->diff == NULL)
		return;
	if (o->view.samples != NULL)
		uni_summary_doubts(o->view.samples, &x->src.build.filter);
	if (o->view.profile != NULL)
		uni_summary_unsure(o->view.profile);
	x->doubted = true;
}

int uni_exporting_write(struct uni_exporting *x, const struct uni_exporter *e,
	const struct uni_export_opt *opts, size_t nr_opts, const char *path, struct uni_err *err)
{
	struct one o = { .e = e, .by = x->calls, .view.lost = &o.lost };
	int rc = check_export(x, e, err);

	uni_strbuf_init(&o.lost);
	if (rc == 0)
		rc = prepare_view(x, &o, err);
	if (rc == 0 && x->src.rules.items.nr != 0 && o.calls == NULL && x->calls == NULL)
		rc = uni_err_set(err, UNI_EUSAGE,
			"--rule chooses among the calls of a trace, and these are samples");
	if (rc == 0)
		rc = write_to(&o, opts, nr_opts, path, err);
	if (rc == 0) {
		say_lost(x, &o);
		say_left(x, &o);
	}
	if (rc == 0 && x->src.exits == NULL && !x->doubted)
		say_doubts(x, &o);
	if (rc == 0 && o.calls != NULL && !x->told)
		uni_call_source_note(o.calls);
	x->told = x->told || (rc == 0 && o.calls != NULL);
	uni_profile_destroy(o.tree);
	uni_call_source_close(o.calls);
	uni_strbuf_deinit(&o.lost);
	return rc;
}

void uni_exporting_close(struct uni_exporting *x)
{
	uni_profile_destroy(x->diff);
	uni_promise_builder_destroy(x->promises);
	x->promises = NULL;
	x->model = NULL;
	if (x->opened)
		uni_source_close(&x->s);
	if (x->has_input)
		uni_input_close(&x->in);
	x->diff = NULL;
	free(x->sides);
	x->sides = NULL;
	x->opened = x->has_input = false;
}
