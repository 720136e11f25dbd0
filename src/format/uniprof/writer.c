/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uniprof's text, sample by sample in time order, for the tools that read it. It begins with three
 * header lines (its stackcollapse skips exactly three). A sample is a line for each frame, leaf
 * first, a line with the weight, and a blank line. The weight is "1", or "0" if the chain is cut
 * off.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "format/opts.h"
#include "format/uniprof/uniprof.h"
#include "obj/demangle.h"
#include "obj/usym.h"
#include "recording/recording.h"

#define REPEAT_MAX UINT64_C(100000) /* a weight beyond it is damage, or no sampling */

struct uniprof_opts {
	bool symbols;
};

static const struct uni_export_optdef options[] = {
	{ "symbols", NULL, "name+0xoffset instead of addresses (default off)", UNI_OPT_BOOL,
		offsetof(struct uniprof_opts, symbols) },
	{ 0 },
};

static int write_uniprof(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_uniprof = {
	.name = "uniprof",
	.ext = "stacktrace",
	.mime = "text/plain",
	.summary = "uniprof's stack traces, one a sample",
	.lost = "times, vCPUs, threads",
	.needs = UNI_NEEDS_SAMPLES,
	.options = options,
	.write = write_uniprof,
};

struct writer {
	const struct uni_view *view;
	struct uni_sink *out;
	const struct uni_symtab *symtab; /* of the sample's guest; NULL: addresses */
	uint64_t bias;
	bool symbols;
	uint64_t left_out; /* of the weights of broken chains */
	bool made_up;	   /* an import: its addresses are none, and offsets say nothing */
};

/* The number in "xen:dom=3", with or without further keys, as text; else NULL. */
static const char *domain_of(const char *target, size_t *len_ret)
{
	static const char prefix[] = "xen:dom=";
	const char *dom = target + sizeof(prefix) - 1;
	size_t len;

	if (strncmp(target, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	len = strspn(dom, "0123456789");
	*len_ret = len;
	return len != 0 && (dom[len] == '\0' || dom[len] == ',') ? dom : NULL;
}

void uni_uniprof_header(
	struct uni_sink *out, const char *target, uint64_t realtime_ns, bool local_time)
{
	time_t when = (time_t)(realtime_ns / UNI_NSEC_PER_SEC);
	char clean[UNI_TEXT_MAX], date[80] = "1970-01-01 00:00:00 UTC (+0000)";
	const char *dom;
	size_t len;
	struct tm tm;

	if (local_time && localtime_r(&when, &tm) != NULL)
		(void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S %Z (%z)", &tm);
	else if (gmtime_r(&when, &tm) != NULL)
		(void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC (+0000)", &tm);
	(void)uni_text_clean(clean, sizeof(clean), target, strlen(target));
	dom = domain_of(clean, &len);
	if (dom != NULL)
		uni_sink_printf(out,
			"#unikernel stack tracer using libxencall hypercall interface\n"
			"#tracing domid %.*s on %s\n\n",
			(int)len, dom, date);
	else
		uni_sink_printf(out,
			"#unikernel stack tracer using uniscope\n#tracing %s on %s\n\n", clean,
			date);
}

static void put_header(struct uni_sink *out, const struct uni_record_meta *m, uint64_t begin_ns)
{
	char target[sizeof(m->target)];

	(void)uni_text_clean(target, sizeof(target), m->target, sizeof(m->target));
	uni_uniprof_header(out, target, m->realtime_offset_ns + begin_ns, false);
}

/* Callers are looked up at the call, which is the instruction before the return address. */
static void put_frame(struct writer *w, const struct uni_sample *s, size_t i)
{
	bool exact = i == 0 || (s->flags[i] & UNI_FRAME_EXACT) != 0 || s->pc[i] == 0;
	uint64_t off, svma = s->pc[i] - w->bias;
	char clean[UNI_TEXT_MAX];
	const char *name;

	if (uni_frame_is_unknown_callee(s->pc[i], s->flags[i]))
		return; /* the text has addresses only */
	if (w->symtab == NULL || !uni_symtab_lookup(w->symtab, svma - !exact, &name, &off)) {
		uni_sink_printf(w->out, "0x%" PRIx64 "\n", s->pc[i]);
		return;
	}
	if (w->made_up || w->view->mangled || !uni_demangle(name, clean, sizeof(clean)))
		(void)uni_text_clean(clean, sizeof(clean), name, UNI_TEXT_MAX);
	uni_sink_puts(w->out, clean);
	if (!w->made_up)
		uni_sink_printf(w->out, "+0x%" PRIx64, off + !exact);
	uni_sink_putc(w->out, '\n');
}

static const struct uni_symtab *symtab_of(
	const struct uni_view *v, const struct uni_recorded_guest *g)
{
	return v->symtab != NULL ? v->symtab : g->symtab;
}

static bool has_symbols(const struct uni_view *v)
{
	for (uint32_t i = 0; i < uni_recording_nr_guests(v->samples); i++) {
		struct uni_recorded_guest g = uni_recording_guest(v->samples, i);

		if (symtab_of(v, &g) != NULL)
			return true;
	}
	return false;
}

/* The number after a cut-off chain is 0, whatever its weight: so it is written as often as that. */
static int put_sample(void *ctx, const struct uni_sample *s)
{
	struct writer *w = ctx;
	struct uni_recorded_guest g;
	uint64_t times;

	if (w->view->filter != NULL && !uni_sample_passes(w->view->filter, s))
		return 0;
	g = uni_recording_guest(w->view->samples, s->guest);
	w->bias = g.meta->bias;
	w->symtab = w->symbols ? symtab_of(w->view, &g) : NULL;
	times = s->stop == UNI_STOP_ROOT ? 1 : uni_min(s->weight, REPEAT_MAX);
	w->left_out += s->stop == UNI_STOP_ROOT ? 0 : s->weight - times;
	for (uint64_t n = 0; n < times; n++) {
		for (size_t i = 0; i < s->nr; i++)
			put_frame(w, s, i);
		uni_sink_printf(
			w->out, "%" PRIu64 "\n\n", s->stop == UNI_STOP_ROOT ? s->weight : 0);
	}
	return 0;
}

static int write_uniprof(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err)
{
	struct uniprof_opts o = { 0 };
	struct writer w = { .view = v, .out = out };
	const struct uni_record_meta *meta;
	int rc = uni_export_opts_parse(&uni_exporter_uniprof, opts, nr_opts, &o, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_uniprof, v, err);
	if (rc != 0)
		return rc;
	meta = uni_recording_meta(v->samples);
	w.made_up = meta->aggregate;
	w.symbols = o.symbols || w.made_up;
	if (w.symbols && !has_symbols(v))
		return uni_err_set(err, UNI_EUSAGE,
			"format uniprof: symbols were asked for, but the session has none and no "
			"image was given");
	put_header(out, meta, uni_recording_stats(v->samples)->begin_ns);
	rc = uni_recording_each(v->samples, put_sample, &w, NULL, err);
	if (w.left_out != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost,
			"%" PRIu64 " periods of chains that were broken off are not in it\n",
			w.left_out);
	return rc;
}
