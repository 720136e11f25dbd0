/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/ring_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/door.h"
#include "base/vec.h"
#include "recording/ctf_trace.h"
#include "recording/folder.h"
#include "trace/record.h"

struct stream {
	int fd;
	uint64_t size; /* bytes of the file */
	uint64_t packets, words, events, others, told;
	struct uni_ctf_trace_state state;
	struct uni_trace_sub mark; /* its first packet, written with the next one */
	bool has_mark;
};

struct uni_tstream {
	int dir_fd, write_errno;
	uint32_t guest;
	uint8_t uuid[16];
	struct uni_ring_info info;
	uint64_t copy[UNI_TRACE_SUB_SIZE / 8]; /* of a packet that has to change */
	UNI_VEC(uint64_t) state;	       /* parts: their number of words, and these */
	struct stream stream[];		       /* info.nr_cpus */
};

int uni_tstream_create(int dir_fd, uint32_t guest, const uint8_t uuid[16],
	const struct uni_ring_info *info, struct uni_tstream **ret, struct uni_err *err)
{
	struct uni_tstream *t;

	if (info->nr_cpus == 0 || info->nr_cpus > UNI_VCPU_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest traces %u CPUs, a session has room for %d", info->nr_cpus,
			UNI_VCPU_MAX);
	t = calloc(1, sizeof(*t) + info->nr_cpus * sizeof(t->stream[0]));
	if (t == NULL)
		return uni_err_nomem(err);
	t->dir_fd = dir_fd;
	t->guest = guest;
	t->info = *info;
	memcpy(t->uuid, uuid, sizeof(t->uuid));
	for (uint32_t i = 0; i < info->nr_cpus; i++)
		t->stream[i].fd = -1;
	*ret = t;
	return 0;
}

static int open_ring_file(const struct uni_tstream *t, uint32_t cpu)
{
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), UNI_SDIR_EVENTS, t->guest, cpu);
	fd = uni_door_openat(t->dir_fd, name,
		O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* One writev(2) for each packet; a partial write is undone. 0 or -errno. */
static int append_ring_packet(
	struct stream *st, const struct uni_trace_sub *head, const void *body, size_t len)
{
	struct iovec part[2] = { { .iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head) },
		{ .iov_base = (void *)(uintptr_t)body, .iov_len = len } };
	size_t whole = sizeof(*head) + len;
	ssize_t n;

	do {
		n = writev(st->fd, part, 2);
	} while (n < 0 && errno == EINTR);
	if (n >= 0 && (size_t)n == whole) {
		st->size += whole;
		return 0;
	}
	n = n < 0 ? -errno : -ENOSPC;
	(void)!ftruncate(st->fd, (off_t)st->size);
	return (int)n;
}

static bool is_function_class(unsigned cls)
{
	return cls == UNI_TRACE_CLASS_ENTRY || cls == UNI_TRACE_CLASS_ENTRY_ARGS ||
	       cls == UNI_TRACE_CLASS_EXIT_VALUE || cls == UNI_TRACE_CLASS_CALL ||
	       cls == UNI_TRACE_CLASS_CALL_ARGS;
}

/* A packet's records as CTF reads them. */
struct seen {
	size_t content; /* bytes before the first invalid record */
	uint64_t end;	/* the newest time stamp */
	uint64_t events, others, told;
};

static void count_event(struct seen *seen, uint64_t word, uint8_t kind)
{
	seen->told += kind == UNI_TRACE_KIND_EXT && word >> 48 >= UNI_TRACE_CLASS_USER;
	if (kind == UNI_TRACE_KIND_EXT && !is_function_class((unsigned)(word >> 48)))
		seen->others++;
	else
		seen->events += kind != UNI_TRACE_KIND_SYNC;
}

/*
 * The records go into the stream as the guest wrote them, unless a SYNC goes back in time: readers
 * of CTF fail at that. Then the result is a copy in which no time decreases. begin: the
 * packet's.
 */
static const void *look_over(struct uni_tstream *t, const struct uni_trace_sub *packet,
	size_t content, uint64_t begin, struct seen *ret)
{
	const uint64_t *first = (const uint64_t *)(packet + 1), *at = first, *body = first,
		       *end = first + (content - sizeof(*packet)) / 8;

	unsigned short_ids = uni_trace_short_ids(t->info.kinds);
	struct seen seen = {
		.end = begin
	}; /* not *ret: it could be in the way of what `at` reads */

	while (at < end) {
		uint64_t now = seen.end + (uint32_t)((uint32_t)*at - (uint32_t)seen.end);
		uint8_t kind;
		unsigned nr;

		if (short_ids >> (*at >> 32 & 15) & 1) { /* nearly all */
			seen.end = now;
			seen.events++;
			at++;
			continue;
		}
		kind = t->info.kinds[*at >> 32 & 15];
		nr = uni_trace_words(*at, kind);
		if (kind == UNI_TRACE_KIND_NONE || nr >= (size_t)(end - at) ||
			(kind == UNI_TRACE_KIND_SYNC && at[1] >= UNI_CTF_TIME_MAX))
			break;
		if (kind == UNI_TRACE_KIND_SYNC && at[1] < now) {
			if (body == first)
				memcpy(t->copy, first, content - sizeof(*packet));
			body = t->copy;
			t->copy[at - first + 1] = now;
		}
		seen.end = kind == UNI_TRACE_KIND_SYNC ? uni_max(now, at[1]) : now;
		count_event(&seen, *at, kind);
		at += 1 + nr;
	}
	*ret = seen;
	ret->content = sizeof(*packet) + (size_t)(at - first) * 8;
	return body;
}

static int write_packet(
	struct uni_tstream *t, uint32_t cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct stream *st = &t->stream[cpu];
	struct uni_ctf_trace_state state = st->state;
	struct uni_trace_sub head;
	struct seen seen;
	const void *body =
		look_over(t, packet, content, uni_ctf_trace_begin(&state, packet), &seen);
	int rc = 0;

	uni_ctf_trace_header(&state, packet, seen.content, seen.end,
		packet->end_seq == packet->begin_seq, t->uuid, cpu, &head);
	if (st->fd < 0)
		rc = open_ring_file(t, cpu);
	if (st->fd < 0 && rc >= 0)
		st->fd = rc;
	if (rc >= 0)
		rc = append_ring_packet(st, &head, body, seen.content - sizeof(head));
	if (rc < 0) {
		/* The next packet that fits reports the loss as overwritten data. */
		t->write_errno = t->write_errno != 0 ? t->write_errno : rc;
		return rc;
	}
	st->state = state;
	st->packets++;
	st->words += (seen.content - sizeof(head)) / 8;
	st->events += seen.events;
	st->others += seen.others;
	st->told += seen.told;
	return 0;
}

/* A packet without events: from when on, and up to when, the stream's losses are counted. */
static void put_mark(struct uni_tstream *t, uint32_t cpu, const struct uni_trace_sub *mark)
{
	if (write_packet(t, cpu, mark, sizeof(*mark)) == 0)
		t->stream[cpu].packets--;
}

void uni_tstream_begin(struct uni_tstream *t, uint32_t cpu, uint64_t now, uint64_t words_before,
	uint64_t extra_before, uint64_t guest_lost)
{
	const struct uni_trace_sub mark = { .ts_begin = now,
		.begin_seq = 1,
		.end_seq = 1,
		.words_before = words_before,
		.extra_before = extra_before,
		.extra_after = extra_before,
		.lost = guest_lost };

	if (t->stream[cpu].size != 0)
		return;
	t->stream[cpu].state.base_lost = guest_lost;
	t->stream[cpu].mark = mark;
	t->stream[cpu].has_mark = true;
}

int uni_tstream_state(struct uni_tstream *t, const uint64_t *words, size_t nr)
{
	if (nr > UNI_TRACE_SUB_SIZE / 16 || !uni_vec_grow(&t->state, nr + 1))
		return -UNI_ENOMEM;
	t->state.v[t->state.nr++] = nr;
	memcpy(t->state.v + t->state.nr, words, nr * sizeof(*words));
	t->state.nr += nr;
	return 0;
}

/* Comes before everything that the guest writes after this moment, so that later overwrites are
 * noticed. */
static void put_state(struct uni_tstream *t, const struct uni_trace_sub *mark)
{
	struct stream *st = &t->stream[0], before = *st;
	const uint64_t time = mark->ts_begin, end = mark->words_before;
	uint64_t left = 0;
	struct {
		struct uni_trace_sub head;
		uint64_t words[UNI_TRACE_SUB_SIZE / 16];
	} *p = calloc(1, sizeof(*p));

	for (size_t at = 0; at < t->state.nr; at += 1 + (size_t)t->state.v[at])
		left += t->state.v[at];
	for (size_t at = 0; p != NULL && at < t->state.nr; at += 1 + (size_t)t->state.v[at]) {
		size_t nr = (size_t)t->state.v[at];

		p->head = *mark;
		p->head.words_before = end - uni_min(end, left);
		left -= nr;
		memcpy(p->words, &t->state.v[at + 1], nr * 8);
		for (size_t i = 0; i < nr; i += 1 + (p->words[i] >> 36 & 0xfff))
			p->words[i] |= (uint32_t)time;
		(void)write_packet(t, 0, &p->head, sizeof(p->head) + nr * 8);
	}
	free(p);
	t->state.nr = 0;
	st->packets = before.packets;
	st->words = before.words;
	st->others = before.others;
	st->state.next_words = uni_min(st->state.next_words, end);
}

static void write_mark(struct uni_tstream *t, uint32_t cpu)
{
	if (!t->stream[cpu].has_mark)
		return;
	put_mark(t, cpu, &t->stream[cpu].mark);
	t->stream[cpu].has_mark = false;
	if (cpu == 0 && t->state.nr != 0)
		put_state(t, &t->stream[0].mark);
}

void uni_tstream_destroy(struct uni_tstream *t)
{
	for (uint32_t i = 0; t != NULL && i < t->info.nr_cpus; i++) {
		write_mark(t, i);
		if (t->stream[i].fd >= 0)
			(void)close(t->stream[i].fd);
	}
	if (t != NULL)
		uni_vec_free(&t->state);
	free(t);
}

int uni_tstream_put(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct uni_tstream *t = arg;
	struct stream *st = &t->stream[cpu];

	/* Else the losses before the first packet would belong to no time, and not be counted. */
	if (st->packets == 0 && st->size == 0 && !st->has_mark)
		uni_tstream_begin(t, cpu, packet->ts_begin, 0, 0, 0);
	write_mark(t, cpu);
	(void)write_packet(t, cpu, packet, content);
	return 0;
}

void uni_tstream_end(struct uni_tstream *t, uint32_t cpu, uint64_t guest_lost,
	uint64_t words_before, uint64_t extra_before)
{
	struct stream *st = &t->stream[cpu];
	const struct uni_trace_sub mark = { .ts_begin = st->state.end,
		.begin_seq = st->state.guest_seq + 1,
		.end_seq = st->state.guest_seq + 1,
		.words_before = words_before,
		.extra_before = extra_before,
		.extra_after = extra_before,
		.lost = guest_lost };

	write_mark(t, cpu);
	if ((guest_lost <= st->state.base_lost ||
		    guest_lost - st->state.base_lost <= st->state.lost) &&
		words_before <= st->state.next_words)
		return;
	if (st->size == 0) {
		uni_tstream_begin(t, cpu, 0, 0, 0, 0);
		write_mark(t, cpu);
	}
	put_mark(t, cpu, &mark);
}

void uni_tstream_last(struct uni_tstream *t)
{
	struct stream *st = &t->stream[0];
	struct uni_trace_sub mark = { .begin_seq = st->state.guest_seq + 1,
		.end_seq = st->state.guest_seq + 1,
		.words_before = st->state.next_words,
		.extra_before = st->state.next_extra,
		.extra_after = st->state.next_extra,
		.lost = st->state.base_lost + st->state.lost };

	for (uint32_t i = 0; i < t->info.nr_cpus; i++)
		mark.ts_begin = uni_max(mark.ts_begin, t->stream[i].state.end);
	if (t->state.nr != 0 && st->size != 0)
		put_state(t, &mark);
}

void uni_tstream_stats(const struct uni_tstream *t, uint32_t cpu, struct uni_record_trace_cpu *ret)
{
	const struct stream *st = &t->stream[cpu];

	ret->packets = st->packets;
	ret->words = st->words;
	ret->events = st->events;
	ret->others = st->others;
	ret->told = st->told;
	ret->lost_words = st->state.lost_words;
	ret->lost_extra = st->state.lost_extra;
	ret->lost = st->state.lost;
}

int uni_tstream_errno(const struct uni_tstream *t)
{
	return t->write_errno;
}
