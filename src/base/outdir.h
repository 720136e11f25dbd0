/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of an output, opened once: what is made, renamed or removed is named below its
 * descriptor, so that nobody who renames folders meanwhile can lead it elsewhere.
 */
#ifndef UNI_BASE_OUTDIR_H
#define UNI_BASE_OUTDIR_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/strbuf.h"

struct uni_outdir {
	int fd;	    /* O_PATH */
	char *name; /* the last name of the path, below fd */
	bool magic; /* it is one of /proc's links that lead to no path: a pipe, say */
};

/*
 * Finds the folder of `path` (below dir_fd, or AT_FDCWD) one name after the other. A link is
 * followed, the last name with `follow` only; but no link in a folder that somebody else can
 * change: -UNI_EPERM. With privileges that is every folder that neither root nor the caller owns,
 * or that a group or all may write to.
 */
int uni_outdir_open(
	int dir_fd, const char *path, bool follow, struct uni_outdir *ret, struct uni_err *err);
void uni_outdir_close(struct uni_outdir *d); /* of a zeroed one nothing */

/* Can somebody but root and the caller change what is in it? */
bool uni_outdir_is_open(const struct stat *folder);

/* "NAME.tmp-RANDOM" */
int uni_outdir_temp(const char *name, struct uni_strbuf *ret, struct uni_err *err);

/* Makes the folder `name` below fd, for its owner only: its descriptor, or -errno. */
int uni_outdir_make(int fd, const char *name);
/* The same by its path. -UNI_EBUSY: it is there already. */
int uni_outdir_mkdir(const char *path, int *fd_ret, struct uni_err *err);

#endif
