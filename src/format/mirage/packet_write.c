/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/mirage/mirage.h"
#include "format/mirage/packet.h"

struct uni_mirage_writer {
	struct uni_sink *out; /* borrowed */
	size_t size, at;      /* of the packet: how large, where the next event goes */
	uint16_t count;
	uint64_t dropped;
	uint8_t packet[];
};

static uint8_t *put_le(uint8_t *p, uint64_t v, size_t bytes)
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
		return uni_err_nomem(err);
	*w = (struct uni_mirage_writer){ .out = out, .size = packet, .at = UNI_MIRAGE_HEAD };
	*ret = w;
	return 0;
}

/* Writes the packet without padding, because a file is no ring. */
static void flush_packet(struct uni_mirage_writer *w)
{
	uint8_t *p = put_le(w->packet, UNI_MIRAGE_MAGIC, 4);

	memcpy(p, uni_mirage_uuid, sizeof(uni_mirage_uuid));
	p = put_le(p + sizeof(uni_mirage_uuid), w->at * 8, 4);
	p = put_le(p, w->count++, 2);
	(void)put_le(p, w->at * 8, 4);
	uni_sink_write(w->out, w->packet, w->at);
	w->at = UNI_MIRAGE_HEAD;
}

static void become_label(struct uni_promise_event *e, const char *label)
{
	e->kind = UNI_PE_LABEL;
	e->text = label;
	e->text_len = (uint32_t)strlen(label);
}

/* The event in the format's own kinds; false: it has no such kind. */
static bool translate_event(struct uni_promise_event *e)
{
	switch (e->kind) {
	case UNI_PE_SHOULD_RESOLVE:
		become_label(e, UNI_MIRAGE_SHOULD_RESOLVE);
		return true;
	case UNI_PE_HIATUS:
		e->kind = UNI_PE_SWITCH;
		e->thread = UNI_PROMISE_NOBODY;
		return true;
	case UNI_PE_RESUME:
		e->thread = UNI_PROMISE_NOBODY;
		become_label(e, UNI_MIRAGE_RESUME);
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
	uint8_t *p = put_le(w->packet + w->at, e->time, 8);

	*p++ = e->kind;
	p = put_le(p, e->kind == UNI_PE_GC ? (uint64_t)e->value : e->thread, 8);
	if (e->kind == UNI_PE_INCREASE || e->kind == UNI_PE_COUNTER)
		p = put_le(p, (uint64_t)e->value, 8);
	else if (fixed_size(e->kind) > 8)
		p = put_le(p, e->other, 8);
	if (e->kind == UNI_PE_CREATE)
		*p++ = e->type;
	if (has_text(e->kind)) {
		memcpy(p, e->text == NULL ? "" : e->text, text_len(e));
		p += text_len(e);
		*p++ = 0;
	}
	w->at = (size_t)(p - w->packet);
}

static void add_event(struct uni_mirage_writer *w, const struct uni_promise_event *e)
{
	size_t need = UNI_MIRAGE_EVENT_HEAD + fixed_size(e->kind);

	if (has_text(e->kind))
		need += text_len(e) + 1;
	if (need > w->size - UNI_MIRAGE_HEAD) {
		w->dropped++;
		return;
	}
	if (need > w->size - w->at)
		flush_packet(w);
	put_event(w, e);
}

/* The reason, before the switch to nobody that every viewer understands. */
static void add_reason(struct uni_mirage_writer *w, struct uni_promise_event e)
{
	if (e.value != UNI_HIATUS_SUSPEND && e.value != UNI_HIATUS_HIBERNATE)
		return;
	become_label(&e, e.value == UNI_HIATUS_SUSPEND ? UNI_MIRAGE_SUSPEND : UNI_MIRAGE_HIBERNATE);
	e.thread = UNI_PROMISE_NOBODY;
	add_event(w, &e);
}

int uni_mirage_writer_add(struct uni_mirage_writer *w, const struct uni_promise_event *event)
{
	struct uni_promise_event e = *event;

	if (e.kind == UNI_PE_LOST) {
		/* The format expresses a loss as a hole in the counter. */
		if (w->at > UNI_MIRAGE_HEAD)
			flush_packet(w);
		w->count++;
		return 0;
	}
	if (e.kind == UNI_PE_HIATUS)
		add_reason(w, e);
	if (translate_event(&e))
		add_event(w, &e);
	return uni_sink_failed(w->out) ? -UNI_EIO : 0;
}

int uni_mirage_writer_close(struct uni_mirage_writer *w, uint64_t *dropped_ret)
{
	int rc;

	if (w->at > UNI_MIRAGE_HEAD || w->count == 0)
		flush_packet(w);
	if (dropped_ret != NULL)
		*dropped_ret = w->dropped;
	rc = uni_sink_failed(w->out) ? -UNI_EIO : 0;
	free(w);
	return rc;
}

struct uni_promise_event uni_mirage_end(uint64_t time)
{
	return (struct uni_promise_event){ .kind = UNI_PE_LABEL,
		.time = time,
		.thread = UNI_PROMISE_NOBODY,
		.other = UNI_PROMISE_NOBODY,
		.text = UNI_MIRAGE_END,
		.text_len = sizeof(UNI_MIRAGE_END) - 1 };
}
