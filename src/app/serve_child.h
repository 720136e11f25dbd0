/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording in a process of its own: this program again, as `record` or `trace record`. Whatever
 * becomes of who serves it, the guest is let go as it always is, and the session is whole.
 */
#ifndef UNI_APP_SERVE_CHILD_H
#define UNI_APP_SERVE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct uni_serve_child {
	pid_t pid;	/* 0: none runs */
	int fd;		/* what it says, while it runs */
	char said[640]; /* its last line */
	size_t len;
	bool asked; /* to end */
};

/* In such a process, first of all: it ends with the one that started it, also when it has
 * capabilities of its file. Does nothing in any other. */
void uni_serve_child_begin(void);
/* argv[0] is not looked at; NULL ends it. */
int uni_serve_child_start(struct uni_serve_child *c, const char *const *argv, struct uni_err *err);
/* As Ctrl-C does. */
void uni_serve_child_ask_to_end(struct uni_serve_child *c);
enum uni_serve_child_end {
	UNI_CHILD_RUNS, /* or none does */
	UNI_CHILD_GOOD,
	UNI_CHILD_FAILED,
	/* Asked to end when it had not begun: until then the signal does what it does by itself. */
	UNI_CHILD_NEVER_BEGAN,
};
/* Takes what it said. */
enum uni_serve_child_end uni_serve_child_look(struct uni_serve_child *c);
/* Ends it and waits for that. */
enum uni_serve_child_end uni_serve_child_end(struct uni_serve_child *c);

#endif
