/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/kvm/kvm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "target/kvm/allow.h"
#include "target/kvm/ways.h"
#include "target/vmm/maps.h"
#include "target/vmm/proc.h"
#include "target/vmm/qmp.h"

#define PRIME_TRIES 40
#define PRIME_NS    (5 * UNI_NSEC_PER_MSEC)
#define DETACH_NS   (5 * UNI_NSEC_PER_SEC)

static int get_pid(const struct uni_spec *spec, int *ret, struct uni_err *err)
{
	uint64_t pid;
	int rc = uni_spec_get_u64(spec, "pid", &pid, err);

	if (rc == -UNI_ENOENT)
		return uni_err_set(
			err, UNI_EUSAGE, "target %s: pid is missing: kvm:pid=4121", spec->text);
	if (rc != 0)
		return rc;
	if (pid == 0 || pid > INT32_MAX)
		return uni_err_set(err, UNI_EUSAGE, "target %s: no such pid", spec->text);
	*ret = (int)pid;
	return 0;
}

static int get_method(const struct uni_spec *spec, enum uni_kvm_method *ret, struct uni_err *err)
{
	const char *m = uni_spec_get(spec, "method");

	if (m == NULL || strcmp(m, "auto") == 0)
		*ret = UNI_KVM_AUTO;
	else if (strcmp(m, "sync") == 0)
		*ret = UNI_KVM_MAPPED;
	else if (strcmp(m, "procmem") == 0)
		*ret = UNI_KVM_PROCMEM;
	else
		return uni_err_set(
			err, UNI_EUSAGE, "target %s: method is auto, sync or procmem", spec->text);
	return 0;
}

static int kvm_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	int pid = 0, rc = uni_spec_check_keys(spec, "pid qmp method", err);

	if (rc == 0)
		rc = get_pid(spec, &pid, err);
	if (rc != 0)
		return rc;
	rc = uni_vmm_describe(pid, ret);
	return rc == -UNI_EGONE ? uni_err_set(err, UNI_EGONE, "there is no process %d", pid) : 0;
}

/* The process is none whose vCPUs can be reached: says what it is instead. */
static int no_vcpus(const struct uni_kvm *k, const struct uni_vmm_fds *fds, struct uni_err *err)
{
	char comm[32];

	uni_vmm_comm(k->pid, comm, sizeof(comm));
	if (strcmp(k->info.accel, "tcg") == 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"pid %d (%s) does not use KVM (it emulates the CPU, or was given no "
			"accelerator): "
			"start it with -gdb and use the gdb: target",
			k->pid, comm);
	if (fds->nr_vms != 0)
		return uni_err_set(err, UNI_EAGAIN, "pid %d (%s) has a KVM VM without vCPUs (yet)",
			k->pid, comm);
	return uni_err_set(
		err, UNI_EINVAL, "pid %d (%s) is no VMM: it holds no KVM VM", k->pid, comm);
}

static int read_fds(const struct uni_kvm *k, struct uni_vmm_fds *ret, struct uni_err *err)
{
	int rc = uni_vmm_fds_read(k->pid, ret);

	if (rc == -UNI_EPERM)
		return uni_err_set(err, UNI_EPERM,
			"not permitted to look into pid %d: it needs the VMM's own user, or "
			"CAP_SYS_PTRACE",
			k->pid);
	if (rc != 0)
		return uni_err_set(err, UNI_EGONE, "there is no process %d", k->pid);
	if (ret->nr_vcpus == 0)
		return no_vcpus(k, ret, err);
	if (ret->duplicate)
		return uni_err_set(err, UNI_ENOTSUP,
			"pid %d runs more than one VM: which one is meant cannot be told", k->pid);
	return 0;
}

/* Where the VMM maps kvm_run of this vCPU; 0 if it does not. */
static uint64_t run_hva(const struct uni_vmm_maps *maps, uint32_t id)
{
	for (size_t i = 0; i < maps->m.nr; i++) {
		const struct uni_vmm_map *m = &maps->m.v[i];
		uint32_t n;

		if (uni_vmm_vcpu_of_link(m->name, &n) && n == id && m->offset == 0)
			return m->start;
	}
	return 0;
}

static int open_vcpus(struct uni_kvm *k, const struct uni_vmm_fds *fds, struct uni_err *err)
{
	_cleanup_maps_ struct uni_vmm_maps maps = { 0 };
	int rc = uni_vmm_maps_read(k->pid, &maps, err);

	for (uint32_t i = 0; i < fds->nr_vcpus; i++) {
		k->vcpu[i] = (struct uni_kvm_vcpu){ .id = fds->vcpu[i].id,
			.fd = fds->vcpu[i].fd,
			.syscall_fd = -1,
			.schedstat_fd = -1 };
		k->nr = i + 1;
		if (rc != 0)
			continue;
		rc = uni_kvm_sync_open(&k->vcpu[i].sync, k->pid, k->pidfd, k->vcpu[i].fd,
			run_hva(&maps, k->vcpu[i].id), k->method, err);
		k->vcpu[i].synced = rc == 0;
	}
	return rc;
}

static int start_vcpus(struct uni_kvm *k, struct uni_err *err)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		int rc = uni_kvm_sync_start(&k->vcpu[i].sync, !k->keep_valid);

		if (rc != 0)
			return uni_err_set(err, (enum uni_errcode) - rc,
				"cannot ask for the registers of pid %d: %s", k->pid,
				uni_strerror(rc));
	}
	return 0;
}

static bool any_unknown(const struct uni_regs *regs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (regs[i].state == UNI_VCPU_UNKNOWN)
			return true;
	}
	return false;
}

/*
 * First registers. A vCPU that is in KVM_RUN gives them at the first stop; one that the VMM keeps
 * to itself just then needs another try, and one that sleeps in the VMM gives none before its next
 * exit, which must not hold up the attach.
 */
static int first_regs(struct uni_kvm *k, struct uni_regs *ret, struct uni_err *err)
{
	const struct timespec pause = uni_ns_timespec(PRIME_NS);

	for (unsigned tries = 0; tries < PRIME_TRIES; tries++) {
		int rc = uni_kvm_snap(&k->base, uni_kvm_all(k), ret, 0);

		if (rc == 0 && !any_unknown(ret, k->nr))
			return 0;
		if (rc == -UNI_EGONE)
			return uni_err_set(err, UNI_EGONE, "pid %d ended", k->pid);
		(void)nanosleep(&pause, NULL);
	}
	return 0; /* with all UNKNOWN the image alone has to tell where RAM is */
}

static int find_ram(
	struct uni_kvm *k, const struct uni_attach_opts *opts, const char *qmp, struct uni_err *err)
{
	_cleanup_free_ struct uni_regs *regs = calloc(k->nr, sizeof(*regs));
	struct uni_vmm_ram_opts ram = { .arch = k->base.arch,
		.text = opts->text,
		.nr_text = opts->nr_text,
		.regs = regs,
		.nr_regs = k->nr };
	struct uni_qmp *q = NULL;
	int rc;

	if (regs == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = first_regs(k, regs, err);
	if (rc == 0 && qmp != NULL) {
		rc = uni_qmp_open(qmp, 0, &q, err);
		ram.gpa2hva = uni_qmp_gpa2hva;
		ram.gpa2hva_ctx = q;
	}
	if (rc == 0)
		rc = uni_vmm_ram_attach(k->pid, &ram, &k->gmem, &k->ram, err);
	uni_qmp_close(q);
	return rc;
}

static void describe(struct uni_kvm *k)
{
	uint32_t nr_lost = 0;

	for (uint32_t i = 0; i < k->nr; i++)
		nr_lost += k->vcpu[i].hold.tid == 0;
	k->info.nr_vcpus = k->nr;
	(void)snprintf(k->info.note, sizeof(k->info.note), "synchronized registers (%s), %s",
		k->vcpu[0].sync.run != NULL ? "kvm_run mapped" : "process_vm_readv", k->ram.note);
	if (nr_lost != 0) {
		size_t n = strlen(k->info.note);

		(void)snprintf(k->info.note + n, sizeof(k->info.note) - n,
			", %u vCPUs not seen running", (unsigned)nr_lost);
	}
}

/* Stops are waited for by SIGCHLD; threads made from now on inherit that it is blocked. */
static void block_child_signal(struct uni_kvm *k)
{
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &child, &k->old_signals);
}

static int attach_pid(
	struct uni_kvm *k, const struct uni_attach_opts *opts, const char *qmp, struct uni_err *err)
{
	struct uni_kvm_host host;
	struct uni_vmm_cmdline cmdline;
	struct uni_vmm_fds fds;
	int rc;

	k->pidfd = (int)syscall(SYS_pidfd_open, k->pid, 0u);
	if (k->pidfd < 0)
		return uni_err_set(err, errno == EINVAL ? UNI_EINVAL : UNI_EGONE,
			"there is no process %d", k->pid);
	(void)uni_vmm_describe(k->pid, &k->info);
	rc = read_fds(k, &fds, err);
	if (rc != 0)
		return rc;
	rc = uni_vmm_cmdline_read(k->pid, &cmdline);
	if (rc != 0)
		return uni_err_set(err, UNI_EGONE, "pid %d ended", k->pid);
	rc = uni_kvm_host_read(k->pidfd, fds.kvm_fd, &host, err);
	if (rc == 0)
		rc = uni_kvm_allow(&host, &cmdline, &fds, err);
	if (rc != 0)
		return rc;
	k->restart = cmdline.vmm[0] == '\0' || strcmp(cmdline.vmm, "solo5-hvt") == 0;
	k->keep_valid = cmdline.vmm[0] == '\0' || strcmp(cmdline.vmm, "crosvm") == 0;
	uni_kvm_watchdog_start(&k->watchdog);
	rc = open_vcpus(k, &fds, err);
	uni_kvm_watchdog_hold(&k->watchdog);
	if (rc == 0)
		rc = uni_kvm_find_threads(k->pid, k->vcpu, k->nr, &k->late, err);
	(void)uni_kvm_release(&k->base);
	if (rc == 0)
		rc = start_vcpus(k, err);
	if (rc == 0)
		rc = find_ram(k, opts, qmp, err);
	if (rc == 0)
		describe(k);
	return rc;
}

static void kvm_detach(struct uni_target *t)
{
	struct uni_kvm *k = (struct uni_kvm *)t;
	const struct timespec pause = uni_ns_timespec(PRIME_NS);

	uint64_t until = uni_now_ns() + DETACH_NS;

	(void)uni_kvm_release(t);
	/* A thread that has not stopped yet would stop for nobody; one that was killed and is not
	 * collected keeps the VMM a zombie. */
	while (uni_kvm_any_held(k) && uni_now_ns() < until) {
		(void)nanosleep(&pause, NULL);
		(void)uni_kvm_release(t);
	}
	uni_kvm_watchdog_stop_again(&k->watchdog);
	uni_kvm_watchdog_end(&k->watchdog);
	for (uint32_t i = 0; i < k->nr; i++) {
		if (k->vcpu[i].synced)
			uni_kvm_sync_close(&k->vcpu[i].sync, k->keep_valid);
		if (k->vcpu[i].syscall_fd >= 0)
			(void)close(k->vcpu[i].syscall_fd);
		if (k->vcpu[i].schedstat_fd >= 0)
			(void)close(k->vcpu[i].schedstat_fd);
	}
	uni_gmem_destroy(k->gmem);
	(void)pthread_sigmask(SIG_SETMASK, &k->old_signals, NULL);
	if (k->pidfd >= 0)
		(void)close(k->pidfd);
	(void)munmap(k, sizeof(*k));
}

static int kvm_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	extern const struct uni_target_ops uni_target_kvm;
	enum uni_kvm_method method = UNI_KVM_AUTO;
	const char *qmp;
	struct uni_kvm *k;
	int pid = 0, rc = uni_spec_check_keys(spec, "pid qmp method", err);

	if (rc == 0)
		rc = get_pid(spec, &pid, err);
	if (rc == 0)
		rc = get_method(spec, &method, err);
	if (rc != 0)
		return rc;
	if (opts->arch != NULL && opts->arch != &uni_arch_x86_64)
		return uni_err_set(err, UNI_ENOTSUP,
			"the kvm target reaches x86_64 guests, the image is for %s",
			opts->arch->name);
	/* Pages of its own: what is touched while a guest stands must not be paged out. */
	k = mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (k == MAP_FAILED)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	(void)mlock(k, sizeof(*k)); /* as far as RLIMIT_MEMLOCK permits */
	*k = (struct uni_kvm){
		.base = { .ops = &uni_target_kvm, .arch = &uni_arch_x86_64 },
		.pid = pid,
		.pidfd = -1,
		.method = method,
	};
	qmp = uni_spec_get(spec, "qmp");
	block_child_signal(k);
	rc = attach_pid(k, opts, qmp != NULL ? qmp : opts->qmp, err);
	if (rc != 0)
		kvm_detach(&k->base);
	else
		*ret = &k->base;
	return rc;
}

static unsigned kvm_caps(struct uni_target *t)
{
	return UNI_CAP_HOLD | UNI_CAP_SYSREGS;
}

static int kvm_nr_vcpus(struct uni_target *t)
{
	return (int)((struct uni_kvm *)t)->nr;
}

static struct uni_gmem *kvm_gmem(struct uni_target *t)
{
	return ((struct uni_kvm *)t)->gmem;
}

static int kvm_blocked(struct uni_target *t, struct uni_err *err)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	return uni_kvm_traced(k->pid, k->vcpu, k->nr, err);
}

static void kvm_info(struct uni_target *t, struct uni_target_info *ret)
{
	*ret = ((struct uni_kvm *)t)->info;
}

/* What the host can say; the rest depends on the guest and is asked on attaching. */
static int kvm_host_check(struct uni_err *err)
{
	struct uni_kvm_host host;
	char scope[8] = "0";

	if (access("/dev/kvm", F_OK) != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"there is no /dev/kvm: this host has no KVM (load kvm_intel or kvm_amd, or "
			"allow nested virtualisation); QEMU without KVM is reached by gdb:");
	if (access("/dev/kvm", R_OK | W_OK) == 0) {
		int rc = uni_kvm_host_read(-1, -1, &host, err);

		if (rc != 0)
			return rc;
		if (host.sync_regs <= 0)
			return uni_err_set(err, UNI_ENOTSUP,
				"this KVM has no synchronized registers (KVM_CAP_SYNC_REGS)");
	}
	if (geteuid() != 0 &&
		uni_read_small("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) > 0 &&
		scope[0] != '0')
		return uni_err_set(err, UNI_EPERM,
			"kernel.yama.ptrace_scope is %c: run as root, or set it to 0", scope[0]);
	return 0;
}

static bool kvm_claims(const struct uni_target_info *info, char *keys_ret, size_t cap)
{
	(void)snprintf(keys_ret, cap, "pid=%d", info->pid);
	return strcmp(info->accel, "kvm") == 0 && info->pid > 0;
}

extern const struct uni_target_ops uni_target_kvm;
const struct uni_target_ops uni_target_kvm = {
	.scheme = "kvm",
	.summary = "any VMM that uses KVM on x86, by its process",
	.keys = "pid=N[,qmp=PATH][,method=auto|sync|procmem]",
	.host_check = kvm_host_check,
	.host_ways = uni_kvm_host_ways,
	.claims = kvm_claims,
	.probe = kvm_probe,
	.attach = kvm_attach,
	.caps = kvm_caps,
	.nr_vcpus = kvm_nr_vcpus,
	.snap = uni_kvm_snap,
	.blocked = kvm_blocked,
	.release = uni_kvm_release,
	.gmem = kvm_gmem,
	.info = kvm_info,
	.alive = uni_kvm_alive,
	.detach = kvm_detach,
};
