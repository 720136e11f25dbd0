/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/vmm/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"
#include "target/vmm/fds.h"

#define CMDLINE_MAX ((size_t)1 << 20)
#define CONFIG_MAX  ((size_t)1 << 20)

/* readlink of /proc/PID/what as a string; "" when it cannot be read. */
static void proc_link(int pid, const char *what, char *out, size_t cap)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	n = readlink(path, out, cap - 1);
	out[n > 0 ? n : 0] = '\0';
}

/* Does the VMM see other files under the same names? Unknown counts as no. */
static bool other_root(int pid)
{
	char root[8], theirs[64], ours[64];

	proc_link(pid, "root", root, sizeof(root));
	if (root[0] == '\0')
		return false;
	proc_link(pid, "ns/mnt", theirs, sizeof(theirs));
	proc_link(getpid(), "ns/mnt", ours, sizeof(ours));
	return strcmp(root, "/") != 0 || (theirs[0] != '\0' && strcmp(theirs, ours) != 0);
}

/* A path as the VMM gave it -> one that we can open. Unchanged when it does not fit. */
static void resolve(int pid, char *path, size_t cap)
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

static void read_config(int pid, struct uni_vmm_cmdline *c)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	resolve(pid, c->config, sizeof(c->config));
	if (uni_read_regular(c->config, CONFIG_MAX, &data, &size, NULL) == 0)
		(void)uni_vmm_config_parse(data, size, c);
}

int uni_vmm_cmdline_read(int pid, struct uni_vmm_cmdline *ret)
{
	char path[64], exe[UNI_VMM_PATH_MAX];
	_cleanup_free_ char *data = NULL;
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	if (uni_read_file(path, CMDLINE_MAX, &data, &size, NULL) != 0)
		return -UNI_EGONE;
	proc_link(pid, "exe", exe, sizeof(exe));
	uni_vmm_cmdline_parse(data, size, exe, ret);
	if (ret->config[0] != '\0')
		read_config(pid, ret);
	resolve(pid, ret->image, sizeof(ret->image));
	resolve(pid, ret->gdb_unix, sizeof(ret->gdb_unix));
	resolve(pid, ret->qmp, sizeof(ret->qmp));
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

static int describe(int pid, struct uni_vmm_cmdline *c, struct uni_target_info *ret)
{
	struct uni_vmm_fds fds;
	bool kvm, seen;
	int rc;

	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	rc = uni_vmm_cmdline_read(pid, c);
	if (rc != 0)
		return rc;
	seen = uni_vmm_fds_read(pid, &fds) == 0;
	kvm = seen && fds.nr_vms != 0;
	if (c->vmm[0] == '\0' && !kvm)
		return -UNI_ENOENT;
	copy_text(ret->vmm, sizeof(ret->vmm), c->vmm[0] != '\0' ? c->vmm : "unknown");
	/* What is open tells more than what was asked for, which is a list of wishes. */
	if (kvm)
		copy_text(ret->accel, sizeof(ret->accel), "kvm");
	else if (seen && strcmp(c->vmm, "qemu") == 0)
		copy_text(ret->accel, sizeof(ret->accel), "tcg");
	else
		copy_text(ret->accel, sizeof(ret->accel), c->accel);
	copy_text(ret->name, sizeof(ret->name), c->name);
	copy_text(ret->image, sizeof(ret->image), c->image);
	copy_text(ret->qmp, sizeof(ret->qmp), c->qmp);
	if (c->gdb_unix[0] != '\0')
		(void)snprintf(ret->gdb, sizeof(ret->gdb), "unix=%s", c->gdb_unix);
	else if (c->gdb_tcp[0] != '\0')
		(void)snprintf(ret->gdb, sizeof(ret->gdb), "tcp=%s", c->gdb_tcp);
	ret->nr_vcpus = c->nr_vcpus != 0 ? c->nr_vcpus : kvm ? fds.nr_vcpus : 0;
	if (ret->nr_vcpus == 0 && strcmp(c->vmm, "qemu") == 0 && !c->opaque)
		ret->nr_vcpus = 1; /* what QEMU makes without -smp */
	ret->mem_bytes = c->mem_bytes;
	return 0;
}

int uni_vmm_describe(int pid, struct uni_target_info *ret)
{
	struct uni_vmm_cmdline c;

	return describe(pid, &c, ret);
}

static int by_pid(const void *a, const void *b)
{
	const struct uni_target_info *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

struct list {
	UNI_VEC(struct uni_target_info) found;
};

static int add_all(DIR *proc, struct list *l, struct uni_err *err)
{
	const struct dirent *e;

	while ((e = readdir(proc)) != NULL) {
		struct uni_target_info info;
		uint64_t pid;

		if (!uni_parse_u64(e->d_name, &pid) || pid > INT32_MAX)
			continue;
		if (uni_vmm_describe((int)pid, &info) != 0)
			continue;
		if (!uni_vec_grow(&l->found, 1) || l->found.v == NULL)
			return uni_err_set(err, UNI_ENOMEM, "out of memory listing VMMs");
		l->found.v[l->found.nr++] = info;
	}
	return 0;
}

int uni_vmm_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err)
{
	struct list l = { 0 };
	DIR *proc = opendir("/proc");
	int rc;

	if (proc == NULL)
		return uni_err_set(err, UNI_EIO, "cannot read /proc: %s", strerror(errno));
	rc = add_all(proc, &l, err);
	(void)closedir(proc);
	if (rc != 0) {
		uni_vec_free(&l.found);
		return rc;
	}
	if (l.found.nr != 0)
		qsort(l.found.v, l.found.nr, sizeof(l.found.v[0]), by_pid);
	*ret = l.found.v;
	*nr_ret = l.found.nr;
	return 0;
}
