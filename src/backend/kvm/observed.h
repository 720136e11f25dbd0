/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest whose vCPUs another process stops for us. */
#ifndef UNI_BACKEND_KVM_OBSERVED_H
#define UNI_BACKEND_KVM_OBSERVED_H

#include <stdint.h>

#include "backend/kvm/kvm.h"

/*
 * As the first half of uni_kvm_snap(). Stops are awaited for one_ns, or some_ns if there are
 * several. Returns the time of the request.
 */
uint64_t uni_kvm_observed_stop(struct uni_kvm *k, const struct uni_vcpuset *set, uint64_t one_ns,
	uint64_t some_ns, uint32_t *nr_wait_ret, uint64_t *run_delay_ret);
void uni_kvm_observed_release(struct uni_kvm *k);

/* From now on it is the observer who stops them, once it is there. Sets k->runs. */
int uni_kvm_observe(struct uni_kvm *k, struct uni_err *err);
/* Guests that were prepared with rights wait here to be attached without. */
void uni_kvm_held_keep(struct uni_target_shared *shared, struct uni_kvm *k);
struct uni_kvm *uni_kvm_held_take(struct uni_target_shared *shared, int pid); /* or NULL */

#endif
