/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/uniprof/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "compat/names.h"
#include "app/record.h"
#include "app/signals.h"
#include "app/summary.h"
#include "format/uniprof/uniprof.h"
#include "sampling/sampler.h"

struct tracer {
	const struct uni_tracer_args *args;
	struct uni_sink *out;
	uint64_t bias;
	pthread_rwlock_t gate;
	bool says_missed;	 /* asked to, and there are deadlines to be missed */
	uint64_t first_ns, next; /* with says_missed: the first sample, and the next deadline */
};

static void put_trace(struct tracer *t, const struct uni_sample *s)
{
	const struct uni_symtab *symtab = t->args->symtab;
	bool broken = s->nr != 0 && s->stop != UNI_STOP_ROOT;

	for (size_t i = 0; i < s->nr; i++) {
		bool exact = i == 0 || (s->flags[i] & UNI_FRAME_EXACT) != 0;

		if (uni_frame_is_unknown_callee(s->pc[i], s->flags[i]))
			continue; /* the text has addresses only */
		if (symtab != NULL)
			(void)uni_symbolize_frame(symtab, t->bias, s->pc[i], exact, t->out);
		else
			uni_sink_printf(t->out, "0x%" PRIx64 "\n", s->pc[i]);
	}
	/* Text with names is for readers that drop a stack with count 0. */
	if (broken && symtab != NULL)
		uni_sink_puts(t->out, UNI_SYMBOLIZE_TRUNCATED "\n1\n\n");
	else
		uni_sink_puts(t->out, broken ? "0\n\n" : "1\n\n");
}

/*
 * Deadlines are exact multiples of the period then, and each is served before half of the next one
 * is over, or not at all.
 */
static void say_missed(struct tracer *t, uint64_t t_ns)
{
	double period_ns = 1e9 / t->args->frequency;
	uint64_t served;

	if (t->first_ns == 0)
		t->first_ns = t_ns;
	served = (uint64_t)((double)(t_ns - t->first_ns) / period_ns + 0.25);
	for (; t->next < served; t->next++) {
		uint64_t due_ns = t->first_ns + (uint64_t)((double)t->next * period_ns);
		uint64_t late_ns = t_ns - due_ns;

		(void)fprintf(stderr, "we're falling behind by %" PRIu64 ".%09" PRIu64 "!\n",
			(uint64_t)(late_ns / UNI_NSEC_PER_SEC),
			(uint64_t)(late_ns % UNI_NSEC_PER_SEC));
	}
	t->next = served + 1;
}

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct tracer *t = ctx;

	uni_signals_suspend(&t->gate);
	if (t->says_missed && s->vcpu == 0 && s->t_ns >= t->first_ns)
		say_missed(t, s->t_ns);
	/* Older readers know no other count than 1. */
	for (uint64_t i = 0; i < s->weight && !uni_sink_failed(t->out); i++)
		put_trace(t, s);
}

static void on_progress(void *ctx, const struct uni_record_stats *st, uint64_t elapsed_ns)
{
	struct tracer *t = ctx;

	(void)st;
	(void)elapsed_ns;
	uni_signals_suspend(&t->gate);
	uni_sink_flush(t->out); /* readers of a pipe want to see them */
	if (uni_sink_failed(t->out))
		uni_signals_ask_to_stop();
}

static void sum_up(struct uni_guest *g, const struct uni_tracer_args *args,
	const struct uni_record_stats *stats, enum uni_sampler_end end)
{
	_cleanup_free_ struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	const struct uni_record_args rec = { .frequency = args->frequency,
		.duration = args->duration };
	uint64_t missed = stats->late + stats->skipped + stats->lost;

	if (missed != 0)
		(void)fprintf(stderr, "Missed %" PRIu64 " deadlines\n", missed);
	if (args->quiet || meta == NULL)
		return;
	uni_record_fill_meta(g, &rec, meta);
	g->t->ops->info(g->t, &g->info);
	uni_summary_guest("", meta, stats, end, g->info.ended);
}

int uni_tracer_run(struct uni_guest *g, const struct uni_tracer_args *args, struct uni_sink *out,
	struct uni_err *err)
{
	struct tracer t = { .args = args, .out = out, .bias = g->bias };
	struct uni_sampler_cfg cfg = { .frequency = args->frequency,
		.duration_ns = (uint64_t)(args->duration * 1e9),
		.jitter = !args->say_missed,
		.unwinder = &g->unwinder,
		.stop = uni_signals_stop(),
		.gate = &t.gate,
		.on_sample = on_sample,
		.on_progress = on_progress,
		.ctx = &t };
	struct uni_record_stats stats = { 0 };
	enum uni_sampler_end end = UNI_END_DURATION;
	struct uni_signals signals;
	int rc;

	/* The kernel takes samples when the time has come, or not at all. */
	t.says_missed = args->say_missed && !uni_sampler_streams(g->t);
	uni_signals_init_gate(&t.gate);
	uni_pace_apply(args->pace, &cfg);
	uni_uniprof_header(out, args->target, uni_realtime_ns(), true);
	uni_signals_begin(&signals);
	rc = uni_sampler_run(g->t, &cfg, &stats, &end, err);
	uni_signals_end(&signals);
	(void)pthread_rwlock_destroy(&t.gate);
	if (rc == 0)
		sum_up(g, args, &stats, end);
	uni_record_stats_deinit(&stats);
	return rc;
}
