/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text like the output of `perf script`, a sample at a time. The first line has the thread, the
 * vCPU, the time and the period; then each frame has a line, leaf first. The period is the
 * nanoseconds that the sample stands for.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "format/opts.h"
#include "format/rows.h"

#define FIRST_TID 1000 /* of lanes; guests are processes from 1 on */

struct writer {
	struct uni_rows rows;
	struct uni_sink *out;
	struct uni_row_stack stack;
	uint64_t rounded;
};

static int write_perf(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_perf = {
	.name = "perf",
	.ext = "perf",
	.mime = "text/plain",
	.summary = "what perf script prints: for FlameGraph's scripts, Firefox Profiler and others",
	.lost = "whether a function was inlined, source lines, where in a function a sample was",
	.needs = UNI_NEEDS_PROFILE | UNI_TAKES_SAMPLES,
	.write = write_perf,
};

/* The thread's name ends where a number follows: readers differ on names with blanks. */
static void put_comm(struct writer *w, const char *name)
{
	for (; *name != '\0'; name++)
		uni_sink_putc(w->out, *name == ' ' || *name == '/' ? '_' : *name);
}

static void put_event(struct writer *w, const struct uni_row *row)
{
	const struct uni_row_track *t = &w->rows.tracks.v[row->track];
	char name[UNI_TEXT_MAX];
	double value = w->rows.timed ? (double)uni_row_ns(&w->rows, row) : round(row->value);

	w->rounded += !w->rows.timed && value != row->value;
	if (t->thread != 0)
		uni_rows_thread(&w->rows, t->guest, t->thread, name);
	else
		uni_rows_guest(&w->rows, t->guest, name);
	put_comm(w, name[0] != '\0' ? name : "guest");
	uni_sink_printf(w->out, " %" PRIu32 "/%" PRIu32 " ", t->guest + 1, FIRST_TID + row->lane);
	if (!t->off_cpu)
		uni_sink_printf(w->out, "[%03" PRIu32 "] ", t->vcpu);
	uni_sink_printf(w->out, "%llu.%09llu: %.0f ", row->t_ns / UNI_NSEC_PER_SEC,
		row->t_ns % UNI_NSEC_PER_SEC, value);
	if (w->rows.timed)
		uni_sink_puts(w->out, "cpu-clock");
	else
		put_comm(w, uni_profile_unit(w->rows.p));
	uni_sink_puts(w->out, ":\n");
}

static void put_frame(struct writer *w, uint32_t number)
{
	const struct uni_profile *p = w->rows.p;
	const struct uni_frame *f = uni_profile_get_frame(p, number);
	const char *name = uni_profile_str(p, uni_frame_said(f));
	const char *image = uni_profile_str(p, f->image);

	uni_sink_printf(w->out, "\t%16" PRIx64 " %s (%s)\n", f->addr, name,
		image[0] != '\0'	      ? image
		: f->kind == UNI_FK_SYNTHETIC ? "[uniscope]"
					      : "[guest]");
}

static int put_row(struct writer *w, const struct uni_row *row)
{
	put_event(w, row);
	if (!uni_row_stack(&w->stack, w->rows.p, row->node))
		return -UNI_ENOMEM;
	for (size_t i = 0; i < w->stack.frames.nr; i++)
		put_frame(w, w->stack.frames.v[i]);
	uni_sink_putc(w->out, '\n');
	return 0;
}

static int write_perf(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { .out = out };
	int rc = uni_export_opts_parse(&uni_exporter_perf, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_perf, v, err);
	if (rc != 0)
		return rc;
	rc = uni_rows_init(&w.rows, v, err);
	if (rc == 0)
		uni_rows_say(&w.rows, v);
	for (size_t i = 0; rc == 0 && i < w.rows.rows.nr; i++) {
		if (put_row(&w, &w.rows.rows.v[i]) != 0)
			rc = uni_err_nomem(err);
	}
	if (w.rounded != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost, "%" PRIu64 " value%s rounded to whole numbers\n",
			w.rounded, w.rounded == 1 ? " was" : "s were");
	uni_vec_free(&w.stack.frames);
	uni_rows_deinit(&w.rows);
	return rc;
}
