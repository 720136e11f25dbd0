/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/guard.h"

#include "base/clock.h"

int uni_pause_begin(
	struct uni_pause *p, struct uni_target *t, uint64_t vcpu_mask, struct uni_regs *regs_ret)
{
	int rc;

	*p = (struct uni_pause){ .begin_ns = uni_now_ns() };
	t->stop_ns = 0;
	rc = t->ops->snap(t, vcpu_mask, regs_ret, UNI_SNAP_HOLD);
	if (rc == 0)
		p->t = t;
	if (rc == 0 && t->stop_ns > p->begin_ns)
		p->begin_ns = t->stop_ns;
	else
		p->end_ns = uni_now_ns();
	return rc;
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
