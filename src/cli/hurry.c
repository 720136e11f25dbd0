/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/hurry.h"

#include <sched.h>

void uni_hurry(bool on)
{
	struct sched_param p = { .sched_priority = on ? 1 : 0 };

	(void)sched_setscheduler(0, (on ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &p);
}
