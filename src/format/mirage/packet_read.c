/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "format/mirage/mirage.h"
#include "format/mirage/packet.h"

/* Borrowed bytes up to a NUL that lies within the packet. */
static bool read_label_text(struct uni_cursor *c, struct uni_promise_event *e)
{
	const uint8_t *s = c->data + c->pos;
	const uint8_t *nul = memchr(s, 0, uni_cursor_left(c));

	if (nul == NULL)
		return uni_cursor_take(c, uni_cursor_left(c) + 1) != NULL; /* there is more of it */
	e->text = (const char *)s;
	e->text_len = (uint32_t)(nul - s);
	return uni_cursor_take(c, (size_t)(nul - s) + 1) != NULL;
}

/* The payload after the header; false: an unknown id, or the payload is incomplete. */
static bool read_payload(struct uni_cursor *c, struct uni_promise_event *e)
{
	if (e->kind > UNI_PE_NOTIFY)
		return false;
	if (e->kind == UNI_PE_GC) {
		e->thread = e->other = UNI_PROMISE_NOBODY;
		e->value = (int64_t)uni_cursor_u64(c);
		return !c->failed;
	}
	e->thread = uni_cursor_u64(c);
	switch (e->kind) {
	case UNI_PE_SWITCH:
		break;
	case UNI_PE_LABEL:
		return !c->failed && read_label_text(c, e);
	case UNI_PE_INCREASE:
	case UNI_PE_COUNTER:
		e->value = (int64_t)uni_cursor_u64(c);
		return !c->failed && read_label_text(c, e);
	case UNI_PE_FAIL:
		e->other = uni_cursor_u64(c);
		return !c->failed && read_label_text(c, e);
	case UNI_PE_CREATE:
		e->other = uni_cursor_u64(c);
		e->type = uni_cursor_u8(c);
		break;
	default:
		e->other = uni_cursor_u64(c);
	}
	return !c->failed;
}

static bool label_says(const struct uni_promise_event *e, const char *label)
{
	return e->text_len == strlen(label) && memcmp(e->text, label, e->text_len) == 0;
}

/* MirageOS has no events of their own for these: the label is the flag. */
static void translate_label(struct uni_promise_event *e)
{
	static const struct {
		const char *label;
		uint8_t kind;
		int64_t value;
	} ours[] = {
		{ UNI_MIRAGE_SUSPEND, UNI_PE_HIATUS, UNI_HIATUS_SUSPEND },
		{ UNI_MIRAGE_HIBERNATE, UNI_PE_HIATUS, UNI_HIATUS_HIBERNATE },
		{ UNI_MIRAGE_RESUME, UNI_PE_RESUME, 0 },
	};

	if (e->kind != UNI_PE_LABEL)
		return;
	if (label_says(e, UNI_MIRAGE_SHOULD_RESOLVE))
		e->kind = UNI_PE_SHOULD_RESOLVE;
	for (unsigned i = 0; i < uni_array_len(ours) && e->thread == UNI_PROMISE_NOBODY; i++) {
		if (!label_says(e, ours[i].label))
			continue;
		e->kind = ours[i].kind;
		e->value = ours[i].value;
		break;
	}
	if (e->kind != UNI_PE_LABEL) {
		e->text = NULL;
		e->text_len = 0;
	}
}

struct reading {
	uni_promise_event_fn fn;
	void *arg;
	uint64_t given; /* time of the last event that was passed on */
	uint64_t now;	/* of the packet's last event */
	uint64_t limit; /* of this packet: about the time at which the next one begins */
	bool gap;	/* something is missing before the next event */
	bool gap_told;
};

static int tell_gap(struct reading *r, uint64_t time)
{
	const struct uni_promise_event lost = { .kind = UNI_PE_LOST,
		.time = time,
		.value = -1,
		.thread = UNI_PROMISE_NOBODY,
		.other = UNI_PROMISE_NOBODY };

	r->gap = false;
	r->gap_told = true;
	return r->fn(r->arg, &lost);
}

/* A damaged time in one packet must not cost those of the next: they are late then, but there. */
static int give_event(struct reading *r, struct uni_promise_event *e, struct uni_mirage_stats *st)
{
	int rc;

	st->events++;
	if (e->time < r->given)
		e->time = r->given;
	rc = r->gap ? tell_gap(r, r->given != 0 ? r->given : e->time) : 0;
	r->given = e->time;
	return rc < 0 ? rc : r->fn(r->arg, e);
}

/* The next event; false: the rest of the packet is invalid. */
static bool next_event(const struct reading *r, struct uni_cursor *c, struct uni_promise_event *e)
{
	*e = (struct uni_promise_event){ .other = UNI_PROMISE_NOBODY };
	e->time = uni_cursor_u64(c);
	e->kind = uni_cursor_u8(c);
	if (c->failed || e->time < r->now || e->time > r->limit || !read_payload(c, e))
		return false;
	translate_label(e);
	return true;
}

/* A packet's content never ends inside an event. If it does, the header is damaged, and so is the
 * size it states. Data after the true end is older, and ends the reading. */
static bool go_on(
	struct uni_cursor *c, const uint8_t *data, const struct uni_mirage_packet *p, size_t whole)
{
	if (!c->failed || c->size == p->size)
		return false;
	*c = uni_cursor_make(data + p->at, p->size);
	uni_cursor_seek(c, whole);
	return true;
}

/* An event is passed on only if the next one is not earlier: a damaged time would set the clock of
 * all later events. */
static int read_packet(struct reading *r, const uint8_t *data, const struct uni_mirage_packet *p,
	struct uni_mirage_stats *st)
{
	struct uni_cursor c = uni_cursor_make(data + p->at, p->content);
	struct uni_promise_event e, held;
	bool holds = false;
	size_t whole = UNI_MIRAGE_HEAD, before = whole;
	int rc = 0;

	r->now = 0;
	uni_cursor_seek(&c, UNI_MIRAGE_HEAD);
	while (rc >= 0 && uni_cursor_left(&c) > 0) {
		if (!next_event(r, &c, &e)) {
			if (go_on(&c, data, p, whole))
				continue;
			holds = holds && (c.failed || e.time >= held.time);
			whole = holds ? whole : before;
			break;
		}
		before = whole;
		whole = c.pos;
		if (holds)
			rc = give_event(r, &held, st);
		held = e;
		holds = true;
		r->now = e.time;
	}
	if (rc >= 0 && holds)
		rc = give_event(r, &held, st);
	if (rc < 0 || whole == c.size)
		return rc < 0 ? rc : 0;
	if (st->damaged++ == 0)
		st->first_damage = p->at + whole;
	st->damaged_bytes += c.size - whole;
	r->gap = true;
	return 0;
}

static uint64_t middle_of(uint64_t a, uint64_t b, uint64_t c)
{
	return uni_max(uni_min(a, b), uni_min(uni_max(a, b), c));
}

/* If two times in a row differ, either may be damaged: the later one limits the times before it.
 * The middle one of three is about right. */
static void look_ahead(const uint8_t *data, struct uni_mirage_packets *packets)
{
	const struct reading any = { .limit = UINT64_MAX };
	struct uni_promise_event e[3];

	uni_vec_foreach (p, &packets->all) {
		struct uni_cursor c = uni_cursor_make(data + p->at, p->content);
		unsigned nr = 0;

		uni_cursor_seek(&c, UNI_MIRAGE_HEAD);
		while (nr < 3 && next_event(&any, &c, &e[nr]))
			nr++;
		if (nr >= 2)
			p->second = uni_max(e[0].time, e[1].time);
		if (nr == 3)
			p->middle = middle_of(e[0].time, e[1].time, e[2].time);
	}
}

static uint64_t limit_of(const struct uni_mirage_packets *packets, size_t i)
{
	uint64_t limit = 0;

	/* Looks past packets with one event, but not past too many. */
	for (size_t k = i + 1; k < packets->all.nr && k - i < 16; k++) {
		const struct uni_mirage_packet *p = &packets->all.v[k];

		limit = uni_max(limit, uni_max(p->first, p->second));
		if (p->second != 0)
			return limit;
	}
	return UINT64_MAX;
}

static int read_all(struct reading *r, const uint8_t *data,
	const struct uni_mirage_packets *packets, struct uni_mirage_stats *st)
{
	bool passed_over = st->damaged != 0;
	uint16_t last = UINT16_MAX; /* the first packet of all is number 0 */
	int rc = 0;

	for (size_t i = 0; i < packets->all.nr; i++) {
		const struct uni_mirage_packet *p = &packets->all.v[i];
		uint16_t gap = (uint16_t)(p->count - last - 1);

		/* Before the first one the ring was overwritten, an unknown number of times. */
		if (i == 0)
			r->gap = p->count != 0;
		else if (gap != 0 && gap < 0x8000) {
			st->missing += gap;
			r->gap = true;
		}
		last = p->count;
		st->packets++;
		r->limit = limit_of(packets, i);
		rc = read_packet(r, data, p, st);
		if (rc < 0)
			return rc;
	}
	/* Losses that the counters do not show were the newest events, or their place is
	 * unknown. */
	if (r->given != 0 && (r->gap || (passed_over && !r->gap_told)))
		rc = tell_gap(r, r->given);
	return rc < 0 ? rc : 0;
}

int uni_mirage_read(const void *data, size_t size, uni_promise_event_fn fn, void *arg,
	struct uni_mirage_stats *stats_ret, struct uni_err *err)
{
	struct reading r = { .fn = fn, .arg = arg };
	struct uni_mirage_packets packets = { 0 };
	int rc;

	*stats_ret = (struct uni_mirage_stats){ 0 };
	if (!uni_mirage_is(data, size))
		return uni_err_set(err, UNI_EFORMAT,
			"no trace of MirageOS: that format's magic number is nowhere in it");
	rc = uni_mirage_scan(data, size, &packets, stats_ret);
	look_ahead(data, &packets);
	if (rc == 0)
		rc = uni_mirage_rotate(&packets);
	if (rc == 0)
		rc = read_all(&r, data, &packets, stats_ret);
	uni_vec_free(&packets.all);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}
