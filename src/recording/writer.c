/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "recording/vcpu_stream.h"

#define SPARE_PACKETS	   4u
#define PACKETS_PER_STREAM 2u
#define BURST_PACKETS	   64u /* more, made when many samples come at once */
#define WAKE_NS		   (200 * UNI_NSEC_PER_MSEC)
#define OLD_NS		   (750 * UNI_NSEC_PER_MSEC) /* with WAKE_NS: on disk within a second */

/* One thing to write: a sample or an exit. */
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
	size_t in_flight;  /* queued or being written */
	size_t nr_begun;   /* packets begun and not yet queued */
	size_t nr_burst;   /* packets made on top of the pool */
	uint32_t nr_vcpus; /* of all guests */
	uint32_t nr_late;  /* of these, came later: the pool is not made for them */
	bool idle;	   /* the thread waits without a time: nothing is begun */
	bool stop;
	struct uni_writer_count elsewhere; /* of guests that do not exist */
	int write_errno;		   /* of the first packet that could not be written */
	uint32_t nr_guests;
	struct uni_wguest *guest[UNI_GUEST_MAX];
};

static void submit_packet(struct uni_writer *w, struct uni_wstream *st)
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

static void submit_old_of(
	struct uni_writer *w, struct uni_wguest *g, unsigned kind, uint64_t since_ns)
{
	for (uint32_t v = 0; v < g->nr_vcpus; v++) {
		struct uni_wstream *st = g->stream[kind][v];

		if (st != NULL && st->cur != NULL && st->cur_since_ns <= since_ns)
			submit_packet(w, st);
	}
}

/* Hands over packets begun at or before `since_ns`. */
static void submit_old(struct uni_writer *w, uint64_t since_ns)
{
	for (uint32_t g = 0; g < w->nr_guests; g++) {
		for (unsigned kind = 0; kind < UNI_CTF_STREAM_NR; kind++)
			submit_old_of(w, w->guest[g], kind, since_ns);
	}
}

/* NULL if the thread is so late that there is none. No guest is held, so the caller may wait. */
static struct uni_ctf_packet *empty_packet(struct uni_writer *w)
{
	struct uni_ctf_packet *p = w->pool;

	if (p != NULL) {
		w->pool = p->next;
		return p;
	}
	p = w->nr_burst < BURST_PACKETS + PACKETS_PER_STREAM * w->nr_late ? malloc(sizeof(*p))
									  : NULL;
	w->nr_burst += p != NULL;
	return p;
}

/* For the stream, to be filled. */
static struct uni_ctf_packet *begin_packet(
	struct uni_writer *w, struct uni_wstream *st, const struct item *it)
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

static bool add_item(struct uni_writer *w, struct uni_wstream *st, const struct item *it)
{
	if (st->cur != NULL && packet_add(st->cur, it))
		return true;
	submit_packet(w, st);
	return begin_packet(w, st, it) != NULL && packet_add(st->cur, it);
}

/* Readers of CTF need times that never go back within a stream. */
static uint64_t sane_time(struct uni_wstream *st, uint64_t t_ns)
{
	st->last_ns = uni_max(t_ns, st->last_ns);
	return st->last_ns;
}

/* The stream of a vCPU, which may be a new one. NULL: there is no room for one more. */
static struct uni_wstream *stream_of(
	struct uni_writer *w, struct uni_wguest *g, enum uni_ctf_stream kind, uint32_t vcpu)
{
	struct uni_wstream *st;
	uint32_t more;

	if (vcpu < g->nr_vcpus)
		return uni_wstream_get(g, kind, vcpu);
	more = vcpu < UNI_VCPU_MAX ? vcpu + 1 - g->nr_vcpus : UNI_VCPU_MAX;
	if (vcpu >= UNI_VCPU_MAX || more > UNI_SESSION_VCPUS_MAX - w->nr_vcpus)
		return NULL;
	st = uni_wstream_get(g, kind, vcpu);
	if (st == NULL)
		return NULL;
	g->nr_vcpus += more;
	w->nr_vcpus += more;
	w->nr_late += more;
	return st;
}

static void put_sample(struct uni_writer *w, struct uni_wguest *g, const struct uni_sample *s)
{
	struct uni_wstream *st = stream_of(w, g, UNI_CTF_SAMPLES, s->vcpu);
	struct uni_sample sane = *s;
	struct item it = { .sample = &sane, .guest = s->guest, .vcpu = s->vcpu };

	if (st != NULL && uni_ctf_can_hold(s)) {
		sane.t_ns = sane_time(st, s->t_ns);
		if (add_item(w, st, &it))
			return;
	}
	g->count.lost += s->weight;
	if (st != NULL)
		st->lost += s->weight;
}

static void put_exit(struct uni_writer *w, struct uni_wguest *g, const struct uni_stream_exit *e)
{
	struct uni_wstream *st = stream_of(w, g, UNI_CTF_EXITS, e->vcpu);
	struct uni_stream_exit sane = *e;
	struct item it = { .exit = &sane, .guest = e->guest, .vcpu = e->vcpu };

	if (st != NULL && uni_ctf_can_hold_exit(e)) {
		sane.t_ns = sane_time(st, e->t_ns);
		if (add_item(w, st, &it))
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
		w->elsewhere.lost += s->weight;
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

static void count_packet(struct uni_wguest *g, const struct uni_ctf_packet *p, bool ok)
{
	struct uni_writer_count *c = &g->count;

	if (ok && p->stream == UNI_CTF_EXITS)
		c->exits += p->weight;
	else if (ok)
		c->written += p->nr_samples;
	else
		*(p->stream == UNI_CTF_EXITS ? &c->exits_lost : &c->lost) += p->weight;
	if (!ok)
		g->stream[p->stream][p->vcpu]->lost += p->weight;
}

/* Called and returns with the lock held. */
static void write_first(struct uni_writer *w)
{
	struct uni_ctf_packet *p = w->queue;
	struct uni_wguest *g = w->guest[p->guest];
	int rc;

	w->queue = p->next;
	if (w->queue == NULL)
		w->queue_end = &w->queue;
	(void)pthread_mutex_unlock(&w->lock);
	rc = uni_wstream_write(g, w->dir_fd, p);
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

static void *write_queue(void *arg)
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
	e = pthread_create(&w->thread, NULL, write_queue, w);
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
		return uni_err_nomem(err);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->work, &attr);
	(void)pthread_cond_init(&w->done, &attr);
	(void)pthread_condattr_destroy(&attr);
	w->dir_fd = dir_fd;
	w->queue_end = &w->queue;
	if (!fill_pool(w, SPARE_PACKETS))
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = start_thread(w, err);
	if (rc < 0) {
		uni_writer_destroy(w);
		return rc;
	}
	*ret = w;
	return 0;
}

static bool make_streams(struct uni_wguest *g, uint32_t nr_vcpus, bool exits)
{
	for (uint32_t v = 0; v < nr_vcpus; v++) {
		if (uni_wstream_get(g, UNI_CTF_SAMPLES, v) == NULL ||
			(exits && uni_wstream_get(g, UNI_CTF_EXITS, v) == NULL))
			return false;
	}
	g->nr_vcpus = nr_vcpus;
	return true;
}

int uni_writer_add_guest(struct uni_writer *w, uint32_t nr_vcpus, const uint8_t uuid[UNI_CTF_UUID],
	bool exits, struct uni_err *err)
{
	size_t nr_streams = (size_t)(exits ? 2 : 1) * nr_vcpus;
	struct uni_wguest *g = calloc(1, sizeof(*g));
	bool fits;

	if (g == NULL || !make_streams(g, nr_vcpus, exits) ||
		!fill_pool(w, nr_streams * PACKETS_PER_STREAM)) {
		uni_wstream_free_all(g);
		return uni_err_nomem(err);
	}
	memcpy(g->uuid, uuid, UNI_CTF_UUID);
	(void)pthread_mutex_lock(&w->lock);
	/* Those of others may have got more since the caller looked. */
	fits = nr_vcpus <= UNI_SESSION_VCPUS_MAX - w->nr_vcpus;
	if (fits) {
		w->guest[w->nr_guests++] = g;
		w->nr_vcpus += nr_vcpus;
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (fits)
		return 0;
	uni_wstream_free_all(g);
	return uni_err_set(
		err, UNI_EINVAL, "a session holds at most %d vCPUs in all", UNI_SESSION_VCPUS_MAX);
}

uint32_t uni_writer_nr_vcpus(struct uni_writer *w, uint32_t guest)
{
	uint32_t nr;

	(void)pthread_mutex_lock(&w->lock);
	nr = w->guest[guest]->nr_vcpus;
	(void)pthread_mutex_unlock(&w->lock);
	return nr;
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
		int rc = uni_wstream_close_all(w->guest[g]);

		if (rc < 0 && w->write_errno == 0)
			w->write_errno = -rc;
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
		uni_wstream_free_all(w->guest[g]);
	(void)pthread_cond_destroy(&w->work);
	(void)pthread_cond_destroy(&w->done);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}
