/* SPDX-License-Identifier: BSD-2-Clause */
/* A process of ours that looks after a guest when the profiler cannot. */
#ifndef UNI_BACKEND_HELPER_H
#define UNI_BACKEND_HELPER_H

#include <stddef.h>

/*
 * For a child that was just forked; at most 15 characters of name. It is apart from the profiler,
 * and no profiler by name or command line, for whoever kills or stops all of these (pkill -f) must
 * not hit what looks after them. Signals are blocked and the session is its own, as a Ctrl-C in the
 * profiler's terminal is not meant for it. All descriptors are closed, or a reader of the
 * profiler's output would wait for one more writer; but for fd[0] to fd[nr - 1], which are told
 * anew: what was standard input, output or error is elsewhere then. These three are /dev/null.
 */
void uni_helper_begin(const char *name, int *fd, size_t nr);

#endif
