/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/side.h"

static int do_request(const struct uni_door_request *q, int fd, struct uni_door_reply *reply)
{
	int dir = fd >= 0 ? fd : AT_FDCWD;

	switch ((enum uni_door_op)q->op) {
	case UNI_DOOR_OPEN:
		return openat(dir, q->path, q->flags | O_CLOEXEC, q->mode);
	case UNI_DOOR_STAT:
		return fstatat(dir, q->path, &reply->st, q->flags);
	case UNI_DOOR_ACCESS:
		return faccessat(dir, q->path, (int)q->mode, 0);
	case UNI_DOOR_READLINK:
		return (int)readlinkat(dir, q->path, reply->text, sizeof(reply->text));
	case UNI_DOOR_MKDIR:
		return mkdirat(dir, q->path, q->mode);
	case UNI_DOOR_UNLINK:
		return unlinkat(dir, q->path, q->flags);
	case UNI_DOOR_RENAME:
		errno = EBADF;
		return fd >= 0 ? renameat(fd, q->path, fd, q->to) : -1;
	case UNI_DOOR_CHMOD:
		return fchmod(fd, q->mode & 0777);
	}
	errno = EINVAL;
	return -1;
}

void uni_door_serve(int worker)
{
	static struct uni_door_request q;
	static struct uni_door_reply reply;
	_cleanup_close_ int fd = -1;

	while (uni_side_receive(worker, &q, sizeof(q), &fd)) {
		bool opened;

		q.path[sizeof(q.path) - 1] = q.to[sizeof(q.to) - 1] = '\0';
		memset(&reply, 0, sizeof(reply));
		reply.result = do_request(&q, fd, &reply);
		if (reply.result < 0)
			reply.result = -errno;
		if (fd >= 0)
			(void)close(fd);
		opened = q.op == UNI_DOOR_OPEN && reply.result >= 0;
		fd = opened ? (int)reply.result : -1;
		if (!uni_side_send(worker, &reply, sizeof(reply), fd))
			break;
		if (fd >= 0)
			(void)close(fd);
	}
}

/* The worker sees that the child has ended, and why it was started. */
_Noreturn void uni_opener_run(const struct uni_opener_job *job)
{
	static const enum uni_confined by_kind[] = { UNI_CONFINED_READER, UNI_CONFINED_OBSERVER,
		UNI_CONFINED_STOPPER };
	bool files = job->kind == UNI_OPENER_FILES;
	struct uni_err err = { 0 };

	(void)prctl(PR_SET_NAME, files ? UNI_OPENER_PROGRAM : "uniscope-obs");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_TIMERSLACK, 1UL); /* naps of somebody who holds a guest */
	if (uni_caps_keep(job->caps, false, &err) != 0)
		_exit(1);
	/* Landlock would keep an observer from looking into any process. */
	uni_confine_enter(job->rules);
	if (uni_confine_calls(by_kind[job->kind], &err) != 0 || getppid() != job->parent ||
		write(job->ready, "", 1) != 1)
		_exit(1);
	(void)close(job->ready);
	if (job->rules >= 0)
		(void)close(job->rules);
	if (files)
		uni_door_serve(job->socket);
	else
		uni_observe_serve(job->pid, job->socket);
	_exit(0);
}
