/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "app/cmd.h"
#include "app/term.h"
#include "app/trace_open.h"
#include "trace/breakdown.h"
#include "trace/stats.h"

#define GROUP_MAX 128

static struct {
	struct uni_trace_args args;
	uint64_t functions;
	struct uni_opt_list hide;
	bool threads, json;
} o;

static const struct uni_opt *list_trace_breakdown_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "threads", UNI_OPT_FLAG, &o.threads, NULL, "by thread instead of by CPU", NULL,
			NULL },
		{ 'n', "max", UNI_OPT_U64, &o.functions, "N",
			"functions to list of each at most; 0 lists all (default 15)", NULL, NULL,
			.old_name = "functions" },
		{ 0, "hide", UNI_OPT_LIST, &o.hide, "GLOB",
			"leave out functions with such names: shares and sums are of the rest. * "
			"and ? stand for any text; may be given several times",
			NULL, NULL },
		UNI_TRACE_OPTIONS(o.args),
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON, times in ns", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .functions = 15 };
	return table;
}

static void group_name(const struct uni_trace_open *t, const struct uni_breakdown *b,
	uint32_t group, char ret[GROUP_MAX])
{
	struct uni_calls_thread thread;

	if (!o.threads) {
		(void)snprintf(ret, GROUP_MAX, "CPU %" PRIu32, group);
		return;
	}
	thread = b->thread.v[group];
	if (!thread.known) {
		(void)snprintf(ret, GROUP_MAX, "unknown thread of CPU %" PRIu64, thread.id);
		return;
	}
	for (size_t i = 0; i < t->in->nr_threads; i++) {
		const struct uni_trace_thread_name *n = &t->in->thread[i];

		if (n->id == thread.id) {
			(void)snprintf(ret, GROUP_MAX, "thread %.64s-%" PRIu64, n->name, n->number);
			return;
		}
	}
	(void)snprintf(ret, GROUP_MAX, "thread %#" PRIx64, thread.id);
}

static const char *func_name(const struct uni_trace_open *t, uint32_t func)
{
	return func == UNI_FUNC_NONE ? "[in no traced function]" : uni_funcs_name(t->funcs, func);
}

static bool is_hidden(const char *name)
{
	for (size_t i = 0; i < o.hide.items.nr; i++) {
		if (uni_glob_match(o.hide.items.v[i], name))
			return true;
	}
	return false;
}

/* Reports on stderr how much --hide leaves out. */
static void hide_cells(const struct uni_trace_open *t, struct uni_breakdown *b)
{
	uint64_t all = 0, left = 0;
	size_t nr = 0;

	for (size_t i = 0; i < b->cell.nr; i++) {
		all += b->cell.v[i].self;
		if (is_hidden(func_name(t, b->cell.v[i].func)))
			left += b->cell.v[i].self;
		else
			b->cell.v[nr++] = b->cell.v[i];
	}
	b->cell.nr = nr;
	uni_note("%.2f %% of the time is left out, that of the hidden functions: shares are of the "
		 "rest",
		all != 0 ? 100.0 * (double)left / (double)all : 0);
}

/* Cells from `at` on that are of the same group. */
static size_t group_nr(const struct uni_breakdown *b, size_t at, uint64_t *sum_ret)
{
	size_t n = 0;

	*sum_ret = 0;
	while (at + n < b->cell.nr && b->cell.v[at + n].group == b->cell.v[at].group)
		*sum_ret += b->cell.v[at + n++].self;
	return n;
}

static void put_text(
	const struct uni_trace_open *t, const struct uni_breakdown *b, struct uni_sink *out)
{
	char name[GROUP_MAX], span[UNI_SPAN_MAX];
	uint64_t sum;

	for (size_t at = 0, nr; at < b->cell.nr; at += nr) {
		nr = group_nr(b, at, &sum);
		group_name(t, b, b->cell.v[at].group, name);
		uni_trace_span(span, sum);
		uni_sink_printf(out, "%s%s  %s\n", at != 0 ? "\n" : "", span, name);
		for (size_t i = 0; i < nr && (o.functions == 0 || i < o.functions); i++) {
			const struct uni_breakdown_cell *c = &b->cell.v[at + i];

			/* One that began before the window has a time, and no call. */
			if (c->calls != 0 && !uni_calls_have_time(c->calls, c->timed)) {
				uni_sink_printf(out, "%10s %5s   %12" PRIu64 "  %s\n", "-", "-",
					c->calls, func_name(t, c->func));
				continue;
			}
			uni_trace_span(span, c->self);
			uni_sink_printf(out, "%s %5.1f %% %12" PRIu64 "  %s\n", span,
				sum != 0 ? 100.0 * (double)c->self / (double)sum : 0, c->calls,
				func_name(t, c->func));
		}
	}
}

static void put_json(
	const struct uni_trace_open *t, const struct uni_breakdown *b, struct uni_sink *out)
{
	char name[GROUP_MAX];
	struct uni_json j;
	uint64_t sum;

	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-trace-breakdown");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(u64, &j, "begin_ns", b->stats.begin_ns);
	uni_json_kv(u64, &j, "end_ns", b->stats.end_ns);
	uni_json_kv(u64, &j, "lost", b->stats.lost);
	uni_json_key(&j, o.threads ? "threads" : "cpus");
	uni_json_array(&j);
	for (size_t at = 0, nr; at < b->cell.nr; at += nr) {
		nr = group_nr(b, at, &sum);
		group_name(t, b, b->cell.v[at].group, name);
		uni_json_object(&j);
		uni_json_kv(str, &j, "name", name);
		if (o.threads)
			uni_json_kv(hex, &j, "id", b->thread.v[b->cell.v[at].group].id);
		else
			uni_json_kv(u64, &j, "cpu", b->cell.v[at].group);
		uni_json_kv(u64, &j, "self_ns", sum);
		uni_json_key(&j, "functions");
		uni_json_array(&j);
		for (size_t i = at; i < at + nr; i++) {
			uni_json_object(&j);
			uni_json_kv(str, &j, "function", func_name(t, b->cell.v[i].func));
			uni_json_kv(u64, &j, "self_ns", b->cell.v[i].self);
			uni_json_kv(u64, &j, "calls", b->cell.v[i].calls);
			uni_json_kv(u64, &j, "timed", b->cell.v[i].timed);
			uni_json_object_end(&j);
		}
		uni_json_array_end(&j);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}

static int print_breakdown(const struct uni_trace_open *t, const char *path, struct uni_err *err)
{
	struct uni_breakdown b;
	struct uni_sink *out;
	int rc = uni_breakdown_make(t->in, &t->filter, t->funcs, o.threads, &b, err);

	if (rc != 0)
		return rc;
	uni_trace_note(t, path, &b.stats);
	if (o.hide.items.nr != 0)
		hide_cells(t, &b);
	rc = uni_sink_open_file("-", &out, err);
	if (rc == 0) {
		if (o.json)
			put_json(t, &b, out);
		else
			put_text(t, &b, out);
		rc = uni_sink_close(out, err);
	}
	uni_breakdown_deinit(&b);
	return rc;
}

static int run_trace_breakdown(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_trace_open t;
	int rc = uni_trace_open(ctx->operands[0], &o.args, &t, err);

	if (rc == 0) {
		rc = print_breakdown(&t, ctx->operands[0], err);
		uni_trace_close(&t);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_breakdown = {
	.name = "breakdown",
	.operands = "SESSION",
	.reads_only = true,
	.summary = "print the time of each CPU, or of each thread, by function",
	.details = "Time counts for the newest traced call that is open on the CPU; time "
		   "that a\n"
		   "thread spends on no CPU is not counted.",
	.examples = "  uniscope trace breakdown web1.uniscope\n"
		    "  uniscope trace breakdown --threads --json web1.uniscope\n"
		    "  uniscope trace breakdown --hide 'idle_*' web1.uniscope",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_breakdown_options,
	.run = run_trace_breakdown,
};
