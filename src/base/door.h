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
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Starts the opener, which ends with this process. It keeps these capabilities at most
 * (base/caps.h), and these rules hold for it (base/confine.h). /dev/stdout and /dev/fd/N are the
 * same files there. Call it before there are threads.
 */
int uni_door_begin(uint64_t caps, int rules, struct uni_err *err);
bool uni_door_is_used(void); /* this process is a worker of root's */
/* In a child whose other descriptors are closed: it opens files by itself. */
void uni_door_leave(void);

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
