/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/door.h"
#include "base/privilege.h"
#include "base/strbuf.h"

#define DEPTH_MAX 8

static void empty_folder(int dir_fd, unsigned depth)
{
	DIR *d = fdopendir(dir_fd);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		int fd;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			unlinkat(dirfd(d), e->d_name, 0) == 0 || depth == DEPTH_MAX)
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			empty_folder(fd, depth + 1);
		(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d != NULL)
		(void)closedir(d);
	else
		(void)close(dir_fd);
}

/* The keeper: waits until the other end of the pipe is closed everywhere. The folder may be another
 * user's. */
static _Noreturn void keep_until_closed(const char *path, int watch)
{
	const uint64_t caps = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER;
	sigset_t all;
	int fd;
	char c;

	/* The process that cleans up ignores signals for the whole group. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setpgid(0, 0); /* SIGKILL, too */
	(void)prctl(PR_SET_NAME, "uni-keeper");
	if (!uni_privilege_is_dropped())
		(void)uni_caps_keep(caps, false, NULL);
	/* Readers of our outputs must not wait for this process. */
	for (int i = 0; i < 3; i++)
		(void)close(i);
	while (read(watch, &c, 1) < 0 && errno == EINTR)
		;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		empty_folder(fd, 0);
	(void)rmdir(path);
	_exit(0);
}

static int begin_keeper(struct uni_scratch *s, struct uni_err *err)
{
	int pipe_fd[2];

	if (pipe2(pipe_fd, O_CLOEXEC) != 0)
		return uni_err_set(err, UNI_EIO, "cannot make a pipe: %s", strerror(errno));
	s->keeper = fork();
	if (s->keeper == 0) {
		(void)close(pipe_fd[1]);
		keep_until_closed(s->path, pipe_fd[0]);
	}
	(void)close(pipe_fd[0]);
	s->alive = pipe_fd[1];
	if (s->keeper > 0)
		return 0;
	(void)close(pipe_fd[1]);
	return uni_err_set(err, UNI_EIO, "cannot fork: %s", strerror(errno));
}

static int make_below(const char *where, struct uni_scratch *ret, struct uni_err *err)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_addf(&b, "%s/uniscope-XXXXXX", where);
	free(ret->path);
	ret->path = uni_strbuf_detach(&b);
	if (ret->path == NULL)
		return uni_err_nomem(err);
	return mkdtemp(ret->path) != NULL
		       ? 0
		       : uni_err_set(err, errno == EACCES ? UNI_EPERM : UNI_EIO,
				 "cannot make the folder %s: %s", ret->path, strerror(errno));
}

int uni_scratch_make(struct uni_scratch *ret, struct uni_err *err)
{
	const char *where = getenv("TMPDIR");
	int rc;

	*ret = (struct uni_scratch){ 0 };
	rc = make_below(where != NULL && where[0] == '/' ? where : "/tmp", ret, err);
	/* Root's own folder for temporary files is not for a process without root's rights. */
	if (rc == -UNI_EPERM && uni_door_is_used()) {
		*err = (struct uni_err){ 0 };
		rc = make_below("/tmp", ret, err);
	}
	if (rc == 0) {
		rc = begin_keeper(ret, err);
		if (rc != 0)
			(void)rmdir(ret->path);
	}
	if (rc != 0) {
		free(ret->path);
		ret->path = NULL;
	}
	return rc;
}

void uni_scratch_remove(struct uni_scratch *s)
{
	if (s->path == NULL)
		return;
	(void)close(s->alive);
	while (waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	free(s->path);
	s->path = NULL;
}

int uni_scratch_keep(struct uni_scratch *ret, const char *path, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_scratch){ .path = strdup(path) };
	if (ret->path == NULL)
		return uni_err_nomem(err);
	rc = begin_keeper(ret, err);
	if (rc != 0) {
		free(ret->path);
		ret->path = NULL;
	}
	return rc;
}

void uni_scratch_leave(struct uni_scratch *s)
{
	if (s->path == NULL)
		return;
	(void)kill(s->keeper, SIGKILL);
	uni_scratch_remove(s);
}
