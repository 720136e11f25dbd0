/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While a thread holds a guest, the guest stands still for as long as the thread waits for a CPU.
 * So the thread gets real-time priority. It must sleep nearly always, or be done within a
 * millisecond. Without the right to do so (CAP_SYS_NICE, RLIMIT_RTPRIO) nothing changes, and pauses
 * are longer on a busy host.
 */
#ifndef UNI_BASE_HURRY_H
#define UNI_BASE_HURRY_H

#include <stdbool.h>

struct uni_hurry {
	bool on, observed;
	int policy, priority; /* before the change */
};

void uni_hurry_begin(struct uni_hurry *h);
void uni_hurry_end(struct uni_hurry *h);

#endif
