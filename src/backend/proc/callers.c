/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callers of the kernel, where its samples are not permitted. How long a thread was in the
 * kernel is known (perf.c). Here a thread of ours catches such threads at random moments. One that
 * is caught in the kernel gives its chain: a vote. The known time is shared out among the last
 * votes of its thread, so each gets about the same in the end. A thread that sleeps is never
 * stopped.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/catch.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/observer.h"
#include "backend/proc/proc.h"

#define LEAST_NS (8 * UNI_NSEC_PER_MSEC) /* between two looks, at the mean */
#define TURN_NS	 (50 * UNI_NSEC_PER_MSEC)
#define AWAY_NS	 UNI_NSEC_PER_SEC	  /* the next try, if another process traces it */
#define COST	 100			  /* the program stands for one part in so many */
#define WAKE_NS	 (20 * UNI_NSEC_PER_USEC) /* two times we take its CPU */
#define VOTES	 16
#define PAUSES	 256

struct vote {
	struct uni_regs regs;
	uint32_t stack_size;
	uint8_t stack[UNI_CATCH_STACK];
};

struct uni_proc_votes {
	uint32_t nr;   /* of all times; the last ones are kept */
	uint32_t next; /* gets the next period, if there are not enough for all */
	struct vote v[VOTES];
};

struct uni_proc_callers {
	struct uni_proc *p;
	pthread_t thread;
	atomic_bool stop;
	struct uni_thread_stop stopping;
	pthread_mutex_t lock; /* for the rest, and for the votes of all threads */
	uint32_t candidate[UNI_VCPU_MAX], nr_candidates;
	uint64_t votes;
	uint64_t pause_ns[PAUSES]; /* since they were told */
	uint32_t nr_pauses;
};

static void nap_for(const struct uni_proc_callers *c, uint64_t ns)
{
	uint64_t end_ns = uni_now_ns() + ns, now_ns;

	while ((now_ns = uni_now_ns()) < end_ns && !atomic_load(&c->stop)) {
		struct timespec ts = uni_ns_timespec(uni_min(end_ns - now_ns, TURN_NS));

		(void)nanosleep(&ts, NULL);
	}
}

/* Any of them; false: none was in the kernel for long, or none ran. */
static bool pick_thread(
	struct uni_proc_callers *c, uint64_t random, uint32_t *vcpu_ret, int *tid_ret)
{
	bool any;

	(void)pthread_mutex_lock(&c->lock);
	any = c->nr_candidates != 0;
	if (any) {
		*vcpu_ret = c->candidate[random % c->nr_candidates];
		*tid_ret = c->p->thread[*vcpu_ret].stop.tid;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return any;
}

static void take_vote(struct uni_proc_callers *c, uint32_t vcpu, const struct uni_catch *caught)
{
	struct uni_proc_thread *t = &c->p->thread[vcpu];
	struct vote *v;

	if (t->votes == NULL)
		t->votes = calloc(1, sizeof(*t->votes));
	if (t->votes == NULL)
		return;
	v = &t->votes->v[t->votes->nr++ % VOTES];
	memset(&v->regs, 0, sizeof(v->regs));
	if (caught->what == UNI_CATCH_SLEPT) {
		v->regs.pc = caught->regs.rip;
		v->regs.sp = caught->regs.rsp;
		v->regs.pc_valid = v->regs.sp_valid = true;
	} else {
		uni_proc_ptrace_to_regs(&caught->regs, &v->regs);
	}
	v->regs.state = UNI_VCPU_RUNNING;
	v->regs.in_kernel = true;
	v->stack_size = caught->stack_size;
	memcpy(v->stack, caught->stack, v->stack_size);
	c->votes++;
}

/* Returns how long to wait for the next look. */
static uint64_t look_at_thread(struct uni_proc_callers *c, uint32_t vcpu, int tid)
{
	static _Thread_local struct uni_catch caught;
	int cpu = uni_proc_cpu(c->p->pid, tid);

	if (cpu < 0)
		return LEAST_NS;
	if (c->stopping.tid != tid && !c->stopping.pending)
		c->stopping = (struct uni_thread_stop){ .tid = tid };
	if (c->stopping.tid != tid)
		uni_observer_let_go(&c->stopping); /* it has not stopped in time, last time */
	else if (uni_observer_catch(c->p->pid, &c->stopping, cpu, &caught) != 0)
		return errno == ESRCH || errno == EAGAIN ? LEAST_NS : AWAY_NS;
	else if (caught.what == UNI_CATCH_SLEPT && uni_proc_is_traced(tid))
		return AWAY_NS; /* its tracer stopped it */
	else {
		(void)pthread_mutex_lock(&c->lock);
		if (caught.stopped_ns != 0 && c->nr_pauses < PAUSES)
			c->pause_ns[c->nr_pauses++] = caught.stopped_ns;
		if (caught.what > UNI_CATCH_USER)
			take_vote(c, vcpu, &caught);
		(void)pthread_mutex_unlock(&c->lock);
	}
	return uni_max(LEAST_NS, COST * (caught.stopped_ns + WAKE_NS));
}

static void *ask_for_callers(void *ctx)
{
	struct uni_proc_callers *c = ctx;
	uint64_t wait_ns = LEAST_NS, random = 0;

	while (!atomic_load(&c->stop)) {
		uint32_t vcpu = 0;
		int tid = 0;

		random = uni_hash_pair(random, uni_now_ns());
		nap_for(c, wait_ns / 2 + random % wait_ns);
		if (!atomic_load(&c->stop) && pick_thread(c, random >> 32, &vcpu, &tid))
			wait_ns = look_at_thread(c, vcpu, tid);
	}
	return NULL;
}

void uni_proc_callers_start(struct uni_proc *p)
{
	struct uni_proc_callers *c = calloc(1, sizeof(*c));
	sigset_t all, old;
	int e;

	uni_proc_callers_close(p);
	if (c == NULL)
		return;
	c->p = p;
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&c->thread, NULL, ask_for_callers, c);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e == 0)
		p->callers = c;
	else
		free(c);
}

/* The votes stay, for the time that is not shared out yet. */
void uni_proc_callers_stop(struct uni_proc *p)
{
	struct uni_proc_callers *c = p->callers;

	if (c == NULL || atomic_exchange(&c->stop, true))
		return;
	(void)pthread_join(c->thread, NULL);
	if (c->stopping.held || c->stopping.pending)
		uni_observer_let_go(&c->stopping);
}

void uni_proc_callers_close(struct uni_proc *p)
{
	uni_proc_callers_stop(p);
	free(p->callers);
	p->callers = NULL;
	for (int i = 0; i < p->nr_sampled; i++) {
		free(p->thread[i].votes);
		p->thread[i].votes = NULL;
	}
}

uint64_t uni_proc_callers_votes(const struct uni_proc *p)
{
	return p->callers != NULL ? p->callers->votes : 0;
}

void uni_proc_callers_tell(struct uni_proc *p, const struct uni_stream_sink *sink)
{
	struct uni_proc_callers *c = p->callers;
	uint64_t pause_ns[PAUSES];
	uint32_t nr;

	if (c == NULL)
		return;
	(void)pthread_mutex_lock(&c->lock);
	nr = c->nr_pauses;
	memcpy(pause_ns, c->pause_ns, nr * sizeof(pause_ns[0]));
	c->nr_pauses = c->nr_candidates = 0;
	for (int i = 0; i < p->nr_sampled; i++) {
		if (p->thread[i].notable)
			c->candidate[c->nr_candidates++] = (uint32_t)i;
	}
	(void)pthread_mutex_unlock(&c->lock);
	for (uint32_t i = 0; i < nr && sink->pause != NULL; i++)
		sink->pause(sink->ctx, pause_ns[i]);
}

bool uni_proc_callers_known(struct uni_proc *p, uint32_t vcpu)
{
	struct uni_proc_callers *c = p->callers;
	bool known;

	if (c == NULL)
		return false;
	(void)pthread_mutex_lock(&c->lock);
	known = p->thread[vcpu].votes != NULL;
	(void)pthread_mutex_unlock(&c->lock);
	return known;
}

static void put_vote(const struct vote *v, struct uni_stream_raw *raw, uint64_t weight,
	const struct uni_stream_sink *sink)
{
	raw->weight = weight;
	raw->regs = v->regs;
	raw->stack = v->stack;
	raw->stack_size = v->stack_size;
	if (weight != 0)
		sink->raw(sink->ctx, raw);
}

void uni_proc_callers_share(struct uni_proc *p, struct uni_stream_raw *raw, uint64_t periods,
	const struct uni_stream_sink *sink)
{
	struct uni_proc_votes *v = p->thread[raw->vcpu].votes;
	uint32_t nr;

	(void)pthread_mutex_lock(&p->callers->lock);
	nr = uni_min(v->nr, (uint32_t)VOTES);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t turn = (i + nr - v->next % nr) % nr;

		put_vote(&v->v[i], raw, periods / nr + (turn < periods % nr), sink);
	}
	if (nr != 0) /* it has one, as it has votes */
		v->next = (uint32_t)((v->next + periods) % nr);
	(void)pthread_mutex_unlock(&p->callers->lock);
}
