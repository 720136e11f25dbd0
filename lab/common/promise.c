/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab_promise.h"

#include "lab.h"

uint64_t lab_self(void)
{
	return (uint64_t)lab_current;
}

void lab_promise_make(struct lab_promise *p, enum uni_promise_kind_of type, const char *name)
{
	*p = (struct lab_promise){ 0 };
	uni_promise_named(lab_self(), (uint64_t)p, type, name);
}

void lab_promise_resolve(struct lab_promise *p)
{
	p->resolved = true;
	uni_promise_resolve(lab_self(), (uint64_t)p);
	for (; p->nr_waiting != 0; p->nr_waiting--)
		lab_sem_post(&p->sem);
}

void lab_promise_await(struct lab_promise *p)
{
	if (!p->resolved) {
		uni_promise_try_read(lab_self(), (uint64_t)p);
		p->nr_waiting++;
		lab_sem_wait(&p->sem);
	}
	uni_promise_read(lab_self(), (uint64_t)p);
}

void lab_condition_make(struct lab_condition *c, const char *name)
{
	*c = (struct lab_condition){ 0 };
	uni_promise_named_condition(lab_self(), (uint64_t)c, name);
}

void lab_condition_broadcast(struct lab_condition *c)
{
	if (c->nr_waiting == 0)
		uni_promise_notify(UNI_PROMISE_NOBODY, (uint64_t)c);
	for (unsigned i = 0; i < c->nr_waiting; i++) {
		uni_promise_notify((uint64_t)c->waiting[i], (uint64_t)c);
		lab_sem_post(&c->sem);
	}
	c->nr_waiting = 0;
}

void lab_condition_wait(struct lab_condition *c)
{
	if (c->nr_waiting == sizeof(c->waiting) / sizeof(c->waiting[0]))
		lab_fail("too many threads wait for a condition");
	uni_promise_try_read(lab_self(), (uint64_t)c);
	c->waiting[c->nr_waiting++] = lab_current;
	lab_sem_wait(&c->sem);
}

/* Tells the tracer that `of` wakes the first thread that waits for the semaphore. False: no thread
 * waits.
 */
static bool tell_waiters(const struct lab_semaphore *sem, uint64_t of)
{
	for (struct lab_thread *t = lab_threads; t; t = (struct lab_thread *)t->next) {
		if (t->state != LAB_THREAD_BLOCKED || t->wait_on != (uint64_t)sem)
			continue;
		uni_promise_notify((uint64_t)t, of);
		return true;
	}
	uni_promise_notify(UNI_PROMISE_NOBODY, of);
	return false;
}

void lab_told_sem_make(struct lab_semaphore *sem, const char *name)
{
	*sem = (struct lab_semaphore){ 0 };
	uni_promise_named_semaphore(lab_self(), (uint64_t)sem, name);
}

void lab_told_sem_wait(struct lab_semaphore *sem)
{
	if (sem->count == 0)
		uni_promise_try_read(lab_self(), (uint64_t)sem);
	lab_sem_wait(sem);
	uni_promise_read(lab_self(), (uint64_t)sem);
}

void lab_told_sem_post(struct lab_semaphore *sem)
{
	(void)tell_waiters(sem, (uint64_t)sem);
	lab_sem_post(sem);
}

void lab_mvar_make(struct lab_mvar *m, const char *name)
{
	*m = (struct lab_mvar){ 0 };
	uni_promise_named_mvar(lab_self(), (uint64_t)m, name);
}

static void mvar_wait(struct lab_mvar *m, bool full)
{
	while (m->full != full) {
		uni_promise_try_read(lab_self(), (uint64_t)m);
		lab_sem_wait(&m->changed);
	}
}

static void mvar_set(struct lab_mvar *m, bool full)
{
	m->full = full;
	/* Nobody's post would end the next one's wait before it has begun. */
	if (tell_waiters(&m->changed, (uint64_t)m))
		lab_sem_post(&m->changed);
}

void lab_mvar_put(struct lab_mvar *m, uint64_t value)
{
	mvar_wait(m, false);
	m->value = value;
	mvar_set(m, true);
}

uint64_t lab_mvar_take(struct lab_mvar *m)
{
	uint64_t value;

	mvar_wait(m, true);
	value = m->value;
	uni_promise_read(lab_self(), (uint64_t)m);
	mvar_set(m, false);
	return value;
}
