/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/kvm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/observer.h"
#include "backend/kvm/allow.h"
#include "backend/kvm/bpfcheck.h"
#include "backend/kvm/rest.h"
#include "backend/kvm/rights.h"
#include "backend/kvm/ways.h"
#include "backend/vmm/maps.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/qmp.h"

#define CMDLINE_MAX ((size_t)1 << 20)
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
	return uni_process_numbers_check(err);
}

static int get_via(const struct uni_spec *spec, enum uni_kvm_via *ret,
	enum uni_kvm_method *method_ret, struct uni_err *err)
{
	const char *m = uni_spec_get(spec, "via");

	*ret = UNI_KVM_VIA_STOP;
	*method_ret = UNI_KVM_AUTO;
	if (m == NULL || strcmp(m, "auto") == 0)
		*ret = UNI_KVM_VIA_AUTO;
	else if (strcmp(m, "bpf") == 0)
		*ret = UNI_KVM_VIA_BPF;
	else if (strcmp(m, "sync") == 0)
		*method_ret = UNI_KVM_MAPPED;
	else if (strcmp(m, "procmem") == 0)
		*method_ret = UNI_KVM_PROCMEM;
	else if (strcmp(m, "stop") != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"target %s: via is auto, bpf, stop, sync or procmem", spec->text);
	return 0;
}

static int kvm_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	int pid = 0, rc = uni_spec_check_keys(spec, "pid qmp via", err);

	if (rc == 0)
		rc = get_pid(spec, &pid, err);
	if (rc != 0)
		return rc;
	rc = uni_vmm_describe(pid, ret);
	if (rc == -UNI_EGONE)
		return uni_err_set(err, UNI_EGONE, "there is no process %d%s", pid,
			uni_process_ids_are_inner() ? " in this container, which has process ids "
						      "of its own"
						    : "");
	if (rc == 0)
		return 0;
	rc = uni_kvm_rights_check(pid, err);
	return rc != 0 ? rc : uni_kvm_no_vm(pid, err);
}

/* SIGCHLD reports stops; threads made from now on inherit that it is blocked. */
static void block_child_signal(struct uni_kvm *k)
{
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &child, &k->old_signals);
}

static void kvm_detach(struct uni_target *t)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	/*
	 * A thread that has not stopped yet would stop for nobody. A killed thread that is not
	 * collected keeps the VMM a zombie.
	 */
	(void)uni_target_settled(t, DETACH_NS);
	if (k->kernel != NULL)
		k->side->close(k->kernel);
	uni_kvm_watchdog_stop_again(&k->watchdog);
	uni_kvm_watchdog_end(&k->watchdog);
	for (uint32_t i = 0; i < k->nr; i++) {
		if (k->vcpu[i].synced)
			uni_kvm_sync_close(&k->vcpu[i].sync, k->keep_valid);
		if (k->vcpu[i].syscall_fd >= 0)
			(void)close(k->vcpu[i].syscall_fd);
		if (k->vcpu[i].stat_fd >= 0)
			(void)close(k->vcpu[i].stat_fd);
		if (k->vcpu[i].schedstat_fd >= 0)
			(void)close(k->vcpu[i].schedstat_fd);
	}
	uni_gmem_destroy(k->gmem);
	(void)pthread_sigmask(SIG_SETMASK, &k->old_signals, NULL);
	if (k->pidfd >= 0)
		(void)close(k->pidfd);
	if (k->vcpu != NULL)
		(void)munmap(k->vcpu, k->room);
	(void)munmap(k, sizeof(*k));
}

/* Some VMMs tell their image at a socket only, which takes rights as well. */
static bool tells_by_socket(int pid)
{
	_cleanup_free_ struct uni_vmm_cmdline *c = calloc(1, sizeof(*c));

	return c == NULL || uni_vmm_cmdline_words(pid, c) != 0 ||
	       (c->api[0] != '\0' && c->image[0] == '\0');
}

/* The programs in the kernel; a vCPU can be stopped only with rights. */
static int kvm_hand_over(const struct uni_spec *spec, struct uni_target_shared *shared, bool exits,
	struct uni_err *err)
{
	const struct uni_kvm_kernel_ops *side = uni_kvm_kernel_ops(err);
	enum uni_kvm_method method;
	enum uni_kvm_via via;
	int pid = 0, rc = get_pid(spec, &pid, err);

	if (rc == 0)
		rc = get_via(spec, &via, &method, err);
	if (rc != 0)
		return rc;
	if (side == NULL || (via != UNI_KVM_VIA_AUTO && via != UNI_KVM_VIA_BPF) ||
		uni_spec_get(spec, "qmp") != NULL || tells_by_socket(pid))
		return uni_err_set(err, UNI_ENOTSUP, "%s takes rights", spec->text);
	return side->hand_over(pid, shared, exits, err);
}

static bool kvm_stops(const struct uni_spec *spec, const struct uni_way_wish *wish)
{
	enum uni_kvm_method method;
	enum uni_kvm_via via;
	struct uni_err ignored = { 0 };

	if (get_via(spec, &via, &method, &ignored) != 0)
		return false;
	if (uni_spec_get(spec, "via") == NULL)
		return wish->asked == UNI_ASKED_PAUSE || wish->threads;
	return via == UNI_KVM_VIA_STOP;
}

static int kvm_stopped_pid(const struct uni_spec *spec, int *ret, struct uni_err *err)
{
	int rc = get_pid(spec, ret, err);

	if (rc == 0 && (uni_spec_get(spec, "qmp") != NULL || tells_by_socket(*ret)))
		rc = uni_err_set(err, UNI_ENOTSUP, "%s takes rights", spec->text);
	return rc;
}

static int kvm_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	extern const struct uni_target_ops uni_target_kvm;
	enum uni_kvm_method method;
	enum uni_kvm_via via;
	const char *qmp;
	struct uni_kvm *k;
	int pid = 0, rc = uni_spec_check_keys(spec, "pid qmp via", err);

	if (rc == 0)
		rc = get_pid(spec, &pid, err);
	if (rc == 0)
		rc = get_via(spec, &via, &method, err);
	if (rc != 0)
		return rc;
	if (opts->arch != NULL && opts->arch != uni_arch_of_host())
		return uni_err_set(err, UNI_ENOTSUP,
			"the kvm target reaches x86_64 guests, the image is for %s",
			opts->arch->name);
	/* Pages of its own, which must not be paged out: they are used while a guest is stopped. */
	k = mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (k == MAP_FAILED)
		return uni_err_nomem(err);
	(void)mlock(k, sizeof(*k)); /* as far as RLIMIT_MEMLOCK permits */
	*k = (struct uni_kvm){
		.base = { .ops = &uni_target_kvm, .arch = &uni_arch_x86_64 },
		.pid = pid,
		.pidfd = -1,
		.method = method,
	};
	qmp = uni_spec_get(spec, "qmp");
	block_child_signal(k);
	rc = uni_kvm_attach_pid(k, opts, via, qmp != NULL ? qmp : opts->qmp, err);
	if (rc != 0)
		kvm_detach(&k->base);
	else
		*ret = &k->base;
	return rc;
}

static unsigned kvm_caps(struct uni_target *t)
{
	const struct uni_kvm *k = (struct uni_kvm *)t;

	return UNI_CAP_HOLD | UNI_CAP_SYSREGS | UNI_CAP_WRITE_TEXT |
	       (k->kernel != NULL ? UNI_CAP_STREAM | UNI_CAP_EXITS | UNI_CAP_NO_PAUSE : 0);
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
	int rc;

	if (k->unprepared.code != 0) {
		*err = k->unprepared;
		return -err->code;
	}
	rc = uni_kvm_traced(k->pid, k->vcpu, k->nr, err);
	if (rc == 0)
		rc = uni_vmm_check_runs(k->pid, err);
	return rc != 0 ? rc : uni_kvm_left(k->pid, k->vcpu, k->nr, err);
}

static void kvm_info(struct uni_target *t, struct uni_target_info *ret)
{
	*ret = ((struct uni_kvm *)t)->info;
}

/*
 * If the hardware keeps control registers to itself (VMX), KVM has fresh copies only after a
 * request. One sample that stops the guest makes that request. They hardly ever change in a
 * unikernel.
 */
static void ask_for_sys(struct uni_kvm *k)
{
	const struct uni_kvm_scan *scan = k->side->scan(k->kernel);
	struct uni_regs *regs;

	for (uint32_t i = 0; i < scan->nr_vcpus; i++) {
		if (uni_kvm_scan_has_sys(&scan->vcpu[i].vcpu.regs))
			return;
	}
	regs = calloc(k->nr, sizeof(*regs));
	if (regs == NULL)
		return;
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct uni_vcpuset one = uni_vcpuset_one(i);
		int rc = uni_kvm_snap(&k->base, &one, regs, UNI_SNAP_HOLD);

		(void)uni_kvm_release(&k->base);
		if (rc != 0 || regs[i].sys_valid == 0)
			continue;
		k->side->keep_sys(k->kernel, &regs[i]);
		break;
	}
	free(regs);
}

static int kvm_stream_start(struct uni_target *t, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	if (k->kernel == NULL)
		return uni_err_set(err, UNI_ENOTSUP, "kvm: %s", k->info.note);
	ask_for_sys(k);
	return k->side->start(k->kernel, cfg, hints, k->gmem, k->base.arch, err);
}

static int kvm_stream_read(struct uni_target *t, const struct uni_stream_sink *sink)
{
	struct uni_kvm *k = (struct uni_kvm *)t;
	bool alive = uni_kvm_alive(t);
	int rc = k->kernel != NULL ? k->side->read(k->kernel, sink) : -UNI_ENOTSUP;

	/* Samples from before the guest's end have been read after that check. */
	return rc == 0 && !alive ? -UNI_EGONE : rc;
}

static void kvm_stream_stats(struct uni_target *t, struct uni_stream_stats *ret)
{
	const struct uni_kvm *k = (struct uni_kvm *)t;

	memset(ret, 0, sizeof(*ret));
	if (k->kernel != NULL)
		k->side->stats(k->kernel, ret);
}

static int kvm_stream_times(struct uni_target *t, uint32_t vcpu, struct uni_vcpu_times *ret)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	return k->kernel != NULL ? k->side->times(k->kernel, vcpu, ret) : -UNI_ENOTSUP;
}

static int kvm_stream_stop(struct uni_target *t)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	return k->kernel != NULL ? k->side->stop(k->kernel) : 0;
}

static bool kvm_stream_back(struct uni_target *t, struct uni_stream_back *ret)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	return k->kernel != NULL && k->side->back(k->kernel, ret);
}

static int kvm_on_cpu(struct uni_target *t, uint32_t vcpu, uint64_t *ret)
{
	const struct uni_kvm *k = (struct uni_kvm *)t;
	uint64_t ready;

	return vcpu < k->nr && uni_kvm_times(k->vcpu[vcpu].schedstat_fd, ret, &ready)
		       ? 0
		       : -UNI_ENOTSUP;
}

static int kvm_ready(struct uni_target *t, uint32_t vcpu, uint64_t *ret)
{
	const struct uni_kvm *k = (struct uni_kvm *)t;
	uint64_t on;

	return vcpu < k->nr && uni_kvm_times(k->vcpu[vcpu].schedstat_fd, &on, ret) ? 0
										   : -UNI_ENOTSUP;
}

static int kvm_host_times(
	struct uni_target *t, uint32_t vcpu, uint64_t *on_ret, uint64_t *ready_ret)
{
	const struct uni_kvm *k = (struct uni_kvm *)t;

	return vcpu < k->nr && uni_kvm_times(k->vcpu[vcpu].schedstat_fd, on_ret, ready_ret)
		       ? 0
		       : -UNI_ENOTSUP;
}

/* A guest that sleeps may do so in its VMM: under solo5-hvt, and in a QEMU that emulates the
 * interrupt controller. */
static bool sleeps_in_kvm(const struct uni_target_info *info)
{
	_cleanup_free_ char *words = NULL;
	char path[32];
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", info->pid);
	return strcmp(info->vmm, "qemu") == 0 &&
	       uni_read_file(path, CMDLINE_MAX, &words, &size, NULL) == 0 &&
	       memmem(words, size, "irqchip=off", strlen("irqchip=off")) == NULL;
}

static bool kvm_stands(const struct uni_target_info *info)
{
	bool running;

	return info->pid > 0 && uni_kvm_looks_paused(info->pid, &running) && sleeps_in_kvm(info);
}

/* Checks what depends on the host; the rest depends on the guest, and is checked on attaching. */
static int kvm_host_check(struct uni_err *err)
{
	struct uni_kvm_host host;
	char scope[8] = "0";
	int rc = uni_process_numbers_check(err);

	if (rc != 0)
		return rc;
	if (!uni_kvm_is_there(""))
		return uni_err_set(err, UNI_ENOTSUP,
			"there is no /dev/kvm: this host has no KVM (load kvm_intel or kvm_amd, or "
			"allow nested virtualisation); QEMU without KVM is reached by gdb:");
	if (access("/dev/kvm", R_OK | W_OK) == 0) {
		rc = uni_kvm_host_read(-1, -1, &host, err);
		if (rc != 0)
			return rc;
		if (host.sync_regs <= 0)
			return uni_err_set(err, UNI_ENOTSUP,
				"this KVM has no synchronized registers (KVM_CAP_SYNC_REGS)");
	}
	if (!uni_kvm_rights_trace_all(uni_kvm_rights_caps()) &&
		uni_read_small("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) > 0 &&
		scope[0] != '0')
		return uni_err_set(err, UNI_EPERM,
			"kernel.yama.ptrace_scope is %c and CAP_SYS_PTRACE is missing: %s, or: "
			"sysctl -w kernel.yama.ptrace_scope=0",
			scope[0], uni_kvm_rights_advice(geteuid(), uni_kvm_rights_no_tracing()));
	return 0;
}

static bool kvm_claims(const struct uni_target_info *info, char *keys_ret, size_t cap)
{
	(void)snprintf(keys_ret, cap, "pid=%d", info->pid);
	return strcmp(info->accel, "kvm") == 0 && info->pid > 0;
}

/* Debian's kernels with perf_event_paranoid 3 want more than the capabilities that programs need.
 */
static bool lacks_events(const struct uni_way_wish *wish)
{
	return !wish->once && !wish->no_samples && !uni_observer_is_used() &&
	       uni_kvm_lacks_events();
}

static void kvm_choose_key(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_way_key *ret)
{
	bool is_auto = wish->asked == UNI_ASKED_AUTO;

	if (is_auto && !wish->no_pause) {
		if (uni_spec_get(spec, "via") != NULL)
			return;
		ret->why = wish->because;
		if (ret->why == NULL && lacks_events(wish))
			ret->why = "perf events are not permitted: kernel.perf_event_paranoid "
				   "(`uniscope doctor` tells more)";
		if (ret->why == NULL)
			return;
	}
	ret->key = "via";
	ret->value =
		wish->asked == UNI_ASKED_KERNEL || (is_auto && wish->no_pause) ? "bpf" : "stop";
}

extern const struct uni_target_ops uni_target_kvm;
const struct uni_target_ops uni_target_kvm = {
	.scheme = "kvm",
	.summary = "any VMM that uses KVM on x86, by its process",
	.keys = "pid=N[,qmp=PATH][,via=auto|bpf|stop|sync|procmem]",
	.host_check = kvm_host_check,
	.host_ways = uni_kvm_host_ways,
	.claims = kvm_claims,
	.choose = uni_kvm_choose,
	.check_wish = uni_way_needs_stop,
	.choose_key = kvm_choose_key,
	.probe = kvm_probe,
	.hand_over = kvm_hand_over,
	.stopped_pid = kvm_stopped_pid,
	.stops = kvm_stops,
	.attach = kvm_attach,
	.caps = kvm_caps,
	.nr_vcpus = kvm_nr_vcpus,
	.snap = uni_kvm_snap,
	.blocked = kvm_blocked,
	.release = uni_kvm_release,
	.gmem = kvm_gmem,
	.info = kvm_info,
	.alive = uni_kvm_alive,
	.settled = uni_kvm_settled,
	.stands = kvm_stands,
	.on_cpu = kvm_on_cpu,
	.ready = kvm_ready,
	.cpu_most = kvm_on_cpu,
	.host_times = kvm_host_times,
	.stream_method = "bpf",
	.stream_start = kvm_stream_start,
	.stream_read = kvm_stream_read,
	.stream_stats = kvm_stream_stats,
	.stream_times = kvm_stream_times,
	.stream_stop = kvm_stream_stop,
	.stream_back = kvm_stream_back,
	.write_text = uni_kvm_write_text,
	.write_places = 8192,
	.detach = kvm_detach,
};
