/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "base/checked.h"
#include "base/filter.h"

static int add_watchers(scmp_filter_ctx f)
{
	static const unsigned long bpf[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM,
		BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_MAP_LOOKUP_BATCH,
		BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE, BPF_ITER_CREATE };
#ifndef UNI_CONFINE_WIDE
	static const unsigned long event[] = { PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE,
		PERF_EVENT_IOC_PERIOD, TCSETS, TCSETSW, TCSETSF };
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

static int add_workers(scmp_filter_ctx f, enum uni_confined what)
{
	int r = 0;

	if (what == UNI_CONFINED_GUARDIAN)
		r = add_guardians(f);
	if (what == UNI_CONFINED_WATCHER)
		r = add_watchers(f);
	return r;
}

int uni_confine_worker(enum uni_confined what, struct uni_err *err)
{
	return uni_filter_load(add_workers, what, err);
}
