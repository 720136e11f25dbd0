/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest that is done and stays. A busy one would cost the host a CPU for as long as it is looked
 * at. */
#include "lab.h"

void lab_hold(void)
{
	if (!lab_arg("hold", 0))
		return;
	lab_timer_start(100, NULL);
	for (;;) {
		lab_heartbeat();
		lab_halt();
	}
}
