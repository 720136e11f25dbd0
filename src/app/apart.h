/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part of a command in a process of its own, which gives up rights. The command keeps them: it
 * starts and ends a VMM, and reads neither its image nor its answers.
 */
#ifndef UNI_APP_APART_H
#define UNI_APP_APART_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct uni_apart {
	int (*work)(void *ctx, struct uni_err *err); /* in that process */
	void (*idle)(void *ctx); /* here, while it works, often; NULL: nothing is to be done */
	uint64_t nap_ns;	 /* between two calls of idle(), at most; 0: 100 ms */
	void *ctx;
	const char *what; /* "record the guest": in the message if it dies */
};

/*
 * The result of work(). That process ends when this one does, and is stopped by the same signals.
 * Only its memory of uni_apart_share() is seen here. Call it before there are threads.
 */
int uni_apart_run(const struct uni_apart *a, struct uni_err *err);

/* Zeroed memory that both see. It may hold anything: the other process reads what others made.
 * NULL: there is none. */
void *uni_apart_share(size_t size);
void uni_apart_unshare(void *shared, size_t size); /* NULL-safe */

#endif
