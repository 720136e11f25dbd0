/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "recording/folder.h"

/* One vCPU's file while it is read. */
struct uni_rstream {
	int fd;
	uint32_t guest, vcpu;
	uint64_t pos, size; /* bytes of the file */
	uint64_t end_ns;    /* of the packet before */
	uint64_t discarded;
	bool have; /* `sample` or `exit` is the next one */
	/* live */
	bool dead;			/* it holds data that is no packet */
	uint64_t seen_pos, seen_end_ns; /* of the packets that are there, read or not */
	union {
		struct uni_sample sample;
		struct uni_stream_exit exit;
	};
	struct uni_ctf_reader reader;
	uint8_t packet[UNI_CTF_PACKET_MAX];
};

/* Bytes read at pos, fewer than len only at the file's end; or -errno. */
static ssize_t read_at(int fd, uint64_t pos, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (uint8_t *)buf + done, len - done, (off_t)(pos + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

enum packet { PACKET_OK, PACKET_BAD, PACKET_END };

/* Header and body of the packet at st->pos into st->packet; 0 without a credible size. */
static size_t read_packet(struct uni_rstream *st, struct uni_ctf_header *h)
{
	uint64_t left = st->size - st->pos;
	ssize_t got = read_at(st->fd, st->pos, st->packet, UNI_CTF_HEADER_SIZE);

	if (got < 0 || uni_ctf_header_parse(st->packet, (size_t)got, h) < 0 ||
		h->packet_size > left)
		return 0;
	got = read_at(st->fd, st->pos, st->packet, h->packet_size);
	return got == (ssize_t)h->packet_size ? h->packet_size : 0;
}

static int reader_open(const struct uni_rmerge *m, struct uni_rstream *st, size_t size)
{
	return m->kind == UNI_CTF_EXITS ? uni_ctf_reader_open_exits(&st->reader, st->packet, size)
					: uni_ctf_reader_open(&st->reader, st->packet, size);
}

static bool reader_next(const struct uni_rmerge *m, struct uni_rstream *st)
{
	bool have;

	if (m->kind == UNI_CTF_EXITS) {
		have = uni_ctf_reader_next_exit(&st->reader, &st->exit);
		st->exit.guest = st->guest;
	} else {
		have = uni_ctf_reader_next(&st->reader, &st->sample);
		st->sample.guest = st->guest;
	}
	return have;
}

static uint64_t next_ns(const struct uni_rmerge *m, const struct uni_rstream *st)
{
	return m->kind == UNI_CTF_EXITS ? st->exit.t_ns : st->sample.t_ns;
}

/* Finds the end of the complete packets. Data that cannot be a packet now will never be one. */
static void look_ahead(struct uni_rstream *st)
{
	uint8_t head[UNI_CTF_HEADER_SIZE];
	struct uni_ctf_header h;

	while (!st->dead && st->seen_pos < st->size &&
		read_at(st->fd, st->seen_pos, head, sizeof(head)) == (ssize_t)sizeof(head)) {
		st->dead = uni_ctf_header_parse(head, sizeof(head), &h) < 0;
		if (st->dead || h.packet_size > st->size - st->seen_pos)
			return;
		st->seen_pos += h.packet_size;
		st->seen_end_ns = h.end_ns;
	}
}

/* Reads the packet at st->pos and moves past it. A bad packet without a credible size moves to the
 * end. */
static enum packet load_packet(const struct uni_rmerge *m, struct uni_rstream *st)
{
	struct uni_ctf_header h;
	size_t size;

	if (st->pos >= st->size || (m->live && st->pos >= st->seen_pos))
		return PACKET_END;
	size = read_packet(st, &h);
	if (size == 0) {
		st->pos = st->size;
		return PACKET_BAD;
	}
	st->pos += size;
	if (memcmp(h.uuid, m->session->guest[st->guest]->uuid, UNI_CTF_UUID) != 0 ||
		h.vcpu != st->vcpu || h.begin_ns < st->end_ns || reader_open(m, st, size) < 0)
		return PACKET_BAD;
	st->end_ns = h.end_ns;
	st->discarded = uni_max(st->discarded, h.discarded);
	return PACKET_OK;
}

static void stream_advance(struct uni_rmerge *m, struct uni_rstream *st)
{
	st->have = reader_next(m, st);
	while (!st->have) {
		enum packet p = load_packet(m, st);

		if (p == PACKET_END)
			return;
		if (p == PACKET_BAD)
			m->torn++;
		else
			st->have = reader_next(m, st);
	}
}

static void stream_close(struct uni_rmerge *m, struct uni_rstream *st)
{
	uint64_t *sum = &m->discarded[st->guest];

	if (__builtin_add_overflow(*sum, st->discarded, sum))
		*sum = UINT64_MAX;
	(void)close(st->fd);
	free(st);
}

static int open_stream(
	struct uni_rmerge *m, int dir_fd, uint32_t guest, uint32_t vcpu, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	struct uni_rstream *st;
	struct stat s;
	char name[64];

	if (m->kind == UNI_CTF_EXITS)
		(void)snprintf(name, sizeof(name), UNI_SDIR_EXITS, guest, vcpu);
	else
		(void)snprintf(name, sizeof(name), UNI_SDIR_STREAM, guest, vcpu);
	fd = uni_open_below(dir_fd, name);
	if (fd < 0 && errno == ENOENT)
		return 0; /* this vCPU has none */
	if (fd < 0 && (errno == EINVAL || errno == ELOOP))
		return uni_err_set(err, UNI_EFORMAT, "%s/%s is not a regular file", m->path, name);
	if (fd < 0 || fstat(fd, &s) != 0)
		return uni_err_set(
			err, UNI_EIO, "cannot read %s/%s: %s", m->path, name, strerror(errno));
	st = calloc(1, sizeof(*st));
	if (st == NULL)
		return uni_err_nomem(err);
	st->fd = uni_take_fd(&fd);
	st->guest = guest;
	st->vcpu = vcpu;
	st->size = (uint64_t)s.st_size;
	if (!m->live)
		stream_advance(m, st);
	if (st->have || m->live)
		m->stream[m->nr++] = st;
	else
		stream_close(m, st);
	return 0;
}

void uni_rmerge_close(struct uni_rmerge *m)
{
	while (m->nr != 0)
		stream_close(m, m->stream[--m->nr]);
}

static bool is_open(const struct uni_rmerge *m, uint32_t guest, uint32_t vcpu)
{
	for (size_t i = 0; i < m->nr; i++) {
		if (m->stream[i]->guest == guest && m->stream[i]->vcpu == vcpu)
			return true;
	}
	return false;
}

static int open_all(struct uni_rmerge *m, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = uni_sdir_open(m->path, &fd, err);

	for (uint32_t g = 0; rc == 0 && g < m->session->nr_guests; g++) {
		uint32_t nr_vcpus = m->session->guest[g]->meta.nr_vcpus;

		for (uint32_t v = 0; rc == 0 && v < nr_vcpus; v++) {
			if (m->nr == UNI_SESSION_VCPUS_MAX)
				return 0;
			if (!m->live || !is_open(m, g, v))
				rc = open_stream(m, fd, g, v, err);
		}
	}
	return rc;
}

int uni_rmerge_open(struct uni_rmerge *m, const char *path, const struct uni_session *session,
	enum uni_ctf_stream kind, struct uni_err *err)
{
	int rc;

	*m = (struct uni_rmerge){ .path = path, .session = session, .kind = kind };
	rc = open_all(m, err);
	if (rc < 0)
		uni_rmerge_close(m);
	return rc;
}

uint64_t uni_rmerge_discarded(const struct uni_rmerge *m, uint32_t guest)
{
	uint64_t sum = m->discarded[guest];

	for (size_t i = 0; i < m->nr; i++) {
		if (m->stream[i]->guest == guest &&
			__builtin_add_overflow(sum, m->stream[i]->discarded, &sum))
			sum = UINT64_MAX;
	}
	return sum;
}

static bool is_before(
	const struct uni_rmerge *m, const struct uni_rstream *a, const struct uni_rstream *b)
{
	if (next_ns(m, a) != next_ns(m, b))
		return next_ns(m, a) < next_ns(m, b);
	return a->guest != b->guest ? a->guest < b->guest : a->vcpu < b->vcpu;
}

/* The stream with the oldest sample; among equal ones the first guest's, the lowest vCPU's. m->nr:
 * there is none. */
static size_t merge_first(const struct uni_rmerge *m)
{
	size_t first = m->nr;

	for (size_t i = 0; i < m->nr; i++) {
		if (m->stream[i]->have &&
			(first == m->nr || is_before(m, m->stream[i], m->stream[first])))
			first = i;
	}
	return first;
}

static int hand_out(
	const struct uni_rmerge *m, const struct uni_rstream *st, const struct uni_rtaker *to)
{
	if (m->kind == UNI_CTF_EXITS)
		return to->exit != NULL ? to->exit(to->ctx, &st->exit) : 0;
	return to->sample != NULL ? to->sample(to->ctx, &st->sample) : 0;
}

/* The streams are a heap: none is before stream[(i - 1) / 2]. All but stream[i] may be in place. */
static void sift_down(struct uni_rmerge *m, size_t i)
{
	for (;;) {
		struct uni_rstream *up = m->stream[i];
		size_t child = 2 * i + 1;

		if (child >= m->nr)
			return;
		if (child + 1 < m->nr && is_before(m, m->stream[child + 1], m->stream[child]))
			child++;
		if (is_before(m, up, m->stream[child]))
			return;
		m->stream[i] = m->stream[child];
		m->stream[child] = up;
		i = child;
	}
}

int uni_rmerge_run(struct uni_rmerge *m, const struct uni_rtaker *to)
{
	int rc = 0;

	for (size_t i = m->nr / 2; i-- != 0;)
		sift_down(m, i);
	while (rc == 0 && m->nr != 0) {
		struct uni_rstream *st = m->stream[0];

		rc = hand_out(m, st, to);
		stream_advance(m, st);
		if (!st->have) {
			stream_close(m, st);
			m->stream[0] = m->stream[--m->nr];
		}
		sift_down(m, 0);
	}
	return rc;
}

void uni_rmerge_follow(struct uni_rmerge *m, const char *path, const struct uni_session *session,
	enum uni_ctf_stream kind, uint64_t patience_ns)
{
	*m = (struct uni_rmerge){ .path = path,
		.session = session,
		.kind = kind,
		.live = true,
		.patience_ns = patience_ns };
}

/* Until when is everything there? */
static uint64_t known_until(const struct uni_rmerge *m)
{
	uint64_t newest = 0, until = UINT64_MAX;

	for (size_t i = 0; i < m->nr; i++)
		newest = uni_max(newest, m->stream[i]->seen_end_ns);
	for (size_t i = 0; i < m->nr; i++) {
		const struct uni_rstream *st = m->stream[i];

		if (!st->have && !st->dead && newest - st->end_ns <= m->patience_ns)
			until = uni_min(until, st->end_ns);
	}
	return until;
}

int uni_rmerge_more(struct uni_rmerge *m, const struct uni_rtaker *to, struct uni_err *err)
{
	int rc = open_all(m, err);

	for (size_t i = 0; rc == 0 && i < m->nr; i++) {
		struct uni_rstream *st = m->stream[i];
		bool dead = st->dead;
		struct stat s;

		if (fstat(st->fd, &s) == 0)
			st->size = (uint64_t)s.st_size;
		look_ahead(st);
		m->torn += st->dead && !dead;
		if (!st->have)
			stream_advance(m, st);
	}
	while (rc == 0) {
		size_t i = merge_first(m);
		uint64_t t_ns = i < m->nr ? next_ns(m, m->stream[i]) : UINT64_MAX;

		if (i == m->nr || t_ns > known_until(m))
			break;
		if (t_ns < m->last_ns)
			return -UNI_EAGAIN;
		m->last_ns = t_ns;
		rc = hand_out(m, m->stream[i], to);
		stream_advance(m, m->stream[i]);
	}
	return rc;
}
