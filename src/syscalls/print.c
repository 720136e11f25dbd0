/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/json.h"
#include "syscalls/log.h"
#include "syscalls/value.h"

/* A call begins, or one returns. */
struct moment {
	uint64_t ns;
	uint32_t entry;
	bool end, untimed;
};

struct uni_sysc_printer {
	const struct uni_sysc_log *log;
	struct uni_sysc_print opts;
	struct uni_sink *out;
	bool threads;	 /* there are several */
	bool any_thread; /* one was printed, of this name: */
	uint64_t thread;
	bool any;	  /* a stamp was printed */
	uint64_t last_ns; /* of the stamp before, for -r */
	uint32_t open;	  /* entry + 1 whose line waits for its result; 0: none */
	unsigned column;  /* of that line */
};

static const char *log_text(const struct uni_sysc_log *log, uint32_t id)
{
	return uni_strtab_get(log->text, id);
}

/* Formats the value, or uses the text that the guest printed. */
static void put_value(
	const struct uni_sysc_log *log, const struct uni_sysc_entry *e, struct uni_strbuf *out)
{
	const char *name;

	if (e->result != 0) {
		uni_strbuf_adds(out, log_text(log, e->result));
		return;
	}
	switch (e->end) {
	case UNI_SYSC_FAILED:
		name = e->value != 0 ? uni_sysc_error_name((int)e->value) : NULL;
		uni_strbuf_adds(out, "-1");
		if (name != NULL)
			uni_strbuf_addf(out, " %s (%s)", name, strerrordesc_np((int)e->value));
		else if (e->value != 0)
			uni_strbuf_addf(out, " (errno %" PRId64 ")", e->value);
		return;
	case UNI_SYSC_OK:
		if (e->shown == 'p')
			uni_strbuf_addf(out, "%#" PRIx64, (uint64_t)e->value);
		else if (e->shown == 'o')
			uni_strbuf_addf(out, "%#" PRIo64, (uint64_t)e->value);
		else
			uni_strbuf_addf(out, "%" PRId64, e->value);
		return;
	default:
		uni_strbuf_addc(out, '?');
	}
}

static void put_stamp(struct uni_sysc_printer *p, const struct uni_sysc_entry *e, uint64_t ns)
{
	uint64_t wall = ns + p->opts.realtime_offset_ns,
		 gap = p->any && ns > p->last_ns ? ns - p->last_ns : 0;
	time_t s = (time_t)(wall / UNI_NSEC_PER_SEC);
	unsigned us = (unsigned)(wall % UNI_NSEC_PER_SEC / UNI_NSEC_PER_USEC);
	char clock[16];
	struct tm tm;

	if (!e->timed)
		return;
	if (p->opts.relative)
		uni_sink_printf(p->out, "%6llu.%06llu ", gap / UNI_NSEC_PER_SEC,
			gap % UNI_NSEC_PER_SEC / UNI_NSEC_PER_USEC);
	p->any = true;
	p->last_ns = ns;
	if (p->opts.stamp == UNI_SYSC_EPOCH)
		uni_sink_printf(p->out, "%" PRId64 ".%06u ", (int64_t)s, us);
	if (p->opts.stamp != UNI_SYSC_TIME && p->opts.stamp != UNI_SYSC_TIME_US)
		return;
	if (localtime_r(&s, &tm) == NULL || strftime(clock, sizeof(clock), "%H:%M:%S", &tm) == 0)
		return;
	uni_sink_puts(p->out, clock);
	if (p->opts.stamp == UNI_SYSC_TIME_US)
		uni_sink_printf(p->out, ".%06u", us);
	uni_sink_putc(p->out, ' ');
}

/* strace counts columns after the stamp and the process. */
static void begin_line(struct uni_sysc_printer *p, const struct uni_sysc_entry *e, uint64_t ns)
{
	const char *thread = log_text(p->log, e->thread);

	if (p->open != 0) {
		uni_sink_puts(p->out, " <unfinished ...>\n");
		p->open = 0;
	}
	if (p->threads && thread[0] != '\0')
		uni_sink_printf(p->out, "[%s] ", thread);
	put_stamp(p, e, ns);
}

static void end_line(struct uni_sysc_printer *p, const struct uni_sysc_entry *e)
{
	struct uni_strbuf result;
	unsigned pad = p->opts.column > p->column + 1 ? p->opts.column - p->column : 1;

	uni_strbuf_init(&result);
	put_value(p->log, e, &result);
	uni_sink_printf(p->out, "%*s= %s", (int)pad, "", result.s);
	if (p->opts.duration && e->has_duration &&
		(e->end == UNI_SYSC_OK || e->end == UNI_SYSC_FAILED)) {
		uint64_t ns = e->end_ns - e->begin_ns;

		uni_sink_printf(p->out, " <%llu.%06llu>", ns / UNI_NSEC_PER_SEC,
			ns % UNI_NSEC_PER_SEC / UNI_NSEC_PER_USEC);
	}
	uni_sink_putc(p->out, '\n');
	p->open = 0;
	uni_strbuf_deinit(&result);
}

static void on_begin(struct uni_sysc_printer *p, uint32_t i)
{
	const struct uni_sysc_entry *e = &p->log->all.v[i];
	const char *name = log_text(p->log, e->name), *args = log_text(p->log, e->args);

	begin_line(p, e, e->begin_ns);
	uni_sink_printf(p->out, "%s(%s", name, args);
	p->column = (unsigned)(strlen(name) + strlen(args)) + 2;
	p->open = i + 1;
}

/* How a call ends is known only then. */
static bool by_ends(const struct uni_sysc_log *log)
{
	return log->filter != NULL && log->filter->ends != 0;
}

static void on_end(struct uni_sysc_printer *p, uint32_t i)
{
	const struct uni_sysc_entry *e = &p->log->all.v[i];
	const char *name = log_text(p->log, e->name);

	if (by_ends(p->log)) {
		on_begin(p, i);
	} else if (p->open != i + 1) {
		begin_line(p, e, e->end_ns);
		uni_sink_printf(p->out, "<... %s resumed>", name);
		p->column = (unsigned)strlen(name) + 15;
	}
	uni_sink_putc(p->out, ')');
	end_line(p, e);
}

/* By time; a call of no time at all begins before it ends; ends come before beginnings. */
static int by_time(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? 1 : -1;
	if (x->untimed != y->untimed)
		return x->untimed - y->untimed;
	if (x->entry == y->entry)
		return x->end - y->end;
	if (x->end != y->end && !x->untimed)
		return y->end - x->end;
	return x->entry > y->entry ? 1 : -1;
}

/* Every moment of the calls to print. Those without times stay behind the one before them. */
static size_t collect_moments(const struct uni_sysc_log *log, struct moment *m)
{
	uint64_t begin_ns, end_ns = 0;
	size_t nr = 0;

	for (size_t i = 0; i < log->all.nr; i++) {
		const struct uni_sysc_entry *e = &log->all.v[i];
		const bool untimed = !e->timed;

		begin_ns = untimed ? end_ns : e->begin_ns;
		end_ns = untimed ? end_ns : uni_max(e->end_ns, e->begin_ns);
		if (!uni_sysc_filter_end(log->filter, e->end))
			continue;
		if (!by_ends(log))
			m[nr++] = (struct moment){ begin_ns, (uint32_t)i, false, untimed };
		m[nr++] = (struct moment){ end_ns, (uint32_t)i, true, untimed };
	}
	if (nr > 1)
		qsort(m, nr, sizeof(*m), by_time);
	return nr;
}

static bool has_threads(const struct uni_sysc_log *log)
{
	for (size_t i = 1; i < log->all.nr; i++) {
		if (log->all.v[i].thread != log->all.v[0].thread)
			return true;
	}
	return false;
}

int uni_sysc_print(
	const struct uni_sysc_log *log, const struct uni_sysc_print *opts, struct uni_sink *out)
{
	struct uni_sysc_printer p = {
		.log = log, .opts = *opts, .out = out, .threads = has_threads(log)
	};
	struct moment *m = calloc(2 * log->all.nr + 1, sizeof(*m));
	size_t nr;

	if (m == NULL)
		return -UNI_ENOMEM;
	nr = collect_moments(log, m);
	for (size_t i = 0; i < nr; i++) {
		if (m[i].end)
			on_end(&p, m[i].entry);
		else
			on_begin(&p, m[i].entry);
	}
	free(m);
	return 0;
}

struct uni_sysc_printer *uni_sysc_printer_create(
	const struct uni_sysc_log *log, const struct uni_sysc_print *opts, struct uni_sink *out)
{
	struct uni_sysc_printer *p = calloc(1, sizeof(*p));

	if (p != NULL)
		*p = (struct uni_sysc_printer){ .log = log, .opts = *opts, .out = out };
	return p;
}

void uni_sysc_printer_destroy(struct uni_sysc_printer *p)
{
	free(p);
}

void uni_sysc_printer_put(struct uni_sysc_printer *p, uint32_t entry, bool end)
{
	const struct uni_sysc_entry *e = &p->log->all.v[entry];
	const char *name = log_text(p->log, e->thread);
	uint64_t thread = uni_hash_bytes(name, strlen(name), 0);

	if (!p->any_thread)
		p->thread = thread;
	p->any_thread = true;
	p->threads = p->threads || thread != p->thread;
	if (!end && !by_ends(p->log))
		on_begin(p, entry);
	else if (end && uni_sysc_filter_end(p->log->filter, e->end))
		on_end(p, entry);
}

static const char *const ends[] = {
	[UNI_SYSC_OPEN] = "unfinished",
	[UNI_SYSC_OK] = "ok",
	[UNI_SYSC_FAILED] = "failed",
	[UNI_SYSC_NO_RESULT] = "none",
};

static void put_entry(
	struct uni_json *j, const struct uni_sysc_log *log, const struct uni_sysc_entry *e)
{
	const char *error = e->end == UNI_SYSC_FAILED && e->value != 0
				    ? uni_sysc_error_name((int)e->value)
				    : NULL;

	uni_json_object(j);
	uni_json_kv(str, j, "name", log_text(log, e->name));
	uni_json_kv(str, j, "args", log_text(log, e->args));
	uni_json_kv(str, j, "thread", e->thread != 0 ? log_text(log, e->thread) : NULL);
	uni_json_kv(str, j, "end", ends[e->end]);
	if (e->end == UNI_SYSC_OK)
		uni_json_kv(i64, j, "result", e->value);
	if (e->end == UNI_SYSC_FAILED)
		uni_json_kv(str, j, "error", error);
	if (e->timed)
		uni_json_kv(u64, j, "time_ns", e->begin_ns);
	if (e->has_duration && e->end != UNI_SYSC_OPEN)
		uni_json_kv(u64, j, "duration_ns", e->end_ns - e->begin_ns);
	uni_json_object_end(j);
}

void uni_sysc_json(const struct uni_sysc_log *log, struct uni_sink *out)
{
	struct uni_json j;

	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-syscalls");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_key(&j, "calls");
	uni_json_array(&j);
	for (size_t i = 0; i < log->all.nr; i++) {
		if (uni_sysc_filter_end(log->filter, log->all.v[i].end))
			put_entry(&j, log, &log->all.v[i]);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}
