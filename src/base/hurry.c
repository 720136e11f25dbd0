/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hurry.h"

#include <sched.h>

#include "base/confine.h"
#include "base/observer.h"
#include "base/privilege.h"

void uni_hurry_begin(struct uni_hurry *h)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct sched_param was = { 0 };

	h->observed = uni_observer_is_used();
	if (h->observed) {
		h->on = uni_observer_hurry(true);
		return;
	}
	if (uni_privilege_is_dropped() && !uni_confine_keeps_xen()) {
		h->on = false;
		return;
	}
	h->policy = sched_getscheduler(0);
	h->on = h->policy >= 0 && sched_getparam(0, &was) == 0 &&
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
	h->priority = was.sched_priority;
}

void uni_hurry_end(struct uni_hurry *h)
{
	const struct sched_param was = { .sched_priority = h->priority };

	if (h->on && h->observed)
		(void)uni_observer_hurry(false);
	else if (h->on)
		/* This flag may not be cleared without more rights. */
		(void)sched_setscheduler(0, h->policy | SCHED_RESET_ON_FORK, &was);
	h->on = false;
}
