/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/catch.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/opener.h"
#include "base/side.h"
#include "base/stop.h"

#define STOPS_MAX 4096
#define LATE_MS	  10
#define HELD_MS	  1000 /* nobody holds a guest for so long */

static int observed; /* the process that may be looked into */
static struct uni_thread_stop stops[STOPS_MAX];

/* The rest after /proc/PID/ of the observed process; NULL: it is another file. */
static const char *below_process(int pid, const char *path)
{
	char *end;

	if (strncmp(path, "/proc/", 6) != 0 || !isdigit((unsigned char)path[6]) ||
		strtol(path + 6, &end, 10) != pid)
		return NULL;
	return *end == '/' ? end + 1 : *end == '\0' ? end : NULL;
}

/* Does it lead to the files that the process sees? */
static bool leads_out(const char *rest)
{
	static const char *const links[] = { "root", "cwd", "exe", "map_files" };
	size_t len = strcspn(rest, "/");

	for (size_t i = 0; i < uni_array_len(links); i++) {
		if (strlen(links[i]) == len && memcmp(rest, links[i], len) == 0)
			return true;
	}
	return false;
}

bool uni_observe_is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

bool uni_observe_may_name(int pid, const char *path)
{
	const char *rest = below_process(pid, path);

	if (rest == NULL)
		return strcmp(path, "/proc/kallsyms") == 0;
	return leads_out(rest) || strstr(path, "..") == NULL;
}

/* Other processes' files in /proc cannot be reached by the process' own root either. */
static int open_file(const char *path)
{
	const char *rest = below_process(observed, path);
	bool out = rest != NULL && leads_out(rest);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || uni_observe_is_of_proc(fd) != out)
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

static bool is_thread(int pid, int tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	if (access(path, F_OK) == 0)
		return true;
	errno = ESRCH;
	return false;
}

static int open_event(struct perf_event_attr *attr, int tid)
{
	if (!is_thread(observed, tid))
		return -1;
	attr->size = sizeof(*attr);
	if (attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_HARDWARE) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int uni_observe_make_map(const struct uni_observer_map *map)
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

static struct uni_thread_stop *find_stop(int tid)
{
	for (size_t i = 0; i < uni_array_len(stops); i++) {
		if (stops[i].tid == tid)
			return &stops[i];
	}
	return NULL;
}

/* tid 0: all that stand, but for firm ones; -1: those that stop late. */
static void let_go(int tid)
{
	for (size_t i = 0; i < uni_array_len(stops); i++) {
		if (stops[i].tid == 0 || (tid > 0 && stops[i].tid != tid) ||
			(tid == 0 && stops[i].firm) || (tid < 0 && stops[i].held))
			continue;
		uni_thread_stop_end(&stops[i]);
		stops[i].firm = false;
		stops[i].tid = stops[i].pending ? stops[i].tid : 0;
	}
}

/* Returns the size of the registers, which go into text. */
static int stop_thread(int tid, bool firm, char *text, size_t cap)
{
	struct uni_thread_stop *s = find_stop(tid);
	int n, e;

	s = s != NULL ? s : find_stop(0);
	errno = EAGAIN;
	if (s == NULL || s->held || !is_thread(observed, tid))
		return -1;
	s->tid = tid;
	s->firm = firm;
	n = uni_thread_stop_begin(s) == 0 ? uni_thread_stop_regs(s, text, cap) : -1;
	e = errno;
	if (n < 0 && !s->pending)
		let_go(tid);
	errno = e;
	return n;
}

static int catch_thread(int tid, int cpu, struct uni_observe_reply *reply)
{
	struct uni_thread_stop *s = find_stop(tid);
	struct uni_catch c;
	int rc, e;

	_Static_assert(sizeof(c) <= sizeof(reply->text), "a reply has room for it");
	s = s != NULL ? s : find_stop(0);
	errno = EAGAIN;
	if (s == NULL || s->held || !is_thread(observed, tid))
		return -1;
	s->tid = tid;
	rc = uni_catch_thread(observed, s, cpu, &c);
	e = errno;
	s->tid = s->pending ? tid : 0;
	memcpy(reply->text, &c, sizeof(c));
	errno = e;
	return rc;
}

static int stop_there(const struct uni_observe_request *q, struct uni_observe_reply *reply)
{
	struct uni_thread_stop *s = find_stop(q->tid);
	struct uni_there there;
	int rc, e;

	s = s != NULL ? s : find_stop(0);
	errno = EAGAIN;
	if (s == NULL || s->held || s->pending || !is_thread(observed, q->tid))
		return -1;
	s->tid = q->tid;
	rc = uni_catch_there(observed, s, q->flags, &there);
	e = errno;
	if (!s->held && !s->pending)
		s->tid = 0;
	memcpy(reply->text, &there, sizeof(there));
	errno = e;
	return rc;
}

/* Both sides of a pause: this process, and a thread of the worker. */
static int set_priority(int tid, bool first)
{
	const struct sched_param p = { .sched_priority = first ? 1 : 0 };
	int policy = SCHED_RESET_ON_FORK | (first ? SCHED_FIFO : SCHED_OTHER);

	if (!is_thread(getppid(), tid) || sched_setscheduler(tid, policy, &p) != 0)
		return -1;
	return sched_setscheduler(0, policy, &p);
}

static bool is_any_late(void)
{
	for (size_t i = 0; i < uni_array_len(stops); i++) {
		if (stops[i].pending)
			return true;
	}
	return false;
}

/* A worker that does not go on must not hold the guest; nor may a stop that comes late. */
static void await_request(int worker)
{
	struct pollfd p = { .fd = worker, .events = POLLIN };

	while (is_any_late() && poll(&p, 1, LATE_MS) == 0)
		let_go(-1);
	if (poll(&p, 1, HELD_MS) == 0)
		let_go(0);
}

static int do_request(struct uni_observe_request *q, struct uni_observe_reply *reply)
{
	if (q->op == UNI_OBSERVE_EVENT)
		return open_event(&q->attr, q->tid);
	if (q->op == UNI_OBSERVE_MAP)
		return uni_observe_make_map(&q->map);
	if (q->op == UNI_OBSERVE_STOP)
		return stop_thread(q->tid, q->flags != 0, reply->text, sizeof(reply->text));
	if (q->op == UNI_OBSERVE_CATCH)
		return catch_thread(q->tid, q->flags, reply);
	if (q->op == UNI_OBSERVE_THERE)
		return stop_there(q, reply);
	if (q->op == UNI_OBSERVE_PRIORITY)
		return set_priority(q->tid, q->flags != 0);
	if (q->op == UNI_OBSERVE_LET_GO) {
		let_go(q->tid);
		return 0;
	}
	errno = EACCES;
	if (!uni_observe_may_name(observed, q->path))
		return -1;
	switch ((enum uni_observe_op)q->op) {
	case UNI_OBSERVE_OPEN:
		return open_file(q->path);
	case UNI_OBSERVE_STAT:
		return stat(q->path, &reply->st);
	case UNI_OBSERVE_ACCESS:
		return access(q->path, F_OK);
	case UNI_OBSERVE_READLINK:
		return (int)readlink(q->path, reply->text, sizeof(reply->text));
	case UNI_OBSERVE_READ:
		return read_text(q->path, reply->text, sizeof(reply->text));
	case UNI_OBSERVE_EVENT:
	case UNI_OBSERVE_MAP:
	case UNI_OBSERVE_STOP:
	case UNI_OBSERVE_LET_GO:
	case UNI_OBSERVE_CATCH:
	case UNI_OBSERVE_THERE:
	case UNI_OBSERVE_PRIORITY:
		break;
	}
	return -1;
}

bool uni_observe_gives_fd(uint32_t op)
{
	return op == UNI_OBSERVE_OPEN || op == UNI_OBSERVE_EVENT || op == UNI_OBSERVE_MAP;
}

void uni_observe_serve(int pid, int worker)
{
	static struct uni_observe_request q;
	static struct uni_observe_reply reply;
	_cleanup_close_ int fd = -1;

	observed = pid;
	for (;;) {
		int r;

		await_request(worker);
		if (!uni_side_receive(worker, &q, sizeof(q), &fd))
			break;
		if (fd >= 0)
			(void)close(fd);
		q.path[sizeof(q.path) - 1] = '\0';
		memset(&reply, 0, sizeof(reply));
		r = do_request(&q, &reply);
		reply.result = r < 0 ? -errno : r;
		fd = uni_observe_gives_fd(q.op) ? r : -1;
		if (!uni_side_send(worker, &reply, sizeof(reply), fd))
			break;
		if (fd >= 0)
			(void)close(fd);
	}
}
