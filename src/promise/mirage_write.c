/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "promise/mirage.h"
#include "promise/mirage_priv.h"

struct uni_mirage_writer {
	struct uni_sink *out; /* borrowed */
	size_t size, at;      /* of the packet: how large, where the next event goes */
	uint16_t count;
	uint64_t dropped;
	uint8_t packet[];
};

static uint8_t *put(uint8_t *p, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
	return p + bytes;
}

int uni_mirage_writer_open(
	struct uni_sink *out, size_t packet, struct uni_mirage_writer **ret, struct uni_err *err)
{
	struct uni_mirage_writer *w;

	/* The header counts bits in 32 bits. */
	if (packet < 256 || packet > UINT32_MAX / 8)
		return uni_err_set(err, UNI_EINVAL,
			"packets of %zu bytes: 256 to %u can be written", packet, UINT32_MAX / 8);
	w = malloc(sizeof(*w) + packet);
	if (w == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	*w = (struct uni_mirage_writer){ .out = out, .size = packet, .at = UNI_MIRAGE_HEAD };
	*ret = w;
	return 0;
}

/* The packet as it is, no longer than what it holds: a file is no ring. */
static void flush(struct uni_mirage_writer *w)
{
	uint8_t *p = put(w->packet, UNI_MIRAGE_MAGIC, 4);

	memcpy(p, uni_mirage_uuid, sizeof(uni_mirage_uuid));
	p = put(p + sizeof(uni_mirage_uuid), w->at * 8, 4);
	p = put(p, w->count++, 2);
	(void)put(p, w->at * 8, 4);
	uni_sink_write(w->out, w->packet, w->at);
	w->at = UNI_MIRAGE_HEAD;
}

/* The event in the format's own words; false: there is none that says it. */
static bool translate(struct uni_promise_event *e)
{
	switch (e->kind) {
	case UNI_PE_SHOULD_RESOLVE:
		e->kind = UNI_PE_LABEL;
		e->text = UNI_MIRAGE_SHOULD_RESOLVE;
		e->text_len = (uint32_t)strlen(UNI_MIRAGE_SHOULD_RESOLVE);
		return true;
	case UNI_PE_HIATUS:
		e->kind = UNI_PE_SWITCH;
		e->thread = UNI_PROMISE_NOBODY;
		return true;
	default:
		return e->kind <= UNI_PE_NOTIFY;
	}
}

static size_t text_len(const struct uni_promise_event *e)
{
	return e->text == NULL ? 0 : strnlen(e->text, e->text_len);
}

static bool has_text(unsigned kind)
{
	return kind == UNI_PE_FAIL || kind == UNI_PE_LABEL || kind == UNI_PE_INCREASE ||
	       kind == UNI_PE_COUNTER;
}

/* Bytes of the event's payload without its text. */
static size_t fixed_size(unsigned kind)
{
	switch (kind) {
	case UNI_PE_SWITCH:
	case UNI_PE_GC:
	case UNI_PE_LABEL:
		return 8;
	case UNI_PE_CREATE:
		return 17;
	default:
		return 16;
	}
}

static void put_event(struct uni_mirage_writer *w, const struct uni_promise_event *e)
{
	uint8_t *p = put(w->packet + w->at, e->time, 8);

	*p++ = e->kind;
	p = put(p, e->kind == UNI_PE_GC ? (uint64_t)e->value : e->thread, 8);
	if (e->kind == UNI_PE_INCREASE || e->kind == UNI_PE_COUNTER)
		p = put(p, (uint64_t)e->value, 8);
	else if (fixed_size(e->kind) > 8)
		p = put(p, e->other, 8);
	if (e->kind == UNI_PE_CREATE)
		*p++ = e->type;
	if (has_text(e->kind)) {
		memcpy(p, e->text == NULL ? "" : e->text, text_len(e));
		p += text_len(e);
		*p++ = 0;
	}
	w->at = (size_t)(p - w->packet);
}

int uni_mirage_writer_add(struct uni_mirage_writer *w, const struct uni_promise_event *event)
{
	struct uni_promise_event e = *event;
	size_t need;

	if (e.kind == UNI_PE_LOST) {
		/* A hole in the counter is how the format tells it. */
		if (w->at > UNI_MIRAGE_HEAD)
			flush(w);
		w->count++;
		return 0;
	}
	if (!translate(&e))
		return 0;
	need = UNI_MIRAGE_EVENT_HEAD + fixed_size(e.kind);
	if (has_text(e.kind))
		need += text_len(&e) + 1;
	if (need > w->size - UNI_MIRAGE_HEAD) {
		w->dropped++;
		return 0;
	}
	if (need > w->size - w->at)
		flush(w);
	put_event(w, &e);
	return uni_sink_failed(w->out) ? -UNI_EIO : 0;
}

int uni_mirage_writer_close(struct uni_mirage_writer *w, uint64_t *dropped_ret)
{
	int rc;

	if (w->at > UNI_MIRAGE_HEAD || w->count == 0)
		flush(w);
	if (dropped_ret != NULL)
		*dropped_ret = w->dropped;
	rc = uni_sink_failed(w->out) ? -UNI_EIO : 0;
	free(w);
	return rc;
}

void uni_mirage_metadata(struct uni_sink *out)
{
	static const struct {
		const char *name, *fields;
	} events[] = {
		{ "creates", "u64 thread; u64 child; type thread_type;" },
		{ "read", "u64 thread; u64 input;" },
		{ "fulfills", "u64 thread; u64 resolvee;" },
		{ "fails", "u64 thread; u64 resolvee; string exn;" },
		{ "becomes", "u64 thread; u64 sleeper;" },
		{ "label", "u64 thread; string label;" },
		{ "increase", "u64 thread; i64 amount; string counter;" },
		{ "switch", "u64 thread;" },
		{ "gc", "u64 duration_ns;" },
		{ "signal", "u64 thread; u64 source;" },
		{ "try_read", "u64 thread; u64 input;" },
		{ "counter", "u64 thread; i64 value; string counter;" },
		{ "read_resolved_later", "u64 thread; u64 input;" },
		{ "signal_without_switch", "u64 thread; u64 sender;" },
	};

	uni_sink_puts(out,
		"/* CTF 1.8 */\n\n"
		"typealias integer { size = 8; align = 8; } := u8;\n"
		"typealias integer { size = 16; align = 8; } := u16;\n"
		"typealias integer { size = 32; align = 8; } := u32;\n"
		"typealias integer { size = 64; align = 8; base = 16; } := u64;\n"
		"typealias integer { size = 64; align = 8; signed = true; } := i64;\n\n"
		"trace {\n\tmajor = 1;\n\tminor = 8;\n"
		"\tuuid = \"05883b8d-521a-487b-b397-456ab150680c\";\n\tbyte_order = le;\n"
		"\tpacket.header := struct { u32 magic; u8 uuid[16]; };\n};\n\n"
		"clock {\n\tname = guest;\n\tfreq = 1000000000;\n};\n\n"
		"typealias integer { size = 64; align = 8; map = clock.guest.value; } := time;\n\n"
		"typealias enum : u8 {");
	for (unsigned i = 0; uni_promise_type_name(i)[0] != '?'; i++)
		uni_sink_printf(out, " \"%s\" = %u,", uni_promise_type_name(i), i);
	uni_sink_printf(out, " unknown = %u } := type;\n\n", UNI_PROMISE_TYPE_UNKNOWN);
	uni_sink_puts(out,
		"stream {\n\tpacket.context := struct { u32 packet_size; u16 stream_packet_count; "
		"u32 content_size; };\n"
		"\tevent.header := struct { time timestamp; u8 id; } align(8);\n};\n");
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		uni_sink_printf(out,
			"\nevent {\n\tid = %u;\n\tname = \"%s\";\n\tfields := struct { %s };\n};\n",
			i, events[i].name, events[i].fields);
}
