/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LD_PRELOAD: a process that was taken over. As soon as it has a filter, and no rights:
 * PLANTED_CALL=N: its next read() makes system call N, with arguments of 0; not in its children.
 * PLANTED_LIMITED=1: that is done while it has rights, and it says what came of it.
 * PLANTED_FILE=1: whoever opens a file called "trigger" makes "elsewhere/made" in its folder
 * instead. PLANTED_OPENER: this is linked into uniscope-opener, and does so always.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_limited(void)
{
	return getenv("PLANTED_LIMITED") != NULL;
}

static bool is_asked(void)
{
#ifdef PLANTED_OPENER
	return true;
#else
	return getenv("PLANTED_FILE") != NULL;
#endif
}

static int is_confined(void)
{
	char text[4096];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY);
	long n = syscall(SYS_read, fd, text, sizeof(text) - 1);

	(void)syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "\nSeccomp:\t2") != NULL &&
	       (is_asked() ||
		       (strstr(text, "\nCapPrm:\t0000000000000000") == NULL) == is_limited());
}

static int is_child(void)
{
	char comm[32] = "";
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY);

	(void)syscall(SYS_read, fd, comm, sizeof(comm) - 1);
	(void)syscall(SYS_close, fd);
	return strchr(comm, '-') != NULL;
}

ssize_t read(int fd, void *buf, size_t size)
{
	const char *nr = getenv("PLANTED_CALL");

	if (nr != NULL && is_confined() && !is_child()) {
		long r = syscall(strtol(nr, NULL, 10), 0, 0, 0, 0, 0, 0);

		if (is_limited())
			(void)fprintf(stderr, "planted: %s\n", r == 0 ? "done" : strerror(errno));
	}
	return syscall(SYS_read, fd, buf, size);
}

int openat(int dir, const char *path, int flags, ...)
{
	const char *name = strrchr(path, '/');
	int folder = name != NULL ? (int)(name + 1 - path) : 0;
	char made[PATH_MAX];
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	(void)snprintf(made, sizeof(made), "%.*selsewhere/made", folder, path);
	if (is_asked() && is_confined() && strcmp(path + folder, "trigger") == 0)
		return (int)syscall(SYS_openat, dir, made, O_RDWR | O_CREAT, 0600);
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}
