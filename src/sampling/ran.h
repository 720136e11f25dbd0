/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Has a vCPU run since it was held last? On a busy host it may still wait for a CPU. Such a sample
 * would count the last place again, although the guest was not at work there.
 */
#ifndef UNI_SAMPLING_RAN_H
#define UNI_SAMPLING_RAN_H

#include "backend/target.h"

struct uni_ran;

/* *ret is NULL if the target does not tell what CPU time its vCPUs had. */
int uni_ran_create(
	struct uni_target *t, uint32_t nr_vcpus, struct uni_ran **ret, struct uni_err *err);
void uni_ran_destroy(struct uni_ran *r); /* NULL-safe */

/* The vCPUs of the set go on now, with these registers. */
void uni_ran_resumed(struct uni_ran *r, const struct uni_vcpuset *set, const struct uni_regs *regs);
/*
 * While they are held: adds to *ret those that have not run since uni_ran_resumed(). Their
 * registers are the same, and they had less than an eighth of the time on a CPU. So a loop that
 * changes no register is not mistaken for a vCPU that stands still.
 */
void uni_ran_not(struct uni_ran *r, const struct uni_vcpuset *set, const struct uni_regs *regs,
	struct uni_vcpuset *ret);

#endif
