/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/ctf.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/outdir.h"
#include "base/sink.h"
#include "base/text.h"

#define MAGIC 0xc1fc1fc1u
/* magic, uuid, stream_id; then the context: timestamps, sizes, lost events */
#define HEAD_BYTES (4 + 16 + 4 + 5 * 8)
#define EVENT_HEAD (8 + 4)

/* The same for all traces of this kind: nothing in it depends on the guest. */
static const char uuid_text[] = "6f2b4c1e-93d0-4d0e-8a57-1f3c5b7d9e42";
static const uint8_t uuid[16] = { 0x6f, 0x2b, 0x4c, 0x1e, 0x93, 0xd0, 0x4d, 0x0e, 0x8a, 0x57, 0x1f,
	0x3c, 0x5b, 0x7d, 0x9e, 0x42 };

static void put_head(struct uni_sink *out)
{
	uni_sink_puts(out,
		"/* CTF 1.8 */\n\n"
		"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
		"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
		"typealias integer { size = 64; align = 8; signed = false; } := "
		"uint64_t;\n\n");
	uni_sink_printf(out,
		"trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n"
		"\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n"
		"\t\tuint32_t stream_id;\n\t};\n};\n\n",
		uuid_text);
	uni_sink_puts(out,
		"env {\n\tdomain = \"unikraft\";\n\ttracer_name = \"uk_trace\";\n};\n\n"
		"clock {\n\tname = monotonic;\n\tdescription = \"the guest's monotonic clock\";\n"
		"\tfreq = 1000000000;\n};\n\n"
		"typealias integer { size = 64; align = 8; signed = false; map = "
		"clock.monotonic.value; } := time_t;\n\n"
		"stream {\n\tid = 0;\n\tevent.header := struct {\n\t\ttime_t timestamp;\n"
		"\t\tuint32_t id;\n\t};\n\tpacket.context := struct {\n"
		"\t\ttime_t timestamp_begin;\n\t\ttime_t timestamp_end;\n"
		"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
		"\t\tuint64_t events_discarded;\n\t};\n};\n");
}

/* Bytes that an integer takes in the stream. */
static unsigned integer_width(const struct uni_ukt_arg_def *a)
{
	return a->size == 1 || a->size == 2 || a->size == 4 ? a->size : 8;
}

static void put_field(struct uni_sink *out, const struct uni_ukt_def *def, unsigned i)
{
	const struct uni_ukt_shape s = uni_ukt_shape(def, i);

	if (def->arg[i].type == UNI_UKT_STRING)
		uni_sink_printf(out, "\t\tstring { encoding = UTF8; } arg%u;\n", i + 1);
	else
		uni_sink_printf(out,
			"\t\tinteger { size = %u; align = 8; signed = %s; base = %u; } arg%u;\n",
			integer_width(&def->arg[i]) * 8, s.is_signed ? "true" : "false", s.base,
			i + 1);
}

/* Names are text of the guest: cleaned, and escaped here. */
static void put_quoted(struct uni_sink *out, const char *s)
{
	uni_sink_putc(out, '"');
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			uni_sink_putc(out, '\\');
		uni_sink_putc(out, *s);
	}
	uni_sink_putc(out, '"');
}

static void put_event_class(
	struct uni_sink *out, size_t id, const char *name, const struct uni_ukt_def *def)
{
	uni_sink_puts(out, "\nevent {\n\tname = ");
	put_quoted(out, name);
	uni_sink_printf(out, ";\n\tid = %zu;\n\tstream_id = 0;\n\tfields := struct {\n", id);
	for (unsigned i = 0; def != NULL && i < def->nr_args; i++)
		put_field(out, def, i);
	if (def == NULL)
		uni_sink_puts(out, "\t\tuint64_t cookie;\n\t\tuint32_t bytes;\n");
	uni_sink_puts(out, "\t};\n};\n");
}

static void put_metadata(const struct uni_ukt_trace *t, struct uni_sink *out)
{
	put_head(out);
	for (size_t i = 0; i < t->defs.all.nr; i++) {
		if (t->defs.all.v[i].readable)
			put_event_class(out, i, t->defs.all.v[i].name, &t->defs.all.v[i]);
	}
	put_event_class(out, t->defs.all.nr, "unknown tracepoint", NULL);
}

static void put_u64(struct uni_sink *out, uint64_t v)
{
	uni_sink_write(out, &v, sizeof(v)); /* little endian, as the host */
}

static void put_u32(struct uni_sink *out, uint32_t v)
{
	uni_sink_write(out, &v, sizeof(v));
}

static size_t clean_text(const struct uni_ukt_value *a, char text[256 * 3])
{
	return uni_text_clean(text, 256 * 3, a->s, a->s_len) + 1;
}

static uint64_t record_size(const struct uni_ukt_record *r)
{
	uint64_t n = EVENT_HEAD;
	char text[256 * 3];

	if (r->def == NULL)
		return n + 8 + 4;
	for (unsigned i = 0; i < r->def->nr_args; i++)
		n += r->def->arg[i].type == UNI_UKT_STRING ? clean_text(&r->arg[i], text)
							   : integer_width(&r->def->arg[i]);
	return n;
}

static void put_record(
	const struct uni_ukt_trace *t, const struct uni_ukt_record *r, struct uni_sink *out)
{
	char text[256 * 3];

	put_u64(out, r->ns);
	if (r->def == NULL) {
		put_u32(out, (uint32_t)t->defs.all.nr);
		put_u64(out, r->cookie);
		put_u32(out, r->size);
		return;
	}
	put_u32(out, (uint32_t)(r->def - t->defs.all.v));
	for (unsigned i = 0; i < r->def->nr_args; i++) {
		if (r->def->arg[i].type == UNI_UKT_STRING)
			uni_sink_write(out, text, clean_text(&r->arg[i], text));
		else
			uni_sink_write(out, &r->arg[i].v, integer_width(&r->def->arg[i]));
	}
}

static void put_stream(const struct uni_ukt_trace *t, struct uni_sink *out)
{
	const size_t nr = t->records.nr;
	struct uni_ukt_record r;
	uint64_t size = HEAD_BYTES;

	for (size_t i = 0; i < nr; i++) {
		uni_ukt_trace_record(t, i, &r);
		size += record_size(&r);
	}
	put_u32(out, MAGIC);
	uni_sink_write(out, uuid, sizeof(uuid));
	put_u32(out, 0);
	put_u64(out, nr != 0 ? t->records.v[0].ns : 0);
	put_u64(out, nr != 0 ? t->records.v[nr - 1].ns : 0);
	put_u64(out, size * 8);
	put_u64(out, size * 8);
	put_u64(out, 0);
	for (size_t i = 0; i < nr; i++) {
		uni_ukt_trace_record(t, i, &r);
		put_record(t, &r, out);
	}
}

static int write_file(const struct uni_ukt_trace *t, int dir_fd, const char *name,
	void (*put)(const struct uni_ukt_trace *t, struct uni_sink *out), struct uni_err *err)
{
	struct uni_sink *out;
	int rc = uni_sink_open_below(dir_fd, name, name, &out, err);

	if (rc != 0)
		return rc;
	put(t, out);
	return uni_sink_close(out, err);
}

int uni_ukt_ctf_write(const struct uni_ukt_trace *t, const char *folder, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = uni_outdir_mkdir(folder, &fd, err);

	if (rc == 0)
		rc = write_file(t, fd, "stream", put_stream, err);
	return rc == 0 ? write_file(t, fd, "metadata", put_metadata, err) : rc;
}
