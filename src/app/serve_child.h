/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording in a process of its own: this program again, as `record` or `trace record`. Even if
 * its server dies, it detaches from the guest as usual, and the session is complete. */
#ifndef UNI_APP_SERVE_CHILD_H
#define UNI_APP_SERVE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct uni_serve_child {
	pid_t pid;	/* 0: none runs */
	int fd;		/* its messages, while it runs */
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
	/* It was asked to end before it had begun: until then the signal has its default action. */
	UNI_CHILD_NEVER_BEGAN,
};
/* Takes its messages. */
enum uni_serve_child_end uni_serve_child_look(struct uni_serve_child *c);
/* Ends it and waits for that. */
enum uni_serve_child_end uni_serve_child_end(struct uni_serve_child *c);

#endif
