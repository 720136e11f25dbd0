/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/guard.h"

#include <time.h>

#include "base/checked.h"
#include "base/clock.h"

#define NAP_NS	 UNI_NSEC_PER_MSEC
#define OFTEN_NS (2 * UNI_NSEC_PER_SEC)

static int snap_and_hold(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret, unsigned flags)
{
	int rc;

	*p = (struct uni_pause){ .begin_ns = uni_now_ns(), .tried_ns = p->tried_ns };
	t->stop_ns = t->stood_ns = 0;
	rc = t->ops->snap(t, set, regs_ret, UNI_SNAP_HOLD | flags);
	if (rc == 0)
		p->t = t;
	if (rc == 0 && t->stop_ns > p->begin_ns)
		p->begin_ns = t->stop_ns;
	else
		p->end_ns = uni_now_ns();
	p->tried_ns = uni_max(p->tried_ns, t->stood_ns);
	return rc;
}

int uni_pause_begin(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret)
{
	p->tried_ns = 0;
	return snap_and_hold(p, t, set, regs_ret, 0);
}

int uni_pause_begin_brief(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	uint64_t until_ns = uni_now_ns() + OFTEN_NS;
	int rc;

	p->tried_ns = 0;
	while ((rc = snap_and_hold(p, t, set, regs_ret, UNI_SNAP_BRIEF)) == -UNI_EAGAIN &&
		uni_now_ns() < until_ns)
		(void)nanosleep(&nap, NULL);
	return rc == -UNI_EAGAIN ? snap_and_hold(p, t, set, regs_ret, 0) : rc;
}

int uni_pause_end(struct uni_pause *p)
{
	struct uni_target *t = p->t;
	int rc;

	if (t == NULL)
		return 0;
	p->t = NULL;
	rc = t->ops->release != NULL ? t->ops->release(t) : 0;
	p->end_ns = uni_now_ns();
	return rc;
}

void uni_pause_cleanup(struct uni_pause *p)
{
	(void)uni_pause_end(p);
}
