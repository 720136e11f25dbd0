/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While this thread holds a guest, the guest stands still for as long as the thread waits for a
 * CPU: so it goes before all others. To be used by who sleeps nearly always, or is done within a
 * millisecond. Without the right to it (CAP_SYS_NICE, RLIMIT_RTPRIO) nothing changes, and pauses
 * are longer on a busy host.
 */
#ifndef UNI_BASE_HURRY_H
#define UNI_BASE_HURRY_H

#include <stdbool.h>

struct uni_hurry {
	bool on;
	int policy, priority; /* as it was */
};

void uni_hurry_begin(struct uni_hurry *h);
void uni_hurry_end(struct uni_hurry *h);

#endif
