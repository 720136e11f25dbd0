/* SPDX-License-Identifier: BSD-2-Clause */
/* A stand-in for Unikraft's mutex: one thread at a time, and nobody sleeps. */
#ifndef UK_MUTEX_H
#define UK_MUTEX_H

#include <uk/thread.h>

#define CONFIG_LIBUKLOCK_MUTEX 1

struct uk_mutex {
	int lock_count;
	struct uk_thread *owner;
};

static inline void uk_mutex_lock(struct uk_mutex *m)
{
	/* Another thread has given it back meanwhile. */
	if (m->owner != uk_thread_current())
		m->lock_count = 0;
	m->owner = uk_thread_current();
	m->lock_count++;
}

static inline int uk_mutex_trylock(struct uk_mutex *m)
{
	if (m->owner && m->owner != uk_thread_current())
		return 0;
	uk_mutex_lock(m);
	return 1;
}

static inline void uk_mutex_unlock(struct uk_mutex *m)
{
	if (--m->lock_count == 0)
		m->owner = (void *)0;
}

/* As Unikraft's: the names come in as arguments. */
#define UK_STAND_IN_WAIT(lock_fn, unlock_fn, lock) \
	do {                                       \
		unlock_fn(lock);                   \
		lock_fn(lock);                     \
	} while (0)
#define uk_waitq_wait_event_mutex(lock) UK_STAND_IN_WAIT(uk_mutex_lock, uk_mutex_unlock, lock)

#endif
