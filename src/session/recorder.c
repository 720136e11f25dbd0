/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing. The sampling thread fills one packet a vCPU; full ones, and those that are a second
 * old, go through a queue to a thread that does nothing but append whole packets. Packets come
 * from a pool of fixed size: when the disk is too slow for it, samples are lost and counted.
 */
#include "session/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sink.h"
#include "obj/usym.h"
#include "session/ctf.h"
#include "session/sdir.h"
#include "session/sjson.h"

#define SPARE_PACKETS 4u
#define WAKE_NS	      (200 * UNI_NSEC_PER_MSEC)
#define OLD_NS	      (750 * UNI_NSEC_PER_MSEC) /* with WAKE_NS: on disk within a second */

struct stream {
	/* The writer thread's own: */
	int fd; /* -1 until the first packet */
	uint64_t size, seq;
	/* Under the lock: */
	struct uni_ctf_packet *cur; /* NULL: none begun */
	uint64_t cur_since_ns, last_ns;
	uint64_t lost; /* samples of this stream that are in no packet on disk or in memory */
};

struct uni_recorder {
	char *path;
	int dir_fd;
	struct uni_session *session;
	pthread_t thread;
	bool thread_runs;

	pthread_mutex_t lock; /* all below; held for copies in memory only */
	pthread_cond_t work, done;
	struct uni_ctf_packet *pool; /* free ones */
	struct uni_ctf_packet *queue, **queue_end;
	size_t in_flight; /* queued or being written */
	bool stop;
	uint64_t written, lost; /* samples */
	int write_errno;	/* of the first packet that could not be written */
	size_t nr_streams;
	struct stream stream[UNI_VCPU_MAX];
};

static void submit(struct uni_recorder *r, struct stream *st)
{
	struct uni_ctf_packet *p = uni_take(st->cur);

	if (p == NULL)
		return;
	p->discarded = st->lost;
	p->next = NULL;
	*r->queue_end = p;
	r->queue_end = &p->next;
	r->in_flight++;
	(void)pthread_cond_signal(&r->work);
}

/* Hands over packets begun at or before `since_ns`. */
static void submit_old(struct uni_recorder *r, uint64_t since_ns)
{
	for (size_t i = 0; i < r->nr_streams; i++) {
		if (r->stream[i].cur != NULL && r->stream[i].cur_since_ns <= since_ns)
			submit(r, &r->stream[i]);
	}
}

/* An empty packet for the stream; NULL when the writer is so far behind that there is none. */
static struct uni_ctf_packet *begin_packet(struct uni_recorder *r, struct stream *st)
{
	struct uni_ctf_packet *p = r->pool;

	if (p == NULL)
		return NULL;
	r->pool = p->next;
	uni_ctf_packet_start(p, (uint32_t)(st - r->stream));
	st->cur = p;
	st->cur_since_ns = uni_now_ns();
	return p;
}

static bool add(struct uni_recorder *r, struct stream *st, const struct uni_sample *s)
{
	if (st->cur != NULL && uni_ctf_packet_add(st->cur, s))
		return true;
	submit(r, st);
	return begin_packet(r, st) != NULL && uni_ctf_packet_add(st->cur, s);
}

void uni_recorder_sample(struct uni_recorder *r, const struct uni_sample *s)
{
	struct uni_sample sane = *s;
	struct stream *st = s->vcpu < r->nr_streams ? &r->stream[s->vcpu] : NULL;

	(void)pthread_mutex_lock(&r->lock);
	if (st == NULL || !uni_ctf_can_hold(s)) {
		r->lost++;
		if (st != NULL)
			st->lost++;
	} else {
		/* Readers of CTF need times that never go back within a stream. */
		sane.t_ns = uni_max(s->t_ns, st->last_ns);
		st->last_ns = sane.t_ns;
		if (!add(r, st, &sane)) {
			r->lost++;
			st->lost++;
		}
	}
	(void)pthread_mutex_unlock(&r->lock);
}

static int open_stream(struct uni_recorder *r, struct stream *st)
{
	char name[64];

	if (st->fd >= 0)
		return 0;
	(void)snprintf(name, sizeof(name), UNI_SDIR_STREAM, (unsigned)(st - r->stream));
	st->fd = openat(r->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	return st->fd < 0 ? -errno : 0;
}

/* One write(2) a packet; what does not go in whole is taken back. 0 or -errno. */
static int append(struct stream *st, const uint8_t *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(st->fd, data + done, len - done);
		int r = n < 0 ? errno : EIO;

		if (n < 0 && r == EINTR)
			continue;
		if (n <= 0) {
			(void)!ftruncate(st->fd, (off_t)st->size);
			return -r;
		}
		done += (size_t)n;
	}
	st->size += len;
	return 0;
}

/* Without the lock: only this thread touches fd, size and seq. */
static int write_packet(struct uni_recorder *r, struct stream *st, struct uni_ctf_packet *p)
{
	int r_open = open_stream(r, st);

	if (r_open < 0)
		return r_open;
	uni_ctf_packet_finish(p, r->session->uuid, st->seq, p->discarded);
	r_open = append(st, p->data, p->len);
	if (r_open == 0)
		st->seq++;
	return r_open;
}

/* Called and returns with the lock held. */
static void write_first(struct uni_recorder *r)
{
	struct uni_ctf_packet *p = r->queue;
	struct stream *st = &r->stream[p->vcpu];
	int rc;

	r->queue = p->next;
	if (r->queue == NULL)
		r->queue_end = &r->queue;
	(void)pthread_mutex_unlock(&r->lock);
	rc = write_packet(r, st, p);
	(void)pthread_mutex_lock(&r->lock);
	if (rc == 0) {
		r->written += p->nr_samples;
	} else {
		r->lost += p->nr_samples;
		st->lost += p->nr_samples;
		if (r->write_errno == 0)
			r->write_errno = -rc;
	}
	p->next = r->pool;
	r->pool = p;
	r->in_flight--;
	(void)pthread_cond_broadcast(&r->done);
}

static void *writer(void *arg)
{
	struct uni_recorder *r = arg;

	(void)pthread_mutex_lock(&r->lock);
	for (;;) {
		uint64_t now_ns = uni_now_ns();
		struct timespec wake = uni_ns_timespec(now_ns + WAKE_NS);

		submit_old(r, now_ns - OLD_NS);
		if (r->queue != NULL)
			write_first(r);
		else if (r->stop)
			break;
		else
			(void)pthread_cond_timedwait(&r->work, &r->lock, &wake);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* The thread takes no signal: they are the main thread's business, and SIGXFSZ would kill us. */
static int start_writer(struct uni_recorder *r, struct uni_err *err)
{
	sigset_t all, old;
	int e;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&r->thread, NULL, writer, r);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "cannot start the writer thread: %s", strerror(e));
	r->thread_runs = true;
	return 0;
}

static void stop_writer(struct uni_recorder *r)
{
	if (!r->thread_runs)
		return;
	(void)pthread_mutex_lock(&r->lock);
	submit_old(r, UINT64_MAX);
	r->stop = true;
	(void)pthread_cond_signal(&r->work);
	(void)pthread_mutex_unlock(&r->lock);
	(void)pthread_join(r->thread, NULL);
	r->thread_runs = false;
}

static void free_pool(struct uni_recorder *r)
{
	while (r->pool != NULL) {
		struct uni_ctf_packet *p = r->pool;

		r->pool = p->next;
		free(p);
	}
}

static void recorder_free(struct uni_recorder *r)
{
	stop_writer(r);
	for (size_t i = 0; i < r->nr_streams; i++) {
		if (r->stream[i].fd >= 0)
			(void)close(r->stream[i].fd);
	}
	free_pool(r);
	if (r->dir_fd >= 0)
		(void)close(r->dir_fd);
	(void)pthread_cond_destroy(&r->work);
	(void)pthread_cond_destroy(&r->done);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->session);
	free(r->path);
	free(r);
}

static bool fill_pool(struct uni_recorder *r)
{
	for (size_t i = 0; i < 2 * r->nr_streams + SPARE_PACKETS; i++) {
		struct uni_ctf_packet *p = malloc(sizeof(*p));

		if (p == NULL)
			return false;
		p->next = r->pool;
		r->pool = p;
	}
	return true;
}

static struct uni_recorder *recorder_new(const char *path, const struct uni_record_meta *meta)
{
	struct uni_recorder *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;

	if (r == NULL)
		return NULL;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->work, &attr);
	(void)pthread_cond_init(&r->done, &attr);
	(void)pthread_condattr_destroy(&attr);
	r->dir_fd = -1;
	r->queue_end = &r->queue;
	r->nr_streams = meta->nr_vcpus;
	for (size_t i = 0; i < r->nr_streams; i++)
		r->stream[i].fd = -1;
	r->path = strdup(path);
	r->session = calloc(1, sizeof(*r->session));
	if (r->path == NULL || r->session == NULL || !fill_pool(r)) {
		recorder_free(r);
		return NULL;
	}
	r->session->meta = *meta;
	return r;
}

/* RFC 4122, section 4.4: random. */
static int make_uuid(uint8_t uuid[UNI_CTF_UUID], struct uni_err *err)
{
	if (getrandom(uuid, UNI_CTF_UUID, 0) != UNI_CTF_UUID)
		return uni_err_set(err, UNI_EIO, "no random numbers: %s", strerror(errno));
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

static int write_metadata(const struct uni_recorder *r, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name, text;
	struct uni_sink *out = NULL;
	int rc;

	uni_strbuf_init(&name);
	uni_strbuf_init(&text);
	uni_strbuf_addf(&name, "%s/%s/metadata", r->path, UNI_SDIR_GUEST);
	uni_ctf_metadata(&text, r->session->uuid, r->session->meta.realtime_offset_ns);
	if (uni_strbuf_failed(&name) || uni_strbuf_failed(&text))
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = uni_sink_open_file(name.s, &out, err);
	if (rc < 0)
		return rc;
	uni_sink_write(out, text.s, text.len);
	return uni_sink_close(out, err);
}

int uni_recorder_create(const char *path, const struct uni_record_meta *meta, bool overwrite,
	struct uni_recorder **ret, struct uni_err *err)
{
	struct uni_recorder *r;
	int rc;

	if (meta->nr_vcpus == 0 || meta->nr_vcpus > UNI_VCPU_MAX)
		return uni_err_set(err, UNI_EINVAL, "a recording has 1 to %d vCPUs, not %u",
			UNI_VCPU_MAX, meta->nr_vcpus);
	if (meta->image_id[0] != '\0' && !uni_session_id_ok(meta->image_id))
		return uni_err_set(err, UNI_EINVAL, "image id '%s' is not hex", meta->image_id);
	r = recorder_new(path, meta);
	if (r == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = make_uuid(r->session->uuid, err);
	if (rc == 0)
		rc = uni_sdir_create(path, overwrite, &r->dir_fd, err);
	/* session.json first: whatever happens next, the folder can be recognised as ours. */
	if (rc == 0)
		rc = uni_session_write(path, r->session, NULL, 0, err);
	if (rc == 0)
		rc = write_metadata(r, err);
	if (rc == 0)
		rc = start_writer(r, err);
	if (rc < 0) {
		recorder_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int uni_recorder_add_image(struct uni_recorder *r, const struct uni_image *img, struct uni_err *err)
{
	struct uni_symtab *symtab = NULL;
	int rc = uni_symtab_of_image(img, &symtab, err);

	if (rc == 0)
		rc = uni_recorder_add_symtab(r, symtab, err);
	uni_symtab_destroy(symtab);
	return rc;
}

int uni_recorder_add_symtab(
	struct uni_recorder *r, const struct uni_symtab *symtab, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name;
	struct uni_record_meta *m = &r->session->meta;
	const char *id = uni_symtab_id(symtab);
	int rc;

	uni_strbuf_init(&name);
	if (!uni_session_id_ok(id))
		return uni_err_set(err, UNI_EINVAL, "image id '%s' is not hex", id);
	uni_strbuf_addf(&name, "%s/%s/%s.usym", r->path, UNI_SDIR_SYMBOLS, id);
	if (uni_strbuf_failed(&name))
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = uni_symtab_write(symtab, name.s, err);
	if (rc < 0 || strcmp(m->image_id, id) == 0)
		return rc;
	(void)snprintf(m->image_id, sizeof(m->image_id), "%s", id);
	(void)snprintf(m->image_path, sizeof(m->image_path), "%s", uni_symtab_path(symtab));
	return uni_session_write(r->path, r->session, NULL, 0, err);
}

uint64_t uni_recorder_lost(struct uni_recorder *r)
{
	uint64_t lost;

	(void)pthread_mutex_lock(&r->lock);
	lost = r->lost;
	(void)pthread_mutex_unlock(&r->lock);
	return lost;
}

static int write_result(const struct uni_recorder *r, struct uni_err *err)
{
	if (r->write_errno == 0)
		return 0;
	return uni_err_set(err, UNI_EIO,
		"cannot write %s: %s; %llu samples lost, the %llu that were written can be read",
		r->path, strerror(r->write_errno), (unsigned long long)r->lost,
		(unsigned long long)r->written);
}

int uni_recorder_flush(struct uni_recorder *r, struct uni_err *err)
{
	int rc;

	(void)pthread_mutex_lock(&r->lock);
	submit_old(r, UINT64_MAX);
	while (r->in_flight != 0)
		(void)pthread_cond_wait(&r->done, &r->lock);
	rc = write_result(r, err);
	(void)pthread_mutex_unlock(&r->lock);
	return rc;
}

static void close_streams(struct uni_recorder *r)
{
	for (size_t i = 0; i < r->nr_streams; i++) {
		struct stream *st = &r->stream[i];

		/* Network file systems report a full disk here. */
		if (st->fd >= 0 && close(st->fd) != 0 && r->write_errno == 0)
			r->write_errno = errno;
		st->fd = -1;
	}
}

int uni_recorder_close(struct uni_recorder *r, const struct uni_record_stats *stats,
	const struct uni_watch *watch, size_t nr_watch, struct uni_err *err)
{
	int rc, rc_json;

	stop_writer(r);
	close_streams(r);
	rc = write_result(r, err);
	r->session->stats = *stats;
	r->session->stats.samples = r->written;
	r->session->stats.lost = stats->lost + r->lost;
	r->session->closed = true;
	rc_json = uni_session_write(r->path, r->session, watch, nr_watch, err);
	recorder_free(r);
	return rc < 0 ? rc : rc_json;
}
