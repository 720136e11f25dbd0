/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patches code while every vCPU is stopped, also those that sleep in the VMM and might wake up
 * meanwhile.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/kvm/kvm.h"
#include "backend/patch.h"
#include "backend/vmm/fds.h"
#include "backend/vmm/write.h"

#define STOP_NS	   (200 * UNI_NSEC_PER_MSEC)
#define EXTENT_MAX 8192

#define NAP_NS	 UNI_NSEC_PER_MSEC
#define OFTEN_NS (3 * UNI_NSEC_PER_SEC)

/* Stops the vCPUs that uni_kvm_snap() leaves alone, as it can read them while they sleep. */
static void stop_sleepers(struct uni_kvm *k)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < k->nr; i++) {
		struct uni_hold *h = &k->vcpu[i].hold;

		if (h->tid == 0 || h->state != UNI_HOLD_FREE || uni_hold_seize(h) != 0)
			continue;
		(void)uni_hold_ask(h);
		k->wait[nr++] = h;
	}
	if (nr != 0)
		uni_hold_wait(k->wait, nr,
			uni_now_ns() + (k->patience_ns != 0 ? k->patience_ns : STOP_NS));
}

static bool all_stand(const struct uni_kvm *k, const struct uni_regs *regs)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct uni_hold *h = &k->vcpu[i].hold;

		if (h->tid != 0 && regs[i].state != UNI_VCPU_OFFLINE &&
			h->state != UNI_HOLD_STOPPED)
			return false;
	}
	return true;
}

/* With all vCPUs stopped: is none of them among several instructions of a place? */
static bool may_write(
	const struct uni_kvm *k, const struct uni_patch_plan *p, const struct uni_regs *regs)
{
	for (uint32_t i = 0; p->pieces && i < k->nr; i++) {
		if (k->vcpu[i].hold.tid == 0 || regs[i].state == UNI_VCPU_OFFLINE)
			continue;
		if (regs[i].state == UNI_VCPU_UNKNOWN || uni_patch_hit(p, &regs[i]))
			return false;
	}
	return true;
}

/* One attempt. 1: not all vCPUs stopped in time, and the guest goes on unchanged. */
static int try_once(struct uni_kvm *k, struct uni_patch_plan *p, const struct uni_vmm_forced *f,
	struct uni_regs *regs)
{
	struct uni_target *t = &k->base;
	const struct uni_vcpuset all = uni_vcpuset_first(k->nr);
	uint64_t begin_ns = uni_now_ns(), stood_ns;
	int rc;

	t->stop_ns = 0;
	rc = uni_kvm_snap(t, &all, regs, UNI_SNAP_HOLD);
	if (rc == 0) {
		stop_sleepers(k);
		rc = 1;
		if (all_stand(k, regs))
			rc = may_write(k, p, regs) ? uni_vmm_patch(k->pid, k->gmem, p, f)
						   : -UNI_EAGAIN;
		(void)uni_kvm_release(t);
	} else if (rc == -UNI_EAGAIN) {
		rc = 1;
	}
	stood_ns = uni_now_ns() - uni_max(t->stop_ns, begin_ns);
	p->job->pause_ns = uni_max(p->job->pause_ns, stood_ns);
	return rc;
}

/*
 * On a busy host, a vCPU may wait for a CPU, and cannot stop before it has one, while others have
 * stopped. Then all go on, and another attempt follows: many short stops, each of which is
 * bearable. If necessary, the last stop is a long one.
 */
static int try_often(struct uni_kvm *k, struct uni_patch_plan *p, struct uni_vmm_forced *f,
	struct uni_regs *regs)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	uint64_t until_ns = uni_now_ns() + OFTEN_NS;
	int rc;

	uni_vmm_patch_rehearse(k->pid, k->gmem, p, f);
	k->patience_ns = k->nr > 1 ? UNI_KVM_PATIENCE_NS : 0;
	while ((rc = try_once(k, p, f, regs)) == 1 && uni_now_ns() < until_ns) {
		uni_kvm_let_all_go(k);
		(void)nanosleep(&nap, NULL);
	}
	k->patience_ns = 0;
	if (rc == 1) {
		uni_kvm_let_all_go(k);
		rc = try_once(k, p, f, regs);
	}
	return rc == 1 ? -UNI_EAGAIN : rc;
}

/* A vCPU may have been plugged in since. A vCPU that was never seen to run may run at any time. */
static int check_all_known(struct uni_kvm *k)
{
	struct uni_vmm_fds fds;
	int rc = uni_kvm_is_prepared(k) ? uni_vmm_fds_read(k->pid, &fds) : -UNI_EAGAIN;

	if (rc != 0)
		return rc;
	uni_kvm_count_left_off(k, &fds);
	if (k->base.nr_left_off != 0)
		return -UNI_ENOTSUP;
	for (uint32_t i = 0; i < k->nr; i++) {
		if (k->vcpu[i].hold.tid == 0 && !k->vcpu[i].ended)
			return -UNI_EAGAIN;
	}
	return 0;
}

int uni_kvm_write_text(struct uni_target *t, struct uni_patch_job *job)
{
	struct uni_kvm *k = (struct uni_kvm *)t;
	struct uni_regs *regs = calloc(k->nr, sizeof(*regs));
	struct uni_patch_plan p = { 0 };
	struct uni_vmm_forced f = { 0 };
	int rc = regs != NULL ? check_all_known(k) : -UNI_ENOMEM;

	if (rc == 0)
		rc = uni_patch_plan(job, EXTENT_MAX, &p);
	if (rc == 0)
		rc = try_often(k, &p, &f, regs);
	uni_vmm_forced_deinit(&f);
	uni_patch_plan_deinit(&p);
	free(regs);
	return rc;
}
