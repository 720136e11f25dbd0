/* SPDX-License-Identifier: BSD-2-Clause */
/* The port's mutexes tell these calls, one letter each: w wait, t taken, g given back. */
#include <stdio.h>

#include <uk/mutex.h>

#include "uniscope/promise.h"

struct uni_trace_head uni_trace_head;
static char told[64];
static unsigned nr;
static struct uk_thread threads[2], *current = &threads[0];
static uint64_t lock_is;
static int wrong;

struct uk_thread *uk_thread_current(void)
{
	return current;
}

void uni_promise_three(unsigned kind, uint64_t a, uint64_t b, uint32_t c)
{
	uint64_t self = kind == UNI_PROMISE_NOTIFY ? UNI_PROMISE_NOBODY : (uint64_t)current;

	wrong |= c != UNI_PROMISE_LOCK || b != lock_is || a != self;
	told[nr++] = kind == UNI_PROMISE_TRY_READ ? 'w' : kind == UNI_PROMISE_READ ? 't' : 'g';
}

int main(void)
{
	struct uk_mutex m = { 0 };

	lock_is = (uint64_t)&m;
	uk_mutex_lock(&m);
	uk_mutex_unlock(&m); /* off: nothing */
	uni_trace_head.control.promises = UNI_TRACE_PROMISES_TELL;
	uk_mutex_lock(&m);
	uk_mutex_lock(&m); /* again: not told */
	(void)uk_mutex_trylock(&m);
	uk_mutex_unlock(&m);
	uk_mutex_unlock(&m);
	uk_mutex_unlock(&m);
	told[nr++] = ' ';
	(void)uk_mutex_trylock(&m);
	uk_waitq_wait_event_mutex(&m);
	current = &threads[1];
	(void)uk_mutex_trylock(&m); /* in vain: not told */
	told[nr++] = ' ';
	uk_mutex_lock(&m); /* another one's */
	uk_mutex_unlock(&m);
	(void)printf("%s%s\n", told, wrong ? " wrong" : "");
	return 0;
}
