/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/observer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/side.h"

enum op {
	OBSERVE_OPEN,
	OBSERVE_STAT,
	OBSERVE_ACCESS,
	OBSERVE_READLINK,
	OBSERVE_READ,
	OBSERVE_EVENT,
	OBSERVE_MAP,
};

struct request {
	uint32_t op;
	int32_t flags, tid;
	struct uni_observer_map map;
	struct perf_event_attr attr;
	char path[PATH_MAX];
};

struct reply {
	int64_t result; /* or -errno */
	struct stat st;
	char text[UNI_OBSERVER_TEXT];
};

static int observer = -1;  /* the worker's way to it; one thread asks at a time */
static int observed;	   /* the process that may be looked into */
static int memory_fd = -1; /* of that process */

/* --- the observer ----------------------------------------------------------------------------- */

/* The rest after /proc/PID/ of the observed process; NULL: it is another file. */
static const char *below_process(const char *path)
{
	char *end;

	if (strncmp(path, "/proc/", 6) != 0 || !isdigit((unsigned char)path[6]) ||
		strtol(path + 6, &end, 10) != observed)
		return NULL;
	return *end == '/' ? end + 1 : *end == '\0' ? end : NULL;
}

/* Does it lead to the files that the process sees? */
static bool leads_out(const char *rest)
{
	static const char *const links[] = { "root", "cwd", "exe" };
	size_t len = strcspn(rest, "/");

	for (size_t i = 0; i < uni_array_len(links); i++) {
		if (strlen(links[i]) == len && memcmp(rest, links[i], len) == 0)
			return true;
	}
	return false;
}

static bool is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static bool may_name(const char *path)
{
	const char *rest = below_process(path);

	if (rest == NULL)
		return strcmp(path, "/proc/kallsyms") == 0;
	return leads_out(rest) || strstr(path, "..") == NULL;
}

/* Other processes' files in /proc cannot be reached by the process' own root either. */
static int open_file(const char *path)
{
	const char *rest = below_process(path);
	bool out = rest != NULL && leads_out(rest);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || is_of_proc(fd) != out)
		return fd;
	(void)close(fd);
	errno = EACCES;
	return -1;
}

static int read_text(const char *path, char *text, size_t cap)
{
	_cleanup_close_ int fd = open_file(path);
	size_t len = 0;
	ssize_t n = 1;

	while (fd >= 0 && len < cap && (n = read(fd, text + len, cap - len)) > 0)
		len += (size_t)n;
	return fd < 0 || n < 0 ? -1 : (int)len;
}

static int open_event(struct perf_event_attr *attr, int tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", observed, tid);
	if (access(path, F_OK) != 0) {
		errno = ESRCH;
		return -1;
	}
	attr->size = sizeof(*attr);
	if (attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_HARDWARE) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int make_map(const struct uni_observer_map *map)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = map->type;
	attr.key_size = map->key;
	attr.value_size = map->value;
	attr.max_entries = map->nr;
	attr.map_flags = map->flags;
	memcpy(attr.map_name, map->name, sizeof(attr.map_name) - 1);
	if (map->type != BPF_MAP_TYPE_ARRAY && map->type != BPF_MAP_TYPE_HASH &&
		map->type != BPF_MAP_TYPE_RINGBUF) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

/* dir: an open folder of the observed process, or -1. */
static int read_link(int dir, const struct request *q, struct reply *reply)
{
	if (dir < 0)
		return (int)readlink(q->path, reply->text, sizeof(reply->text));
	if (!is_of_proc(dir) || strchr(q->path, '/') != NULL) {
		errno = EACCES;
		return -1;
	}
	return (int)readlinkat(dir, q->path, reply->text, sizeof(reply->text));
}

static int do_request(struct request *q, int dir, struct reply *reply)
{
	if (q->op == OBSERVE_EVENT)
		return open_event(&q->attr, q->tid);
	if (q->op == OBSERVE_MAP)
		return make_map(&q->map);
	errno = EACCES;
	if (!may_name(q->path) && (q->op != OBSERVE_READLINK || dir < 0))
		return -1;
	switch ((enum op)q->op) {
	case OBSERVE_OPEN:
		return open_file(q->path);
	case OBSERVE_STAT:
		return stat(q->path, &reply->st);
	case OBSERVE_ACCESS:
		return access(q->path, F_OK);
	case OBSERVE_READLINK:
		return read_link(dir, q, reply);
	case OBSERVE_READ:
		return read_text(q->path, reply->text, sizeof(reply->text));
	case OBSERVE_EVENT:
	case OBSERVE_MAP:
		break;
	}
	return -1;
}

static bool gives_fd(uint32_t op)
{
	return op == OBSERVE_OPEN || op == OBSERVE_EVENT || op == OBSERVE_MAP;
}

static void serve_requests(int worker)
{
	static struct request q;
	static struct reply reply;
	_cleanup_close_ int fd = -1;

	while (uni_side_receive(worker, &q, sizeof(q), &fd)) {
		int r, dir = fd;

		q.path[sizeof(q.path) - 1] = '\0';
		memset(&reply, 0, sizeof(reply));
		r = do_request(&q, dir, &reply);
		reply.result = r < 0 ? -errno : r;
		if (dir >= 0)
			(void)close(dir);
		fd = gives_fd(q.op) ? r : -1;
		if (!uni_side_send(worker, &reply, sizeof(reply), fd))
			break;
		if (fd >= 0)
			(void)close(fd);
	}
}

/* --- the worker ------------------------------------------------------------------------------- */

int uni_observer_begin(int pid, int (*prepare)(struct uni_err *err), struct uni_err *err)
{
	const struct uni_side_how how = {
		.name = "uniscope-obs", .prepare = prepare, .serve = serve_requests
	};
	char path[32];
	int rc;

	observed = pid;
	rc = uni_side_begin(&how, &observer, err);
	if (rc != 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory_fd = uni_observer_open(path, O_RDONLY);
	return 0;
}

bool uni_observer_is_used(void)
{
	return observer >= 0;
}

bool uni_observer_has(const char *path)
{
	return observer >= 0 && may_name(path);
}

bool uni_observer_lists(int dir)
{
	return observer >= 0 && dir >= 0 && is_of_proc(dir);
}

/* The result, or -1 and errno. */
static int ask_observer(struct request *q, int dir, const char *path, struct reply *reply)
{
	const struct uni_side_talk t = { dir, q, sizeof(*q), reply, sizeof(*reply) };
	int64_t result;
	int fd;

	if (strlen(path) >= sizeof(q->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(q->path, sizeof(q->path), "%s", path);
	result = uni_side_ask(observer, &t, &fd);
	return result >= 0 && gives_fd(q->op) ? fd : (int)result;
}

int uni_observer_open(const char *path, int flags)
{
	struct request q = { .op = OBSERVE_OPEN };
	struct reply reply;
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
	struct request q = { .op = OBSERVE_STAT };
	struct reply reply;
	int r = ask_observer(&q, -1, path, &reply);

	if (r == 0)
		*ret = reply.st;
	return r;
}

int uni_observer_access(const char *path)
{
	struct request q = { .op = OBSERVE_ACCESS };
	struct reply reply;

	return ask_observer(&q, -1, path, &reply);
}

static size_t take_text(const struct reply *reply, char *buf, size_t cap)
{
	size_t len = uni_min(uni_min((size_t)reply->result, sizeof(reply->text)), cap);

	memcpy(buf, reply->text, len);
	return len;
}

ssize_t uni_observer_readlink(int dir, const char *path, char *buf, size_t cap)
{
	struct request q = { .op = OBSERVE_READLINK };
	struct reply reply;

	if (ask_observer(&q, dir == AT_FDCWD ? -1 : dir, path, &reply) < 0)
		return -1;
	return (ssize_t)take_text(&reply, buf, cap);
}

int uni_observer_read(const char *path, char *buf, size_t cap)
{
	struct request q = { .op = OBSERVE_READ };
	struct reply reply;
	size_t len;

	if (ask_observer(&q, -1, path, &reply) < 0)
		return -errno;
	len = take_text(&reply, buf, cap - 1);
	buf[len] = '\0';
	return (int)len;
}

int uni_observer_perf_event(struct perf_event_attr *attr, int tid)
{
	struct request q = { .op = OBSERVE_EVENT, .tid = tid, .attr = *attr };
	struct reply reply;

	if (observer < 0)
		return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return ask_observer(&q, -1, "", &reply);
}

int uni_observer_map_create(const struct uni_observer_map *map)
{
	struct request q = { .op = OBSERVE_MAP, .map = *map };
	struct reply reply;

	return observer < 0 ? make_map(map) : ask_observer(&q, -1, "", &reply);
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
	if (observer >= 0 && pid == observed)
		return copy_from_file(local, nr_local, remote, nr_remote);
	return process_vm_readv(pid, local, nr_local, remote, nr_remote, 0);
}
