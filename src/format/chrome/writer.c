/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace events as Chrome's about:tracing, Perfetto and others read them, in JSON. Each call is a
 * complete event ("X"). Process 1 holds the guest's threads; process 2 holds its CPUs, with what
 * each ran. Samples are spans (format/spans.h): processes from 3 on are the guests, and their
 * threads are the guests' threads or vCPUs. Times are microseconds of the host's monotonic
 * clock.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "format/chrome/promises.h"
#include "format/chrome/time.h"
#include "format/counters.h"
#include "format/opts.h"
#include "format/spans.h"

#define GUEST	1
#define CPUS	2
#define SAMPLED 3 /* guest 0, and more after it */

struct running {
	uint64_t since_ns;
	uint32_t thread;
	bool known;
};

struct writer;

struct sampled {
	struct writer *w;
	const struct uni_rows *rows;
};

struct options {
	bool args;
};

static const struct uni_export_optdef optdefs[] = {
	{ "args", NULL,
		"with each call its CPU, its own time and whether it returned; speedscope then "
		"takes calls that differ in these for different functions (default no)",
		UNI_OPT_BOOL, offsetof(struct options, args) },
	{ 0 },
};

struct writer {
	struct options o;
	const struct uni_timeline *tl;
	struct uni_sink *out;
	struct uni_json json;
	UNI_VEC(bool) seen; /* threads that were named */
	UNI_VEC(struct running) cpus;
	struct uni_counters counters;
	bool any;
};

static int write_chrome(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_chrome = {
	.name = "chrome",
	.ext = "trace.json",
	.mime = "application/json",
	.summary = "calls or samples in JSON, for about:tracing, Perfetto and others (up to a "
		   "million)",
	.lost = "on which vCPU a thread ran; samples become spans",
	.needs = UNI_TAKES_ALL | UNI_TAKES_PROMISES,
	.options = optdefs,
	.write = write_chrome,
};

static void begin_event(struct writer *w, char ph, unsigned pid, uint64_t tid, const char *name)
{
	uni_sink_puts(w->out, w->any ? ",\n" : "\n");
	w->any = true;
	uni_sink_printf(
		w->out, "{\"ph\":\"%c\",\"pid\":%u,\"tid\":%" PRIu64 ",\"name\":", ph, pid, tid);
	uni_json_init(&w->json, w->out, false);
	uni_json_str(&w->json, name);
}

static void put_meta(
	struct writer *w, const char *what, unsigned pid, uint64_t tid, const char *name)
{
	begin_event(w, 'M', pid, tid, what);
	uni_sink_puts(w->out, ",\"args\":{\"name\":");
	uni_json_init(&w->json, w->out, false);
	uni_json_str(&w->json, name);
	uni_sink_puts(w->out, "}}");
}

/* Threads are numbered as they come: two of the guest's may have the same number. */
static int name_thread(struct writer *w, uint32_t thread)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	const char *name;
	uint64_t number;

	uni_strbuf_init(&b);
	if (thread >= w->seen.nr) {
		size_t more = thread + 1 - w->seen.nr;

		if (!uni_vec_grow(&w->seen, more))
			return -UNI_ENOMEM;
		memset(w->seen.v + w->seen.nr, 0, more * sizeof(w->seen.v[0]));
		w->seen.nr = thread + 1;
	}
	if (w->seen.v[thread])
		return 0;
	w->seen.v[thread] = true;
	name = w->tl->thread(w->tl->ctx, thread, &number);
	uni_strbuf_addf(&b, "%s-%" PRIu64, name, number);
	put_meta(w, "thread_name", GUEST, thread, b.s);
	return uni_strbuf_failed(&b) ? -UNI_ENOMEM : 0;
}

static const char *func_name(const struct writer *w, uint32_t func)
{
	const char *name = w->tl->func(w->tl->ctx, func);

	return name[0] != '\0' ? name : "[unknown]";
}

static void put_span(struct writer *w, unsigned pid, uint64_t tid, const char *name,
	uint64_t begin_ns, uint64_t end_ns)
{
	begin_event(w, 'X', pid, tid, name);
	uni_chrome_span(w->out, begin_ns, end_ns);
}

/* The span of the thread that the CPU ran until now. */
static int put_switch(struct writer *w, const struct uni_call_event *e)
{
	const char *name;
	struct running *r;
	uint64_t number;

	if (e->cpu >= w->cpus.nr) {
		size_t more = (size_t)e->cpu + 1 - w->cpus.nr;

		if (!uni_vec_grow(&w->cpus, more))
			return -UNI_ENOMEM;
		memset(w->cpus.v + w->cpus.nr, 0, more * sizeof(w->cpus.v[0]));
		w->cpus.nr = (size_t)e->cpu + 1;
	}
	r = &w->cpus.v[e->cpu];
	if (r->known && e->ns >= r->since_ns) {
		name = w->tl->thread(w->tl->ctx, r->thread, &number);
		put_span(w, CPUS, e->cpu, name, r->since_ns, e->ns);
		uni_sink_printf(w->out, ",\"args\":{\"thread\":%" PRIu64 "}}", number);
	}
	*r = (struct running){ e->ns, e->next, true };
	return 0;
}

static void put_instant(struct writer *w, const struct uni_call_event *e, const char *name)
{
	begin_event(w, 'i', GUEST, e->thread, name);
	uni_chrome_us(w->out, "ts", e->ns);
	uni_sink_puts(w->out, ",\"s\":\"t\"}");
}

static void put_call(struct writer *w, const struct uni_call_event *e)
{
	put_span(w, GUEST, e->thread, func_name(w, e->func),
		e->ns >= e->duration ? e->ns - e->duration : 0, e->ns);
	if (w->o.args) {
		uni_sink_printf(w->out, ",\"args\":{\"cpu\":%u", e->cpu);
		uni_chrome_us(w->out, "self_us", e->self);
		uni_sink_puts(
			w->out, (e->flags & UNI_CALL_CUT) != 0 ? ",\"returned\":false}" : "}");
	}
	uni_sink_putc(w->out, '}');
}

/* Variables of the guest: counters of its process. */
static int put_counters(struct writer *w, const struct uni_call_event *e)
{
	struct uni_counted got[UNI_TRACE_READS_OF];
	int nr = uni_counters_take(&w->counters, w->tl, e, got);

	for (int i = 0; i < nr; i++) {
		begin_event(w, 'C', GUEST, 0, got[i].name);
		uni_chrome_us(w->out, "ts", e->ns);
		uni_sink_printf(w->out,
			got[i].is_signed ? ",\"args\":{\"value\":%" PRId64 "}}"
					 : ",\"args\":{\"value\":%" PRIu64 "}}",
			got[i].value);
	}
	return nr < 0 ? nr : 0;
}

static int put_call_event(struct writer *w, const struct uni_call_event *e)
{
	int rc = name_thread(w, e->thread);

	if (rc != 0)
		return rc;
	switch (e->type) {
	case UNI_CALL_LEAVE:
		put_call(w, e);
		return 0;
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		put_instant(w, e, func_name(w, e->func));
		return 0;
	case UNI_CALL_LOST:
		put_instant(w, e, "[events lost]");
		return 0;
	case UNI_CALL_SWITCH:
		return put_switch(w, e);
	case UNI_CALL_EXT:
		return put_counters(w, e);
	default:
		return 0;
	}
}

static int put_sampled(void *arg, const struct uni_row_span *s)
{
	const struct sampled *from = arg;
	const struct uni_frame *f = uni_profile_get_frame(from->rows->p, s->frame);

	put_span(from->w, SAMPLED + from->rows->lanes.v[s->lane].guest, s->lane,
		uni_profile_str(from->rows->p, f->name), s->begin_ns, s->end_ns);
	uni_sink_putc(from->w->out, '}');
	return 0;
}

static int put_samples(struct writer *w, const struct uni_view *v, struct uni_err *err)
{
	char name[UNI_TEXT_MAX];
	struct uni_rows rows;
	struct sampled from = { w, &rows };
	int rc = uni_rows_init(&rows, v, err);

	for (uint32_t i = 0; rc == 0 && i < rows.nr_guests; i++) {
		uni_rows_guest(&rows, i, name);
		put_meta(w, "process_name", SAMPLED + i, 0, name);
	}
	for (uint32_t i = 0; rc == 0 && i < rows.lanes.nr; i++) {
		uni_rows_lane(&rows, i, name);
		put_meta(w, "thread_name", SAMPLED + rows.lanes.v[i].guest, i, name);
	}
	if (rc == 0)
		uni_rows_say(&rows, v);
	if (rc == 0)
		rc = uni_rows_spans(&rows, put_sampled, &from);
	uni_rows_deinit(&rows);
	return rc;
}

static int put_calls(struct writer *w)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	put_meta(w, "process_name", GUEST, 0, "guest");
	put_meta(w, "process_name", CPUS, 0, "CPUs");
	while ((rc = w->tl->read(w->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr && rc == 1; i++)
			rc = put_call_event(w, &e[i]) == 0 ? 1 : -UNI_ENOMEM;
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int write_chrome(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { .tl = v->timeline, .out = out };
	int rc = uni_export_opts_parse(&uni_exporter_chrome, opts, nr_opts, &w.o, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_chrome, v, err);
	if (rc != 0)
		return rc;
	uni_sink_puts(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	if (v->timeline != NULL)
		rc = put_calls(&w);
	if (rc == 0 && v->profile != NULL)
		rc = put_samples(&w, v, err);
	if (rc == 0 && v->promises != NULL)
		w.any = uni_chrome_promises(v->promises, out, w.any);
	uni_sink_puts(out, "\n]}\n");
	uni_vec_free(&w.seen);
	uni_vec_free(&w.cpus);
	uni_counters_deinit(&w.counters);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}
