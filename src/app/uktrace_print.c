/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "app/uktrace.h"

static const char *name_of(const struct uni_ukt_record *r)
{
	return r->def != NULL ? r->def->name : "[unknown]";
}

static int text_columns(const char *s)
{
	int n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void put_times(struct uni_sink *out, char c, int n)
{
	while (n-- > 0)
		uni_sink_putc(out, c);
}

/* Columns as wide as their content, and two more than their names. */
struct widths {
	int time, name, msg;
};

static struct widths measure_columns(const struct uni_ukt_trace *t)
{
	struct widths w = { 6, 9, 5 };
	struct uni_ukt_record r;
	struct uni_strbuf msg;
	char time[24];

	uni_strbuf_init(&msg);
	for (size_t i = 0; i < t->records.nr; i++) {
		uni_ukt_trace_record(t, i, &r);
		uni_strbuf_reset(&msg);
		uni_ukt_format(&r, &msg);
		w.time = uni_max(w.time, snprintf(time, sizeof(time), "%" PRIu64, r.ns));
		w.name = uni_max(w.name, text_columns(name_of(&r)));
		w.msg = uni_max(w.msg, text_columns(msg.s));
	}
	uni_strbuf_deinit(&msg);
	return w;
}

static void put_table_head(struct uni_sink *out, const struct widths *w)
{
	uni_sink_printf(out, "%*s  %-*s  msg\n", w->time, "time", w->name, "tp_name");
	put_times(out, '-', w->time);
	uni_sink_puts(out, "  ");
	put_times(out, '-', w->name);
	uni_sink_puts(out, "  ");
	put_times(out, '-', w->msg);
	uni_sink_putc(out, '\n');
}

static void put_row(struct uni_sink *out, const struct widths *w, const struct uni_ukt_record *r,
	const char *msg)
{
	const char *name = name_of(r);

	uni_sink_printf(out, "%*" PRIu64 "  %s", w->time, r->ns, name);
	if (msg[0] != '\0') {
		put_times(out, ' ', w->name - text_columns(name) + 2);
		uni_sink_puts(out, msg);
	}
	uni_sink_putc(out, '\n');
}

void uni_uktrace_print(const struct uni_ukt_trace *t, bool table, struct uni_sink *out)
{
	struct widths w = { 0 };
	struct uni_ukt_record r;
	struct uni_strbuf msg;

	if (table) {
		w = measure_columns(t);
		put_table_head(out, &w);
	}
	uni_strbuf_init(&msg);
	for (size_t i = 0; i < t->records.nr; i++) {
		uni_ukt_trace_record(t, i, &r);
		uni_strbuf_reset(&msg);
		uni_ukt_format(&r, &msg);
		if (table)
			put_row(out, &w, &r, msg.s);
		else
			uni_sink_printf(out, "%016" PRIu64 " %s: %s\n", r.ns, name_of(&r), msg.s);
	}
	uni_strbuf_deinit(&msg);
}

static void put_args(struct uni_json *j, const struct uni_ukt_record *r)
{
	char text[256 * 3];

	uni_json_key(j, "args");
	uni_json_array(j);
	for (unsigned i = 0; i < r->def->nr_args; i++) {
		const struct uni_ukt_shape s = uni_ukt_shape(r->def, i);

		if (r->def->arg[i].type == UNI_UKT_STRING) {
			(void)uni_text_clean(text, sizeof(text), r->arg[i].s, r->arg[i].s_len);
			uni_json_str(j, text);
		} else if (s.pointer) {
			uni_json_hex(j, r->arg[i].v);
		} else if (s.is_signed) {
			uni_json_i64(j, uni_ukt_signed(r->def, i, r->arg[i].v));
		} else {
			uni_json_u64(j, r->arg[i].v);
		}
	}
	uni_json_array_end(j);
}

static void begin_json(struct uni_json *j, const char *of)
{
	uni_json_object(j);
	uni_json_kv(str, j, "format", "uniscope-points");
	uni_json_kv(u64, j, "version", 1);
	uni_json_key(j, of);
	uni_json_array(j);
}

void uni_uktrace_json(const struct uni_ukt_trace *t, struct uni_sink *out)
{
	struct uni_ukt_record r;
	struct uni_strbuf msg;
	struct uni_json j;

	uni_strbuf_init(&msg);
	uni_json_init(&j, out, true);
	begin_json(&j, "records");
	for (size_t i = 0; i < t->records.nr; i++) {
		uni_ukt_trace_record(t, i, &r);
		uni_strbuf_reset(&msg);
		uni_ukt_format(&r, &msg);
		uni_json_object(&j);
		uni_json_kv(u64, &j, "time_ns", r.ns);
		uni_json_kv(str, &j, "name", r.def != NULL ? r.def->name : NULL);
		if (r.def != NULL)
			put_args(&j, &r);
		else
			uni_json_kv(hex, &j, "cookie", r.cookie);
		uni_json_kv(str, &j, "message", msg.s);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
	uni_strbuf_deinit(&msg);
}

static void put_definition(struct uni_json *j, const struct uni_ukt_def *d)
{
	uni_json_object(j);
	uni_json_kv(str, j, "name", d->name);
	uni_json_kv(str, j, "format", d->format);
	uni_json_kv(hex, j, "cookie", d->cookie);
	uni_json_key(j, "args");
	uni_json_array(j);
	for (unsigned i = 0; i < d->nr_args; i++) {
		uni_json_object(j);
		uni_json_kv(
			str, j, "type", d->arg[i].type == UNI_UKT_STRING ? "string" : "integer");
		uni_json_kv(u64, j, "bytes", d->arg[i].size);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
	uni_json_object_end(j);
}

void uni_uktrace_definitions(const struct uni_ukt_trace *t, bool json, struct uni_sink *out)
{
	struct uni_json j;

	uni_json_init(&j, out, true);
	if (json)
		begin_json(&j, "definitions");
	for (size_t i = 0; i < t->defs.all.nr; i++) {
		const struct uni_ukt_def *d = &t->defs.all.v[i];

		if (json) {
			put_definition(&j, d);
			continue;
		}
		uni_sink_printf(out, "%s(", d->name);
		for (unsigned k = 0; k < d->nr_args; k++) {
			uni_sink_puts(out, k != 0 ? ", " : "");
			if (d->arg[k].type == UNI_UKT_STRING)
				uni_sink_puts(out, "string");
			else
				uni_sink_printf(out, "%s%u",
					uni_ukt_shape(d, k).is_signed ? "i" : "u",
					d->arg[k].size * 8);
		}
		uni_sink_printf(out, "): %s\n", d->format);
	}
	if (json) {
		uni_json_array_end(&j);
		uni_json_object_end(&j);
		uni_sink_putc(out, '\n');
	}
}
