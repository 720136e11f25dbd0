/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker's side of base/observer.h, of which two files are made. */
#ifndef UNI_BASE_OBSERVERS_H
#define UNI_BASE_OBSERVERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hold.h"
#include "base/opener.h"

struct uni_observer {
	int fd;	       /* the worker's way to it */
	int pid;       /* the process that may be looked into */
	int memory_fd; /* of that process */
	bool stops;
	uint64_t caps;		    /* at most */
	struct uni_hold_page *page; /* NULL: it holds no threads for us */
	bool paired;		    /* it runs on the CPU of our only thread that asks it to hold */
	/* One thread at a time. A slow opener (base/door.h) is no reason to hold a guest for
	 * longer. */
	pthread_mutex_t asking;
};

struct uni_observer *uni_observer_find(int pid); /* NULL: there is none */
/* The result, or -1 and errno. */
int uni_observer_ask(struct uni_observer *o, const struct uni_observe_request *q,
	struct uni_observe_reply *reply);
int uni_observer_begin_hold(
	struct uni_observer *o, const uint64_t *runs, uint32_t nr, struct uni_err *err);

#endif
