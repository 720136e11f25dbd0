/* SPDX-License-Identifier: BSD-2-Clause */
/* proc: a unikernel that was built as a Linux process. */
#include "backend/proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/observer.h"
#include "base/text.h"
#include "base/tsc.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/scan.h"

#define USER_SPACE (1ull << 47)

static const char keys[] = "pid via";

static struct uni_proc *proc_target(struct uni_target *t)
{
	return (struct uni_proc *)t;
}

static int read_memory(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	const struct uni_proc *p = ctx;

	return uni_vmm_copy(p->pid, r->start + offset, buf, len);
}

/* The kernel copies pieces in order, and stops before a piece that it cannot copy whole. */
static int read_many(void *ctx, const struct uni_gmem_piece *piece, size_t nr)
{
	struct iovec local[UNI_GMEM_MANY_MAX] = { 0 }, remote[UNI_GMEM_MANY_MAX] = { 0 };
	const struct uni_proc *p = ctx;
	size_t whole = 0;
	ssize_t n;

	if (nr == 0 || nr > uni_array_len(local))
		return 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t at = piece[i].r->start + piece[i].offset;

		local[i] = (struct iovec){ piece[i].buf, piece[i].len };
		remote[i] = (struct iovec){ (void *)(uintptr_t)at, piece[i].len };
	}
	n = uni_observer_copy(p->pid, local, nr, remote, nr);
	while (n > 0 && whole < nr && (size_t)n >= piece[whole].len)
		n -= (ssize_t)piece[whole++].len;
	return (int)whole;
}

static const struct uni_gmem_ops gmem_ops = {
	.read = read_memory, .read_many = read_many, .is_code = uni_proc_is_code
};

static int spec_pid(const struct uni_spec *spec, int *ret, struct uni_err *err)
{
	const char *via = uni_spec_get(spec, "via");
	int rc = uni_spec_check_keys(spec, keys, err);
	uint64_t pid = 0;

	if (rc == 0)
		rc = uni_spec_get_u64(spec, "pid", &pid, err);
	if (rc == 0 && (pid == 0 || pid > INT32_MAX))
		rc = -UNI_ENOENT;
	if (rc == -UNI_ENOENT)
		return uni_err_set(
			err, UNI_EUSAGE, "target %s: which process? proc:pid=N", spec->text);
	if (rc == 0 && via != NULL && strcmp(via, "perf") != 0 && strcmp(via, "stop") != 0)
		rc = uni_err_set(err, UNI_EUSAGE, "target %s: via= is perf or stop", spec->text);
	if (rc == 0)
		rc = uni_process_numbers_check(err);
	*ret = (int)pid;
	if (rc == 0)
		*ret = uni_proc_living((int)pid);
	if (rc == 0 && *ret == 0)
		return uni_err_set(err, UNI_EGONE,
			"process %d has ended, and its parent has not asked for its status yet",
			(int)pid);
	return rc;
}

/* Is it known as a unikernel by its tender? */
static bool is_process(const struct uni_target_info *info)
{
	return strcmp(info->accel, "process") == 0;
}

static int look_at_process(int pid, struct uni_target_info *ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_target_info *tender = calloc(1, sizeof(*tender));
	int tid[UNI_VCPU_MAX];
	int nr = uni_proc_list(pid, tid, UNI_VCPU_MAX);

	memset(ret, 0, sizeof(*ret));
	if (tender == NULL)
		return uni_err_nomem(err);
	if (nr == 0)
		return uni_err_set(err, UNI_ENOENT, "there is no process %d", pid);
	if (uni_proc_is_kernel(pid))
		return uni_err_set(err, UNI_ENOTSUP,
			"process %d is a thread of the kernel: it has no program", pid);
	ret->pid = pid;
	(void)snprintf(ret->vmm, sizeof(ret->vmm), "process");
	uni_vmm_comm(pid, ret->name, sizeof(ret->name));
	uni_proc_exe(pid, ret->image, sizeof(ret->image));
	/* A tender runs an image that it has read by itself. */
	if (uni_vmm_describe(pid, tender) == 0 && is_process(tender))
		memcpy(ret, tender, sizeof(*ret));
	ret->nr_vcpus = (uint32_t)nr;
	ret->stopped = uni_proc_is_stopped(pid);
	return 0;
}

static bool proc_claims(const struct uni_target_info *info, char *keys_ret, size_t cap)
{
	(void)snprintf(keys_ret, cap, "pid=%d", info->pid);
	return is_process(info) && info->pid > 0;
}

static int proc_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	int pid, rc = spec_pid(spec, &pid, err);

	return rc != 0 ? rc : look_at_process(pid, ret, err);
}

static void proc_detach(struct uni_target *base)
{
	struct uni_proc *p = proc_target(base);

	for (int i = 0; i < p->nr_threads; i++)
		uni_proc_let_go(&p->thread[i]);
	uni_proc_stream_close(p);
	uni_gmem_destroy(p->gmem);
	(void)pthread_mutex_destroy(&p->code.lock);
	free(p->record);
	free(p);
}

/* May we look into the process at all? */
static int check_rights(int pid, struct uni_err *err)
{
	char path[48], text[16];

	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	if (pid == getpid())
		return uni_err_set(err, UNI_EUSAGE, "process %d is uniscope itself", pid);
	if (uni_read_small(path, text, sizeof(text)) == -EACCES ||
		uni_read_small(path, text, sizeof(text)) == -EPERM)
		return uni_err_set(err, UNI_EPERM,
			"process %d may not be looked into: run as its user (with "
			"kernel.yama.ptrace_scope 0) or as root",
			pid);
	return 0;
}

/* It has one way; attaching chooses between perf events and stops. */
static int proc_choose(const struct uni_target_info *info, const struct uni_host_way *ways,
	uint32_t nr, char *why_ret, size_t cap)
{
	struct uni_err err = { 0 };
	int rc = check_rights(info->pid, &err);

	(void)ways;
	(void)nr;
	if (rc != 0)
		(void)snprintf(why_ret, cap, "%s", err.msg);
	return rc != 0 ? -UNI_EPERM : 0;
}

extern const struct uni_target_ops uni_target_proc;

/* Uses the kernel's samples if they are permitted, else stops threads. */
static int choose_way(struct uni_proc *p, const char *via, struct uni_err *err)
{
	struct uni_err why = { 0 };
	int rc = -UNI_ENOTSUP;

	if (via == NULL || strcmp(via, "perf") == 0)
		rc = uni_proc_perf_works(p->pid, &p->kernel, &why);
	if (rc != 0 && via != NULL && strcmp(via, "perf") == 0)
		return uni_err_set(err, (enum uni_errcode)why.code, "%.400s", why.msg);
	p->streaming = rc == 0;
	p->may_stop = via == NULL;
	/* With that key nothing is stopped. */
	p->asks = p->streaming && !p->kernel && via == NULL;
	(void)snprintf(p->info.why, sizeof(p->info.why), "%.400s%s",
		rc == 0 && !p->kernel ? "the kernel's own frames need root, CAP_PERFMON or "
					"kernel.perf_event_paranoid of 1 at most; its time is "
					"shown as [kernel], "
				      : why.msg,
		rc != 0 || p->kernel ? ""
		: p->asks	     ? "below its callers, which short stops find (via=perf: none)"
			  : "without the caller (short stops find it, unless via=perf or "
			    "--no-pause)");
	(void)snprintf(p->info.note, sizeof(p->info.note), "%s",
		p->streaming ? "a process, sampled by perf events; stacks copied by the kernel"
			     : "a process, its threads stopped by ptrace");
	return 0;
}

static int open_process(struct uni_proc *p, const struct uni_spec *spec,
	const struct uni_attach_opts *opts, struct uni_err *err)
{
	/* Page 0 belongs to nobody, so a null pointer is no frame. */
	const struct uni_gmem_region user = { .start = 4096, .size = USER_SPACE - 4096 };
	int tid[UNI_VCPU_MAX], nr, rc = spec_pid(spec, &p->pid, err);

	if (rc == 0)
		uni_proc_program_note(p);
	if (rc == 0)
		rc = look_at_process(p->pid, &p->info, err);
	if (rc == 0)
		rc = check_rights(p->pid, err);
	if (rc == 0 && opts->arch != NULL && opts->arch != p->base.arch)
		rc = uni_err_set(err, UNI_EMISMATCH, "the image is %s, the process is %s",
			opts->arch->name, p->base.arch->name);
	if (rc == 0)
		rc = choose_way(p, uni_spec_get(spec, "via"), err);
	if (rc == 0)
		rc = uni_gmem_create(&gmem_ops, p, UNI_GMEM_VIRTUAL, &user, 1, &p->gmem, err);
	if (rc != 0)
		return rc;
	nr = uni_proc_list(p->pid, tid, UNI_VCPU_MAX);
	p->nr_threads = p->nr_sampled = uni_min(nr, UNI_VCPU_MAX);
	p->base.nr_left_off = (uint32_t)(nr - p->nr_threads);
	for (int i = 0; i < p->nr_threads; i++)
		p->thread[i] = (struct uni_proc_thread){ .stop.tid = tid[i], .fd = -1 };
	return p->nr_threads != 0 ? 0 : uni_err_set(err, UNI_EGONE, "process %d has ended", p->pid);
}

static int proc_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	struct uni_proc *p = calloc(1, sizeof(*p));
	int rc;

	if (p == NULL)
		return uni_err_set(err, UNI_ENOMEM, "proc: out of memory");
	(void)pthread_mutex_init(&p->code.lock, NULL);
	p->base.ops = &uni_target_proc;
	p->base.arch = &uni_arch_x86_64;
	rc = open_process(p, spec, opts, err);
	if (rc != 0)
		proc_detach(&p->base);
	else
		*ret = &p->base;
	return rc;
}

static unsigned proc_caps(struct uni_target *base)
{
	return UNI_CAP_HOLD | UNI_CAP_WRITE_TEXT |
	       (proc_target(base)->streaming ? UNI_CAP_STREAM : 0u) |
	       (proc_target(base)->kernel ? UNI_CAP_KERNEL : 0u);
}

static int nr_vcpus(struct uni_target *base)
{
	return proc_target(base)->nr_threads;
}

static int proc_release(struct uni_target *base)
{
	struct uni_proc *p = proc_target(base);

	for (int i = 0; i < p->nr_threads; i++)
		uni_proc_let_go(&p->thread[i]);
	return 0;
}

static int proc_snap(struct uni_target *base, const struct uni_vcpuset *set, struct uni_regs *ret,
	unsigned flags)
{
	struct uni_proc *p = proc_target(base);
	int rc = 0, ended = 0, asked = 0;
	bool alone = uni_vcpuset_count(set) == 1;

	base->stop_ns = 0;
	if (uni_proc_program_changed(p))
		return -UNI_EGONE;
	for (int i = 0; i < p->nr_threads && rc == 0; i++) {
		if (!uni_vcpuset_has(set, (uint32_t)i))
			continue;
		rc = uni_proc_stop(p, &p->thread[i], alone, &ret[i]);
		asked++;
		ended += rc == 0 && ret[i].state == UNI_VCPU_OFFLINE;
	}
	if (rc == 0 && asked == 0)
		rc = -UNI_EINVAL;
	if (rc == 0 && ended == asked) {
		int tid;

		rc = uni_proc_list(p->pid, &tid, 1) == 0 ? -UNI_EGONE : 0;
	}
	if (rc != 0 || (flags & UNI_SNAP_HOLD) == 0)
		(void)proc_release(base);
	return rc == -UNI_EPERM ? -UNI_EIO : rc;
}

static int proc_blocked(struct uni_target *base, struct uni_err *err)
{
	const struct uni_proc *p = proc_target(base);
	int tracer = uni_proc_tracer(p);

	if (tracer == 0)
		return 0;
	return uni_err_set(err, UNI_EBUSY,
		"process %d is traced by process %d already, such as a debugger or strace", p->pid,
		tracer);
}

static struct uni_gmem *proc_gmem(struct uni_target *base)
{
	return proc_target(base)->gmem;
}

static void proc_info(struct uni_target *base, struct uni_target_info *ret)
{
	*ret = proc_target(base)->info;
}

static bool proc_alive(struct uni_target *base)
{
	struct uni_proc *p = proc_target(base);
	int tid;

	return uni_proc_list(p->pid, &tid, 1) != 0 && !uni_proc_program_changed(p);
}

/* A process reads the host's own counter. */
static int proc_tsc(
	struct uni_target *base, uint64_t *ret, uint64_t *from_ns_ret, uint64_t *to_ns_ret)
{
	(void)base;
	*from_ns_ret = uni_now_ns();
	*ret = uni_host_tsc();
	*to_ns_ret = uni_now_ns();
	return *ret != 0 ? 0 : -UNI_ENOTSUP;
}

static int thread_times(
	struct uni_target *base, uint32_t vcpu, uint64_t *on_ret, uint64_t *waited_ret)
{
	const struct uni_proc *p = proc_target(base);
	int tid[2];

	/* A thread that came later may be the one that runs. */
	if (vcpu != 0 || p->nr_threads != 1 || uni_proc_list(p->pid, tid, 2) != 1 ||
		tid[0] != p->thread[0].stop.tid)
		return -UNI_ENOTSUP;
	return uni_vmm_thread_times(p->pid, tid[0], on_ret, waited_ret) ? 0 : -UNI_ENOTSUP;
}

static int on_cpu(struct uni_target *base, uint32_t vcpu, uint64_t *ret)
{
	uint64_t waited;

	return thread_times(base, vcpu, ret, &waited);
}

static int proc_ready(struct uni_target *base, uint32_t vcpu, uint64_t *ret)
{
	uint64_t on;

	return thread_times(base, vcpu, &on, ret);
}

static int proc_host_times(
	struct uni_target *base, uint32_t vcpu, uint64_t *on_ret, uint64_t *ready_ret)
{
	const struct uni_proc *p = proc_target(base);
	int tid = p->thread[vcpu].stop.tid;

	return uni_vmm_thread_times(p->pid, tid, on_ret, ready_ret) ? 0 : -UNI_ENOTSUP;
}

/*
 * Without a key: perf events, if they are permitted. They copy one stack, from its pointer on. Some
 * code needs more of them than that, as it was at one moment.
 */
static void choose_key(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_way_key *ret)
{
	bool more =
		(wish->switches || wish->pops) && wish->asked == UNI_ASKED_AUTO && !wish->no_pause;
	bool stop = wish->threads || wish->asked == UNI_ASKED_PAUSE || more;

	if (uni_spec_get(spec, "via") != NULL || (!stop && !wish->no_pause))
		return;
	ret->key = "via";
	ret->value = stop ? "stop" : "perf";
	if (more)
		ret->why =
			wish->switches
				? "the image switches stacks, and perf events copy one stack only"
				: "the image pops return addresses, and perf events copy nothing "
				  "below the stack pointer";
}

const struct uni_target_ops uni_target_proc = {
	.scheme = "proc",
	.summary = "a unikernel that was built as a Linux process",
	.keys = "pid=N[,via=perf|stop]",
	.may_sleep = true,
	.units = "threads",
	.host_check = uni_process_numbers_check,
	.claims = proc_claims,
	.check_wish = uni_way_needs_stop,
	.choose = proc_choose,
	.choose_key = choose_key,
	.probe = proc_probe,
	.observed_pid = spec_pid,
	.attach = proc_attach,
	.caps = proc_caps,
	.nr_vcpus = nr_vcpus,
	.snap = proc_snap,
	.release = proc_release,
	.gmem = proc_gmem,
	.blocked = proc_blocked,
	.files = uni_proc_files,
	.mapped = uni_proc_mapped,
	.info = proc_info,
	.alive = proc_alive,
	.tsc = proc_tsc,
	.on_cpu = on_cpu,
	.ready = proc_ready,
	.host_times = proc_host_times,
	.tells_waiting = true,
	.stream_method = "perf",
	.stream_start = uni_proc_stream_start,
	.stream_read = uni_proc_stream_read,
	.stream_stats = uni_proc_stream_stats,
	.stream_times = uni_proc_stream_times,
	.stream_stop = uni_proc_stream_stop,
	.write_text = uni_proc_write_text,
	.write_places = 1024,
	.write_stops_left_off = true,
	.detach = proc_detach,
};
