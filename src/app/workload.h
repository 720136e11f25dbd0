/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that runs while guests are recorded: `record TARGET -- COMMAND`. */
#ifndef UNI_APP_WORKLOAD_H
#define UNI_APP_WORKLOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/err.h"
#include "recording/recording.h"

struct uni_workload { /* zeroed: there is none */
	pid_t pid;    /* of its parent, which keeps the rights of the caller */
	int gate;     /* to that process */
	pthread_t waiter;
	atomic_bool begun, ended;
	atomic_int failed; /* errno of exec */
	struct uni_record_work work;
};

/* Makes the process, which waits. Called before there are threads, and before rights are given up.
 * argv[0] is not NULL. argv NULL: there is none. */
int uni_workload_prepare(struct uni_workload *w, char *const *argv, struct uni_err *err);
/* It begins now; later calls do nothing. When it ends, the recording is asked to stop. For any
 * thread, one at a time. */
void uni_workload_go(struct uni_workload *w);
/* Ends it if it still runs, and reports how it ended. Returns 0, or why it did not run. NULL-safe,
 * and does nothing the second time. */
int uni_workload_finish(struct uni_workload *w, struct uni_err *err);

#endif
