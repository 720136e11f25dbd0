/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/vcpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/kvm.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/kvm/rights.h"
#include "backend/vmm/proc.h"

#define FIND_NS	  (1000 * UNI_NSEC_PER_MSEC)
#define PROBE_NS  (2 * UNI_NSEC_PER_SEC) /* starved, or deep in the kernel */
#define END_NS	  (50 * UNI_NSEC_PER_MSEC)
#define RETRY_NS  (3 * UNI_NSEC_PER_MSEC)
#define TRACED_NS (300 * UNI_NSEC_PER_MSEC) /* longer than another uniscope holds a thread */
#define FIELD_MAX 24

/* The next number of a line, separated by blanks. */
static bool next_number(struct uni_cursor *c, uint64_t *ret)
{
	char text[FIELD_MAX];
	size_t n = 0;

	while (uni_cursor_left(c) != 0) {
		char ch = (char)uni_cursor_u8(c);

		if (ch == ' ' || ch == '\n')
			break;
		if (n == sizeof(text) - 1)
			return false;
		text[n++] = ch;
	}
	text[n] = '\0';
	return uni_parse_u64(text, ret);
}

enum uni_kvm_doing uni_kvm_doing_parse(const void *data, size_t size, int *fd_ret)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	uint64_t nr, fd, request;

	if (size == 0)
		return UNI_DOING_GONE;
	if (size >= 7 && memcmp(data, "running", 7) == 0)
		return UNI_DOING_RUNNING;
	/* "16 0xd 0xae80 0x0 ...": number and arguments. "-1 sp pc": it is in no system call. */
	if (!next_number(&c, &nr) || nr != SYS_ioctl || !next_number(&c, &fd) || fd > INT32_MAX ||
		!next_number(&c, &request) || (uint32_t)request != KVM_RUN)
		return UNI_DOING_ELSE;
	*fd_ret = (int)fd;
	return UNI_DOING_IN_RUN;
}

enum uni_kvm_doing uni_kvm_doing(int syscall_fd, int *fd_ret)
{
	char buf[256];
	ssize_t n = pread(syscall_fd, buf, sizeof(buf), 0);

	if (n < 0 && (errno == EPERM || errno == EACCES))
		return UNI_DOING_DENIED;
	return n <= 0 ? UNI_DOING_GONE : uni_kvm_doing_parse(buf, (size_t)n, fd_ret);
}

/* "143 (name) R 1 0 ...": a name may have anything in it. */
bool uni_kvm_is_awake_parse(const void *data, size_t size)
{
	const char *end = memrchr(data, ')', size);

	return end != NULL && size - (size_t)(end - (const char *)data) > 2 && end[2] == 'R';
}

bool uni_kvm_is_awake(int stat_fd)
{
	char buf[512];
	ssize_t n = stat_fd >= 0 ? pread(stat_fd, buf, sizeof(buf), 0) : -1;

	return n > 0 && uni_kvm_is_awake_parse(buf, (size_t)n);
}

uint64_t uni_kvm_run_delay_parse(const void *data, size_t size)
{
	char text[24];
	const char *space = memchr(data, ' ', size), *end;
	uint64_t ns;
	size_t len;

	if (space == NULL)
		return 0;
	space++;
	len = size - (size_t)(space - (const char *)data);
	end = memchr(space, ' ', len);
	if (end == NULL || (size_t)(end - space) >= sizeof(text))
		return 0;
	memcpy(text, space, (size_t)(end - space));
	text[end - space] = '\0';
	return uni_parse_u64(text, &ns) ? ns : 0;
}

uint64_t uni_kvm_run_delay(int schedstat_fd)
{
	char buf[96];
	ssize_t n = schedstat_fd >= 0 ? pread(schedstat_fd, buf, sizeof(buf), 0) : -1;

	return n > 0 ? uni_kvm_run_delay_parse(buf, (size_t)n) : 0;
}

bool uni_kvm_times(int schedstat_fd, uint64_t *on_ret, uint64_t *ready_ret)
{
	char buf[96], *space;
	ssize_t n = schedstat_fd >= 0 ? pread(schedstat_fd, buf, sizeof(buf), 0) : -1;

	space = n > 0 ? memchr(buf, ' ', (size_t)n) : NULL;
	if (space == NULL)
		return false;
	*ready_ret = uni_kvm_run_delay_parse(buf, (size_t)n);
	*space = '\0';
	return uni_parse_u64(buf, on_ret) && *on_ret != 0;
}

bool uni_kvm_vcpu_of_comm(const char *comm, uint32_t *ret)
{
	/* QEMU (debug-threads=on), Firecracker, Cloud Hypervisor, crosvm, kvmtool. */
	static const char *const heads[] = { "CPU ", "fc_vcpu ", "vcpu", "crosvm_vcpu",
		"kvm-vcpu-" };
	static const char tail[] = "/KVM";

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t len = strlen(heads[i]), n = 0;
		char digits[8];
		uint64_t v;

		if (strncmp(comm, heads[i], len) != 0)
			continue;
		while (n < sizeof(digits) - 1 && comm[len + n] >= '0' && comm[len + n] <= '9') {
			digits[n] = comm[len + n];
			n++;
		}
		digits[n] = '\0';
		if (comm[len + n] != '\0' && strcmp(comm + len + n, tail) != 0)
			continue;
		if (!uni_parse_u64(digits, &v))
			continue;
		*ret = (uint32_t)v;
		return true;
	}
	return false;
}

struct find {
	int pid;
	struct uni_kvm_vcpu *v;
	struct uni_kvm_late *late;
	uint32_t nr, nr_found;
	uint32_t nr_threads; /* the VMM's own */
	int last_tid;
};

static struct uni_kvm_vcpu *by_fd(const struct find *f, int fd)
{
	for (uint32_t i = 0; i < f->nr; i++) {
		if (f->v[i].fd == fd && f->v[i].hold.tid == 0)
			return &f->v[i];
	}
	return NULL;
}

static bool is_assigned(const struct find *f, int tid)
{
	for (uint32_t i = 0; i < f->nr; i++) {
		if (f->v[i].hold.tid == tid)
			return true;
	}
	return false;
}

static int open_of_thread(int pid, int tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void assign_thread(struct find *f, struct uni_kvm_vcpu *v, int tid, int syscall_fd)
{
	v->hold = (struct uni_hold){ .tid = tid };
	v->syscall_fd = syscall_fd;
	v->stat_fd = open_of_thread(f->pid, tid, "stat");
	v->schedstat_fd = open_of_thread(f->pid, tid, "schedstat");
	f->nr_found++;
}

/*
 * KVM's and vhost's workers are threads of the VMM. They have inherited registers that they do not
 * run with.
 */
static bool is_worker(const char *comm)
{
	return strncmp(comm, "kvm-nx-lpage", 12) == 0 || strncmp(comm, "kvm-pit", 7) == 0 ||
	       strncmp(comm, "vhost-", 6) == 0;
}

static void thread_comm(int pid, int tid, char *out, size_t cap)
{
	char path[64];
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	n = uni_read_small(path, out, cap);
	if (n <= 0)
		out[0] = '\0';
	else if (out[n - 1] == '\n')
		out[n - 1] = '\0';
}

bool uni_kvm_is_worker(int pid, int tid)
{
	char comm[32];

	thread_comm(pid, tid, comm, sizeof(comm));
	return is_worker(comm);
}

bool uni_kvm_late_end(struct uni_kvm_late *late)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < late->nr; i++) {
		if (!uni_hold_end(&late->hold[i], true, 0))
			late->hold[nr++] = late->hold[i];
	}
	late->nr = nr;
	return nr == 0;
}

static bool is_late(const struct uni_kvm_late *late, int tid)
{
	for (uint32_t i = 0; i < late->nr; i++) {
		if (late->hold[i].tid == tid)
			return true;
	}
	return false;
}

/*
 * Stops a busy thread for an instant. Returns the vCPU file of its KVM_RUN, or -1. The VMM is not
 * known yet, so the thread must not get EINTR.
 */
static int fd_of_busy(struct uni_kvm_late *late, int tid, int *rc_ret)
{
	uint64_t until = uni_now_ns() + PROBE_NS;
	struct uni_hold h = { .tid = tid };
	struct uni_hold *one = &h;
	int fd = -1;

	/* If there is no room to remember it, the thread must not be touched. */
	if (late->nr == UNI_KVM_LATE_MAX)
		return -1;
	*rc_ret = uni_hold_seize(&h);
	if (*rc_ret != 0)
		return -1;
	*rc_ret = uni_hold_ask(&h);
	uni_hold_wait(&one, 1, until);
	if (h.state == UNI_HOLD_STOPPED)
		fd = uni_hold_in_run(&h, &fd) ? fd : -1;
	if (!uni_hold_end(&h, true, uni_max(until, uni_now_ns() + END_NS)))
		late->hold[late->nr++] = h;
	return fd;
}

/* Returns 0 or -UNI_EPERM. */
static int look_at(struct find *f, int tid)
{
	int sfd = open_of_thread(f->pid, tid, "syscall"), fd = -1, rc = 0;
	struct uni_kvm_vcpu *v = NULL;

	if (sfd < 0)
		return errno == EACCES || errno == EPERM ? -UNI_EPERM : 0;
	switch (uni_kvm_doing(sfd, &fd)) {
	case UNI_DOING_RUNNING:
		fd = fd_of_busy(f->late, tid, &rc);
		break;
	case UNI_DOING_IN_RUN:
		break;
	case UNI_DOING_ELSE:
	case UNI_DOING_GONE:
		fd = -1;
		break;
	case UNI_DOING_DENIED:
		fd = -1;
		rc = -UNI_EPERM;
		break;
	}
	v = fd >= 0 ? by_fd(f, fd) : NULL;
	if (v != NULL)
		assign_thread(f, v, tid, sfd);
	else
		(void)close(sfd);
	if (rc == -UNI_EPERM)
		f->last_tid = tid;
	return rc == -UNI_EPERM ? rc : 0;
}

/* One pass over the threads. by_name: for threads asleep in the VMM, trusts their names. */
static int scan_threads(struct find *f, bool by_name)
{
	char path[64], comm[32];
	const struct dirent *e;
	int rc = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", f->pid);
	dir = opendir(path);
	if (dir == NULL)
		return -UNI_EGONE;
	f->nr_threads = 0;
	(void)uni_kvm_late_end(f->late);
	while (rc == 0 && f->nr_found < f->nr && (e = readdir(dir)) != NULL) {
		uint64_t tid;
		uint32_t i;

		if (!uni_parse_u64(e->d_name, &tid) || tid > INT32_MAX)
			continue;
		thread_comm(f->pid, (int)tid, comm, sizeof(comm));
		if (is_worker(comm))
			continue;
		f->nr_threads++;
		f->last_tid = (int)tid;
		if (is_assigned(f, (int)tid) || is_late(f->late, (int)tid))
			continue;
		if (!by_name)
			rc = look_at(f, (int)tid);
		else if (uni_kvm_vcpu_of_comm(comm, &i) && i < f->nr && f->v[i].hold.tid == 0)
			assign_thread(
				f, &f->v[i], (int)tid, open_of_thread(f->pid, (int)tid, "syscall"));
	}
	(void)closedir(dir);
	return rc;
}

/*
 * Another uniscope holds a thread only for each sample. If somebody still traces it later, that
 * blocks us.
 */
static int check_tracer(int pid, int tid, struct uni_err *err)
{
	struct timespec nap = uni_ns_timespec(RETRY_NS);
	int tracer = uni_tracer_of(pid, tid);
	char comm[32];

	for (uint64_t t = 0; tracer > 0 && t < TRACED_NS; t += RETRY_NS) {
		(void)nanosleep(&nap, NULL);
		tracer = uni_tracer_of(pid, tid);
	}
	if (tracer <= 0)
		return 0;
	uni_vmm_comm(tracer, comm, sizeof(comm));
	return uni_err_set(err, UNI_EBUSY,
		"pid %d is being traced by %s, pid %d: only one can trace a process at a time", pid,
		comm, tracer);
}

int uni_kvm_traced(int pid, const struct uni_kvm_vcpu *v, uint32_t nr, struct uni_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < nr; i++) {
		if (v[i].hold.tid != 0 &&
			v[i].hold.state == UNI_HOLD_FREE) /* otherwise we trace it */
			rc = check_tracer(pid, v[i].hold.tid, err);
	}
	return rc;
}

int uni_kvm_left(int pid, const struct uni_kvm_vcpu *v, uint32_t nr, struct uni_err *err)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (v[i].doing != UNI_DOING_ELSE)
			return 0;
	}
	return nr == 0 ? 0
		       : uni_err_set(err, UNI_EBUSY,
				 "the guest does not run: the threads of its vCPUs sleep in the "
				 "VMM, "
				 "pid %d. It has died, or a monitor has stopped it",
				 pid);
}

/* The right to read this file is the same as the right to trace. */
static bool has_right(int pid, int tid)
{
	int sfd = open_of_thread(pid, tid, "syscall"), fd;
	bool ok = sfd >= 0 && uni_kvm_doing(sfd, &fd) != UNI_DOING_DENIED;

	if (sfd >= 0)
		(void)close(sfd);
	return ok;
}

static int explain_denial(int pid, int tid, struct uni_err *err)
{
	int rc = check_tracer(pid, tid, err);

	if (rc != 0)
		return rc;
	if (has_right(pid, tid))
		return uni_err_set(err, UNI_EBUSY,
			"pid %d is being traced by another process now and then: only one can "
			"trace a process at a time",
			pid);
	rc = uni_kvm_rights_check(pid, err);
	return rc != 0 ? rc : uni_err_set(err, UNI_EPERM, "not permitted to trace pid %d", pid);
}

int uni_kvm_find_threads(int pid, struct uni_kvm_vcpu *v, uint32_t nr, struct uni_kvm_late *late,
	const struct uni_attach_opts *wish, struct uni_err *err)
{
	struct find f = { .pid = pid, .v = v, .nr = nr, .late = late };
	const struct timespec retry = uni_ns_timespec(RETRY_NS);
	uint64_t begin = uni_now_ns(), took;
	int rc;

	for (;;) {
		rc = scan_threads(&f, false);
		took = uni_now_ns() - begin;
		if (f.nr_found == nr || took >= (rc == -UNI_EPERM ? TRACED_NS : FIND_NS) ||
			(rc != 0 && rc != -UNI_EPERM) ||
			(wish != NULL && wish->over != NULL && wish->over(wish->over_ctx)))
			break;
		(void)nanosleep(&retry, NULL); /* a vCPU may be in the VMM for a moment */
	}
	if (rc == 0 && f.nr_found < nr)
		rc = scan_threads(&f, true);
	/* A tender with a single thread, asleep in its own poll(): no other thread can be meant. */
	if (rc == 0 && f.nr_found == 0 && nr == 1 && f.nr_threads == 1)
		assign_thread(&f, &v[0], f.last_tid, open_of_thread(pid, f.last_tid, "syscall"));
	if (rc == -UNI_EPERM)
		return explain_denial(pid, f.last_tid, err);
	if (rc != 0)
		return uni_err_set(err, UNI_EGONE, "pid %d ended", pid);
	if (f.nr_found == 0)
		return uni_err_set(err, UNI_EAGAIN,
			"no thread of pid %d was seen running a vCPU: is the guest paused?", pid);
	return uni_kvm_traced(pid, v, nr, err);
}
