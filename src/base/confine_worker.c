/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/bpf.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "base/checked.h"
#include "base/filter.h"

#define X86_GETREGS 12u /* PTRACE_... */
#define X86_SETREGS 13u

static int add_watchers(scmp_filter_ctx f)
{
	static const unsigned long bpf[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM,
		BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_MAP_LOOKUP_BATCH,
		BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE, BPF_ITER_CREATE };
#ifndef UNI_CONFINE_WIDE
	static const unsigned long event[] = { PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE,
		PERF_EVENT_IOC_PERIOD, TCSETS, TCSETSW, TCSETSF, TIOCEXCL, TIOCNXCL, TCFLSH };
	static const unsigned long slack[] = { PR_GET_TIMERSLACK, PR_SET_TIMERSLACK };
	int r = uni_filter_add_each(f, SCMP_SYS(prctl), 0, slack, uni_array_len(slack));

	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(ioctl), 1, event, uni_array_len(event));
#else
	int r = 0;
#endif

	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(bpf), 0, bpf, uni_array_len(bpf));
	return r == 0 ? seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(pidfd_open), 0) : r;
}

static int add_guardians(scmp_filter_ctx f)
{
	static const int calls[] = { SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect),
		SCMP_SYS(bind), SCMP_SYS(capset) };

	return uni_filter_add(f, calls, uni_array_len(calls));
}

/* Their files and memory, as far as the kernel lets this user; to wake a stopped profiler. */
static int add_tracers(scmp_filter_ctx f)
{
	static const int calls[] = { SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
		SCMP_SYS(pidfd_getfd), SCMP_SYS(kill), SCMP_SYS(setsid) };
	int r = 0;
#ifndef UNI_CONFINE_WIDE
	static const unsigned long ioctls[] = { KVM_CREATE_VM, KVM_CHECK_EXTENSION };
	static const unsigned long signals[] = { PR_SET_PDEATHSIG };
	static const unsigned long hold[] = { PTRACE_SEIZE, PTRACE_INTERRUPT, X86_GETREGS,
		X86_SETREGS, PTRACE_DETACH };

	r = uni_filter_add_each(f, SCMP_SYS(ioctl), 1, ioctls, uni_array_len(ioctls));
	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(prctl), 0, signals, uni_array_len(signals));
	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(ptrace), 0, hold, uni_array_len(hold));
#endif
	return r == 0 ? uni_filter_add(f, calls, uni_array_len(calls)) : r;
}

static bool keeps_xen;

void uni_confine_keep_xen(void)
{
	keeps_xen = true;
}

bool uni_confine_keeps_xen(void)
{
	return keeps_xen;
}

/* The requests are those of Linux' xen/privcmd.h and xen/gntdev.h. */
static int add_xen(scmp_filter_ctx f)
{
	static const int calls[] = { SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_getparam) };
	static const unsigned long self[] = { 0 };
#ifndef UNI_CONFINE_WIDE
	static const unsigned long ioctls[] = {
		_IOC(_IOC_NONE, 'P', 0, 48), /* a hypercall */
		_IOC(_IOC_NONE, 'P', 2, 16), /* mapping a domain's memory, by three ways */
		_IOC(_IOC_NONE, 'P', 3, 32), _IOC(_IOC_NONE, 'P', 4, 32),
		_IOC(_IOC_NONE, 'G', 0, 24),				  /* mapping a grant */
		_IOC(_IOC_NONE, 'G', 1, 16), _IOC(_IOC_NONE, 'G', 2, 24), /* its place */
	};
	/* The filter's first question: a guest stands still meanwhile. */
	int r = seccomp_syscall_priority(f, SCMP_SYS(ioctl), UINT8_MAX);

	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(ioctl), 1, ioctls, uni_array_len(ioctls));
#else
	int r = 0;
#endif
	if (r == 0)
		r = uni_filter_add_each(
			f, SCMP_SYS(sched_setscheduler), 0, self, uni_array_len(self));
	return r == 0 ? uni_filter_add(f, calls, uni_array_len(calls)) : r;
}

static int add_workers(scmp_filter_ctx f, enum uni_confined what)
{
	int r = keeps_xen ? add_xen(f) : 0;

	if (r == 0 && what == UNI_CONFINED_GUARDIAN)
		r = add_guardians(f);
	if (r == 0 && (what == UNI_CONFINED_WATCHER || what == UNI_CONFINED_TRACER))
		r = add_watchers(f);
	return r == 0 && what == UNI_CONFINED_TRACER ? add_tracers(f) : r;
}

int uni_confine_worker(enum uni_confined what, struct uni_err *err)
{
	return uni_filter_load(add_workers, what, err);
}
