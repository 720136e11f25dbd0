/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/opener.h"
#include "base/side.h"
#include "base/stop.h"

static int observer = -1; /* the worker's way to it */
/* One thread at a time. A slow opener (base/door.h) is no reason to hold a guest for longer. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static int observed;	   /* the process that may be looked into */
static int memory_fd = -1; /* of that process */
static bool reads_itself;

int uni_observer_begin(int pid, bool stops, uint64_t caps, struct uni_err *err)
{
	struct uni_opener_job job = { .kind = stops ? UNI_OPENER_STOPPED : UNI_OPENER_PROCESS,
		.caps = caps,
		.pid = pid,
		.rules = -1 };
	char path[32];
	int rc;

	observed = pid;
	rc = uni_side_begin(&job, &observer, err);
	if (rc != 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory_fd = uni_observer_open(path, O_RDONLY);
	return 0;
}

void uni_observer_leave_memory(void)
{
	reads_itself = true;
	(void)close(memory_fd);
	memory_fd = -1;
}

void uni_observer_leave(void)
{
	observer = -1;
}

bool uni_observer_is_used(void)
{
	return observer >= 0;
}

int uni_observer_pid(void)
{
	return observer >= 0 ? observed : 0;
}

bool uni_observer_has(const char *path)
{
	return observer >= 0 && uni_observe_may_name(observed, path);
}

bool uni_observer_lists(int dir)
{
	return observer >= 0 && dir >= 0 && uni_observe_is_of_proc(dir);
}

/* The result, or -1 and errno. */
static int ask_observer(
	struct uni_observe_request *q, int dir, const char *path, struct uni_observe_reply *reply)
{
	const struct uni_side_talk t = { dir, q, sizeof(*q), reply, sizeof(*reply), &asking };
	int64_t result;
	int fd;

	if (strlen(path) >= sizeof(q->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(q->path, sizeof(q->path), "%s", path);
	result = uni_side_ask(observer, &t, &fd);
	return result >= 0 && uni_observe_gives_fd(q->op) ? fd : (int)result;
}

int uni_observer_open(const char *path, int flags)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_OPEN };
	struct uni_observe_reply reply = { 0 };
	int fd;

	if ((flags & O_ACCMODE) != O_RDONLY) {
		errno = EACCES;
		return -1;
	}
	fd = ask_observer(&q, -1, path, &reply);
	if (fd >= 0 && (flags & O_NONBLOCK) == 0)
		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int uni_observer_stat(const char *path, struct stat *ret)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_STAT };
	struct uni_observe_reply reply = { 0 };
	int r = ask_observer(&q, -1, path, &reply);

	if (r == 0)
		*ret = reply.st;
	return r;
}

int uni_observer_access(const char *path)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_ACCESS };
	struct uni_observe_reply reply = { 0 };

	return ask_observer(&q, -1, path, &reply);
}

static size_t take_text(const struct uni_observe_reply *reply, char *buf, size_t cap)
{
	size_t len = uni_min(uni_min((size_t)reply->result, sizeof(reply->text)), cap);

	memcpy(buf, reply->text, len);
	return len;
}

ssize_t uni_observer_readlink(int dir, const char *path, char *buf, size_t cap)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_READLINK };
	struct uni_observe_reply reply = { 0 };

	if (ask_observer(&q, dir == AT_FDCWD ? -1 : dir, path, &reply) < 0)
		return -1;
	return (ssize_t)take_text(&reply, buf, cap);
}

int uni_observer_read(const char *path, char *buf, size_t cap)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_READ };
	struct uni_observe_reply reply = { 0 };
	size_t len;

	if (ask_observer(&q, -1, path, &reply) < 0)
		return -errno;
	len = take_text(&reply, buf, cap - 1);
	buf[len] = '\0';
	return (int)len;
}

int uni_observer_perf_event(struct perf_event_attr *attr, int tid)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_EVENT, .tid = tid, .attr = *attr };
	struct uni_observe_reply reply = { 0 };

	if (observer < 0)
		return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return ask_observer(&q, -1, "", &reply);
}

int uni_observer_map_create(const struct uni_observer_map *map)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_MAP, .map = *map };
	struct uni_observe_reply reply = { 0 };

	return observer < 0 ? uni_observe_make_map(map) : ask_observer(&q, -1, "", &reply);
}

int uni_observer_stop(struct uni_thread_stop *s, void *regs, size_t size)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_STOP, .tid = s->tid };
	struct uni_observe_reply reply = { 0 };
	int n;

	if (observer < 0) {
		n = uni_thread_stop_begin(s);
		n = n == 0 && regs != NULL ? uni_thread_stop_regs(s, regs, size) : n;
	} else {
		n = ask_observer(&q, -1, "", &reply);
		s->held = n >= 0;
		s->pending = n < 0 && errno == EAGAIN;
		if (n >= 0 && regs != NULL)
			n = (int)take_text(&reply, regs, size);
	}
	if (n >= 0 && regs != NULL && (size_t)n != size)
		errno = EAGAIN;
	return n < 0 || (regs != NULL && (size_t)n != size) ? -1 : 0;
}

void uni_observer_let_go(struct uni_thread_stop *s)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_LET_GO, .tid = s->tid };
	struct uni_observe_reply reply = { 0 };

	if (observer < 0) {
		uni_thread_stop_end(s);
		return;
	}
	(void)ask_observer(&q, -1, "", &reply);
	s->held = s->pending = false;
}

bool uni_observer_hurry(bool on)
{
	struct uni_observe_request q = {
		.op = UNI_OBSERVE_PRIORITY, .flags = on, .tid = (int)gettid()
	};
	struct uni_observe_reply reply = { 0 };

	return ask_observer(&q, -1, "", &reply) == 0;
}

/* Up to the first byte that cannot be read; sets errno if it is the first of all. */
static ssize_t copy_from_file(
	const struct iovec *local, size_t nr_local, const struct iovec *remote, size_t nr_remote)
{
	size_t all = 0, at = 0, i = 0;

	for (size_t k = 0; k < nr_remote; k++) {
		uint64_t from = (uint64_t)(uintptr_t)remote[k].iov_base;
		size_t done = 0;

		while (done < remote[k].iov_len && i < nr_local) {
			size_t len = uni_min(remote[k].iov_len - done, local[i].iov_len - at);
			ssize_t n = pread(memory_fd, (char *)local[i].iov_base + at, len,
				(off_t)(from + done));

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0 && all == 0) {
				errno = n == 0 ? ESRCH : errno == EIO ? EFAULT : errno;
				return -1;
			}
			if (n <= 0)
				return (ssize_t)all;
			all += (size_t)n;
			done += (size_t)n;
			at += (size_t)n;
			if (at == local[i].iov_len) {
				at = 0;
				i++;
			}
		}
	}
	return (ssize_t)all;
}

ssize_t uni_observer_copy(int pid, const struct iovec *local, size_t nr_local,
	const struct iovec *remote, size_t nr_remote)
{
	if (observer >= 0 && pid == observed && !reads_itself)
		return copy_from_file(local, nr_local, remote, nr_remote);
	return process_vm_readv(pid, local, nr_local, remote, nr_remote, 0);
}
