/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files by name, also for a process that gave up root's rights (base/privilege.h). Such a process,
 * the worker, asks a child for them: the opener, which kept the right to use its users' files. The
 * opener is small and reads no file. base/confine.h limits what it writes.
 *
 * The functions are the system calls of the same name, with their results and errno. Without an
 * opener, they are nothing else. The worker uses by itself what it made itself (a folder
 * for temporary files). The observer is asked for files of a process that is watched.
 */
#ifndef UNI_BASE_DOOR_H
#define UNI_BASE_DOOR_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Forks the opener. prepare() is called in it, and gives up what the opener needs no more; if that
 * fails, the opener ends. The opener ends with this process. keeps_open: /dev/stdout is the same
 * file there. Call it before there are threads.
 */
int uni_door_begin(int (*prepare)(struct uni_err *err), bool keeps_open, struct uni_err *err);
bool uni_door_is_used(void); /* this process is a worker of root's */

int uni_door_openat(int dir, const char *path, int flags, mode_t mode);
DIR *uni_door_opendir(const char *path);
int uni_door_fstatat(int dir, const char *path, struct stat *ret, int flags);
int uni_door_access(const char *path, int mode);
ssize_t uni_door_readlinkat(int dir, const char *path, char *buf, size_t cap);
int uni_door_mkdirat(int dir, const char *path, mode_t mode);
int uni_door_unlinkat(int dir, const char *path, int flags);
int uni_door_renameat(int dir, const char *from, const char *to); /* within one folder */
int uni_door_fchmod(int fd, mode_t mode);

#endif
