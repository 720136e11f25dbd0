/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void uni_json_init(struct uni_json *j, struct uni_sink *out, bool pretty)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
	j->pretty = pretty;
}

static void put_newline(struct uni_json *j)
{
	if (!j->pretty)
		return;
	uni_sink_putc(j->out, '\n');
	for (unsigned i = 0; i < j->depth; i++)
		uni_sink_puts(j->out, "  ");
}

static void before_value(struct uni_json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->has_member[j->depth])
		uni_sink_putc(j->out, ',');
	j->has_member[j->depth] = true;
	if (j->depth != 0)
		put_newline(j);
}

static void open_level(struct uni_json *j, char c)
{
	before_value(j);
	uni_sink_putc(j->out, c);
	assert(j->depth < UNI_JSON_DEPTH);
	j->depth++;
	j->has_member[j->depth] = false;
}

static void close_level(struct uni_json *j, char c)
{
	bool had = j->has_member[j->depth];

	assert(j->depth > 0);
	j->depth--;
	if (had)
		put_newline(j);
	uni_sink_putc(j->out, c);
	if (j->depth == 0 && j->pretty)
		uni_sink_putc(j->out, '\n');
}

void uni_json_object(struct uni_json *j)
{
	open_level(j, '{');
}

void uni_json_object_end(struct uni_json *j)
{
	close_level(j, '}');
}

void uni_json_array(struct uni_json *j)
{
	open_level(j, '[');
}

void uni_json_array_end(struct uni_json *j)
{
	close_level(j, ']');
}

static void put_string(struct uni_json *j, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	uni_sink_putc(j->out, '"');
	for (; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			uni_sink_printf(j->out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f || *p == '<')
			uni_sink_printf(j->out, "\\u%04x", *p);
		else if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) {
			uni_sink_printf(j->out, "\\u20%02x", p[2] - 0x80);
			p += 2;
		} else {
			uni_sink_putc(j->out, (char)*p);
		}
	}
	uni_sink_putc(j->out, '"');
}

void uni_json_key(struct uni_json *j, const char *key)
{
	before_value(j);
	put_string(j, key);
	uni_sink_puts(j->out, j->pretty ? ": " : ":");
	j->after_key = true;
}

void uni_json_str(struct uni_json *j, const char *s)
{
	if (s == NULL) {
		uni_json_null(j);
		return;
	}
	before_value(j);
	put_string(j, s);
}

void uni_json_u64(struct uni_json *j, uint64_t v)
{
	before_value(j);
	uni_sink_printf(j->out, "%" PRIu64, v);
}

void uni_json_i64(struct uni_json *j, int64_t v)
{
	before_value(j);
	uni_sink_printf(j->out, "%" PRId64, v);
}

void uni_json_double(struct uni_json *j, double v)
{
	before_value(j);
	if (isfinite(v))
		uni_sink_printf(j->out, "%.9g", v);
	else
		uni_sink_puts(j->out, "null");
}

void uni_json_bool(struct uni_json *j, bool v)
{
	before_value(j);
	uni_sink_puts(j->out, v ? "true" : "false");
}

void uni_json_null(struct uni_json *j)
{
	before_value(j);
	uni_sink_puts(j->out, "null");
}

void uni_json_hex(struct uni_json *j, uint64_t v)
{
	before_value(j);
	uni_sink_printf(j->out, "\"0x%" PRIx64 "\"", v);
}
