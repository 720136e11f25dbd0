/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/ways.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "backend/kvm/allow.h"
#include "backend/kvm/bpfcheck.h"
#include "backend/kvm/rights.h"
#include "backend/vmm/cmdline.h"
#include "backend/vmm/fds.h"
#include "backend/vmm/proc.h"

/* The first line of a small file below root; false: it cannot be read. */
static bool line_of(const char *root, const char *name, char *out, size_t cap)
{
	char path[512];
	int n;

	(void)snprintf(path, sizeof(path), "%s%s", root, name);
	n = uni_read_small(path, out, cap);
	out[n > 0 ? strcspn(out, "\n") : 0] = '\0';
	return n > 0;
}

static void check_ptrace(const struct uni_kvm_pause_host *h, struct uni_host_way *w)
{
	char scope[16];

	if (!line_of(h->root, "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)))
		uni_host_fact_add(w, "ptrace", true, "own processes may be traced (no yama)");
	else if (scope[0] == '3')
		uni_host_fact_add(w, "ptrace", false,
			"kernel.yama.ptrace_scope is 3: nobody may trace until the next boot");
	else if (scope[0] == '0' || h->privileged)
		uni_host_fact_add(w, "ptrace", true, "kernel.yama.ptrace_scope is %s", scope);
	else
		uni_host_fact_add(w, "ptrace", false,
			"kernel.yama.ptrace_scope is %s and CAP_SYS_PTRACE is missing: %s, or: "
			"sysctl -w kernel.yama.ptrace_scope=0",
			scope, uni_kvm_rights_advice(h->uid, h->withheld));
}

static void check_schedstat(const struct uni_kvm_pause_host *h, struct uni_host_way *w)
{
	char line[128];

	/*
	 * A kernel that does not count shows zeros; a process that reads the file has run at least
	 * once.
	 */
	if (line_of(h->root, "/proc/self/schedstat", line, sizeof(line)) &&
		strcmp(line, "0 0 0") != 0)
		uni_host_fact_add(w, "schedstat", true, "idle and stolen time are known");
	else
		uni_host_fact_add(w, "schedstat", false,
			"the kernel does not count how long threads wait for a CPU: idle and "
			"stolen time cannot be told apart (CONFIG_SCHED_INFO; boot with "
			"delayacct)");
}

static bool is_there(const char *root, const char *name, int how)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s%s", root, name);
	return access(path, how) == 0;
}

/* /proc/misc lists the devices that a container need not have: "232 kvm". */
bool uni_kvm_is_there(const char *root)
{
	char path[512], text[4096];

	(void)snprintf(path, sizeof(path), "%s/proc/misc", root);
	return is_there(root, "/dev/kvm", F_OK) ||
	       (uni_read_small(path, text, sizeof(text)) > 0 && strstr(text, " kvm\n") != NULL);
}

static void check_place(const struct uni_kvm_pause_host *h, struct uni_host_way *w)
{
	if (!is_there(h->root, "/dev/kvm", F_OK) && uni_kvm_is_there(h->root))
		uni_host_fact_add(w, "device", false,
			"there is no /dev/kvm here: no guest can start with KVM (give it to a "
			"container by --device /dev/kvm). A VMM that has it open is reached");
	if (h->inner)
		uni_host_fact_add(w, "processes", false,
			"those of this container only (a pid namespace of its own): guests of the "
			"host are seen from the host, or with --pid=host");
}

void uni_kvm_pause_facts(const struct uni_kvm_pause_host *h, struct uni_host_way *w)
{
	if (!h->asked)
		uni_host_fact_add(w, "registers", true,
			"not asked: /dev/kvm cannot be opened; a VMM's own file will do");
	else if (h->sync_regs <= 0)
		uni_host_fact_add(w, "registers", false,
			"this KVM has no synchronized registers (KVM_CAP_SYNC_REGS)");
	else
		uni_host_fact_add(w, "registers", true, "KVM_CAP_SYNC_REGS is %d", h->sync_regs);
	check_ptrace(h, w);
	if (h->getfd_errno == 0)
		uni_host_fact_add(w, "pidfd_getfd", true, "a VMM's files can be shared");
	else
		uni_host_fact_add(w, "pidfd_getfd", false,
			"%s: registers are read with process_vm_readv, which takes longer "
			"(needs Linux 5.6, and no seccomp filter against it)",
			strerror(h->getfd_errno));
	check_schedstat(h, w);
	check_place(h, w);
}

/*
 * On VMX and SVM, a trace point that is found through tracefs gives the reason of an exit. The
 * other trace points need nothing; a software KVM has only those.
 */
static void check_tracefs(const char *root, struct uni_host_way *w)
{
	bool hardware = is_there(root, "/sys/module/kvm_intel", F_OK) ||
			is_there(root, "/sys/module/kvm_amd", F_OK);

	if (!hardware)
		uni_host_fact_add(w, "trace points", true, "tracefs is not needed for this KVM");
	else if (is_there(root, "/sys/kernel/tracing/events/kvm/kvm_exit/id", R_OK))
		uni_host_fact_add(w, "trace points", true, "/sys/kernel/tracing");
	else if (is_there(root, "/sys/kernel/tracing/events", F_OK))
		uni_host_fact_add(w, "trace points", false,
			"there is no trace point kvm:kvm_exit: the kernel needs "
			"CONFIG_TRACEPOINTS=y and KVM's module loaded");
	else if (is_there(root, "/sys/kernel/tracing", R_OK | X_OK))
		uni_host_fact_add(w, "trace points", false,
			"tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing");
	else
		uni_host_fact_add(w, "trace points", false,
			"/sys/kernel/tracing may not be read: run as root of the host, or let a "
			"group in (mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing)");
}

void uni_kvm_exits_judge(const char *root, const struct uni_host_way *bpf, const char *refused,
	struct uni_host_way *way_ret)
{
	*way_ret = (struct uni_host_way){
		.name = "kvm-exits",
		.summary = "what makes a KVM guest exit, and where (record --exits)",
	};
	if (bpf->ok)
		uni_host_fact_add(way_ret, "sampler", true, "kvm-bpf works");
	else
		uni_host_fact_add(way_ret, "sampler", false, "it needs kvm-bpf, see there");
	check_tracefs(root, way_ret);
	uni_host_way_judge(way_ret);
	/* Only if nothing above explains it already. */
	if (way_ret->ok)
		uni_host_fact_add(way_ret, "program", refused[0] == '\0', "%s",
			refused[0] == '\0' ? "its own were loaded and attached" : refused);
	uni_host_way_judge(way_ret);
}

static int try_getfd(void)
{
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0u);
	_cleanup_close_ int fd = -1;

	if (self < 0)
		return errno;
	fd = (int)syscall(SYS_pidfd_getfd, self, self, 0u);
	return fd >= 0 ? 0 : errno;
}

uint32_t uni_kvm_host_ways(struct uni_host_way *ret, uint32_t cap)
{
	extern const struct uni_target_ops uni_target_kvm;
	struct uni_kvm_pause_host host = { .root = "",
		.uid = geteuid(),
		.privileged = uni_kvm_rights_trace_all(uni_kvm_rights_caps()),
		.withheld = uni_kvm_rights_no_tracing(),
		.inner = uni_process_ids_are_inner() && uni_process_numbers_check(NULL) == 0 };
	struct uni_err err = { 0 }, refused = { 0 };
	struct uni_kvm_host kvm = { 0 };

	if (cap < 2)
		return 0;
	ret[0] = (struct uni_host_way){ .name = uni_target_kvm.scheme,
		.summary = uni_target_kvm.summary };
	ret[0].ok = uni_target_kvm.host_check(&err) == 0;
	(void)snprintf(ret[0].advice, sizeof(ret[0].advice), "%s", err.msg);
	host.asked = uni_kvm_host_read(-1, -1, &kvm, NULL) == 0;
	host.sync_regs = kvm.sync_regs;
	host.getfd_errno = try_getfd();
	uni_kvm_pause_facts(&host, &ret[0]);
	uni_kvm_bpf_way(&ret[1], cap > 2 ? &refused : NULL);
	if (cap == 2)
		return 2;
	uni_kvm_exits_judge("", &ret[1], refused.msg, &ret[2]);
	return 3;
}

/* The names of the facts that a way lacks: "capabilities, lockdown". */
static void list_lacking(const struct uni_host_way *w, char *out, size_t cap)
{
	size_t len = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < w->nr; i++) {
		int n;

		if (w->fact[i].ok)
			continue;
		n = snprintf(out + len, cap - len, "%s%s", len != 0 ? ", " : "", w->fact[i].name);
		if (n < 0 || (size_t)n >= cap - len)
			return;
		len += (size_t)n;
	}
}

/* Checks what attaching would refuse, as far as it is visible without touching the VMM. */
static int check_guest(const struct uni_target_info *info, struct uni_err *err)
{
	struct uni_vmm_cmdline cmdline;
	struct uni_vmm_fds fds;
	struct uni_kvm_host host;

	int rc = uni_kvm_rights_check(info->pid, err);

	if (rc != 0)
		return rc;
	if (uni_vmm_fds_read(info->pid, &fds) != 0 ||
		uni_vmm_cmdline_read(info->pid, &cmdline) != 0)
		return uni_err_set(err, UNI_EGONE, "it ended just now");
	if (fds.nr_vms == 0)
		return uni_err_set(err, UNI_EINVAL, "it holds no KVM VM");
	if (fds.nr_vms > 1)
		return uni_err_set(err, UNI_ENOTSUP,
			"the process runs more than one VM: which one is meant cannot be told");
	if (uni_kvm_host_read(-1, -1, &host, NULL) != 0)
		return 0; /* attaching uses the VMM's file for that */
	return uni_kvm_allow(&host, &cmdline, &fds, err);
}

int uni_kvm_choose(const struct uni_target_info *info, const struct uni_host_way *ways, uint32_t nr,
	char *why_ret, size_t cap)
{
	struct uni_err err = { 0 };
	char missing[160], halt[96] = "";
	int rc = check_guest(info, &err);

	if (rc != 0) {
		(void)snprintf(why_ret, cap, "%s", err.msg);
		return rc;
	}
	if (info->stopped)
		(void)snprintf(halt, sizeof(halt),
			"a signal has stopped its VMM (kill -CONT %d lets it "
			"run); ",
			info->pid);
	if (nr > 1 && ways[1].ok) {
		(void)snprintf(why_ret, cap, "%ssampled in the host's kernel, never stopped", halt);
		return 1;
	}
	if (nr > 1)
		list_lacking(&ways[1], missing, sizeof(missing));
	(void)snprintf(why_ret, cap,
		"%sstopped for each sample; for the sampler in the kernel see doctor: %s", halt,
		nr > 1 ? missing : "-");
	return 0;
}
