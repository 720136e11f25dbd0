/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads programs with the rights of this process, and makes sure that it can go on without. The
 * kernel asks for a capability where maps and programs are made (since Linux 5.19 only there).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/privilege.h"
#include "backend/kvm/bpf/exit_progs.h"
#include "backend/kvm/bpf/object.h"
#include "backend/kvm/bpf/scan.h"

struct trial {
	const struct uni_kvm_bpf *b;
	struct uni_kvm_scan *scan;
	int pid, event;
};

/* The library tries out what the kernel can do when it attaches first, by loading programs. */
static int attach_once(const struct uni_kvm_bpf *b, int event)
{
	struct bpf_perf_event_opts opts;
	struct bpf_link *link;
	int fd = dup(event);

	memset(&opts, 0, sizeof(opts)); /* also the padding, which the library checks */
	opts.sz = sizeof(opts);
	opts.bpf_cookie = 1;
	link = fd >= 0 ? bpf_program__attach_perf_event_opts(b->event, fd, &opts) : NULL;
	if (link == NULL && fd >= 0)
		(void)close(fd);
	return link != NULL ? bpf_link__destroy(link) : -errno;
}

/* All that is done later, once. */
static int use_programs(void *ctx)
{
	const struct trial *t = ctx;
	uint32_t key = 0, value;
	int rc = attach_once(t->b, t->event);

	if (rc == 0)
		rc = uni_kvm_scan(t->b, t->pid, t->scan, NULL);
	if (rc == 0 && bpf_map_lookup_elem(t->b->rings_fd, &key, &value) != 0 && errno == EPERM)
		rc = -UNI_EPERM;
	return rc;
}

/* Registers for which KVM has no copy are asked for by stopping a vCPU. */
static bool has_all_registers(const struct uni_kvm_scan *scan)
{
	for (uint32_t i = 0; i < scan->nr_vcpus; i++) {
		if (uni_kvm_scan_has_sys(&scan->vcpu[i].vcpu.regs))
			return true;
	}
	return false;
}

int uni_kvm_bpf_hand_over(struct uni_kvm_bpf *b, int pid, bool exits, struct uni_err *err)
{
	/* It is this process' own, and never counts. */
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1 };
	_cleanup_close_ int event =
		(int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	_cleanup_free_ struct uni_kvm_scan *scan = calloc(1, sizeof(*scan));
	struct trial t = { b, scan, pid, event };

	if (scan == NULL)
		return uni_err_nomem(err);
	if (event < 0 || use_programs(&t) != 0 || uni_privilege_try_without(use_programs, &t) != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"this kernel lets only a process with capabilities use its programs");
	if (!has_all_registers(scan))
		return uni_err_set(err, UNI_ENOTSUP, "KVM has no copy of control registers");
	return exits ? uni_kvm_exit_progs_get(b, err) : 0;
}
