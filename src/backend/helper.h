/* SPDX-License-Identifier: BSD-2-Clause */
/* A process of ours that takes care of a guest when the profiler cannot. */
#ifndef UNI_BACKEND_HELPER_H
#define UNI_BACKEND_HELPER_H

#include <stddef.h>

/*
 * For a child that was just forked; name has at most 15 characters.
 * The child is independent of the profiler, and neither its name nor its command line are a
 * profiler's. So somebody who kills or stops all profilers (pkill -f) does not hit the process that
 * cleans up after them. Signals are blocked, and the session is its own: a Ctrl-C in the profiler's
 * terminal is not meant for it. All descriptors are closed, as otherwise a reader of the profiler's
 * output would wait for one more writer. Only fd[0] to fd[nr - 1] stay open. Their numbers are
 * updated if they were standard input, output or error, as these three become /dev/null.
 */
void uni_helper_begin(const char *name, int *fd, size_t nr);

#endif
