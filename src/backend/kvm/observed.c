/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vCPUs that are stopped by the observer (base/observer.h), for a process without rights. All that
 * takes rights otherwise, finding their threads and asking KVM for registers, was done before they
 * were given up.
 */
#include "backend/kvm/observed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/observer.h"
#include "backend/shared.h"

uint64_t uni_kvm_observed_stop(struct uni_kvm *k, const struct uni_vcpuset *set, uint64_t one_ns,
	uint64_t some_ns, uint32_t *nr_wait_ret, uint64_t *run_delay_ret)
{
	unsigned flags = k->restart ? UNI_HOLD_RESTART : 0;
	const struct uni_hold_page *page;
	int tids[UNI_HOLD_MAX] = { 0 };

	for (uint32_t i = 0; i < k->nr; i++) {
		if (!uni_vcpuset_has(set, i))
			continue;
		tids[i] = k->vcpu[i].hold.tid;
		flags |= k->vcpu[i].primed ? 0 : UNI_HOLD_WHERE;
	}
	page = uni_observer_hold(k->pid, tids, k->nr, flags, one_ns, some_ns);
	k->unseen = page == NULL;
	for (uint32_t i = 0; i < k->nr; i++) {
		struct uni_kvm_vcpu *v = &k->vcpu[i];

		if (!uni_vcpuset_has(set, i))
			continue;
		v->hold.doing = page != NULL ? UNI_DOING_GONE : UNI_DOING_DENIED;
		if (page == NULL || tids[i] == 0)
			continue;
		v->hold.state = page->seen[i].state;
		v->hold.doing = page->seen[i].doing;
		v->run_fd = page->seen[i].run_fd;
		if (v->hold.state != UNI_HOLD_FREE)
			k->wait[(*nr_wait_ret)++] = &v->hold;
	}
	*run_delay_ret = page != NULL ? page->run_delay_ns : 0;
	return page != NULL ? page->ask_ns : uni_now_ns();
}

/* Those that have not stopped yet, or have ended, are the observer's business. */
void uni_kvm_observed_release(struct uni_kvm *k)
{
	bool held = false;

	for (uint32_t i = 0; i < k->nr; i++)
		held = held || k->vcpu[i].hold.state != UNI_HOLD_FREE;
	if (held)
		uni_observer_release(k->pid);
	for (uint32_t i = 0; i < k->nr; i++)
		k->vcpu[i].hold.state = UNI_HOLD_FREE;
}

int uni_kvm_observe(struct uni_kvm *k, struct uni_err *err)
{
	if (k->nr > UNI_HOLD_RUNS)
		return uni_err_set(err, UNI_ENOTSUP, "more vCPUs than one observer stops");
	k->runs = calloc(k->nr, sizeof(*k->runs));
	if (k->runs == NULL)
		return uni_err_nomem(err);
	for (uint32_t i = 0; i < k->nr; i++) {
		k->runs[i] = k->vcpu[i].sync.run_hva;
		k->vcpu[i].observed = k->vcpu[i].sync.observed = true;
	}
	k->observed = true;
	return 0;
}

static void free_held(void *held)
{
	for (struct uni_kvm *k = held, *next; k != NULL; k = next) {
		next = k->next;
		k->base.ops->detach(&k->base);
	}
}

void uni_kvm_held_keep(struct uni_target_shared *shared, struct uni_kvm *k)
{
	(void)pthread_mutex_lock(&shared->lock);
	k->next = shared->kvm_held;
	shared->kvm_held = k;
	shared->kvm_held_free = free_held;
	(void)pthread_mutex_unlock(&shared->lock);
}

struct uni_kvm *uni_kvm_held_take(struct uni_target_shared *shared, int pid)
{
	struct uni_kvm *k, *before = NULL;

	if (shared == NULL)
		return NULL;
	(void)pthread_mutex_lock(&shared->lock);
	for (k = shared->kvm_held; k != NULL && k->pid != pid; k = k->next)
		before = k;
	if (k != NULL && before != NULL)
		before->next = k->next;
	else if (k != NULL)
		shared->kvm_held = k->next;
	(void)pthread_mutex_unlock(&shared->lock);
	return k;
}
