/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/catch.h"
#include "base/checked.h"
#include "base/opener.h"
#include "base/side.h"
#include "base/stop.h"

/* One child for each process that is watched. */
static struct observer {
	int fd;	       /* the worker's way to it */
	int pid;       /* the process that may be looked into */
	int memory_fd; /* of that process */
	bool stops;
	uint64_t caps; /* at most */
	/* One thread at a time. A slow opener (base/door.h) is no reason to hold a guest for
	 * longer. */
	pthread_mutex_t asking;
} observers[UNI_OBSERVER_MAX];
static size_t nr_observers;
static bool reads_itself;

int uni_observer_begin(int pid, bool stops, bool writes, uint64_t caps, struct uni_err *err)
{
	struct uni_opener_job job = { .kind = stops ? UNI_OPENER_STOPPED : UNI_OPENER_PROCESS,
		.caps = caps,
		.pid = pid,
		.rules = -1 };
	struct observer *o = &observers[nr_observers];
	int rc, memory_fd = -1;
	char path[32];

	if (nr_observers == UNI_OBSERVER_MAX)
		return uni_err_set(err, UNI_ENOTSUP, "at most %d processes are watched at once",
			UNI_OBSERVER_MAX);
	*o = (struct observer){ .pid = pid, .caps = caps, .stops = stops };
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	if (writes)
		memory_fd = open(path, O_RDWR | O_CLOEXEC);
	rc = uni_side_begin(&job, &o->fd, err);
	if (rc != 0) {
		(void)close(memory_fd);
		return rc;
	}
	(void)pthread_mutex_init(&o->asking, NULL);
	nr_observers++;
	o->memory_fd = memory_fd >= 0 ? memory_fd : uni_observer_open(path, O_RDONLY);
	return 0;
}

void uni_observer_leave_memory(void)
{
	reads_itself = true;
	for (size_t i = 0; i < nr_observers; i++) {
		(void)close(observers[i].memory_fd);
		observers[i].memory_fd = -1;
	}
}

void uni_observer_leave(void)
{
	nr_observers = 0;
}

bool uni_observer_is_used(void)
{
	return nr_observers != 0;
}

static struct observer *find_observer(int pid)
{
	for (size_t i = 0; i < nr_observers; i++) {
		if (observers[i].pid == pid)
			return &observers[i];
	}
	return NULL;
}

/* Things of no process are asked of the one with most rights. */
static struct observer *first_observer(void)
{
	struct observer *r = observers;

	for (size_t i = 1; i < nr_observers; i++)
		r = (r->caps & ~observers[i].caps) == 0 ? &observers[i] : r;
	return r;
}

static struct observer *observer_of(const char *path)
{
	int pid = strncmp(path, "/proc/", 6) == 0 ? (int)strtol(path + 6, NULL, 10) : 0;
	struct observer *o = pid != 0 ? find_observer(pid) : first_observer();

	return nr_observers != 0 && o != NULL && uni_observe_may_name(o->pid, path) ? o : NULL;
}

static struct observer *observer_of_thread(int tid)
{
	char path[64];

	for (size_t i = 0; i + 1 < nr_observers; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", observers[i].pid, tid);
		if (access(path, F_OK) == 0)
			return &observers[i];
	}
	return &observers[nr_observers - 1];
}

bool uni_observer_has(const char *path)
{
	return observer_of(path) != NULL;
}

/* The name of an open folder of /proc, with that of a file in it. */
static bool name_below(int dir, const char *name, char *buf, size_t cap)
{
	char link[32];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	len = dir >= 0 && uni_observe_is_of_proc(dir) ? readlink(link, buf, cap) : -1;
	if (len < 0 || (size_t)len + 1 + strlen(name) >= cap)
		return false;
	(void)snprintf(buf + len, cap - (size_t)len, "/%s", name);
	return true;
}

bool uni_observer_lists(int dir)
{
	char path[PATH_MAX];

	return nr_observers != 0 && name_below(dir, "", path, sizeof(path)) &&
	       uni_observer_has(path);
}

/* The result, or -1 and errno. */
static int ask_child(struct observer *o, struct uni_observe_request *q, const char *path,
	struct uni_observe_reply *reply)
{
	const struct uni_side_talk t = { -1, q, sizeof(*q), reply, sizeof(*reply), &o->asking };
	int64_t result;
	int fd;

	if (strlen(path) >= sizeof(q->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(q->path, sizeof(q->path), "%s", path);
	result = uni_side_ask(o->fd, &t, &fd);
	return result >= 0 && uni_observe_gives_fd(q->op) ? fd : (int)result;
}

static int ask_path(
	struct uni_observe_request *q, const char *path, struct uni_observe_reply *reply)
{
	struct observer *o = observer_of(path);

	if (o != NULL)
		return ask_child(o, q, path, reply);
	errno = EACCES;
	return -1;
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
	fd = ask_path(&q, path, &reply);
	if (fd >= 0 && (flags & O_NONBLOCK) == 0)
		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int uni_observer_stat(const char *path, struct stat *ret)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_STAT };
	struct uni_observe_reply reply = { 0 };
	int r = ask_path(&q, path, &reply);

	if (r == 0)
		*ret = reply.st;
	return r;
}

int uni_observer_access(const char *path)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_ACCESS };
	struct uni_observe_reply reply = { 0 };

	return ask_path(&q, path, &reply);
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

	char below[PATH_MAX];

	if (dir != AT_FDCWD && !name_below(dir, path, below, sizeof(below))) {
		errno = EACCES;
		return -1;
	}
	if (ask_path(&q, dir != AT_FDCWD ? below : path, &reply) < 0)
		return -1;
	return (ssize_t)take_text(&reply, buf, cap);
}

int uni_observer_read(const char *path, char *buf, size_t cap)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_READ };
	struct uni_observe_reply reply = { 0 };
	size_t len;

	if (ask_path(&q, path, &reply) < 0)
		return -errno;
	len = take_text(&reply, buf, cap - 1);
	buf[len] = '\0';
	return (int)len;
}

int uni_observer_perf_event(struct perf_event_attr *attr, int tid)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_EVENT, .tid = tid, .attr = *attr };
	struct uni_observe_reply reply = { 0 };

	if (nr_observers == 0)
		return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return ask_child(observer_of_thread(tid), &q, "", &reply);
}

int uni_observer_map_create(const struct uni_observer_map *map)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_MAP, .map = *map };
	struct uni_observe_reply reply = { 0 };

	return nr_observers == 0 ? uni_observe_make_map(map)
				 : ask_child(first_observer(), &q, "", &reply);
}

int uni_observer_stop(struct uni_thread_stop *s, void *regs, size_t size)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_STOP, .tid = s->tid, .flags = s->firm };
	struct uni_observe_reply reply = { 0 };
	int n;

	if (nr_observers == 0) {
		n = uni_thread_stop_begin(s);
		n = n == 0 && regs != NULL ? uni_thread_stop_regs(s, regs, size) : n;
	} else {
		n = ask_child(observer_of_thread(s->tid), &q, "", &reply);
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

	if (nr_observers == 0) {
		uni_thread_stop_end(s);
		return;
	}
	(void)ask_child(observer_of_thread(s->tid), &q, "", &reply);
	s->held = s->pending = false;
}

int uni_observer_catch(int pid, struct uni_thread_stop *s, int cpu, struct uni_catch *ret)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_CATCH, .tid = s->tid, .flags = cpu };
	struct uni_observe_reply reply = { 0 };
	int rc;

	if (nr_observers == 0)
		return uni_catch_thread(pid, s, cpu, ret);
	rc = ask_child(observer_of_thread(s->tid), &q, "", &reply);
	memcpy(ret, reply.text, sizeof(*ret));
	ret->stack_size = uni_min(ret->stack_size, UNI_CATCH_STACK);
	return rc;
}

int uni_observer_stop_there(int pid, struct uni_thread_stop *s, int cpu, struct uni_there *ret)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_THERE, .tid = s->tid, .flags = cpu };
	struct uni_observe_reply reply = { 0 };
	int rc;

	if (nr_observers == 0)
		return uni_catch_there(pid, s, cpu, ret);
	rc = ask_child(observer_of_thread(s->tid), &q, "", &reply);
	memcpy(ret, reply.text, sizeof(*ret));
	s->held = rc == 0 && ret->what <= UNI_THERE_WAITED;
	s->pending = rc != 0 && errno == EAGAIN;
	return rc;
}

bool uni_observer_hurry(bool on)
{
	struct uni_observe_request q = {
		.op = UNI_OBSERVE_PRIORITY, .flags = on, .tid = (int)gettid()
	};
	struct uni_observe_reply reply = { 0 };

	bool done = false;

	for (size_t i = 0; i < nr_observers; i++)
		done = (observers[i].stops && ask_child(&observers[i], &q, "", &reply) == 0) ||
		       done;
	return done;
}

/* Up to the first byte that cannot be read; sets errno if it is the first of all. */
static ssize_t copy_from_file(int memory_fd, const struct iovec *local, size_t nr_local,
	const struct iovec *remote, size_t nr_remote)
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
	const struct observer *o = reads_itself ? NULL : find_observer(pid);

	if (o != NULL)
		return copy_from_file(o->memory_fd, local, nr_local, remote, nr_remote);
	return process_vm_readv(pid, local, nr_local, remote, nr_remote, 0);
}

int uni_observer_open_writable(int pid)
{
	const struct observer *o = find_observer(pid);
	char path[32];

	if (o != NULL && !reads_itself)
		return fcntl(o->memory_fd, F_DUPFD_CLOEXEC, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDWR | O_CLOEXEC);
}
