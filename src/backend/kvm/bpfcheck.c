/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpfcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "backend/kvm/kernel.h"
#include "backend/kvm/rights.h"

#define BTF_MAX ((size_t)64 << 20)

/* linux/capability.h; some headers do not have the last two yet. */
#define CAP_SYS_ADMIN_BIT    21
#define CAP_SYS_RESOURCE_BIT 24
#define CAP_PERFMON_BIT	     38
#define CAP_BPF_BIT	     39

/* Before this version, maps counted against RLIMIT_MEMLOCK; ours need about this much. */
#define MEMLOCK_UNTIL  0x050b
#define MEMLOCK_WANTED (64ull << 20)

static const char *path_of(
	const struct uni_kvm_bpf_host *h, const char *name, char *buf, size_t cap)
{
	(void)snprintf(buf, cap, "%s%s", h->root, name);
	return buf;
}

/* The first line of a small file; "": there is none. */
static void line_of(const struct uni_kvm_bpf_host *h, const char *name, char *out, size_t cap)
{
	char path[512];
	int n = uni_read_small(path_of(h, name, path, sizeof(path)), out, cap);

	out[n > 0 ? strcspn(out, "\n") : 0] = '\0';
}

/* The value after "KEY:" in the status file, in the given base; false: it is not there. */
static bool status_value(const char *text, const char *key, int base, uint64_t *ret)
{
	const char *s = strstr(text, key);
	char *end;

	if (s == NULL)
		return false;
	s += strlen(key);
	errno = 0;
	*ret = strtoull(s, &end, base);
	return end != s && errno == 0;
}

struct rights {
	uint64_t caps; /* effective */
	uint64_t most; /* those that anybody here can get: a container withholds the others */
	bool old;      /* the kernel knows no CAP_BPF */
	bool known;    /* caps could be read */
	bool filtered; /* seccomp */
	bool inner;    /* in a user namespace: its capabilities are not valid on the host */
};

static bool has_cap(const struct rights *r, unsigned bit)
{
	return (r->caps >> bit & 1) != 0;
}

/* "0 0 4294967295": all ids are the host's own. */
static bool is_inner(const struct uni_kvm_bpf_host *h)
{
	char map[128];
	uint64_t v[3];
	char *s = map;

	line_of(h, "/proc/self/uid_map", map, sizeof(map));
	for (size_t i = 0; i < 3; i++) {
		char *end;

		v[i] = strtoull(s, &end, 10);
		if (end == s)
			return false; /* a kernel without user namespaces */
		s = end;
	}
	return v[0] != 0 || v[1] != 0 || v[2] != UINT32_MAX;
}

static void read_rights(const struct uni_kvm_bpf_host *h, struct rights *r)
{
	char text[8192], path[512];
	uint64_t v;

	memset(r, 0, sizeof(*r));
	if (uni_read_small(
		    path_of(h, "/proc/self/status", path, sizeof(path)), text, sizeof(text)) > 0) {
		r->known = status_value(text, "CapEff:", 16, &r->caps);
		if (!status_value(text, "CapBnd:", 16, &r->most))
			r->most = UINT64_MAX;
		r->filtered = status_value(text, "Seccomp:", 10, &v) && v == 2;
	}
	line_of(h, "/proc/sys/kernel/cap_last_cap", text, sizeof(text));
	r->old = text[0] != '\0' && strtoull(text, NULL, 10) < CAP_BPF_BIT;
	r->inner = is_inner(h);
}

static void check_syscall(const struct uni_kvm_bpf_host *h, struct uni_host_way *w)
{
	if (h->prog_errno == ENOSYS)
		uni_host_fact_add(
			w, "bpf", false, "this kernel has no bpf(): it needs CONFIG_BPF_SYSCALL=y");
	else
		uni_host_fact_add(w, "bpf", true, "Linux %s has bpf()", h->release);
}

static bool btf_holds(const char *data, size_t size, const char *word)
{
	/* Names in BTF are separated by NULs. */
	return memmem(data, size, word, strlen(word) + 1) != NULL;
}

static void check_kvm_types(
	const struct uni_kvm_bpf_host *h, const char *btf, size_t size, struct uni_host_way *w)
{
	char path[512];

	/* Even if KVM is a module, the kernel's own types may have its structures. */
	if (access(path_of(h, "/sys/kernel/btf/kvm", path, sizeof(path)), R_OK) == 0)
		uni_host_fact_add(w, "kvm types", true, "/sys/kernel/btf/kvm");
	else if (btf_holds(btf, size, "kvm_vcpu"))
		uni_host_fact_add(w, "kvm types", true, "built into the kernel");
	else if (access(path_of(h, "/sys/module/kvm", path, sizeof(path)), F_OK) != 0)
		uni_host_fact_add(
			w, "kvm types", false, "KVM is not loaded (modprobe kvm_intel or kvm_amd)");
	else
		uni_host_fact_add(w, "kvm types", false,
			"KVM's module tells nothing of its types: the kernel needs "
			"CONFIG_DEBUG_INFO_BTF_MODULES=y");
}

static void check_btf(const struct uni_kvm_bpf_host *h, struct uni_host_way *w)
{
	_cleanup_free_ char *data = NULL;
	char path[512];
	size_t size;

	path_of(h, "/sys/kernel/btf/vmlinux", path, sizeof(path));
	if (uni_read_regular(path, BTF_MAX, &data, &size, NULL) != 0) {
		uni_host_fact_add(w, "btf", false,
			"there is no readable /sys/kernel/btf/vmlinux: the kernel needs "
			"CONFIG_DEBUG_INFO_BTF=y, or a container hides it");
		return;
	}
	uni_host_fact_add(w, "btf", true, "/sys/kernel/btf/vmlinux");
	check_kvm_types(h, data, size, w);
	if (!btf_holds(data, size, "BPF_FUNC_loop"))
		uni_host_fact_add(w, "bpf_loop", false,
			"Linux %s is too old: its bpf has no loops (needs 5.17)", h->release);
}

static void check_perf(const struct uni_kvm_bpf_host *h, struct uni_host_way *w)
{
	char path[512];

	path_of(h, "/proc/sys/kernel/perf_event_paranoid", path, sizeof(path));
	if (h->event_errno == ENOSYS || access(path, F_OK) != 0)
		uni_host_fact_add(w, "perf events", false,
			"this kernel has no perf events: it needs CONFIG_PERF_EVENTS=y");
	else if (h->prog_errno == EINVAL)
		uni_host_fact_add(w, "perf events", false,
			"this kernel runs no bpf programs on perf events: it needs "
			"CONFIG_BPF_EVENTS=y");
	else
		uni_host_fact_add(w, "perf events", true, "the kernel has them");
}

static void check_lockdown(const struct uni_kvm_bpf_host *h, struct uni_host_way *w)
{
	char mode[128];

	line_of(h, "/sys/kernel/security/lockdown", mode, sizeof(mode));
	if (strstr(mode, "[confidentiality]") != NULL)
		uni_host_fact_add(w, "lockdown", false,
			"kernel lockdown is \"confidentiality\": no bpf program may read the "
			"kernel; boot with lockdown=integrity or without");
	else
		uni_host_fact_add(w, "lockdown", true, "does not forbid it (%s)",
			mode[0] != '\0' ? mode : "there is none");
}

/* The capabilities that are missing, and how to get them. */
static void add_grant(const struct uni_kvm_bpf_host *h, const struct rights *r, const char *missing,
	bool withheld, struct uni_host_way *w)
{
	const char *exe = h->exe[0] != '\0' ? h->exe : "PATH/uniscope";

	if (h->uid == 0 || withheld || r->old)
		uni_host_fact_add(w, "capabilities", false, "%s missing: %s", missing,
			uni_kvm_rights_advice(h->uid, withheld));
	else
		uni_host_fact_add(w, "capabilities", false,
			"%s missing: %s, or once: setcap cap_bpf,cap_perfmon+ep %s", missing,
			uni_kvm_rights_advice(h->uid, withheld), exe);
}

static void check_caps(
	const struct uni_kvm_bpf_host *h, const struct rights *r, struct uni_host_way *w)
{
	bool admin = has_cap(r, CAP_SYS_ADMIN_BIT);
	bool bpf = admin || has_cap(r, CAP_BPF_BIT), perfmon = admin || has_cap(r, CAP_PERFMON_BIT);
	bool no_bpf = (r->most >> CAP_BPF_BIT & 1) == 0;
	bool no_perfmon = (r->most >> CAP_PERFMON_BIT & 1) == 0;
	char old[128];

	(void)snprintf(
		old, sizeof(old), "CAP_SYS_ADMIN (Linux %.60s knows no CAP_BPF) is", h->release);
	if (r->inner)
		uni_host_fact_add(w, "user namespace", false,
			"this is a user namespace of its own (a rootless container?): capabilities "
			"count only outside, so run uniscope on the host");
	else if (!r->known)
		uni_host_fact_add(w, "capabilities", h->prog_errno == 0,
			"/proc/self/status does not tell them");
	else if (r->old && !admin)
		add_grant(h, r, old, (r->most >> CAP_SYS_ADMIN_BIT & 1) == 0, w);
	else if (!bpf && !perfmon)
		add_grant(h, r, "CAP_BPF and CAP_PERFMON are", no_bpf || no_perfmon, w);
	else if (!bpf || !perfmon)
		add_grant(
			h, r, bpf ? "CAP_PERFMON is" : "CAP_BPF is", bpf ? no_perfmon : no_bpf, w);
	else
		uni_host_fact_add(w, "capabilities", true,
			admin ? "CAP_SYS_ADMIN" : "CAP_BPF and CAP_PERFMON");
}

/* The sampler also reads a VMM's list of files and its memory, as any debugger does. */
static void check_whose(
	const struct uni_kvm_bpf_host *h, const struct rights *r, struct uni_host_way *w)
{
	if (!r->known || r->inner)
		return;
	if (uni_kvm_rights_read_all(r->caps))
		uni_host_fact_add(w, "processes", true, "VMMs of every user");
	else
		uni_host_fact_add(w, "processes", true,
			"VMMs of uid %u only: those of others need CAP_SYS_PTRACE and "
			"CAP_DAC_READ_SEARCH too%s",
			h->uid, h->uid != 0 && uni_kvm_rights_read_all(r->most) ? ", or root" : "");
}

/* Adds the failed trials that no fact above explains. */
static void check_trials(
	const struct uni_kvm_bpf_host *h, const struct rights *r, struct uni_host_way *w)
{
	char paranoid[32], unpriv[32];

	line_of(h, "/proc/sys/kernel/unprivileged_bpf_disabled", unpriv, sizeof(unpriv));
	line_of(h, "/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	uni_host_way_judge(w);
	if (h->prog_errno == 0 && h->refused == NULL)
		uni_host_fact_add(w, "program", true, "a trial was loaded");
	else if (h->prog_errno == 0)
		uni_host_fact_add(w, "program", h->refused[0] == '\0', "%s",
			h->refused[0] == '\0' ? "the sampler's own were loaded" : h->refused);
	else if (w->ok && r->filtered)
		uni_host_fact_add(w, "program", false,
			"a seccomp filter of this container or service forbids bpf() (%s): run "
			"uniscope outside, or allow bpf and perf_event_open",
			strerror(h->prog_errno));
	else if (w->ok)
		uni_host_fact_add(w, "program", false,
			"bpf() refuses a trial program: %s (a security module? "
			"kernel.unprivileged_bpf_disabled is %s)",
			strerror(h->prog_errno), unpriv[0] != '\0' ? unpriv : "unset");
	if (h->event_errno == 0)
		uni_host_fact_add(w, "event", true, "a trial was opened");
	else if (w->ok && (h->event_errno == EACCES || h->event_errno == EPERM))
		uni_host_fact_add(w, "event", false,
			"perf_event_open() refuses although the capabilities are there: "
			"kernel.perf_event_paranoid is %s; try: sysctl -w "
			"kernel.perf_event_paranoid=2",
			paranoid);
	else if (w->ok)
		uni_host_fact_add(w, "event", false, "perf_event_open() refuses a trial: %s",
			strerror(h->event_errno));
}

/* "5.10.0-28-amd64" -> 0x050a; 0: it is no such text. */
static unsigned version_of(const char *release)
{
	char *end;
	unsigned long major = strtoul(release, &end, 10), minor = 0;

	if (end == release)
		return 0;
	if (*end == '.')
		minor = strtoul(end + 1, NULL, 10);
	return (unsigned)(uni_min(major, 255ul) << 8 | uni_min(minor, 255ul));
}

static void check_memlock(
	const struct uni_kvm_bpf_host *h, const struct rights *r, struct uni_host_way *w)
{
	unsigned version = version_of(h->release);

	if (version == 0 || version >= MEMLOCK_UNTIL || h->memlock_bytes >= MEMLOCK_WANTED ||
		has_cap(r, CAP_SYS_RESOURCE_BIT))
		return;
	uni_host_fact_add(w, "memlock", false,
		"RLIMIT_MEMLOCK is %" PRIu64
		" KiB, and Linux %s counts bpf's memory in it: ulimit -l "
		"unlimited",
		h->memlock_bytes >> 10, h->release);
}

void uni_kvm_bpf_judge(const struct uni_kvm_bpf_host *host, struct uni_host_way *way_ret)
{
	struct rights r;

	*way_ret = (struct uni_host_way){
		.name = "kvm-bpf",
		.summary = "sampler in the host's kernel: KVM guests are never stopped",
	};
	read_rights(host, &r);
	if (host->absent != NULL)
		uni_host_fact_add(way_ret, "build", false, "%s", host->absent);
	if (host->foreign != NULL)
		uni_host_fact_add(way_ret, "proc", false, "%s", host->foreign);
	check_syscall(host, way_ret);
	check_btf(host, way_ret);
	check_perf(host, way_ret);
	check_lockdown(host, way_ret);
	check_caps(host, &r, way_ret);
	check_whose(host, &r, way_ret);
	check_memlock(host, &r, way_ret);
	check_trials(host, &r, way_ret);
	uni_host_way_judge(way_ret);
}

static int try_program(void)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	static const char licence[] = "Dual BSD/GPL";
	union bpf_attr attr;
	_cleanup_close_ int fd = -1;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = uni_array_len(code);
	attr.license = (uint64_t)(uintptr_t)licence;
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd >= 0 ? 0 : errno;
}

static int try_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = UINT32_MAX,
		.disabled = 1,
	};
	_cleanup_close_ int fd =
		(int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd >= 0 ? 0 : errno;
}

bool uni_kvm_lacks_events(void)
{
	const uint64_t programs = UINT64_C(1) << CAP_PERFMON_BIT | UINT64_C(1) << CAP_BPF_BIT;
	int r = (uni_kvm_rights_caps() & programs) == programs ? try_event() : 0;

	return r == EACCES || r == EPERM;
}

/* exe is a buffer for our own path. */
static void ask_host(struct uni_kvm_bpf_host *ret, struct utsname *uts, char *exe, size_t cap,
	struct uni_err *absent, struct uni_err *foreign)
{
	struct rlimit lim = { 0 };
	ssize_t n = readlink("/proc/self/exe", exe, cap - 1);

	exe[n > 0 ? n : 0] = '\0';
	(void)uname(uts);
	(void)getrlimit(RLIMIT_MEMLOCK, &lim);
	*ret = (struct uni_kvm_bpf_host){ .root = "",
		.exe = exe,
		.uid = geteuid(),
		.release = uts->release,
		.memlock_bytes = lim.rlim_cur,
		.prog_errno = try_program(),
		.event_errno = try_event() };
	if (uni_kvm_kernel_ops(absent) == NULL)
		ret->absent = absent->msg;
	if (uni_process_numbers_check(foreign) != 0)
		ret->foreign = foreign->msg;
}

/* sampler_err, exits_err: NULL if these programs need not be tried. */
static void judge_host(
	struct uni_host_way *way_ret, struct uni_err *sampler_err, struct uni_err *exits_err)
{
	struct uni_kvm_bpf_host host;
	struct uni_err absent = { 0 }, foreign = { 0 };
	struct utsname uts = { 0 };
	char exe[200];

	ask_host(&host, &uts, exe, sizeof(exe), &absent, &foreign);
	uni_kvm_bpf_judge(&host, way_ret);
	if (sampler_err == NULL || !way_ret->ok)
		return;
	uni_kvm_kernel_ops(NULL)->trial(sampler_err, exits_err);
	host.refused = sampler_err->msg;
	uni_kvm_bpf_judge(&host, way_ret);
}

void uni_kvm_bpf_way(struct uni_host_way *way_ret, struct uni_err *exits_err)
{
	struct uni_err refused = { 0 };

	judge_host(way_ret, &refused, exits_err);
}

/* If root can grant it, it is a matter of permission; if only another kernel can, it is not. */
static enum uni_errcode code_of(const struct uni_host_way *w)
{
	static const char *const ours[] = { "capabilities", "user namespace", "memlock", "program",
		"event" };

	for (uint32_t i = 0; i < w->nr; i++) {
		bool permission = false;

		for (size_t k = 0; k < uni_array_len(ours); k++)
			permission = permission || strcmp(w->fact[i].name, ours[k]) == 0;
		if (!w->fact[i].ok && !permission)
			return UNI_ENOTSUP;
	}
	return UNI_EPERM;
}

int uni_kvm_bpf_check(struct uni_err *err)
{
	struct uni_host_way w;

	judge_host(&w, NULL, NULL);
	if (w.ok)
		return 0;
	return uni_err_set(err, code_of(&w), "%s", w.advice);
}
