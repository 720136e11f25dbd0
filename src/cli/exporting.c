/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/exporting.h"

#include <inttypes.h>
#include <string.h>

#include "cli/term.h"
#include "profile/calls.h"
#include "profile/copy.h"

#define MAX_INPUT ((size_t)4 << 30)

/* Of one format. */
struct one {
	const struct uni_exporter *e;
	struct uni_view view;
	struct uni_call_source *calls;
	struct uni_profile *tree; /* of calls */
	struct uni_strbuf lost;
};

static int open_before(struct uni_exporting *x, struct uni_err *err)
{
	struct uni_source_args args = x->src;
	struct uni_source before;
	int rc;

	args.path = x->before;
	args.in = NULL;
	args.build.filter.guest = x->src.guest != NULL ? x->src.build.filter.guest : -1;
	rc = uni_source_open(&args, &before, err);
	if (rc != 0)
		return rc;
	if (uni_profile_diff(before.profile, x->s.profile, x->normalize, &x->diff) != 0)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory comparing two profiles");
	uni_source_close(&before);
	return rc;
}

static int open_input(struct uni_exporting *x, struct uni_err *err)
{
	int rc = x->has_input ? 0 : uni_input_open(x->src.path, MAX_INPUT, &x->in, err);

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
	rc = uni_source_open(&x->src, &x->s, err);
	if (rc != 0)
		return rc;
	x->opened = true;
	return x->before != NULL ? open_before(x, err) : 0;
}

static bool has_trace(const struct uni_exporting *x)
{
	if (x->s.importer != NULL)
		return strcmp(x->s.importer->name, "ftrace") == 0;
	for (uint32_t i = 0; x->s.rec != NULL && i < uni_recording_nr_guests(x->s.rec); i++) {
		if (uni_recording_guest(x->s.rec, i).meta->trace.nr_cpus != 0)
			return true;
	}
	return false;
}

static bool wants_calls(struct uni_exporting *x, const struct uni_exporter *e)
{
	return x->calls != NULL || (e->needs & UNI_NEEDS_TIMELINE) != 0 ||
	       ((e->needs & UNI_TAKES_ALL) != 0 && x->src.exits == NULL && x->before == NULL &&
		       has_trace(x));
}

/* Calls alone: a text of them, or what was asked for. */
static bool only_calls(const struct uni_exporting *x, const struct uni_exporter *e)
{
	return x->calls != NULL || (e->needs & UNI_NEEDS_TIMELINE) != 0 || x->s.importer != NULL;
}

static int check_samples(
	const struct uni_exporting *x, const struct uni_exporter *e, struct uni_err *err)
{
	if ((e->needs & UNI_NEEDS_SAMPLES) == 0)
		return 0;
	if (x->calls != NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s holds single samples: it cannot show calls", e->name);
	if (x->s.rec == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s needs single samples, and %s is an aggregate: import it first", e->name,
			x->src.path);
	if (x->src.exits != NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s holds single samples: it cannot show exits", e->name);
	if (x->before != NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s holds single samples: it cannot show a difference", e->name);
	return 0;
}

int uni_exporting_check(struct uni_exporting *x, const struct uni_exporter *e, struct uni_err *err)
{
	int rc;

	if (x->calls != NULL && x->calls[0] != '\0' && strcmp(x->calls, "count") != 0 &&
		strcmp(x->calls, "time") != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"--calls=%s: calls are added up by time or by count", x->calls);
	if (x->calls != NULL && (e->needs & UNI_NEEDS_SAMPLES) != 0)
		return check_samples(x, e, err);
	if (x->calls != NULL || (e->needs & UNI_NEEDS_TIMELINE) != 0)
		return x->opened && !has_trace(x) ? uni_err_set(err, UNI_ENOTSUP,
							    "%s has no function trace", x->src.path)
						  : 0;
	rc = uni_exporting_open(x, err);
	return rc == 0 ? check_samples(x, e, err) : rc;
}

/* A tree of calls, for formats that know of nothing else. */
static int build_calls(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	bool count = x->calls != NULL && strcmp(x->calls, "count") == 0;
	struct uni_profile_calls added;

	o->tree = uni_profile_create();
	if (o->tree == NULL ||
		uni_profile_add_calls(o->tree, o->view.timeline, count, &added) != 0 ||
		uni_profile_finish(o->tree) != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	o->view.profile = o->tree;
	return 0;
}

static int prepare(struct uni_exporting *x, struct one *o, struct uni_err *err)
{
	int rc = 0;

	if (wants_calls(x, o->e)) {
		rc = open_input(x, err);
		if (rc == 0)
			rc = uni_call_source_open(&x->src, &o->calls, err);
		if (rc != 0)
			return rc;
		o->view.timeline = uni_call_source_get(o->calls);
		if ((o->e->needs & UNI_NEEDS_PROFILE) != 0)
			return build_calls(x, o, err);
		if (only_calls(x, o->e))
			return 0;
	}
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

static void say_lost(const struct one *o)
{
	const struct uni_recording *rec = o->view.samples;
	const char *line = o->lost.s;

	if (o->e->lost != NULL && rec != NULL && !uni_recording_meta(rec)->aggregate)
		uni_note("not in the format %s: %s", o->e->name, o->e->lost);
	while (*line != '\0') {
		size_t len = strcspn(line, "\n");

		uni_note("%s: %.*s", o->e->name, (int)len, line);
		line += len + (line[len] == '\n');
	}
}

int uni_exporting_write(struct uni_exporting *x, const struct uni_exporter *e,
	const struct uni_export_opt *opts, size_t nr_opts, const char *path, struct uni_err *err)
{
	struct one o = { .e = e, .view.lost = &o.lost };
	int rc = uni_exporting_check(x, e, err);

	uni_strbuf_init(&o.lost);
	if (rc == 0)
		rc = prepare(x, &o, err);
	if (rc == 0)
		rc = write_to(&o, opts, nr_opts, path, err);
	if (rc == 0)
		say_lost(&o);
	if (rc == 0 && o.calls != NULL)
		uni_call_source_note(o.calls);
	uni_profile_destroy(o.tree);
	uni_call_source_close(o.calls);
	uni_strbuf_deinit(&o.lost);
	return rc;
}

void uni_exporting_close(struct uni_exporting *x)
{
	uni_profile_destroy(x->diff);
	if (x->opened)
		uni_source_close(&x->s);
	if (x->has_input)
		uni_input_close(&x->in);
	x->diff = NULL;
	x->opened = x->has_input = false;
}
