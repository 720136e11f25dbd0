/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many periods a sample by a pause stands for, by the host's own count of each vCPU's time on a
 * CPU. When the sampler gets a CPU, and when a vCPU stops, is not independent of what the guest
 * does. On a busy host, samples find it halted too often. And a stop does not tell whether the vCPU
 * ran until then, or waited for a CPU, unless the target says that it does.
 *
 * So each vCPU has an account for its time on a CPU, one for its time of waiting for one, and one
 * for its sleep. A sample stands for the slots since the last one. It draws on the account of its
 * kind, and stands for more or less slots if that is far from even.
 */
#ifndef UNI_SAMPLING_SHARES_H
#define UNI_SAMPLING_SHARES_H

#include "backend/target.h"

struct uni_shares;

/* *ret is NULL if the target does not tell these times. */
int uni_shares_create(struct uni_target *t, uint32_t nr_vcpus, double period_ns,
	struct uni_shares **ret, struct uni_err *err);
void uni_shares_destroy(struct uni_shares *s); /* NULL-safe */

/* The vCPUs of the set are held since then, with these registers; they go on. */
void uni_shares_held(struct uni_shares *s, const struct uni_vcpuset *set,
	const struct uni_regs *regs, uint64_t since_ns);
void uni_shares_resumed(struct uni_shares *s, const struct uni_vcpuset *set);
/* Since the last hold, the guest may have been stopped: until the next one, its sleep is not
 * counted. */
void uni_shares_interrupt(struct uni_shares *s);
struct uni_share {
	uint64_t own;	 /* periods of the sample's state */
	uint64_t stolen; /* of waiting for a CPU at the same place */
};

/*
 * How many periods does a sample in this slot of the schedule stand for? Perhaps none. The vCPU was
 * RUNNING, HALTED or STOLEN when it was held. False: not known.
 */
bool uni_shares_take(
	struct uni_shares *s, uint32_t vcpu, uint64_t slot, uint8_t state, struct uni_share *ret);

#endif
