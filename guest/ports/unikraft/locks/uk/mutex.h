/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unikraft's mutexes, which tell the tracer who has them. This folder lies in front of Unikraft's
 * own in the path of includes, so no file of Unikraft is changed. Its functions are inline: the
 * names of these three mean ours from here on.
 */
#include_next <uk/mutex.h>

#if !defined(UNISCOPE_UK_MUTEX_H) && CONFIG_LIBUKLOCK_MUTEX
#define UNISCOPE_UK_MUTEX_H

#include "uniscope/promise.h"

/* The owner may lock it again: only its first time counts. */
static inline void uniscope_mutex_taken(const struct uk_mutex *m)
{
	if (m->lock_count == 1)
		uni_promise_lock_taken((uint64_t)m->owner, (uint64_t)m);
}

static inline void uniscope_mutex_lock(struct uk_mutex *m)
{
	struct uk_thread *self = uk_thread_current();

	if (uni_promise_on() && m->owner && m->owner != self)
		uni_promise_lock_wait((uint64_t)self, (uint64_t)m);
	uk_mutex_lock(m);
	uniscope_mutex_taken(m);
}

static inline int uniscope_mutex_trylock(struct uk_mutex *m)
{
	int got = uk_mutex_trylock(m);

	if (got)
		uniscope_mutex_taken(m);
	return got;
}

static inline void uniscope_mutex_unlock(struct uk_mutex *m)
{
	if (m->lock_count == 1)
		uni_promise_lock_given_back((uint64_t)m);
	uk_mutex_unlock(m);
}

#define uk_mutex_lock(m)    uniscope_mutex_lock(m)
#define uk_mutex_trylock(m) uniscope_mutex_trylock(m)
#define uk_mutex_unlock(m)  uniscope_mutex_unlock(m)

#endif
