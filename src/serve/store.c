/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"
#include "trace/record.h"

struct part {
	UNI_VEC(uint8_t) bytes;
	size_t begin; /* of the oldest packet that is kept */
	/* The newest sub-buffer, and how much of it was stored. */
	uint64_t seq, time, words;
	size_t content;
	uint64_t extra;			 /* extra_before of the words after that */
	uint64_t lost, lost_base;	 /* its lost counter; the part that was reported already */
	bool restarts;			 /* the next packet starts anew, whatever its number */
	uint64_t skip_words, skip_extra; /* words that are left out before it */
};

struct uni_tstore {
	struct uni_ring_info info;
	size_t max; /* bytes for a CPU */
	struct part cpu[];
};

int uni_tstore_create(const struct uni_ring_info *info, size_t max_bytes, struct uni_tstore **ret,
	struct uni_err *err)
{
	struct uni_tstore *s = calloc(1, sizeof(*s) + info->nr_cpus * sizeof(s->cpu[0]));

	if (s == NULL)
		return uni_err_nomem(err);
	s->info = *info;
	s->max = uni_max(max_bytes / info->nr_cpus, (size_t)UNI_TRACE_SUB_SIZE);
	*ret = s;
	return 0;
}

void uni_tstore_destroy(struct uni_tstore *s)
{
	for (unsigned i = 0; s != NULL && i < s->info.nr_cpus; i++)
		uni_vec_free(&s->cpu[i].bytes);
	free(s);
}

static size_t used_bytes(const struct part *p)
{
	return p->bytes.nr - p->begin;
}

static size_t packet_size(const struct part *p, size_t at)
{
	struct uni_trace_sub head;

	memcpy(&head, p->bytes.v + at, sizeof(head));
	return (size_t)(head.packet_size / 8);
}

/* Drops the oldest packets until there is room; sometimes moves the others to the start. */
static bool make_room(struct part *p, size_t max, size_t len)
{
	while (used_bytes(p) != 0 && used_bytes(p) > max - len)
		p->begin += packet_size(p, p->begin);
	if (p->begin >= max || p->begin == p->bytes.nr) {
		size_t left = used_bytes(p);

		if (left != 0)
			memmove(p->bytes.v, p->bytes.v + p->begin, left);
		p->bytes.nr = left;
		p->begin = 0;
	}
	return uni_vec_grow(&p->bytes, len);
}

/* The full time of the last record. */
static uint64_t end_of(
	const struct uni_tstore *s, const struct uni_trace_sub *packet, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(&s->info, packet, content);
	struct uni_trace_record rec;

	while (uni_trace_next(&c, &rec)) {
	}
	return c.now;
}

/* The words in between do not belong to this trace. */
static void skip_between(struct part *p, const struct uni_trace_sub *next)
{
	p->skip_words += next->words_before - uni_min(p->words, next->words_before);
	p->skip_extra += next->extra_before - uni_min(p->extra, next->extra_before);
	p->restarts = false;
}

int uni_tstore_put(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct uni_tstore *s = arg;
	struct part *p = &s->cpu[cpu];
	struct uni_trace_sub head = *packet;
	size_t from = UNI_TRACE_SUB_HEAD, len;

	if (p->restarts) {
		skip_between(p, packet);
	} else if (packet->begin_seq == p->seq && p->seq != 0) {
		if (content <= p->content)
			return 0;
		from = p->content;
		head.words_before += (from - UNI_TRACE_SUB_HEAD) / 8;
		head.extra_before = p->extra;
		head.gaps = 0; /* an earlier record may have reported others */
		head.ts_begin = p->time;
	}
	head.words_before -= uni_min(p->skip_words, head.words_before);
	head.extra_before -= uni_min(p->skip_extra, head.extra_before);
	head.extra_after -= uni_min(p->skip_extra, head.extra_after);
	len = UNI_TRACE_SUB_HEAD + (content - from);
	if (!make_room(p, s->max, len))
		return -UNI_ENOMEM;
	memcpy(head.uuid, s->info.uuid, sizeof(head.uuid));
	head.ctf_magic = UNI_TRACE_CTF_MAGIC;
	head.content_size = head.packet_size = (uint64_t)len * 8;
	p->lost = uni_max(p->lost, head.lost);
	if (p->seq == 0)
		p->lost_base = p->lost;
	head.lost = p->lost - p->lost_base;
	memcpy(p->bytes.v + p->bytes.nr, &head, sizeof(head));
	memcpy(p->bytes.v + p->bytes.nr + sizeof(head), (const uint8_t *)packet + from,
		content - from);
	p->bytes.nr += len;
	p->seq = packet->begin_seq;
	p->content = content;
	p->extra = packet->extra_after;
	p->time = end_of(s, packet, content);
	p->words = packet->words_before + (content - UNI_TRACE_SUB_HEAD) / 8;
	return 0;
}

static void forget_part(struct part *p)
{
	p->bytes.nr = p->begin = 0;
	p->lost_base = p->lost;
}

void uni_tstore_restart(struct uni_tstore *s)
{
	for (unsigned i = 0; i < s->info.nr_cpus; i++) {
		s->cpu[i].restarts = s->cpu[i].seq != 0;
		s->cpu[i].content = 0;
	}
}

void uni_tstore_clear(struct uni_tstore *s)
{
	for (unsigned i = 0; i < s->info.nr_cpus; i++)
		forget_part(&s->cpu[i]);
}

int uni_tstore_copy(struct uni_tstore *s, bool take, struct uni_tstore_copy *ret)
{
	struct uni_tstore_copy c = { .nr_cpus = s->info.nr_cpus };

	c.cpu = calloc(c.nr_cpus, sizeof(c.cpu[0]));
	if (c.cpu == NULL)
		return -UNI_ENOMEM;
	for (unsigned i = 0; i < c.nr_cpus; i++) {
		const struct part *p = &s->cpu[i];
		void *data;

		if (used_bytes(p) == 0)
			continue;
		data = malloc(used_bytes(p));
		if (data == NULL) {
			uni_tstore_copy_free(&c);
			return -UNI_ENOMEM;
		}
		memcpy(data, p->bytes.v + p->begin, used_bytes(p));
		c.cpu[i].data = data;
		c.cpu[i].size = used_bytes(p);
	}
	if (take)
		uni_tstore_clear(s);
	*ret = c;
	return 0;
}

struct uni_tstore_newest uni_tstore_newest(const struct uni_tstore *s, unsigned cpu)
{
	const struct part *p = &s->cpu[cpu];

	return (struct uni_tstore_newest){ p->words, p->time, used_bytes(p) };
}

static bool add_to_stream(struct uni_trace_stream *to, const void *data, size_t len)
{
	uint8_t *more = realloc((void *)(uintptr_t)to->data, to->size + len);

	if (more == NULL)
		return false;
	memcpy(more + to->size, data, len);
	to->data = more;
	to->size += len;
	return true;
}

/*
 * Moves the records until then from the packet at p->begin to the stream; the rest stays as the
 * packet. 1: nothing is left; 0: something is left; or -UNI_ENOMEM.
 */
static int split_packet(
	const struct uni_tstore *s, struct part *p, uint64_t until, struct uni_trace_stream *to)
{
	size_t size = packet_size(p, p->begin), gone;
	struct uni_trace_sub *head = (void *)(p->bytes.v + p->begin), first = *head;
	struct uni_trace_cursor at = uni_trace_records(&s->info, head, size), c = at;
	struct uni_trace_record rec;
	bool more;

	while ((more = uni_trace_next(&c, &rec)) && rec.time <= until)
		at = c;
	if (!more) /* malformed records stay at the packet's end */
		return add_to_stream(to, head, size) ? 1 : -UNI_ENOMEM;
	gone = size - (size_t)(at.end - at.at) * 8 - UNI_TRACE_SUB_HEAD;
	if (gone == 0)
		return 0;
	/* Losses are after the packet's end, so the first part has none. */
	first.lost = 0;
	first.content_size = first.packet_size = (UNI_TRACE_SUB_HEAD + gone) * 8;
	if (!add_to_stream(to, &first, sizeof(first)) || !add_to_stream(to, head + 1, gone))
		return -UNI_ENOMEM;
	first = *head;
	first.words_before += gone / 8;
	first.ts_begin = at.now;
	first.content_size = first.packet_size = (size - gone) * 8;
	p->begin += gone;
	memcpy(p->bytes.v + p->begin, &first, sizeof(first));
	return 0;
}

static int take_part(
	const struct uni_tstore *s, struct part *p, uint64_t until, struct uni_trace_stream *to)
{
	while (used_bytes(p) != 0) {
		size_t size = packet_size(p, p->begin);
		int rc = split_packet(s, p, until, to);

		if (rc <= 0)
			return rc;
		p->begin += size;
	}
	p->bytes.nr = p->begin = 0;
	return 0;
}

int uni_tstore_take(struct uni_tstore *s, const uint64_t *until, struct uni_tstore_copy *ret)
{
	struct uni_tstore_copy c = { .nr_cpus = s->info.nr_cpus };
	int rc = 0;

	c.cpu = calloc(c.nr_cpus, sizeof(c.cpu[0]));
	if (c.cpu == NULL)
		return -UNI_ENOMEM;
	for (unsigned i = 0; rc == 0 && i < c.nr_cpus; i++)
		rc = take_part(s, &s->cpu[i], until != NULL ? until[i] : UINT64_MAX, &c.cpu[i]);
	if (rc != 0)
		uni_tstore_copy_free(&c);
	else
		*ret = c;
	return rc;
}

void uni_tstore_copy_free(struct uni_tstore_copy *c)
{
	for (unsigned i = 0; c->cpu != NULL && i < c->nr_cpus; i++)
		free((void *)(uintptr_t)c->cpu[i].data);
	free(c->cpu);
	memset(c, 0, sizeof(*c));
}
