/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "session/sdir.h"

#define SPARE_PACKETS	   4u
#define PACKETS_PER_STREAM 2u
#define BURST_PACKETS	   64u /* more, made when many samples come at once */
#define WAKE_NS		   (200 * UNI_NSEC_PER_MSEC)
#define OLD_NS		   (750 * UNI_NSEC_PER_MSEC) /* with WAKE_NS: on disk within a second */

struct stream {
	/* The writer thread's own: */
	int fd; /* -1 until the first packet */
	uint64_t size, seq;
	/* Under the lock: */
	struct uni_ctf_packet *cur; /* NULL: none begun */
	uint64_t cur_since_ns, last_ns;
	uint64_t lost; /* of this stream that are in no packet on disk or in memory */
};

struct guest {
	uint8_t uuid[UNI_CTF_UUID];
	struct uni_writer_count count;
	uint32_t nr_vcpus;
	struct stream stream[]; /* of samples, then as many of exits */
};

/* What is written: one of the two. */
struct item {
	const struct uni_sample *sample;
	const struct uni_stream_exit *exit;
	uint32_t guest, vcpu;
};

struct uni_writer {
	int dir_fd;
	pthread_t thread;
	bool thread_runs;

	pthread_mutex_t lock; /* all below; held for copies in memory only */
	pthread_cond_t work, done;
	struct uni_ctf_packet *pool; /* free ones */
	struct uni_ctf_packet *queue, **queue_end;
	size_t in_flight; /* queued or being written */
	size_t nr_begun;  /* packets begun and not yet queued */
	size_t nr_burst;  /* packets made on top of the pool */
	bool idle;	  /* the thread waits without a time: nothing is begun */
	bool stop;
	struct uni_writer_count elsewhere; /* of guests that do not exist */
	int write_errno;		   /* of the first packet that could not be written */
	uint32_t nr_guests;
	struct guest *guest[UNI_GUEST_MAX];
};

static void submit(struct uni_writer *w, struct stream *st)
{
	struct uni_ctf_packet *p = uni_take(st->cur);

	if (p == NULL)
		return;
	w->nr_begun--;
	p->discarded = st->lost;
	p->next = NULL;
	*w->queue_end = p;
	w->queue_end = &p->next;
	w->in_flight++;
	(void)pthread_cond_signal(&w->work);
}

/* Hands over packets begun at or before `since_ns`. */
static void submit_old(struct uni_writer *w, uint64_t since_ns)
{
	for (uint32_t g = 0; g < w->nr_guests; g++) {
		for (uint32_t v = 0; v < UNI_CTF_STREAM_NR * w->guest[g]->nr_vcpus; v++) {
			struct stream *st = &w->guest[g]->stream[v];

			if (st->cur != NULL && st->cur_since_ns <= since_ns)
				submit(w, st);
		}
	}
}

/* NULL when the thread is so far behind that there is none. No guest is held, so it may be made. */
static struct uni_ctf_packet *empty_packet(struct uni_writer *w)
{
	struct uni_ctf_packet *p = w->pool;

	if (p != NULL) {
		w->pool = p->next;
		return p;
	}
	p = w->nr_burst < BURST_PACKETS ? malloc(sizeof(*p)) : NULL;
	w->nr_burst += p != NULL;
	return p;
}

/* For the stream, to be filled. */
static struct uni_ctf_packet *begin_packet(
	struct uni_writer *w, struct stream *st, const struct item *it)
{
	struct uni_ctf_packet *p = empty_packet(w);

	if (p == NULL)
		return NULL;
	uni_ctf_packet_start(p, it->vcpu);
	p->guest = it->guest;
	p->stream = it->exit != NULL ? UNI_CTF_EXITS : UNI_CTF_SAMPLES;
	st->cur = p;
	st->cur_since_ns = uni_now_ns();
	/* A thread that sleeps until there is something has to look at the clock again. */
	if (w->nr_begun++ == 0 && w->idle)
		(void)pthread_cond_signal(&w->work);
	return p;
}

static bool packet_add(struct uni_ctf_packet *p, const struct item *it)
{
	return it->exit != NULL ? uni_ctf_packet_add_exit(p, it->exit)
				: uni_ctf_packet_add(p, it->sample);
}

static bool add(struct uni_writer *w, struct stream *st, const struct item *it)
{
	if (st->cur != NULL && packet_add(st->cur, it))
		return true;
	submit(w, st);
	return begin_packet(w, st, it) != NULL && packet_add(st->cur, it);
}

/* Readers of CTF need times that never go back within a stream. */
static uint64_t sane_time(struct stream *st, uint64_t t_ns)
{
	st->last_ns = uni_max(t_ns, st->last_ns);
	return st->last_ns;
}

static void put_sample(struct uni_writer *w, struct guest *g, const struct uni_sample *s)
{
	struct stream *st = s->vcpu < g->nr_vcpus ? &g->stream[s->vcpu] : NULL;
	struct uni_sample sane = *s;
	struct item it = { .sample = &sane, .guest = s->guest, .vcpu = s->vcpu };

	if (st != NULL && uni_ctf_can_hold(s)) {
		sane.t_ns = sane_time(st, s->t_ns);
		if (add(w, st, &it))
			return;
	}
	g->count.lost++;
	if (st != NULL)
		st->lost++;
}

static void put_exit(struct uni_writer *w, struct guest *g, const struct uni_stream_exit *e)
{
	struct stream *st = e->vcpu < g->nr_vcpus ? &g->stream[g->nr_vcpus + e->vcpu] : NULL;
	struct uni_stream_exit sane = *e;
	struct item it = { .exit = &sane, .guest = e->guest, .vcpu = e->vcpu };

	if (st != NULL && uni_ctf_can_hold_exit(e)) {
		sane.t_ns = sane_time(st, e->t_ns);
		if (add(w, st, &it))
			return;
	}
	g->count.exits_lost += e->weight;
	if (st != NULL)
		st->lost += e->weight;
}

void uni_writer_sample(struct uni_writer *w, const struct uni_sample *s)
{
	(void)pthread_mutex_lock(&w->lock);
	if (s->guest < w->nr_guests && !w->stop)
		put_sample(w, w->guest[s->guest], s);
	else
		w->elsewhere.lost++;
	(void)pthread_mutex_unlock(&w->lock);
}

void uni_writer_exit(struct uni_writer *w, const struct uni_stream_exit *e)
{
	(void)pthread_mutex_lock(&w->lock);
	if (e->guest < w->nr_guests && !w->stop)
		put_exit(w, w->guest[e->guest], e);
	else
		w->elsewhere.exits_lost += e->weight;
	(void)pthread_mutex_unlock(&w->lock);
}

static int open_stream(struct uni_writer *w, struct stream *st, const struct uni_ctf_packet *p)
{
	char name[64];

	if (st->fd >= 0)
		return 0;
	if (p->stream == UNI_CTF_EXITS)
		(void)snprintf(name, sizeof(name), UNI_SDIR_EXITS, p->guest, p->vcpu);
	else
		(void)snprintf(name, sizeof(name), UNI_SDIR_STREAM, p->guest, p->vcpu);
	st->fd = openat(w->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
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

static struct stream *stream_of(struct guest *g, const struct uni_ctf_packet *p)
{
	return &g->stream[p->stream * g->nr_vcpus + p->vcpu];
}

/* Without the lock: only this thread touches fd, size and seq. */
static int write_packet(struct uni_writer *w, struct guest *g, struct uni_ctf_packet *p)
{
	struct stream *st = stream_of(g, p);
	int rc = open_stream(w, st, p);

	if (rc < 0)
		return rc;
	uni_ctf_packet_finish(p, g->uuid, st->seq, p->discarded);
	rc = append(st, p->data, p->len);
	if (rc == 0)
		st->seq++;
	return rc;
}

static void count_packet(struct guest *g, const struct uni_ctf_packet *p, bool ok)
{
	struct uni_writer_count *c = &g->count;

	if (p->stream == UNI_CTF_EXITS)
		*(ok ? &c->exits : &c->exits_lost) += p->exits;
	else
		*(ok ? &c->written : &c->lost) += p->nr_samples;
	if (!ok)
		stream_of(g, p)->lost += p->stream == UNI_CTF_EXITS ? p->exits : p->nr_samples;
}

/* Called and returns with the lock held. */
static void write_first(struct uni_writer *w)
{
	struct uni_ctf_packet *p = w->queue;
	struct guest *g = w->guest[p->guest];
	int rc;

	w->queue = p->next;
	if (w->queue == NULL)
		w->queue_end = &w->queue;
	(void)pthread_mutex_unlock(&w->lock);
	rc = write_packet(w, g, p);
	(void)pthread_mutex_lock(&w->lock);
	count_packet(g, p, rc == 0);
	if (rc != 0 && w->write_errno == 0)
		w->write_errno = -rc;
	p->next = w->pool;
	w->pool = p;
	w->in_flight--;
	(void)pthread_cond_broadcast(&w->done);
}

/* While a packet is being filled, it must not grow old; without one there is nothing to do. */
static void wait_for_work(struct uni_writer *w, uint64_t now_ns)
{
	struct timespec wake = uni_ns_timespec(now_ns + WAKE_NS);

	if (w->nr_begun != 0) {
		(void)pthread_cond_timedwait(&w->work, &w->lock, &wake);
		return;
	}
	w->idle = true;
	(void)pthread_cond_wait(&w->work, &w->lock);
	w->idle = false;
}

static void *writer(void *arg)
{
	struct uni_writer *w = arg;

	(void)pthread_mutex_lock(&w->lock);
	for (;;) {
		uint64_t now_ns = uni_now_ns();

		submit_old(w, now_ns - OLD_NS);
		if (w->queue != NULL)
			write_first(w);
		else if (w->stop)
			break;
		else
			wait_for_work(w, now_ns);
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* The thread takes no signal: they are the main thread's business, and SIGXFSZ would kill us. */
static int start_thread(struct uni_writer *w, struct uni_err *err)
{
	sigset_t all, old;
	int e;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&w->thread, NULL, writer, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "cannot start the writer thread: %s", strerror(e));
	w->thread_runs = true;
	return 0;
}

static bool fill_pool(struct uni_writer *w, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct uni_ctf_packet *p = malloc(sizeof(*p));

		if (p == NULL)
			return false;
		(void)pthread_mutex_lock(&w->lock);
		p->next = w->pool;
		w->pool = p;
		(void)pthread_mutex_unlock(&w->lock);
	}
	return true;
}

int uni_writer_create(int dir_fd, struct uni_writer **ret, struct uni_err *err)
{
	struct uni_writer *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int rc = 0;

	if (w == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->work, &attr);
	(void)pthread_cond_init(&w->done, &attr);
	(void)pthread_condattr_destroy(&attr);
	w->dir_fd = dir_fd;
	w->queue_end = &w->queue;
	if (!fill_pool(w, SPARE_PACKETS))
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
	if (rc == 0)
		rc = start_thread(w, err);
	if (rc < 0) {
		uni_writer_destroy(w);
		return rc;
	}
	*ret = w;
	return 0;
}

int uni_writer_add_guest(struct uni_writer *w, uint32_t nr_vcpus, const uint8_t uuid[UNI_CTF_UUID],
	bool exits, struct uni_err *err)
{
	size_t nr_streams = (size_t)UNI_CTF_STREAM_NR * nr_vcpus;
	struct guest *g = calloc(1, sizeof(*g) + nr_streams * sizeof(g->stream[0]));

	if (g == NULL || !fill_pool(w, (exits ? nr_streams : nr_vcpus) * PACKETS_PER_STREAM)) {
		free(g);
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	}
	memcpy(g->uuid, uuid, UNI_CTF_UUID);
	g->nr_vcpus = nr_vcpus;
	for (size_t i = 0; i < nr_streams; i++)
		g->stream[i].fd = -1;
	(void)pthread_mutex_lock(&w->lock);
	w->guest[w->nr_guests++] = g;
	(void)pthread_mutex_unlock(&w->lock);
	return 0;
}

struct uni_writer_count uni_writer_count(struct uni_writer *w, uint32_t guest)
{
	struct uni_writer_count c = { 0 };

	(void)pthread_mutex_lock(&w->lock);
	if (guest < w->nr_guests)
		c = w->guest[guest]->count;
	(void)pthread_mutex_unlock(&w->lock);
	return c;
}

struct uni_writer_count uni_writer_total(struct uni_writer *w)
{
	struct uni_writer_count c;

	(void)pthread_mutex_lock(&w->lock);
	c = w->elsewhere;
	for (uint32_t g = 0; g < w->nr_guests; g++) {
		const struct uni_writer_count *one = &w->guest[g]->count;

		c.written += one->written;
		c.lost += one->lost;
		c.exits += one->exits;
		c.exits_lost += one->exits_lost;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return c;
}

int uni_writer_flush(struct uni_writer *w)
{
	int rc;

	(void)pthread_mutex_lock(&w->lock);
	submit_old(w, UINT64_MAX);
	while (w->in_flight != 0)
		(void)pthread_cond_wait(&w->done, &w->lock);
	rc = -w->write_errno;
	(void)pthread_mutex_unlock(&w->lock);
	return rc;
}

static void close_streams(struct uni_writer *w)
{
	for (uint32_t g = 0; g < w->nr_guests; g++) {
		for (uint32_t v = 0; v < UNI_CTF_STREAM_NR * w->guest[g]->nr_vcpus; v++) {
			struct stream *st = &w->guest[g]->stream[v];

			/* Network file systems report a full disk here. */
			if (st->fd >= 0 && close(st->fd) != 0 && w->write_errno == 0)
				w->write_errno = errno;
			st->fd = -1;
		}
	}
}

int uni_writer_stop(struct uni_writer *w)
{
	if (w->thread_runs) {
		(void)pthread_mutex_lock(&w->lock);
		submit_old(w, UINT64_MAX);
		w->stop = true;
		(void)pthread_cond_signal(&w->work);
		(void)pthread_mutex_unlock(&w->lock);
		(void)pthread_join(w->thread, NULL);
		w->thread_runs = false;
	}
	close_streams(w);
	return -w->write_errno;
}

void uni_writer_destroy(struct uni_writer *w)
{
	if (w == NULL)
		return;
	(void)uni_writer_stop(w);
	while (w->pool != NULL) {
		struct uni_ctf_packet *p = w->pool;

		w->pool = p->next;
		free(p);
	}
	for (uint32_t g = 0; g < w->nr_guests; g++)
		free(w->guest[g]);
	(void)pthread_cond_destroy(&w->work);
	(void)pthread_cond_destroy(&w->done);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}
