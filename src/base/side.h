/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child that kept rights which this process gave up, and does with them what it is asked for.
 * Messages of a fixed size go both ways, each with one descriptor at most.
 */
#ifndef UNI_BASE_SIDE_H
#define UNI_BASE_SIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct uni_opener_job;

/*
 * Starts the child (base/opener.h), which ends with this process at the latest; fills in the job's
 * descriptors. Returns once the child has given up its other rights. Call it before there are
 * threads.
 */
int uni_side_begin(struct uni_opener_job *job, int *fd_ret, struct uni_err *err);

/* A request, and the room for its reply, which begins with the result: an int64_t, or -errno. */
struct uni_side_talk {
	int fd; /* along with the request, or -1 */
	const void *request;
	size_t request_size;
	void *reply;
	size_t reply_size;
	pthread_mutex_t *asking; /* of this child */
};
/* One thread at a time. Returns the result, and in *fd_ret the descriptor that came along (or -1);
 * otherwise -1 and errno. */
int64_t uni_side_ask(int to, const struct uni_side_talk *t, int *fd_ret);

/* fd -1: none goes along. */
bool uni_side_send(int to, const void *data, size_t size, int fd);
/* *fd_ret -1: none came along. False: the other side is gone, or sent something else. */
bool uni_side_receive(int from, void *data, size_t size, int *fd_ret);

#endif
