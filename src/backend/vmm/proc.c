/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"
#include "backend/listener.h"
#include "backend/vmm/api.h"
#include "backend/vmm/config.h"
#include "backend/vmm/fds.h"

#define CMDLINE_MAX ((size_t)1 << 20)
#define CONFIG_MAX  ((size_t)1 << 20)

/* The target of a link; "" if it cannot be read. */
static void read_link(const char *path, char *out, size_t cap)
{
	ssize_t n = uni_door_readlinkat(AT_FDCWD, path, out, cap - 1);

	out[n > 0 ? n : 0] = '\0';
}

static void proc_link(int pid, const char *what, char *out, size_t cap)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	read_link(path, out, cap);
}

/* Does the VMM see other files under the same names? Unknown counts as no. */
static bool other_root(int pid)
{
	char root[8], theirs[64], ours[64];

	proc_link(pid, "root", root, sizeof(root));
	if (root[0] == '\0')
		return false;
	proc_link(pid, "ns/mnt", theirs, sizeof(theirs));
	read_link("/proc/self/ns/mnt", ours, sizeof(ours));
	return strcmp(root, "/") != 0 || (theirs[0] != '\0' && strcmp(theirs, ours) != 0);
}

/*
 * Converts the VMM's path to one that we can open. Leaves it unchanged if the result does not fit.
 */
static void resolve_path(int pid, char *path, size_t cap)
{
	char old[UNI_VMM_PATH_MAX], base[UNI_VMM_PATH_MAX] = "";
	bool relative = path[0] != '/';
	int n;

	if (path[0] == '\0')
		return;
	memcpy(old, path, uni_text_clean(old, sizeof(old), path, cap) + 1);
	if (other_root(pid))
		(void)snprintf(base, sizeof(base), "/proc/%d/%s", pid, relative ? "cwd/" : "root");
	else if (!relative)
		return;
	else
		proc_link(pid, "cwd", base, sizeof(base) - 1);
	n = snprintf(path, cap, "%s%s%s", base,
		relative && base[0] != '\0' && base[strlen(base) - 1] != '/' ? "/" : "", old);
	if (n < 0 || (size_t)n >= cap)
		(void)snprintf(path, cap, "%s", old);
}

/* A socket can be connected to by a short path only: a relative one goes through the VMM's folder,
 * if it must. */
void uni_vmm_resolve_socket(int pid, char *path, size_t cap)
{
	char old[UNI_VMM_PATH_MAX];
	int n;

	memcpy(old, path, uni_text_clean(old, sizeof(old), path, cap) + 1);
	resolve_path(pid, path, cap);
	if (old[0] == '/' || old[0] == '\0' ||
		(path[0] == '/' && strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path)))
		return;
	n = snprintf(path, cap, "/proc/%d/cwd/%s", pid, old);
	if (n < 0 || (size_t)n >= cap)
		path[0] = '\0';
}

/* A socket that the VMM got as an open file: its path is in the kernel's table. */
static void find_passed(int pid, char *path, size_t cap)
{
	char link[UNI_VMM_PATH_MAX], fd[32];
	uint64_t nr, inode;
	size_t len;

	if (strncmp(path, UNI_VMM_PASSED, strlen(UNI_VMM_PASSED)) != 0)
		return;
	if (uni_parse_u64(path + strlen(UNI_VMM_PASSED), &nr) && nr <= INT32_MAX) {
		(void)snprintf(fd, sizeof(fd), "fd/%" PRIu64, nr);
		proc_link(pid, fd, link, sizeof(link));
		len = strcspn(link, "]");
		if (strncmp(link, "socket:[", 8) == 0 && link[len] == ']') {
			link[len] = '\0';
			if (uni_parse_u64(link + 8, &inode)) {
				uni_net_bound_name(inode, path, cap);
				return;
			}
		}
	}
	path[0] = '\0';
}

static void read_config(int pid, struct uni_vmm_cmdline *c)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	resolve_path(pid, c->config, sizeof(c->config));
	if (uni_read_regular(c->config, CONFIG_MAX, &data, &size, NULL) == 0)
		(void)uni_vmm_config_parse(data, size, c);
}

int uni_vmm_cmdline_words(int pid, struct uni_vmm_cmdline *ret)
{
	char path[64], exe[UNI_VMM_PATH_MAX];
	_cleanup_free_ char *data = NULL;
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	if (uni_read_file(path, CMDLINE_MAX, &data, &size, NULL) != 0)
		return -UNI_EGONE;
	proc_link(pid, "exe", exe, sizeof(exe));
	uni_vmm_cmdline_parse(data, size, exe, ret);
	return 0;
}

int uni_vmm_cmdline_read(int pid, struct uni_vmm_cmdline *ret)
{
	int rc = uni_vmm_cmdline_words(pid, ret);

	if (rc != 0)
		return rc;
	if (ret->config[0] != '\0')
		read_config(pid, ret);
	uni_vmm_resolve_socket(pid, ret->api, sizeof(ret->api));
	if (ret->image[0] == '\0' && ret->api[0] != '\0' && !ret->opaque)
		(void)uni_vmm_api_read(pid, ret); /* best effort */
	resolve_path(pid, ret->image, sizeof(ret->image));
	resolve_path(pid, ret->exact, sizeof(ret->exact));
	uni_vmm_resolve_socket(pid, ret->gdb_unix, sizeof(ret->gdb_unix));
	find_passed(pid, ret->qmp, sizeof(ret->qmp));
	uni_vmm_resolve_socket(pid, ret->qmp, sizeof(ret->qmp));
	return 0;
}

void uni_vmm_comm(int pid, char *out, size_t cap)
{
	char path[64], comm[64];
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = uni_read_small(path, comm, sizeof(comm));
	n = n > 0 && comm[n - 1] == '\n' ? n - 1 : n;
	(void)uni_text_clean(out, cap, comm, n > 0 ? (size_t)n : 0);
}

static void copy_text(char *out, size_t cap, const char *s)
{
	(void)uni_text_clean(out, cap, s, strlen(s));
}

/* The value after "KEY:\t..." in a status file, up to the line's end; "" if there is none. */
static void status_line(const char *text, const char *key, char *out, size_t cap)
{
	const char *s = strstr(text, key);
	size_t n;

	out[0] = '\0';
	if (s == NULL)
		return;
	s += strlen(key);
	n = strcspn(s, "\n");
	(void)snprintf(out, cap, "%.*s", (int)n, s);
}

/* The owner, the parent, and the number in its own namespace: every process may read these. */
static void read_status(int pid, struct uni_target_info *ret, int *parent_ret)
{
	char path[64], text[4096], line[256];
	const char *last;

	*parent_ret = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return;
	status_line(text, "\nPPid:\t", line, sizeof(line));
	*parent_ret = (int)strtol(line, NULL, 10);
	status_line(text, "\nState:\t", line, sizeof(line));
	ret->stopped = line[0] == 'T' || line[0] == 't';
	status_line(text, "\nUid:\t", line, sizeof(line));
	last = strchr(line, '\t'); /* real, effective, ... */
	ret->uid = (uint32_t)strtoul(last != NULL ? last : line, NULL, 10);
	/* One number for each namespace, from that of this /proc inwards. */
	status_line(text, "\nNSpid:\t", line, sizeof(line));
	last = strrchr(line, '\t');
	ret->ns_pid = last != NULL ? (int)strtol(last, NULL, 10) : 0;
}

int uni_vmm_check_runs(int pid, struct uni_err *err)
{
	struct uni_target_info now = { 0 };
	int parent;

	read_status(pid, &now, &parent);
	if (!now.stopped)
		return 0;
	return uni_err_set(err, UNI_EBUSY,
		"a signal has stopped the VMM, pid %d: kill -CONT %d lets it run", pid, pid);
}

/* Open files show more than the command line, which only has requests. */
static void describe_kvm(const struct uni_vmm_cmdline *c, const struct uni_vmm_fds *fds, bool seen,
	struct uni_target_info *ret)
{
	bool kvm = seen && fds->nr_vms != 0;

	ret->denied = !seen;
	if (kvm)
		copy_text(ret->accel, sizeof(ret->accel), "kvm");
	else if (seen && strcmp(c->vmm, "qemu") == 0 && !c->only_kvm)
		copy_text(ret->accel, sizeof(ret->accel), "tcg");
	else
		copy_text(ret->accel, sizeof(ret->accel), c->accel);
	ret->nr_vcpus = c->nr_vcpus != 0 ? c->nr_vcpus : c->default_vcpus;
	if (kvm && fds->nr_vms == 1 && fds->nr_vcpus != 0)
		ret->nr_vcpus = fds->nr_vcpus + fds->nr_vcpus_left_off;
}

/*
 * Is this a process without a guest, although it may have a VMM's name? Examples: `crosvm device`,
 * a VMM's child processes for devices, a Firecracker that was not told to start yet. A QEMU that is
 * to use KVM, and has not opened it yet, is another.
 */
static bool is_idle(const struct uni_vmm_cmdline *c, const struct uni_vmm_fds *fds, bool seen)
{
	if (c->vmm[0] == '\0' || c->only_kvm)
		return seen && (fds->nr_vms == 0 || fds->nr_vcpus == 0);
	return false;
}

struct process {
	struct uni_target_info info;
	int parent;
	bool idle; /* it runs no guest now */
};

static int describe_process(int pid, struct uni_vmm_cmdline *c, struct process *ret)
{
	struct uni_target_info *in = &ret->info;
	struct uni_vmm_fds fds;
	bool seen;
	int rc;

	memset(ret, 0, sizeof(*ret));
	in->pid = pid;
	rc = uni_vmm_cmdline_read(pid, c);
	if (rc != 0)
		return rc;
	seen = uni_vmm_fds_read(pid, &fds) == 0;
	if (c->vmm[0] == '\0' && (!seen || fds.nr_vms == 0))
		return -UNI_ENOENT;
	read_status(pid, in, &ret->parent);
	ret->idle = is_idle(c, &fds, seen);
	copy_text(in->vmm, sizeof(in->vmm), c->vmm[0] != '\0' ? c->vmm : "unknown");
	describe_kvm(c, &fds, seen, in);
	copy_text(in->name, sizeof(in->name), c->name);
	copy_text(in->image, sizeof(in->image), c->image);
	copy_text(in->counts, sizeof(in->counts), c->exact);
	copy_text(in->qmp, sizeof(in->qmp), c->qmp);
	copy_text(in->qmp_tcp, sizeof(in->qmp_tcp), c->qmp_tcp);
	if (c->gdb_unix[0] != '\0')
		(void)snprintf(in->gdb, sizeof(in->gdb), "unix=%s", c->gdb_unix);
	else if (c->gdb_tcp[0] != '\0')
		(void)snprintf(in->gdb, sizeof(in->gdb), "tcp=%s", c->gdb_tcp);
	in->mem_bytes = c->mem_bytes != 0 ? c->mem_bytes : c->default_mem_bytes;
	return 0;
}

int uni_vmm_describe(int pid, struct uni_target_info *ret)
{
	struct uni_vmm_cmdline c;
	struct process p;
	int rc = describe_process(pid, &c, &p);

	*ret = p.info;
	return rc;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->info.pid > y->info.pid) - (x->info.pid < y->info.pid);
}

struct list {
	UNI_VEC(struct process) found;
};

static int find_all(DIR *proc, struct list *l, struct uni_err *err)
{
	const struct dirent *e;

	while ((e = readdir(proc)) != NULL) {
		struct uni_vmm_cmdline c;
		struct process p;
		uint64_t pid;

		if (!uni_parse_u64(e->d_name, &pid) || pid > INT32_MAX)
			continue;
		if (describe_process((int)pid, &c, &p) != 0 || p.idle)
			continue;
		if (!uni_vec_grow(&l->found, 1) || l->found.v == NULL)
			return uni_err_set(err, UNI_ENOMEM, "out of memory listing VMMs");
		l->found.v[l->found.nr++] = p;
	}
	if (l->found.nr != 0)
		qsort(l->found.v, l->found.nr, sizeof(l->found.v[0]), by_pid);
	return 0;
}

/* Is it a child of the same VMM that we may not look into? Then its parent has the guest. */
static bool is_helper(const struct list *l, const struct process *p)
{
	if (!p->info.denied)
		return false;
	for (size_t i = 0; i < l->found.nr; i++) {
		const struct process *other = &l->found.v[i];

		if (other->info.pid == p->parent && strcmp(other->info.vmm, p->info.vmm) == 0)
			return true;
	}
	return false;
}

static int keep_guests(
	const struct list *l, struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err)
{
	struct uni_target_info *info = calloc(l->found.nr + 1, sizeof(*info));
	size_t nr = 0;

	if (info == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory listing VMMs");
	for (size_t i = 0; i < l->found.nr; i++) {
		if (!is_helper(l, &l->found.v[i]))
			info[nr++] = l->found.v[i].info;
	}
	*ret = info;
	*nr_ret = nr;
	return 0;
}

int uni_vmm_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err)
{
	struct list l = { 0 };
	DIR *proc = opendir("/proc");
	int rc;

	if (proc == NULL)
		return uni_err_set(err, UNI_EIO, "cannot read /proc: %s", strerror(errno));
	rc = find_all(proc, &l, err);
	(void)closedir(proc);
	if (rc == 0)
		rc = keep_guests(&l, ret, nr_ret, err);
	uni_vec_free(&l.found);
	return rc;
}

/* /proc/PID/task/TID/schedstat: "RUN WAIT SLICES", ns (Documentation/scheduler/sched-stats). */
bool uni_vmm_thread_times(int pid, int tid, uint64_t *run_ns_ret, uint64_t *wait_ns_ret)
{
	char path[64], text[128], *end;
	uint64_t run;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return false;
	run = strtoull(text, &end, 10);
	if (end == text || *end != ' ')
		return false;
	*run_ns_ret = run;
	*wait_ns_ret = strtoull(end, NULL, 10);
	return true;
}
