/* SPDX-License-Identifier: BSD-2-Clause */
/* Patching code: every vCPU stands, also those that sleep in the VMM and might wake meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "target/kvm/kvm.h"
#include "target/patch.h"
#include "target/vmm/write.h"

#define STOP_NS	   (200 * UNI_NSEC_PER_MSEC)
#define EXTENT_MAX 8192

/* Those that uni_kvm_snap() leaves alone, for it can read them where they sleep. */
static void stop_sleepers(struct uni_kvm *k)
{
	struct uni_hold *wait[UNI_VCPU_MAX];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < k->nr; i++) {
		struct uni_hold *h = &k->vcpu[i].hold;

		if (h->tid == 0 || h->state != UNI_HOLD_FREE || uni_hold_seize(h) != 0)
			continue;
		(void)uni_hold_ask(h);
		wait[nr++] = h;
	}
	if (nr != 0)
		uni_hold_wait(wait, nr, uni_now_ns() + STOP_NS);
}

/* With all vCPUs standing, and those among several instructions elsewhere. */
static bool may_write(
	const struct uni_kvm *k, const struct uni_patch_plan *p, const struct uni_regs *regs)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct uni_kvm_vcpu *v = &k->vcpu[i];

		if (v->hold.tid == 0 || regs[i].state == UNI_VCPU_OFFLINE)
			continue;
		if (v->hold.state != UNI_HOLD_STOPPED)
			return false;
		if (p->pieces && (regs[i].state == UNI_VCPU_UNKNOWN || uni_patch_hit(p, &regs[i])))
			return false;
	}
	return true;
}

int uni_kvm_write_text(struct uni_target *t, struct uni_patch_job *job)
{
	struct uni_kvm *k = (struct uni_kvm *)t;
	struct uni_regs *regs = calloc(UNI_VCPU_MAX, sizeof(*regs));
	struct uni_patch_plan p = { 0 };
	uint64_t begin_ns;
	int rc = regs != NULL ? uni_patch_plan(job, EXTENT_MAX, &p) : -UNI_ENOMEM;

	if (rc != 0) {
		free(regs);
		return rc;
	}
	begin_ns = uni_now_ns();
	t->stop_ns = 0;
	rc = uni_kvm_snap(t, uni_kvm_all(k), regs, UNI_SNAP_HOLD);
	if (rc == 0) {
		stop_sleepers(k);
		rc = may_write(k, &p, regs) ? uni_vmm_patch(k->pid, k->gmem, &p) : -UNI_EAGAIN;
		(void)uni_kvm_release(t);
	}
	job->pause_ns = uni_now_ns() - (t->stop_ns > begin_ns ? t->stop_ns : begin_ns);
	uni_patch_plan_deinit(&p);
	free(regs);
	return rc;
}
