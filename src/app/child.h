/* SPDX-License-Identifier: BSD-2-Clause */
/* A VMM that `run` starts: a child that writes to the console's file, and ends with us. */
#ifndef UNI_APP_CHILD_H
#define UNI_APP_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "app/child_rights.h"

/* Its words; zeroed at first. A word that could not be added sets `failed`. */
struct uni_child_args {
	UNI_VEC(char *) v;
	bool failed;
	struct uni_child_rights rights; /* that it keeps */
};

void uni_child_add(struct uni_child_args *a, const char *word);
void uni_child_args_deinit(struct uni_child_args *a);
/* As a line for a shell. */
void uni_child_quote(const struct uni_child_args *a, struct uni_strbuf *ret);

/* Makes the file for what the guest and its VMM write. */
int uni_child_console(const char *path, int *fd_ret, struct uni_err *err);
/* Its pid, once it is that program. `what` is its name in messages. One that is missing ends with
 * status 127. */
int uni_child_start(
	struct uni_child_args *a, int console, const char *what, pid_t *ret, struct uni_err *err);

/* Has it ended by itself? Then *pid is 0, and *status_ret its wait status. */
bool uni_child_ended(pid_t *pid, int *status_ret);
/* The same; if it is about to end, waits for that: a VM is gone before wait() returns. */
bool uni_child_ending(pid_t *pid, int *status_ret);

/* Told by the process that started a child to another one, which cannot wait for it. */
struct uni_child_fate {
	_Atomic bool ended;
	int status; /* its wait status then */
};
void uni_child_tell(pid_t *pid, struct uni_child_fate *fate);
/* As uni_child_ended() and uni_child_ending(), in either process. fate: NULL in the first one. */
bool uni_child_has_ended(const struct uni_child_fate *fate, pid_t *pid, int *status_ret);
bool uni_child_is_ending(const struct uni_child_fate *fate, pid_t *pid, int *status_ret);
void uni_child_end(pid_t *pid, const char *what); /* at once; idempotent */

/* The last line of the console, which has the reason for an early end; "nothing" if there is none.
 */
/* The first line of the newest ones that begins so. */
bool uni_child_line(const char *console, const char *begin, char *ret, size_t cap);
void uni_child_last_words(const char *console, char *ret, size_t cap);
bool uni_child_has_said(const char *console, const char *words);

#endif
