/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats that are folders: made under another name, so that a folder of that name is whole. */
#ifndef UNI_FORMAT_FOLDER_H
#define UNI_FORMAT_FOLDER_H

#include "base/err.h"
#include "base/sink.h"

/*
 * Makes the folder and has it filled by fill(arg, its descriptor); what fails leaves nothing.
 * A path that is there already is refused.
 */
int uni_export_folder(const char *path, int (*fill)(void *arg, int dir_fd, struct uni_err *err),
	void *arg, struct uni_err *err);

/* Makes a new file in it, called `path`/name in messages; close *fd_ret after the sink. */
int uni_export_folder_file(int dir_fd, const char *path, const char *name, int *fd_ret,
	struct uni_sink **ret, struct uni_err *err);

#endif
