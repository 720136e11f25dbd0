/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "app/call_rules.h"
#include "app/call_threads.h"
#include "app/input.h"
#include "app/promises.h"
#include "app/symbols.h"
#include "app/term.h"
#include "app/trace_open.h"
#include "promise/timeline.h"
#include "recording/call_input.h"
#include "format/ftrace/fcalls.h"
#include "format/uktrace/timeline.h"

#define MAX_INPUT ((size_t)4 << 30)

struct uni_call_source {
	const char *path;
	struct uni_input in;
	struct uni_timeline timeline;
	/* A text */
	struct uni_ftext text;
	struct uni_fcalls *fcalls;
	/* Tracepoints of Unikraft */
	struct uni_ukt_file tracefile;
	struct uni_ukt_trace tracepoints;
	struct uni_ukt_timeline *ukt;
	/* A trace of MirageOS */
	struct uni_promise_timeline *promises;
	/* A session */
	struct uni_recording *rec;
	uint32_t guest;
	bool has_samples;
	struct uni_symtab *symtab;
	struct uni_tinput *input;
	struct uni_call_threads threads;
	struct uni_trace_values values;
	struct uni_calls_rules rules;
	struct uni_calls_filter filter;
	struct uni_trace_timeline *trace;
};

static void note_text(const char *path, const struct uni_ftext_stats *st)
{
	if (st->bad_lines + st->outside != 0)
		uni_note("%s: %" PRIu64 " lines are none that ftrace writes and were passed over "
			 "(the first is line %" PRIu64 ")",
			path, st->bad_lines + st->outside, st->first_bad_line);
	if (st->unreadable != 0)
		uni_note("%s: %" PRIu64 " durations are no numbers", path, st->unreadable);
}

static int open_text(struct uni_call_source *s, const struct uni_input *in, struct uni_err *err)
{
	struct uni_ftext_stats st;
	int rc = uni_ftext_parse(in->data, in->size, &s->text, &st, err);

	if (rc != 0)
		return err != NULL && err->code != 0 ? uni_err_prefix(err, "%s", s->path) : rc;
	note_text(s->path, &st);
	s->fcalls = uni_fcalls_open(&s->text);
	if (s->fcalls == NULL)
		return uni_err_nomem(err);
	s->timeline = uni_fcalls_timeline(s->fcalls);
	return 0;
}

static int open_tracepoints(
	struct uni_call_source *s, const struct uni_input *in, struct uni_err *err)
{
	int rc = uni_ukt_file_read(in->data, in->size, &s->tracefile, err);

	if (rc == 0)
		rc = uni_ukt_trace_open(&s->tracefile, &s->tracepoints, err);
	if (rc != 0)
		return rc;
	s->ukt = uni_ukt_timeline_open(&s->tracepoints);
	if (s->ukt == NULL)
		return uni_err_nomem(err);
	s->timeline = uni_ukt_timeline_get(s->ukt);
	return 0;
}

/* Threads and promises alone: no calls. */
static int open_promises(struct uni_call_source *s, const struct uni_input *in, struct uni_err *err)
{
	struct uni_mirage_stats st;
	int rc = -UNI_ENOMEM;

	s->promises = uni_promise_timeline_create();
	if (s->promises != NULL && in->folder != NULL)
		rc = uni_mirage_read_folder(
			in->folder, uni_promise_timeline_add, s->promises, &st, err);
	else if (s->promises != NULL)
		rc = uni_mirage_read(
			in->data, in->size, uni_promise_timeline_add, s->promises, &st, err);
	if (rc != 0)
		return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
	uni_promises_say_damage(s->path, &st);
	s->timeline = uni_promise_timeline_get(s->promises);
	return 0;
}

static int open_file(struct uni_call_source *s, const struct uni_input *in, struct uni_err *err)
{
	if (uni_mirage_is(in->data, in->size))
		return open_promises(s, in, err);
	return uni_ukt_file_is(in->data, in->size) ? open_tracepoints(s, in, err)
						   : open_text(s, in, err);
}

static int find_guest(const struct uni_source_args *args, const struct uni_recording *rec,
	uint32_t *ret, struct uni_err *err)
{
	return args->guest != NULL ? uni_recording_find_guest(rec, args->guest, ret, err)
				   : uni_tinput_find(rec, ret, err);
}

int uni_calls_args_check(const struct uni_source_args *args, struct uni_err *err)
{
	const struct {
		bool given;
		const char *name;
	} options[] = {
		{ args->on_cpu, "--on-cpu" },
		{ args->off_cpu, "--off-cpu" },
		{ args->all_time, "--all-time" },
		{ args->build.per_vcpu, "--per-vcpu" },
	};

	for (size_t i = 0; i < uni_array_len(options); i++) {
		if (options[i].given)
			return uni_err_set(err, UNI_EUSAGE,
				"%s is for samples, and these are the calls of a trace (--thread, "
				"--per-thread and --vcpu are for both)",
				options[i].name);
	}
	return 0;
}

/* A thread that only samples have has no calls; a thread that nothing has is an error. */
static int choose_threads(
	const struct uni_source_args *args, struct uni_call_source *s, struct uni_err *err)
{
	const struct uni_thread_set *sampled = args->build.filter.threads;
	static const uint64_t none;
	struct uni_err why = { 0 };
	int rc;

	if (args->thread == NULL)
		return 0;
	rc = uni_call_threads_add(&s->threads, uni_tinput_get(s->input), args->thread, &why);
	uni_call_threads_set(&s->threads, &s->filter);
	if (rc == -UNI_ENOENT && s->has_samples && sampled != NULL && sampled->nr_guests != 0) {
		uni_note(
			"%s: there are samples of that thread, and no calls: %s", s->path, why.msg);
		s->filter.thread = &none;
		return 0;
	}
	return rc == 0 ? 0 : uni_err_set(err, (enum uni_errcode) - rc, "%s", why.msg);
}

/* Samples of the same session choose the time of both. */
static int choose_part(
	const struct uni_source_args *args, struct uni_call_source *s, struct uni_err *err)
{
	const struct uni_trace_input *in = uni_tinput_get(s->input);
	struct uni_sample_filter samples = { 0 };
	struct uni_part time = args->part;
	int rc;

	if (!s->has_samples)
		return uni_call_part(
			&args->part, s->path, in, uni_trace_begin_ns(in), &s->filter, err);
	time.vcpu_given = false;
	rc = uni_part_choose(&time, s->rec, &samples, err);
	if (rc != 0)
		return rc;
	if (args->part.vcpu_given)
		s->filter.cpu = uni_only(args->part.vcpu);
	s->filter.from_ns = samples.from_ns;
	s->filter.to_ns = samples.to_ns;
	return 0;
}

static int check_session(
	const struct uni_source_args *args, struct uni_call_source *s, struct uni_err *err)
{
	s->has_samples = uni_recording_stats(s->rec)->samples != 0;
	return s->has_samples ? 0 : uni_calls_args_check(args, err);
}

static int open_session(const struct uni_source_args *args, const struct uni_input *in,
	struct uni_call_source *s, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&args->debug_dirs);
	struct uni_funcs_naming naming = { .mangled = args->build.naming.mangled };
	struct uni_recorded_guest guest;
	uint32_t nr;
	int rc = uni_recording_open(in->folder, &s->rec, err);

	if (rc == 0)
		rc = check_session(args, s, err);
	if (rc == 0)
		rc = find_guest(args, s->rec, &nr, err);
	if (rc == 0)
		rc = uni_tinput_open(s->rec, nr, &s->input, err);
	if (rc == 0 && args->symbols != NULL)
		rc = uni_symbols_load(args->symbols, &search, NULL, &s->symtab, err);
	if (rc != 0)
		return rc;
	s->guest = nr;
	guest = uni_recording_guest(s->rec, nr);
	naming.symtab = s->symtab != NULL ? s->symtab : guest.symtab;
	naming.bias = guest.meta->bias;
	if (naming.symtab == NULL)
		uni_note("%s: addresses stay without names (--symbols can give some)",
			guest.symtab_problem != NULL ? guest.symtab_problem : s->path);
	uni_trace_values_init(&s->values, s->rec, nr, args->symbols, &args->debug_dirs);
	rc = uni_call_rules_parse(&args->rules, &s->values, &s->rules, err);
	if (rc == 0)
		rc = choose_part(args, s, err);
	if (rc != 0)
		return rc;
	s->filter.rules = uni_call_rules_get(&s->rules);
	/* Else the last one that came would have its CPU until a chosen one comes back. */
	s->filter.switches = true;
	rc = choose_threads(args, s, err);
	if (rc == 0)
		rc = uni_trace_timeline_open(
			uni_tinput_get(s->input), &s->filter, &naming, &s->trace, err);
	if (rc != 0)
		return rc;
	s->timeline = uni_trace_timeline_get(s->trace);
	s->timeline.end_ns = uni_promises_end_ns(s->rec, nr);
	s->timeline.variable = uni_trace_values_variable;
	s->timeline.variables = &s->values;
	return 0;
}

int uni_call_source_open(
	const struct uni_source_args *args, struct uni_call_source **ret, struct uni_err *err)
{
	struct uni_call_source *s = calloc(1, sizeof(*s));
	const struct uni_input *in;
	int rc = 0;

	if (s == NULL)
		return uni_err_nomem(err);
	s->path = args->path;
	in = args->in != NULL ? args->in : &s->in;
	if (args->in == NULL)
		rc = uni_input_open(args->path, MAX_INPUT, &s->in, err);
	if (rc == 0 && (in->folder == NULL || uni_mirage_is_folder(in->folder)))
		rc = uni_source_check_import(args, err);
	if (rc == 0)
		rc = in->folder == NULL			? open_file(s, in, err)
		     : uni_mirage_is_folder(in->folder) ? open_promises(s, in, err)
							: open_session(args, in, s, err);
	if (rc != 0) {
		uni_call_source_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void uni_call_source_close(struct uni_call_source *s)
{
	if (s == NULL)
		return;
	uni_fcalls_close(s->fcalls);
	uni_ftext_deinit(&s->text);
	uni_ukt_timeline_close(s->ukt);
	uni_promise_timeline_destroy(s->promises);
	uni_ukt_trace_close(&s->tracepoints);
	uni_ukt_file_free(&s->tracefile);
	uni_trace_timeline_close(s->trace);
	uni_call_rules_free(&s->rules);
	uni_trace_values_deinit(&s->values);
	uni_call_threads_free(&s->threads);
	uni_tinput_close(s->input);
	uni_symtab_destroy(s->symtab);
	uni_recording_close(s->rec);
	uni_input_close(&s->in);
	free(s);
}

const struct uni_timeline *uni_call_source_get(const struct uni_call_source *s)
{
	return &s->timeline;
}

static void note_count(const char *path, uint64_t nr, const char *what)
{
	if (nr != 0)
		uni_note("%s: %" PRIu64 " %s", path, nr, what);
}

bool uni_call_source_has_calls(const struct uni_call_source *s)
{
	return s->promises == NULL;
}

uint64_t uni_call_source_nr_samples(const struct uni_call_source *s)
{
	return s->rec != NULL ? uni_recording_stats(s->rec)->samples : 0;
}

/* As read() of a timeline: 0 at its end. *ret: there were events, and no call up to here. */
static int look_for_calls(const struct uni_timeline *t, bool *ret)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	*ret = false;
	while ((rc = t->read(t->ctx, &e, &nr)) > 0) {
		for (size_t i = 0; i < nr; i++) {
			*ret = e[i].type > UNI_CALL_RETURN;
			if (!*ret)
				return 0;
		}
	}
	return rc;
}

int uni_call_source_lacks_calls(const struct uni_source_args *args, bool *ret, struct uni_err *err)
{
	struct uni_source_args all = *args;
	struct uni_call_source *s;
	int rc;

	all.rules = (struct uni_opt_list){ 0 };
	rc = uni_call_source_open(&all, &s, err);

	if (rc != 0)
		return rc;
	rc = look_for_calls(uni_call_source_get(s), ret);
	uni_call_source_close(s);
	return rc == 0 ? 0 : uni_err_nomem(err);
}

void uni_call_source_note(const struct uni_call_source *s)
{
	if (s->fcalls != NULL) {
		const struct uni_fcalls_stats *st = uni_fcalls_stats(s->fcalls);

		note_count(s->path, st->unopened, "closing braces without the call's opening line");
		note_count(s->path, st->unclosed, "calls without their closing brace");
		note_count(s->path, st->repaired, "durations had lost their last digits");
		note_count(s->path, st->overfull, "calls are shorter than those in them");
	} else if (s->ukt != NULL) {
		note_count(s->path, s->tracefile.cut,
			"end of the buffer is missing: the file is cut short");
		note_count(s->path, s->tracepoints.stats.damaged,
			"bytes of the buffer are no records");
		note_count(s->path, s->tracepoints.stats.unknown,
			"records are of unknown tracepoints");
		note_count(s->path, s->tracepoints.unordered, "records were behind a later one");
	} else if (s->trace != NULL) {
		const struct uni_calls_stats *st = uni_trace_timeline_stats(s->trace);

		note_count(s->path, st->lost, "events were lost");
		note_count(s->path, st->returns, "calls whose beginning is not in the trace");
		note_count(s->path, st->cut,
			"calls that were not seen to return (csv leaves them out)");
		note_count(s->path, st->damaged, "bytes of the trace make no sense");
		uni_trace_note_only(s->path, &uni_recording_guest(s->rec, s->guest).meta->trace);
		uni_call_rules_note(&s->rules);
	}
}
