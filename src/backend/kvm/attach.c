/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching. The kernel side, if there is one, gives everything about the guest, and the VMM is
 * left alone. The means to stop vCPUs are then prepared at the first snapshot.
 */
#include "backend/kvm/kvm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "backend/kvm/allow.h"
#include "backend/kvm/rest.h"
#include "backend/kvm/rights.h"
#include "backend/vmm/maps.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/qmp.h"

#define PRIME_TRIES 40
#define PRIME_NS    (5 * UNI_NSEC_PER_MSEC)

int uni_kvm_no_vm(int pid, struct uni_err *err)
{
	char comm[32];

	uni_vmm_comm(pid, comm, sizeof(comm));
	return uni_err_set(err, UNI_EINVAL, "pid %d (%s) is no VMM: it holds no KVM VM", pid, comm);
}

/* The process has no vCPUs that can be reached: reports what it is instead. */
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
	if (strcmp(k->info.vmm, "qemu") == 0 && strcmp(k->info.accel, "kvm") == 0)
		return uni_err_set(err, UNI_EAGAIN,
			"pid %d (%s) has not opened KVM yet: try again in a moment", k->pid, comm);
	return uni_kvm_no_vm(k->pid, err);
}

static int read_fds(const struct uni_kvm *k, struct uni_vmm_fds *ret, struct uni_err *err)
{
	int rc = uni_vmm_fds_read(k->pid, ret);

	if (rc == -UNI_EPERM)
		return uni_kvm_rights_check(k->pid, err);
	if (rc != 0)
		return uni_err_set(err, UNI_EGONE, "there is no process %d", k->pid);
	if (ret->nr_vcpus == 0)
		return no_vcpus(k, ret, err);
	if (ret->duplicate)
		return uni_err_set(err, UNI_ENOTSUP,
			"pid %d runs more than one VM: which one is meant cannot be told", k->pid);
	return 0;
}

/* The HVA of this vCPU's kvm_run in the VMM; 0: it is not mapped. */
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

/*
 * Zeroed memory for so many vCPUs. It must not be paged out, as it is used while a guest is
 * stopped.
 */
static int make_room(struct uni_kvm *k, uint32_t nr, struct uni_err *err)
{
	size_t bytes = nr * (sizeof(*k->vcpu) + sizeof(struct uni_hold *));
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return uni_err_nomem(err);
	(void)mlock(p, bytes); /* as far as RLIMIT_MEMLOCK permits */
	k->vcpu = p;
	k->wait = (struct uni_hold **)(k->vcpu + nr);
	k->room = bytes;
	for (uint32_t i = 0; i < nr; i++) {
		k->vcpu[i].fd = k->vcpu[i].syscall_fd = -1;
		k->vcpu[i].stat_fd = k->vcpu[i].schedstat_fd = -1;
	}
	k->nr = nr;
	return 0;
}

static int open_vcpus(struct uni_kvm *k, const struct uni_vmm_fds *fds, struct uni_err *err)
{
	_cleanup_maps_ struct uni_vmm_maps maps = { 0 };
	int rc = uni_vmm_maps_read(k->pid, &maps, err);

	if (rc == 0 && k->vcpu == NULL)
		rc = make_room(k, fds->nr_vcpus, err);
	for (uint32_t i = 0; rc == 0 && i < k->nr; i++) {
		k->vcpu[i].id = fds->vcpu[i].id;
		k->vcpu[i].fd = fds->vcpu[i].fd;
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
 * Reads the first registers. A vCPU in KVM_RUN gives them at the first stop. If the VMM has the
 * vCPU just then, another try is needed. A vCPU that sleeps in the VMM gives none before its next
 * exit; the attach must not wait for that.
 */
static int first_regs(struct uni_kvm *k, struct uni_regs *ret, struct uni_err *err)
{
	const struct timespec pause = uni_ns_timespec(PRIME_NS);
	const struct uni_vcpuset all = uni_vcpuset_first(k->nr);

	for (unsigned tries = 0; tries < PRIME_TRIES; tries++) {
		int rc = uni_kvm_snap(&k->base, &all, ret, UNI_SNAP_HOLD);

		(void)uni_kvm_release(&k->base);
		if (rc == 0 && !any_unknown(ret, k->nr))
			return 0;
		if (rc == -UNI_EGONE)
			return uni_err_set(err, UNI_EGONE, "pid %d ended", k->pid);
		(void)nanosleep(&pause, NULL);
	}
	return 0; /* if all are UNKNOWN, only the image can tell where RAM is */
}

static bool all_unknown(const struct uni_regs *regs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (regs[i].state != UNI_VCPU_UNKNOWN)
			return false;
	}
	return true;
}

/* regs_ret: one for each vCPU, zeroed. */
static int read_first_registers(struct uni_kvm *k, const struct uni_attach_opts *opts,
	struct uni_regs *ret, struct uni_err *err)
{
	const struct uni_kvm_scan *scan;

	if (k->kernel == NULL) {
		int rc = k->rests ? 0 : first_regs(k, ret, err);

		for (uint32_t i = 0; k->rests && i < k->nr; i++)
			ret[i].state = UNI_VCPU_UNKNOWN;
		/* VMMs that name their threads show their vCPUs even at rest. */
		if (rc == 0 && opts->rest_ok && !k->rests && all_unknown(ret, k->nr))
			k->rests = uni_kvm_is_paused(k->pid);
		return rc;
	}
	scan = k->side->scan(k->kernel);
	for (uint32_t i = 0; i < k->nr; i++)
		uni_kvm_scan_regs(&scan->vcpu[i].vcpu.regs, &ret[i]);
	return 0;
}

/* The kernel knows all of the guest's memory; a search by the image finds one block. */
static int take_regions(struct uni_kvm *k, struct uni_err *err)
{
	struct uni_gmem_region region[UNI_BPF_SLOTS];
	size_t n = k->side->regions(k->kernel, region, uni_array_len(region));
	int rc = uni_gmem_set_regions(k->gmem, region, n, err);

	k->ram.size_bytes = 0;
	for (size_t i = 0; i < n; i++)
		k->ram.size_bytes += region[i].size;
	(void)snprintf(k->ram.note, sizeof(k->ram.note),
		"RAM by the kernel's memory slots: %llu MiB",
		(unsigned long long)(k->ram.size_bytes >> 20));
	return rc;
}

static int find_ram(
	struct uni_kvm *k, const struct uni_attach_opts *opts, const char *qmp, struct uni_err *err)
{
	_cleanup_free_ struct uni_regs *regs = calloc(k->nr, sizeof(*regs));
	struct uni_vmm_ram_opts ram = { .arch = k->base.arch,
		.text = opts->text,
		.nr_text = opts->nr_text,
		.anywhere = opts->anywhere,
		.over = opts->over,
		.over_ctx = opts->over_ctx,
		.regs = regs,
		.nr_regs = k->nr };
	struct uni_qmp *q = NULL;
	int rc;

	if (regs == NULL)
		return uni_err_nomem(err);
	rc = read_first_registers(k, opts, regs, err);
	if (rc == 0 && k->kernel != NULL) {
		ram.gpa2hva = k->side->gpa2hva;
		ram.gpa2hva_ctx = k->kernel;
	} else if (rc == 0 && qmp != NULL) {
		rc = uni_qmp_open(qmp, 0, &q, err);
		ram.gpa2hva = uni_qmp_gpa2hva;
		ram.gpa2hva_ctx = q;
	}
	if (rc == 0)
		rc = uni_vmm_ram_attach(k->pid, &ram, &k->gmem, &k->ram, err);
	uni_qmp_close(q);
	if (rc == 0 && k->kernel != NULL)
		rc = take_regions(k, err);
	return rc == 0 && k->rests ? uni_kvm_rest(k, opts, err) : rc;
}

static void describe_kvm(struct uni_kvm *k, const char *why_not)
{
	uint32_t nr_lost = 0;
	size_t n;

	k->info.nr_vcpus = k->nr;
	(void)snprintf(k->info.why, sizeof(k->info.why), "%.500s", why_not);
	if (k->kernel != NULL) {
		(void)snprintf(k->info.note, sizeof(k->info.note), "%s", k->ram.note);
		return;
	}
	if (k->rests) {
		(void)snprintf(k->info.note, sizeof(k->info.note),
			"paused by its VMM, page tables by search, %s", k->ram.note);
		return;
	}
	for (uint32_t i = 0; i < k->nr; i++)
		nr_lost += k->vcpu[i].hold.tid == 0;
	(void)snprintf(k->info.note, sizeof(k->info.note), "synchronized registers (%s), %s",
		k->vcpu[0].sync.run != NULL ? "kvm_run mapped" : "process_vm_readv", k->ram.note);
	n = strlen(k->info.note);
	if (nr_lost != 0)
		(void)snprintf(k->info.note + n, sizeof(k->info.note) - n,
			", %u vCPUs not seen running", (unsigned)nr_lost);
}

/*
 * Prepares the means to stop vCPUs and read their registers. Requests nothing from KVM before
 * uni_kvm_allow() permits it.
 */
static int prepare_kvm(struct uni_kvm *k, const struct uni_vmm_fds *fds, struct uni_err *err)
{
	struct uni_vmm_cmdline cmdline;
	struct uni_kvm_host host;
	int rc = uni_vmm_cmdline_read(k->pid, &cmdline);

	if (rc != 0)
		return uni_err_set(err, UNI_EGONE, "pid %d ended", k->pid);
	rc = uni_kvm_host_read(k->pidfd, fds->kvm_fd, &host, err);
	if (rc == 0)
		rc = uni_kvm_allow(&host, &cmdline, fds, err);
	if (rc != 0)
		return rc;
	k->restart = cmdline.vmm[0] == '\0' || strcmp(cmdline.vmm, "solo5-hvt") == 0;
	k->keep_valid = cmdline.vmm[0] == '\0' || strcmp(cmdline.vmm, "crosvm") == 0;
	uni_kvm_watchdog_start(&k->watchdog);
	rc = open_vcpus(k, fds, err);
	uni_kvm_watchdog_hold(&k->watchdog);
	if (rc == 0)
		rc = uni_kvm_find_threads(k->pid, k->vcpu, k->nr, &k->late, k->wish, err);
	(void)uni_kvm_release(&k->base);
	if (rc == 0)
		rc = start_vcpus(k, err);
	return rc;
}

void uni_kvm_count_left_off(struct uni_kvm *k, const struct uni_vmm_fds *fds)
{
	uint32_t all = fds->nr_vcpus + fds->nr_vcpus_left_off;

	k->base.nr_left_off = all > k->nr ? all - k->nr : 0;
}

int uni_kvm_prepare(struct uni_kvm *k, struct uni_err *err)
{
	_cleanup_free_ struct uni_regs *regs = NULL;
	struct uni_vmm_fds fds;
	int rc = read_fds(k, &fds, err);

	if (rc == 0 && fds.nr_vcpus < k->nr)
		rc = uni_err_set(err, UNI_EGONE, "vCPUs of pid %d were unplugged", k->pid);
	fds.nr_vcpus = k->nr;
	if (rc == 0)
		rc = prepare_kvm(k, &fds, err);
	if (rc != 0)
		return rc;
	k->prepared = true;
	regs = calloc(k->nr, sizeof(*regs));
	return regs != NULL ? first_regs(k, regs, err) : 0;
}

/*
 * Returns 0: the kernel side works. Otherwise the reason, which is an error only if the user asked
 * for it.
 */
static int open_kernel(struct uni_kvm *k, const struct uni_attach_opts *opts, struct uni_err *err)
{
	int rc = -UNI_ENOTSUP;

	k->side = uni_kvm_kernel_ops(err);
	if (k->side != NULL)
		rc = k->side->open(k->pid, opts->shared, &k->kernel, err);
	if (rc != 0)
		return rc;
	rc = make_room(k, k->side->scan(k->kernel)->nr_vcpus, err);
	for (uint32_t i = 0; rc == 0 && i < k->nr; i++)
		k->vcpu[i].id = k->side->scan(k->kernel)->vcpu[i].id;
	k->side->keep_text(k->kernel, opts->text, opts->nr_text);
	return rc;
}

static int prepare_or_rest(struct uni_kvm *k, const struct uni_attach_opts *opts,
	const struct uni_vmm_fds *fds, struct uni_err *err)
{
	int rc = prepare_kvm(k, fds, err);

	if (rc != -UNI_EAGAIN || !opts->rest_ok || !uni_kvm_is_paused(k->pid))
		return rc;
	k->rests = true;
	err->code = 0;
	return 0;
}

int uni_kvm_attach_pid(struct uni_kvm *k, const struct uni_attach_opts *opts, enum uni_kvm_via via,
	const char *qmp, struct uni_err *err)
{
	struct uni_err why = { 0 };
	struct uni_vmm_fds fds;
	int rc;

	k->pidfd = (int)syscall(SYS_pidfd_open, k->pid, 0u);
	if (k->pidfd < 0)
		return uni_err_set(err, errno == EINVAL ? UNI_EINVAL : UNI_EGONE,
			"there is no process %d", k->pid);
	(void)uni_vmm_describe(k->pid, &k->info);
	k->wish = opts;
	/* Without rights, nothing else is possible. */
	if (via == UNI_KVM_VIA_AUTO && !uni_privilege_may_stop())
		via = UNI_KVM_VIA_BPF;
	rc = read_fds(k, &fds, err);
	if (rc == 0 && via == UNI_KVM_VIA_BPF)
		rc = open_kernel(k, opts, err);
	else if (rc == 0 && via == UNI_KVM_VIA_AUTO)
		(void)open_kernel(k, opts, &why);
	if (rc == 0 && k->kernel == NULL)
		rc = prepare_or_rest(k, opts, &fds, err);
	k->prepared = rc == 0 && k->kernel == NULL;
	if (rc == 0)
		uni_kvm_count_left_off(k, &fds);
	if (rc == 0)
		rc = find_ram(k, opts, qmp, err);
	if (rc == 0)
		describe_kvm(k, why.msg);
	k->wish = NULL;
	return rc;
}
