/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "promise/mirage.h"
#include "promise/mirage_priv.h"

const uint8_t uni_mirage_uuid[16] = { 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3, 0x97,
	0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c };

struct packet {
	size_t at, size, content; /* bytes; content with the header */
	uint64_t first;		  /* time of its first event */
	uint64_t second;	  /* the later of its first two's; 0: there is one only */
	uint16_t count;
	bool unused;
};

struct packets {
	UNI_VEC(struct packet) all;
};

bool uni_mirage_is(const void *data, size_t size)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	const uint8_t *uuid;
	uint32_t magic = uni_cursor_u32(&c);

	uuid = uni_cursor_take(&c, sizeof(uni_mirage_uuid));
	return uuid != NULL && magic == UNI_MIRAGE_MAGIC &&
	       memcmp(uuid, uni_mirage_uuid, sizeof(uni_mirage_uuid)) == 0;
}

/* False where there is no whole packet: the rest of the data is damage. */
static bool header(const uint8_t *data, size_t size, size_t at, struct packet *ret)
{
	struct uni_cursor c = uni_cursor_make(data + at, size - at);
	uint64_t bits, content;

	if (!uni_mirage_is(data + at, size - at))
		return false;
	uni_cursor_seek(&c, 20);
	bits = uni_cursor_u32(&c);
	ret->count = uni_cursor_u16(&c);
	content = uni_cursor_u32(&c);
	if (c.failed || bits % 8 != 0 || bits / 8 < UNI_MIRAGE_HEAD)
		return false;
	ret->at = at;
	ret->size = (size_t)(bits / 8);
	ret->content = (size_t)(content / 8);
	return true;
}

/* Where the next packet begins at the latest, whatever this one's header says of its size. */
static size_t next_header(const uint8_t *data, size_t size, size_t from)
{
	const uint8_t *at;

	while (size - from >= UNI_MIRAGE_HEAD) {
		at = memmem(data + from, size - from, uni_mirage_uuid, sizeof(uni_mirage_uuid));
		if (at == NULL)
			break;
		from = (size_t)(at - data) - 4;
		if (uni_mirage_is(data + from, size - from))
			return from;
		from += 5;
	}
	return size;
}

static uint64_t first_time(const uint8_t *packet)
{
	struct uni_cursor c = uni_cursor_make(packet + UNI_MIRAGE_HEAD, 8);

	return uni_cursor_u64(&c);
}

/*
 * A packet that is cut off by the end of the file, or says that it holds more than itself, is read
 * as far as it is there. Behind a header that makes no sense the next packet is looked for.
 */
static int scan(const uint8_t *data, size_t size, struct packets *ret, struct uni_mirage_stats *st)
{
	size_t at = 0, end;

	while (size - at >= UNI_MIRAGE_HEAD) {
		struct packet p;

		if (!header(data, size, at, &p)) {
			at++;
			st->damaged_bytes++;
			continue;
		}
		end = next_header(data, size, at + UNI_MIRAGE_HEAD);
		if (p.size > end - at)
			p.size = end - at;
		if (p.content > p.size)
			p.content = p.size;
		p.unused = p.content < UNI_MIRAGE_HEAD + UNI_MIRAGE_EVENT_HEAD;
		p.first = p.unused ? 0 : first_time(data + at);
		if (!uni_vec_push(&ret->all, p))
			return -UNI_ENOMEM;
		at += p.size;
	}
	st->damaged_bytes += size - at;
	return 0;
}

static void drop_unused(struct packets *packets, struct uni_mirage_stats *st)
{
	size_t kept = 0;

	uni_vec_foreach (p, &packets->all) {
		if (p->unused)
			st->unused++;
		else
			packets->all.v[kept++] = *p;
	}
	packets->all.nr = kept;
}

/*
 * Where the oldest packet is: the file has them in order, but for the one place where the ring's
 * newest meets its oldest. There time goes back, and the counter does not go on by one. A damaged
 * header shows one of the two in another place, never both.
 */
static size_t find_oldest(const struct packets *packets)
{
	size_t nr = packets->all.nr, best = 0;
	unsigned most = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct packet *p = &packets->all.v[i],
				    *before = &packets->all.v[(i + nr - 1) % nr];
		bool jumps = p->count != (uint16_t)(before->count + 1);
		/* Of two equal signs the counter's is the better one. */
		unsigned sign = 2u * (p->first < before->first) + 3u * jumps;

		if (sign > most) {
			most = sign;
			best = i;
		}
	}
	return best;
}

static int rotate(struct packets *packets)
{
	struct packets r = { 0 };
	size_t nr = packets->all.nr, first = find_oldest(packets);

	for (size_t i = 0; i < nr; i++) {
		if (!uni_vec_push(&r.all, packets->all.v[(first + i) % nr])) {
			uni_vec_free(&r.all);
			return -UNI_ENOMEM;
		}
	}
	uni_vec_free(&packets->all);
	*packets = r;
	return 0;
}

/* Borrowed bytes up to a NUL that lies within the packet. */
static bool text(struct uni_cursor *c, struct uni_promise_event *e)
{
	const uint8_t *s = c->data + c->pos;
	const uint8_t *nul = memchr(s, 0, uni_cursor_left(c));

	if (nul == NULL)
		return false;
	e->text = (const char *)s;
	e->text_len = (uint32_t)(nul - s);
	return uni_cursor_take(c, (size_t)(nul - s) + 1) != NULL;
}

/* The payload behind the header; false: an unknown id, or it is not all there. */
static bool payload(struct uni_cursor *c, struct uni_promise_event *e)
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
		return !c->failed && text(c, e);
	case UNI_PE_INCREASE:
	case UNI_PE_COUNTER:
		e->value = (int64_t)uni_cursor_u64(c);
		return !c->failed && text(c, e);
	case UNI_PE_FAIL:
		e->other = uni_cursor_u64(c);
		return !c->failed && text(c, e);
	case UNI_PE_CREATE:
		e->other = uni_cursor_u64(c);
		e->type = uni_cursor_u8(c);
		break;
	default:
		e->other = uni_cursor_u64(c);
	}
	return !c->failed;
}

static bool says(const struct uni_promise_event *e, const char *label)
{
	return e->text_len == strlen(label) && memcmp(e->text, label, e->text_len) == 0;
}

/* MirageOS has no events of their own for these: the label is the flag. */
static void translate(struct uni_promise_event *e)
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
	if (says(e, UNI_MIRAGE_SHOULD_RESOLVE))
		e->kind = UNI_PE_SHOULD_RESOLVE;
	for (unsigned i = 0; i < uni_array_len(ours) && e->thread == UNI_PROMISE_NOBODY; i++) {
		if (!says(e, ours[i].label))
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
	uint64_t given; /* time of the last event that was given out */
	uint64_t now;	/* of the packet's last event */
	uint64_t limit; /* of this packet: about what the next one begins with */
};

/* A damaged time in one packet must not cost those of the next: they are late then, but there. */
static int give(struct reading *r, struct uni_promise_event *e, struct uni_mirage_stats *st)
{
	st->events++;
	if (e->time < r->given)
		e->time = r->given;
	r->given = e->time;
	return r->fn(r->arg, e);
}

/* The next event; false: the rest of the packet makes no sense. */
static bool next_event(const struct reading *r, struct uni_cursor *c, struct uni_promise_event *e)
{
	*e = (struct uni_promise_event){ .other = UNI_PROMISE_NOBODY };
	e->time = uni_cursor_u64(c);
	e->kind = uni_cursor_u8(c);
	if (c->failed || e->time < r->now || e->time > r->limit || !payload(c, e))
		return false;
	translate(e);
	return true;
}

/*
 * An event is given out when the one behind it is not earlier: a damaged time would set the clock
 * of all that follow.
 */
static int read_packet(
	struct reading *r, const uint8_t *data, const struct packet *p, struct uni_mirage_stats *st)
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
			holds = holds && (c.failed || e.time >= held.time);
			whole = holds ? whole : before;
			break;
		}
		before = whole;
		whole = c.pos;
		if (holds)
			rc = give(r, &held, st);
		held = e;
		holds = true;
		r->now = e.time;
	}
	if (rc >= 0 && holds)
		rc = give(r, &held, st);
	if (rc < 0 || whole == p->content)
		return rc < 0 ? rc : 0;
	if (st->damaged++ == 0)
		st->first_damage = p->at + whole;
	st->damaged_bytes += p->content - whole;
	return 0;
}

/* Of two times in a row one may be damaged: the later one is a limit for what lies before. */
static void look_ahead(const uint8_t *data, struct packets *packets)
{
	const struct reading any = { .limit = UINT64_MAX };
	struct uni_promise_event a, b;

	uni_vec_foreach (p, &packets->all) {
		struct uni_cursor c = uni_cursor_make(data + p->at, p->content);

		uni_cursor_seek(&c, UNI_MIRAGE_HEAD);
		if (next_event(&any, &c, &a) && next_event(&any, &c, &b))
			p->second = uni_max(a.time, b.time);
	}
}

static uint64_t limit_of(const struct packets *packets, size_t i)
{
	uint64_t limit = 0;

	/* Packets of one event are looked behind, but not for ever. */
	for (size_t k = i + 1; k < packets->all.nr && k - i < 16; k++) {
		const struct packet *p = &packets->all.v[k];

		limit = uni_max(limit, uni_max(p->first, p->second));
		if (p->second != 0)
			return limit;
	}
	return UINT64_MAX;
}

static int read_all(struct reading *r, const uint8_t *data, const struct packets *packets,
	struct uni_mirage_stats *st)
{
	bool begun = false;
	uint16_t last = 0;
	int rc = 0;

	for (size_t i = 0; i < packets->all.nr; i++) {
		const struct packet *p = &packets->all.v[i];
		uint16_t gap = (uint16_t)(p->count - last - 1);
		struct uni_promise_event lost = { .kind = UNI_PE_LOST,
			.value = -1,
			.thread = UNI_PROMISE_NOBODY,
			.other = UNI_PROMISE_NOBODY };

		if (begun && gap != 0 && gap < 0x8000) {
			st->missing += gap;
			lost.time = r->given;
			rc = r->fn(r->arg, &lost);
		}
		begun = true;
		last = p->count;
		st->packets++;
		r->limit = limit_of(packets, i);
		if (rc >= 0)
			rc = read_packet(r, data, p, st);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int uni_mirage_read(const void *data, size_t size, uni_promise_event_fn fn, void *arg,
	struct uni_mirage_stats *stats_ret, struct uni_err *err)
{
	struct reading r = { .fn = fn, .arg = arg };
	struct packets packets = { 0 };
	int rc;

	*stats_ret = (struct uni_mirage_stats){ 0 };
	if (!uni_mirage_is(data, size))
		return uni_err_set(err, UNI_EFORMAT,
			"no trace of MirageOS: it does not begin with that format's magic number");
	rc = scan(data, size, &packets, stats_ret);
	drop_unused(&packets, stats_ret);
	if (rc == 0)
		rc = rotate(&packets);
	look_ahead(data, &packets);
	if (rc == 0)
		rc = read_all(&r, data, &packets, stats_ret);
	uni_vec_free(&packets.all);
	return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "out of memory") : rc;
}
