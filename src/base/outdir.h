/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of an output, opened once. Files are made, renamed and removed by name below its
 * descriptor. So a user who renames folders meanwhile cannot lead the output elsewhere.
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
	bool magic; /* a link of /proc that has no path: a pipe, say */
};

/*
 * Finds the folder of `path` (below dir_fd, or AT_FDCWD), name by name. Links are followed; the
 * last name only with `follow`. A link in a folder that somebody else can change is refused with
 * -UNI_EPERM. For a privileged process, that is every folder that neither root nor the caller owns,
 * or that a group or everybody may write to.
 */
int uni_outdir_open(
	int dir_fd, const char *path, bool follow, struct uni_outdir *ret, struct uni_err *err);
void uni_outdir_close(struct uni_outdir *d); /* does nothing if d is zeroed */

/* Can another user than root and the caller change the contents of the folder? */
bool uni_outdir_is_open(const struct stat *folder);

/* "NAME.tmp-RANDOM" */
int uni_outdir_temp(const char *name, struct uni_strbuf *ret, struct uni_err *err);

/* Makes the folder `name` below fd, for its owner only. Returns its descriptor, or -errno. */
int uni_outdir_make(int fd, const char *name);
/* The same by path. -UNI_EBUSY: it exists already. */
int uni_outdir_mkdir(const char *path, int *fd_ret, struct uni_err *err);

#endif
