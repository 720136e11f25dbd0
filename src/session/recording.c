/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading. Nothing in the folder is trusted: sizes are checked, memory is one packet a vCPU. */
#include "session/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "obj/usym.h"
#include "session/ctf.h"
#include "session/sdir.h"
#include "session/sjson.h"
#include "session/stats.h"

/* One image's names. */
struct names {
	const char *id;		   /* borrowed from the session */
	struct uni_symtab *symtab; /* NULL: none travelled with it, or none that can be read */
	struct uni_err err;	   /* why */
};

struct uni_recording {
	char *path;
	struct uni_session session;
	struct uni_record_stats sum;
	uint32_t names_of[UNI_GUEST_MAX]; /* guests with one image share its names */
	UNI_VEC(struct names) names;
	struct uni_symtab *join[UNI_GUEST_MAX]; /* of guests with several images */
};

/* One vCPU's file while it is read. */
struct stream {
	int fd;
	uint32_t guest, vcpu;
	uint64_t pos, size; /* bytes of the file */
	uint64_t end_ns;    /* of the packet before */
	uint64_t discarded;
	bool have; /* `sample` or `exit` is the next one */
	union {
		struct uni_sample sample;
		struct uni_stream_exit exit;
	};
	struct uni_ctf_reader reader;
	uint8_t packet[UNI_CTF_PACKET_MAX];
};

struct merge {
	const struct uni_recording *rec;
	enum uni_ctf_stream kind;
	size_t nr;
	uint64_t torn;
	uint64_t discarded[UNI_GUEST_MAX];	      /* of streams that are at their end */
	struct stream *stream[UNI_SESSION_VCPUS_MAX]; /* those with samples left */
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
static size_t read_packet(struct stream *st, struct uni_ctf_header *h)
{
	uint64_t left = st->size - st->pos;
	ssize_t got = read_at(st->fd, st->pos, st->packet, UNI_CTF_HEADER_SIZE);

	if (got < 0 || uni_ctf_header_parse(st->packet, (size_t)got, h) < 0 ||
		h->packet_size > left)
		return 0;
	got = read_at(st->fd, st->pos, st->packet, h->packet_size);
	return got == (ssize_t)h->packet_size ? h->packet_size : 0;
}

static int reader_open(const struct merge *m, struct stream *st, size_t size)
{
	return m->kind == UNI_CTF_EXITS ? uni_ctf_reader_open_exits(&st->reader, st->packet, size)
					: uni_ctf_reader_open(&st->reader, st->packet, size);
}

static bool reader_next(const struct merge *m, struct stream *st)
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

static uint64_t next_ns(const struct merge *m, const struct stream *st)
{
	return m->kind == UNI_CTF_EXITS ? st->exit.t_ns : st->sample.t_ns;
}

/* What is at st->pos? Moves past it. Bad without a credible size: past everything. */
static enum packet load_packet(const struct merge *m, struct stream *st)
{
	struct uni_ctf_header h;
	size_t size;

	if (st->pos == st->size)
		return PACKET_END;
	size = read_packet(st, &h);
	if (size == 0) {
		st->pos = st->size;
		return PACKET_BAD;
	}
	st->pos += size;
	if (memcmp(h.uuid, m->rec->session.guest[st->guest]->uuid, UNI_CTF_UUID) != 0 ||
		h.vcpu != st->vcpu || h.begin_ns < st->end_ns || reader_open(m, st, size) < 0)
		return PACKET_BAD;
	st->end_ns = h.end_ns;
	st->discarded = uni_max(st->discarded, h.discarded);
	return PACKET_OK;
}

static void stream_advance(struct merge *m, struct stream *st)
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

static void stream_close(struct merge *m, struct stream *st)
{
	uint64_t *sum = &m->discarded[st->guest];

	if (__builtin_add_overflow(*sum, st->discarded, sum))
		*sum = UINT64_MAX;
	(void)close(st->fd);
	free(st);
}

static int open_stream(
	struct merge *m, int dir_fd, uint32_t guest, uint32_t vcpu, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	struct stream *st;
	struct stat s;
	char name[64];

	if (m->kind == UNI_CTF_EXITS)
		(void)snprintf(name, sizeof(name), UNI_SDIR_EXITS, guest, vcpu);
	else
		(void)snprintf(name, sizeof(name), UNI_SDIR_STREAM, guest, vcpu);
	/* Not to wait for the other end, should it be a pipe. */
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0; /* this vCPU has none */
	if (fd < 0 || fstat(fd, &s) != 0)
		return uni_err_set(
			err, UNI_EIO, "cannot read %s/%s: %s", m->rec->path, name, strerror(errno));
	if (!S_ISREG(s.st_mode))
		return uni_err_set(
			err, UNI_EFORMAT, "%s/%s is not a regular file", m->rec->path, name);
	st = calloc(1, sizeof(*st));
	if (st == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	st->fd = uni_take_fd(&fd);
	st->guest = guest;
	st->vcpu = vcpu;
	st->size = (uint64_t)s.st_size;
	stream_advance(m, st);
	if (st->have)
		m->stream[m->nr++] = st;
	else
		stream_close(m, st);
	return 0;
}

static void merge_close(struct merge *m)
{
	while (m->nr != 0)
		stream_close(m, m->stream[--m->nr]);
}

static int merge_open(struct merge *m, const struct uni_recording *rec, enum uni_ctf_stream kind,
	struct uni_err *err)
{
	_cleanup_close_ int fd = open(rec->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	*m = (struct merge){ .rec = rec, .kind = kind };
	if (fd < 0)
		return uni_err_set(err, UNI_EIO, "cannot open %s: %s", rec->path, strerror(errno));
	for (uint32_t g = 0; rc == 0 && g < rec->session.nr_guests; g++) {
		uint32_t nr_vcpus = rec->session.guest[g]->meta.nr_vcpus;

		for (uint32_t v = 0; rc == 0 && v < nr_vcpus; v++)
			rc = open_stream(m, fd, g, v, err);
	}
	if (rc < 0)
		merge_close(m);
	return rc;
}

/* The stream with the oldest sample; of equal ones the first guest's, the lowest vCPU's. */
static size_t merge_first(const struct merge *m)
{
	size_t first = 0;

	for (size_t i = 1; i < m->nr; i++) {
		if (next_ns(m, m->stream[i]) < next_ns(m, m->stream[first]))
			first = i;
	}
	return first;
}

/* Who takes them: one of the two. */
struct taker {
	int (*sample)(void *ctx, const struct uni_sample *s);
	int (*exit)(void *ctx, const struct uni_stream_exit *e);
	void *ctx;
};

static int hand_out(const struct merge *m, const struct stream *st, const struct taker *to)
{
	if (m->kind == UNI_CTF_EXITS)
		return to->exit != NULL ? to->exit(to->ctx, &st->exit) : 0;
	return to->sample != NULL ? to->sample(to->ctx, &st->sample) : 0;
}

static int merge_run(struct merge *m, const struct taker *to)
{
	int rc = 0;

	while (rc == 0 && m->nr != 0) {
		size_t i = merge_first(m);
		struct stream *st = m->stream[i];

		rc = hand_out(m, st, to);
		stream_advance(m, st);
		if (st->have)
			continue;
		stream_close(m, st);
		m->nr--;
		memmove(&m->stream[i], &m->stream[i + 1], (m->nr - i) * sizeof(m->stream[0]));
	}
	return rc;
}

static int each(const struct uni_recording *r, enum uni_ctf_stream kind, const struct taker *to,
	uint64_t *torn_ret, struct uni_err *err)
{
	_cleanup_free_ struct merge *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = merge_open(m, r, kind, err);
	if (rc < 0)
		return rc;
	rc = merge_run(m, to);
	if (torn_ret != NULL)
		*torn_ret = m->torn;
	merge_close(m);
	return rc;
}

int uni_recording_each(struct uni_recording *r, int (*fn)(void *ctx, const struct uni_sample *s),
	void *ctx, uint64_t *torn_ret, struct uni_err *err)
{
	const struct taker to = { .sample = fn, .ctx = ctx };

	return each(r, UNI_CTF_SAMPLES, &to, torn_ret, err);
}

int uni_recording_each_exit(struct uni_recording *r,
	int (*fn)(void *ctx, const struct uni_stream_exit *e), void *ctx, uint64_t *torn_ret,
	struct uni_err *err)
{
	const struct taker to = { .exit = fn, .ctx = ctx };

	return each(r, UNI_CTF_EXITS, &to, torn_ret, err);
}

/* Statistics of a guest whose recorder died: what the samples themselves can tell. */
struct recount {
	struct uni_hist pause;
	uint64_t last_ns;
	uint64_t of_vcpu[UNI_VCPU_MAX]; /* samples */
};

struct recounts {
	struct uni_recording *rec;
	struct recount of_guest[];
};

static int recount_sample(void *ctx, const struct uni_sample *s)
{
	struct recounts *all = ctx;
	struct recount *c = &all->of_guest[s->guest];
	struct uni_record_stats *st = &all->rec->session.guest[s->guest]->stats;

	/* vCPUs that were held together share their time, and one pause. */
	if ((st->samples++ == 0 || s->t_ns != c->last_ns) && s->pause_ns != 0)
		uni_hist_add(&c->pause, s->pause_ns);
	c->last_ns = s->t_ns;
	/* In each tick a vCPU is sampled once at most. */
	c->of_vcpu[s->vcpu] += !uni_state_is_off_cpu(s->state);
	st->ticks = uni_max(st->ticks, c->of_vcpu[s->vcpu]);
	uni_record_stats_count(st, s);
	if (st->samples == 1)
		st->begin_ns = s->t_ns;
	st->end_ns = s->t_ns;
	return 0;
}

static int recount_exit(void *ctx, const struct uni_stream_exit *e)
{
	struct recounts *all = ctx;
	uint64_t *sum = &all->rec->session.guest[e->guest]->stats.exits;

	if (__builtin_add_overflow(*sum, e->weight, sum))
		*sum = UINT64_MAX;
	return 0;
}

/* Also notes, for each guest, what its streams say was lost. */
static int recount_streams(struct uni_recording *r, struct recounts *c, enum uni_ctf_stream kind,
	struct merge *m, struct uni_err *err)
{
	const bool exits = kind == UNI_CTF_EXITS;
	const struct taker to = { .sample = exits ? NULL : recount_sample,
		.exit = exits ? recount_exit : NULL,
		.ctx = c };
	int rc = merge_open(m, r, kind, err);

	if (rc < 0)
		return rc;
	(void)merge_run(m, &to);
	merge_close(m);
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		struct uni_record_stats *st = &r->session.guest[i]->stats;

		*(exits ? &st->exits_lost : &st->lost) = m->discarded[i];
	}
	return 0;
}

/* While it is recorded, session.json has the vCPUs of the beginning. */
static int find_vcpus(struct uni_recording *r, struct uni_err *err)
{
	_cleanup_close_ int fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t all = 0;

	if (fd < 0)
		return uni_err_set(err, UNI_EIO, "cannot open %s: %s", r->path, strerror(errno));
	for (uint32_t i = 0; i < r->session.nr_guests; i++)
		all += r->session.guest[i]->meta.nr_vcpus;
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		struct uni_record_meta *m = &r->session.guest[i]->meta;
		uint32_t more = uni_sdir_nr_vcpus(fd, i, m->nr_vcpus) - m->nr_vcpus;

		more = uni_min(more, UNI_SESSION_VCPUS_MAX - all);
		m->nr_vcpus = m->info.nr_vcpus = m->nr_vcpus + more;
		all += more;
	}
	return 0;
}

static int recount(struct uni_recording *r, struct uni_err *err)
{
	_cleanup_free_ struct merge *m = malloc(sizeof(*m));
	_cleanup_free_ struct recounts *c =
		calloc(1, sizeof(*c) + r->session.nr_guests * sizeof(c->of_guest[0]));
	int rc;

	if (c == NULL || m == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	c->rec = r;
	rc = recount_streams(r, c, UNI_CTF_SAMPLES, m, err);
	if (rc == 0)
		rc = recount_streams(r, c, UNI_CTF_EXITS, m, err);
	for (uint32_t i = 0; rc == 0 && i < r->session.nr_guests; i++)
		uni_hist_summary(&c->of_guest[i].pause, &r->session.guest[i]->stats.pause);
	return rc;
}

/* Samples without names are still worth reading, and names may come from elsewhere. */
static int load_names(struct uni_recording *r, struct names *n, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name;
	int rc;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/%s/%s.usym", r->path, UNI_SDIR_SYMBOLS, n->id);
	if (uni_strbuf_failed(&name))
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	if (n->id[0] == '\0' || access(name.s, F_OK) != 0)
		return 0;
	rc = uni_symtab_load(name.s, &n->symtab, &n->err);
	return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "%s", n->err.msg) : 0;
}

static int find_names(struct uni_recording *r, const char *id, uint32_t *ret, struct uni_err *err)
{
	struct names n = { .id = id };
	int rc;

	for (*ret = 0; *ret < r->names.nr; ++*ret) {
		if (strcmp(r->names.v[*ret].id, id) == 0)
			return 0;
	}
	rc = load_names(r, &n, err);
	if (rc == 0 && !uni_vec_push(&r->names, n)) {
		uni_symtab_destroy(n.symtab);
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
	}
	return rc;
}

/* The names of all images of a guest that has several. */
static int join_names(struct uni_recording *r, uint32_t guest, struct uni_err *err)
{
	const struct uni_record_meta *m = &r->session.guest[guest]->meta;
	struct uni_symtab_part part[UNI_IMAGES_MAX];
	const struct uni_symtab *main_one = r->names.v[r->names_of[guest]].symtab;
	size_t nr = 0;

	if (m->nr_more == 0 || main_one == NULL)
		return 0;
	part[nr++] = (struct uni_symtab_part){ .symtab = main_one };
	for (uint32_t i = 0; i < m->nr_more; i++) {
		uint32_t at;
		int rc = find_names(r, m->more[i].id, &at, err);

		if (rc != 0)
			return rc;
		if (r->names.v[at].symtab != NULL)
			part[nr++] = (struct uni_symtab_part){ .symtab = r->names.v[at].symtab,
				.delta = m->bias - m->more[i].bias };
	}
	return uni_symtab_join(part, nr, &r->join[guest], err);
}

static int load_symbols(struct uni_recording *r, struct uni_err *err)
{
	int rc = 0;

	for (uint32_t g = 0; rc == 0 && g < r->session.nr_guests; g++) {
		rc = find_names(r, r->session.guest[g]->meta.image_id, &r->names_of[g], err);
		if (rc == 0)
			rc = join_names(r, g, err);
	}
	return rc;
}

int uni_recording_open(const char *path, struct uni_recording **ret, struct uni_err *err)
{
	struct uni_recording *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	r->path = strdup(path);
	if (r->path == NULL)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
	else
		rc = uni_session_load(path, &r->session, err);
	if (rc == 0)
		rc = load_symbols(r, err);
	if (rc == 0 && !r->session.closed)
		rc = find_vcpus(r, err);
	if (rc == 0 && !r->session.closed)
		rc = recount(r, err);
	if (rc < 0) {
		uni_recording_close(r);
		return rc;
	}
	uni_session_sum(&r->session, &r->sum);
	*ret = r;
	return 0;
}

void uni_recording_close(struct uni_recording *r)
{
	if (r == NULL)
		return;
	uni_session_free_parsed(&r->session);
	for (size_t i = 0; i < UNI_GUEST_MAX; i++)
		uni_symtab_destroy(r->join[i]);
	for (size_t i = 0; i < r->names.nr; i++)
		uni_symtab_destroy(r->names.v[i].symtab);
	uni_vec_free(&r->names);
	free(r->path);
	free(r);
}

bool uni_recording_was_closed(const struct uni_recording *r)
{
	return r->session.closed;
}

uint32_t uni_recording_nr_guests(const struct uni_recording *r)
{
	return r->session.nr_guests;
}

struct uni_recorded_guest uni_recording_guest(const struct uni_recording *r, uint32_t guest)
{
	const struct uni_session_guest *g = r->session.guest[guest];
	const struct names *n = &r->names.v[r->names_of[guest]];

	return (struct uni_recorded_guest){ .meta = &g->meta,
		.stats = &g->stats,
		.watch = g->watch,
		.nr_watch = g->nr_watch,
		.thread = g->thread,
		.nr_thread = g->nr_thread,
		.symtab = r->join[guest] != NULL ? r->join[guest] : n->symtab,
		.symtab_problem = n->err.code != 0 ? n->err.msg : NULL };
}

const char *uni_recording_path(const struct uni_recording *r)
{
	return r->path;
}

const struct uni_record_meta *uni_recording_meta(const struct uni_recording *r)
{
	return &r->session.guest[0]->meta;
}

const struct uni_record_stats *uni_recording_stats(const struct uni_recording *r)
{
	return &r->sum;
}
