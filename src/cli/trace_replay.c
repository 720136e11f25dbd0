/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "app/cmd.h"
#include "app/lock_notes.h"
#include "app/trace_open.h"
#include "trace/lines.h"

static struct {
	struct uni_trace_args args;
	const char *format, *output;
	bool no_switches, json;
} o;

static const struct uni_opt *list_trace_replay_options(void)
{
	static const struct uni_opt table[] = {
		{ 'f', "format", UNI_OPT_STR, &o.format, "FORMAT",
			"function_graph: calls with their durations, in braces; function: a line "
			"a call, callers unknown where only entries were recorded (default "
			"function_graph)",
			"function_graph function", NULL },
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE", "write it here, not to stdout",
			"FILE", NULL },
		{ 0, "function", UNI_OPT_STR, &o.args.function, "NAME",
			"only calls of functions whose name matches, and the "
			"calls in them",
			NULL, NULL },
		{ 0, "no-switches", UNI_OPT_FLAG, &o.no_switches, NULL,
			"leave out the blocks that show switches of threads", NULL, NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL,
			"print each event as a JSON object on a line of its own", NULL, NULL },
		UNI_TRACE_OPTIONS(o.args),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .format = "function_graph", .output = "-" };
	return table;
}

static const char *thread_name(const void *ctx, uint32_t thread, uint64_t *number_ret)
{
	struct uni_calls *const *calls = ctx;

	return uni_calls_thread_name(*calls, thread, number_ret);
}

struct put {
	struct uni_trace_text *text; /* or NULL, and */
	struct uni_trace_lines *lines;
	/* by CPU: switch that is not written yet, else type 0; or NULL */
	struct uni_call_event *gone;
	bool any; /* a call was put */
};

/* With few functions: a switch matters only if the next call is another thread's. */
static bool put_off(struct put *p, const struct uni_call_event *e)
{
	struct uni_call_event *gone = &p->gone[e->cpu];

	if (e->type != UNI_CALL_SWITCH)
		return false;
	if (gone->type != UNI_CALL_SWITCH)
		*gone = *e;
	gone->next = e->next;
	if (gone->thread == gone->next)
		gone->type = 0;
	return true;
}

static int put_events(const struct put *p, const struct uni_call_event *e, size_t nr)
{
	return p->lines != NULL ? uni_trace_lines_put(p->lines, e, nr)
				: uni_trace_text_put(p->text, e, nr);
}

static int put_few(struct put *p, const struct uni_call_event *e, size_t nr)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		struct uni_call_event *gone = &p->gone[e[i].cpu];

		if (put_off(p, &e[i]))
			continue;
		p->any = p->any || e[i].type != UNI_CALL_LOST;
		if (gone->type == UNI_CALL_SWITCH && e[i].type != UNI_CALL_LOST) {
			rc = put_events(p, gone, 1);
			gone->type = 0;
		}
		if (rc == 0)
			rc = put_events(p, &e[i], 1);
	}
	return rc;
}

static int put_all(struct uni_calls *calls, struct put *p, const struct uni_sink *out)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	/* The sink's close reports a reader that has gone away. */
	while ((rc = uni_calls_read(calls, &e, &nr)) == 1 && !uni_sink_failed(out)) {
		rc = p->gone != NULL ? put_few(p, e, nr) : put_events(p, e, nr);
		if (rc != 0)
			break;
	}
	return rc < 0 ? rc : 0;
}

static void open_put(struct put *p, const struct uni_trace_open *t, struct uni_sink *out,
	const struct uni_trace_text_opts *opts)
{
	if (o.json)
		p->lines = uni_trace_lines_open(out, t->funcs, opts);
	else
		p->text = uni_trace_text_open(out, t->funcs, opts);
}

static int no_call(struct uni_err *err)
{
	if (o.args.rules.items.nr != 0)
		return uni_err_set(err, UNI_ENOENT, "--rule leaves no call of this trace");
	return uni_err_set(
		err, UNI_ENOENT, "no call of a function '%s' in this trace", o.args.function);
}

static int put_chosen(struct uni_trace_open *t, struct uni_calls *calls, struct put *p,
	const struct uni_trace_text_opts *opts, struct uni_sink *out)
{
	bool few = o.args.function != NULL || t->filter.rules != NULL;
	_cleanup_free_ struct uni_call_event *gone = NULL;
	int rc;

	if (few)
		p->gone = gone = calloc(t->in->info.nr_cpus, sizeof(*gone));
	if (!few || gone != NULL)
		open_put(p, t, out, opts);
	rc = p->text != NULL || p->lines != NULL ? put_all(calls, p, out) : -UNI_ENOMEM;
	uni_trace_text_close(p->text);
	uni_trace_lines_close(p->lines);
	return rc == 0 && few && !p->any ? -UNI_ENOENT : rc;
}

static void put_values(void *trace, const struct uni_call_event *e, char *buf, size_t size)
{
	struct uni_trace_open *t = trace;

	uni_trace_values_text(&t->values, uni_funcs_address(t->funcs, e->func), e, buf, size);
}

static void put_note(void *notes, const struct uni_call_event *e, char *buf, size_t size)
{
	uni_lock_notes_text(notes, e, buf, size);
}

static int replay_calls(struct uni_trace_open *t, struct uni_sink *out, struct uni_err *err)
{
	struct uni_calls *calls;
	struct uni_trace_text_opts opts = { .no_switches = o.no_switches,
		.kind = strcmp(o.format, "function") == 0 ? UNI_TRACE_TEXT_FUNCTION
							  : UNI_TRACE_TEXT_GRAPH,
		.thread_name = thread_name,
		.ctx = &calls,
		.args = put_values,
		.args_ctx = t };
	struct put p = { 0 };
	int rc = uni_calls_open(t->in, &t->filter, t->funcs, &calls, err);

	if (rc != 0)
		return rc;
	t->values.calls = calls;
	opts.note_ctx = uni_lock_notes_open(t->in, &t->values);
	opts.note = opts.note_ctx != NULL ? put_note : NULL;
	rc = put_chosen(t, calls, &p, &opts, out);
	if (rc == -UNI_ENOENT)
		rc = no_call(err);
	else if (rc != 0)
		rc = uni_err_nomem(err);
	uni_trace_note(t, uni_recording_path(t->rec), uni_calls_stats(calls));
	uni_lock_notes_close(opts.note_ctx);
	uni_calls_close(calls);
	return rc;
}

static int check_options(struct uni_err *err)
{
	if (strcmp(o.format, "function_graph") != 0 && strcmp(o.format, "function") != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"--format takes function_graph or function, not '%s'", o.format);
	if (o.json && (strcmp(o.format, "function_graph") != 0 || o.no_switches))
		return uni_err_set(err, UNI_EUSAGE,
			"--json goes with neither --format nor --no-switches: its events are "
			"those of the trace");
	return 0;
}

static int run_trace_replay(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_trace_open t;
	struct uni_sink *out;
	int rc = check_options(err);

	if (rc == 0)
		rc = uni_trace_open(ctx->operands[0], &o.args, &t, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = uni_sink_open_file(o.output, &out, err);
	if (rc == 0) {
		rc = replay_calls(&t, out, err);
		if (rc == 0)
			rc = uni_sink_close(out, err);
		else
			uni_sink_abort(out);
	}
	uni_trace_close(&t);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_replay = {
	.name = "replay",
	.operands = "SESSION",
	.reads_only = true,
	.summary = "print a trace's calls one after the other, as ftrace does",
	.details = "The calls of all CPUs are merged by time; each thread keeps its depth "
		   "when it\n"
		   "is switched off a CPU and on again. Functions that were traced with "
		   "--args show\n"
		   "their arguments and return values, with names and types if the image "
		   "has debug data.",
	.examples = "  uniscope trace replay web1.uniscope\n"
		    "  uniscope trace replay --last 10ms crash.uniscope\n"
		    "  uniscope trace replay --json web1.uniscope | python3 mine.py\n"
		    "  uniscope trace replay --rule 'tcp_input(len>1000)' web1.uniscope\n"
		    "  uniscope trace replay --from 2.5 --to 2.51 --function 'tcp_*' web1.uniscope",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_replay_options,
	.run = run_trace_replay,
};
