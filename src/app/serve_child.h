/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording in a process of its own: this program again, as `record` or `trace record`. Even if
 * its server dies, it detaches from the guest as usual, and the session is complete.
 *
 * The server gives up its rights, and the recorder needs them. A further child, the starter, keeps
 * them. It starts one of two command lines, whose output has a number, and ends it. It reads
 * nothing but such requests.
 */
#ifndef UNI_APP_SERVE_CHILD_H
#define UNI_APP_SERVE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum uni_serve_job { UNI_SERVE_SAMPLES, UNI_SERVE_CALLS, UNI_SERVE_JOBS };

struct uni_serve_jobs {
	/* Command lines without the output; [0] of each is not looked at, NULL ends it. */
	const char *const *argv[UNI_SERVE_JOBS];
	const char *output; /* the first session; NULL: in `folder` */
	const char *folder;
};

/* The path of session `number`, from 1 on: `output`, and the same with a number from the second on.
 * NULL: out of memory. */
char *uni_serve_path(const struct uni_serve_jobs *jobs, unsigned number);

struct uni_serve_child {
	int starter;	/* the way to it */
	bool runs;	/* a recorder */
	int fd;		/* its messages, while it runs */
	char said[640]; /* its last line */
	size_t len;
	bool asked; /* to end */
};

/* In such a process, first of all: it ends with the one that started it, also when it has
 * capabilities of its file. Does nothing in any other. */
void uni_serve_child_begin(void);
/* The starter. Call it before there are threads, and before rights are given up. It ends when
 * c->starter is closed. */
int uni_serve_child_open(
	struct uni_serve_child *c, const struct uni_serve_jobs *jobs, struct uni_err *err);
void uni_serve_child_close(struct uni_serve_child *c); /* does nothing if it is zeroed */
int uni_serve_child_start(
	struct uni_serve_child *c, enum uni_serve_job job, unsigned number, struct uni_err *err);
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
