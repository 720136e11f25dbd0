/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FILE of commands that read: a session's folder, a session in one stream (recording/bundle.h),
 * or any other file; "-" is standard input.
 */
#ifndef UNI_APP_INPUT_H
#define UNI_APP_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "app/scratch.h"

struct uni_input {
	const char *folder; /* a folder, which need not be a session; NULL: no folder */
	char *data;	    /* else all of the file */
	size_t size;
	bool part; /* data is only the beginning, fd has the rest: uni_input_rest() */
	int fd;
	struct uni_scratch scratch; /* the folder, if it came as a stream */
};

/* A file that is no session may have max bytes. Close it whenever this returned 0. */
int uni_input_open(const char *name, size_t max, struct uni_input *ret, struct uni_err *err);
/* The same, but of a large file only the beginning is read. */
int uni_input_open_part(const char *name, size_t max, struct uni_input *ret, struct uni_err *err);
/* The whole of it, if it is not there yet. */
int uni_input_rest(struct uni_input *in, const char *name, size_t max, struct uni_err *err);
/* For a caller that opens a file by its name more than once. *path_ret is `name`, or for a stream
 * the path of a copy that exists until close. */
int uni_input_path(
	const char *name, struct uni_input *ret, const char **path_ret, struct uni_err *err);
void uni_input_close(struct uni_input *in); /* of a zeroed one nothing */

/* The same for input that must be a session: -UNI_EFORMAT if it is not. */
int uni_input_session(const char *name, struct uni_input *ret, struct uni_err *err);

#endif
