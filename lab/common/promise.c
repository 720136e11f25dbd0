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
