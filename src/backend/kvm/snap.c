/* SPDX-License-Identifier: BSD-2-Clause */
/* One sample: stop, read, resume. Nothing here allocates or prints. */
#include "backend/kvm/kvm.h"

#include <poll.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "backend/kvm/regs.h"
#include "backend/kvm/rest.h"

/*
 * Longer than any scheduling delay of a working host. A vCPU thread in uninterruptible sleep
 * exceeds it, and is UNKNOWN in this sample.
 */
#define STOP_NS (200 * UNI_NSEC_PER_MSEC)

/* The state of one call of snap(). */
struct snap {
	struct uni_kvm *k;
	const struct uni_vcpuset *set;
	bool single; /* the set has one vCPU */
	struct uni_regs *ret;
	uint32_t nr_wait;      /* entries of k->wait: threads that were asked to stop */
	uint64_t run_delay_ns; /* for a set of one vCPU, at the request to stop */
};

static bool in_set(const struct snap *s, uint32_t i)
{
	return uni_vcpuset_has(s->set, i);
}

/*
 * Decides what to do with one vCPU, and seizes its thread if it is to be stopped. A thread asleep
 * in the VMM is left alone: an interrupt would make epoll_wait() and the like return early. Its
 * registers are those of the guest's last exit, and cannot change while it sleeps. If it wakes up
 * during the sample, the sample may be inconsistent; the unwinder then finds a broken chain.
 */
static void prepare_vcpu(struct snap *s, uint32_t i)
{
	struct uni_kvm_vcpu *v = &s->k->vcpu[i];
	int fd, rc;

	if (v->hold.tid == 0) {
		v->doing = UNI_DOING_GONE;
		return;
	}
	if (v->hold.state != UNI_HOLD_FREE)
		return; /* it is held, or was late last time and may have stopped by now */
	v->doing = uni_kvm_doing(v->syscall_fd, &fd);
	if ((v->doing == UNI_DOING_IN_RUN || v->doing == UNI_DOING_ELSE) &&
		uni_kvm_is_awake(v->stat_fd))
		v->doing = UNI_DOING_RUNNING;
	if (v->doing != UNI_DOING_RUNNING && v->doing != UNI_DOING_IN_RUN)
		return;
	rc = uni_hold_seize(&v->hold);
	if (rc != 0) /* EPERM: somebody else traces it now, perhaps for a short time */
		v->doing = rc == -UNI_EPERM ? UNI_DOING_DENIED : UNI_DOING_GONE;
}

static void ask_to_stop(struct snap *s, uint32_t i)
{
	struct uni_hold *h = &s->k->vcpu[i].hold;

	if (h->state == UNI_HOLD_SEIZED) {
		if (s->single) /* otherwise only a delay between the stops of a group */
			s->run_delay_ns = uni_kvm_run_delay(s->k->vcpu[i].schedstat_fd);
		(void)uni_hold_ask(h);
	}
	if (h->state == UNI_HOLD_ASKED || h->state == UNI_HOLD_DYING)
		s->k->wait[s->nr_wait++] = h;
}

/*
 * KVM writes the registers at every return of KVM_RUN. If this stop interrupted KVM_RUN, it did so
 * now.
 */
static void look_where(struct uni_kvm_vcpu *v)
{
	int fd;

	if (v->primed || v->hold.state != UNI_HOLD_STOPPED)
		return;
	v->primed = v->doing == UNI_DOING_IN_RUN || (uni_hold_in_run(&v->hold, &fd) && fd == v->fd);
}

/* KVM waits for the start-up interrupt in a loop with the VMM: it may look as if it ran. */
static void note_never_started(struct uni_regs *r)
{
	if (uni_arch_x86_64.never_started(r))
		r->state = UNI_VCPU_OFFLINE;
}

/* Returns 0, -UNI_EAGAIN or -UNI_EIO. */
static int read_one(struct snap *s, uint32_t i)
{
	struct uni_kvm_vcpu *v = &s->k->vcpu[i];
	bool stopped = v->hold.state == UNI_HOLD_STOPPED, fresh = false;
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	int rc;

	if (!stopped && v->doing != UNI_DOING_ELSE)
		return -UNI_EAGAIN;
	look_where(v);
	rc = uni_kvm_sync_read(&v->sync, &regs, &sregs, &fresh);
	if (rc == -UNI_ESTALE)
		v->primed = false;
	if (rc != 0)
		return rc == -UNI_ESTALE ? -UNI_EAGAIN : rc;
	/* After one return since the registers were requested, they are never old again. */
	v->primed = v->primed || fresh;
	if (!v->primed)
		return -UNI_EAGAIN;
	uni_kvm_regs_convert(&regs, &sregs, &s->ret[i]);
	s->ret[i].state = v->doing == UNI_DOING_RUNNING ? UNI_VCPU_RUNNING : UNI_VCPU_HALTED;
	note_never_started(&s->ret[i]);
	return 0;
}

static void let_go(struct uni_kvm *k, struct uni_kvm_vcpu *v)
{
	if (v->hold.state == UNI_HOLD_ASKED)
		(void)uni_hold_poll(&v->hold);
	if (v->hold.state == UNI_HOLD_STOPPED && k->restart)
		(void)uni_hold_restart(&v->hold);
	uni_hold_let_go(&v->hold);
}

bool uni_kvm_any_held(const struct uni_kvm *k)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		if (k->vcpu[i].hold.state != UNI_HOLD_FREE)
			return true;
	}
	return k->late.nr != 0;
}

int uni_kvm_release(struct uni_target *t)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	for (uint32_t i = 0; i < k->nr; i++) {
		if (k->vcpu[i].hold.state != UNI_HOLD_FREE)
			let_go(k, &k->vcpu[i]);
	}
	(void)uni_kvm_late_end(&k->late);
	if (uni_kvm_any_held(k)) /* a late thread may stop at any time */
		uni_kvm_watchdog_hold(&k->watchdog);
	else
		uni_kvm_watchdog_free(&k->watchdog);
	return 0;
}

void uni_kvm_let_all_go(struct uni_kvm *k)
{
	(void)uni_kvm_release(&k->base);
	for (uint32_t left = k->nr; left != 0; left--) {
		struct uni_hold *one = &k->vcpu[left - 1].hold;

		if (one->state != UNI_HOLD_ASKED)
			continue;
		uni_hold_wait(&one, 1, uni_now_ns() + STOP_NS);
		(void)uni_kvm_release(&k->base);
	}
}

static bool process_ended(const struct uni_kvm *k)
{
	struct pollfd p = { .fd = k->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static bool any_thread(const struct uni_kvm *k)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		if (k->vcpu[i].hold.tid != 0)
			return true;
	}
	return false;
}

bool uni_kvm_alive(struct uni_target *t)
{
	struct uni_kvm *k = (struct uni_kvm *)t;

	/* A stop that came late must not last until the next sample. */
	(void)uni_kvm_release(t);
	uni_kvm_watchdog_stop_again(&k->watchdog);
	return (any_thread(k) || !k->prepared || k->rests) && !process_ended(k);
}

bool uni_kvm_settled(struct uni_target *t)
{
	(void)uni_kvm_release(t);
	return !uni_kvm_any_held((struct uni_kvm *)t);
}

/*
 * A thread that the host has preempted cannot stop before it gets a CPU again. Until then, the
 * guest stands still because of the host, not because of us. This is known for one vCPU only: of
 * several, those that stopped wait for the last one.
 */
static uint64_t waited_for_host(const struct snap *s)
{
	if (!s->single)
		return 0;
	for (uint32_t i = 0; s->nr_wait == 1 && i < s->k->nr; i++) {
		const struct uni_kvm_vcpu *v = &s->k->vcpu[i];

		if (&v->hold == s->k->wait[0] && v->hold.state == UNI_HOLD_STOPPED)
			return uni_kvm_run_delay(v->schedstat_fd) - s->run_delay_ns;
	}
	return 0;
}

/* Reads the registers of all that have stopped; returns their number. */
static uint32_t read_all(struct snap *s, int *rc_ret)
{
	uint32_t nr_read = 0;

	for (uint32_t i = 0; i < s->k->nr; i++) {
		struct uni_kvm_vcpu *v = &s->k->vcpu[i];
		int rc;

		if (!in_set(s, i))
			continue;
		rc = read_one(s, i);
		if (rc == 0) {
			nr_read++;
			continue;
		}
		*rc_ret = rc != -UNI_EAGAIN ? rc : *rc_ret;
		/* The thread has ended: it was free, or its end was collected while waiting. */
		if (v->doing == UNI_DOING_GONE ||
			(v->doing == UNI_DOING_RUNNING && v->hold.state == UNI_HOLD_FREE) ||
			v->hold.state == UNI_HOLD_DYING) {
			s->ret[i].state = UNI_VCPU_OFFLINE;
			if (v->hold.state != UNI_HOLD_FREE)
				continue;
			v->ended = v->ended || v->hold.tid != 0;
			v->hold.tid = 0;
		}
	}
	return nr_read;
}

/* A run that was sampled by the kernel side so far has changed nothing in the VMM. */
bool uni_kvm_is_prepared(struct uni_kvm *k)
{
	if (!uni_privilege_may_stop() && !k->prepared)
		(void)uni_err_set(&k->unprepared, UNI_EPERM,
			"the guest cannot be stopped: uniscope has given up its rights; use "
			"--method pause");
	else if (!k->prepared && k->unprepared.code == 0)
		(void)uni_kvm_prepare(k, &k->unprepared);
	return k->prepared;
}

/* Without stopping anything: reads the registers of each vCPU's last exit. */
static int snap_running(struct uni_kvm *k, const struct uni_vcpuset *set, struct uni_regs *ret)
{
	const struct uni_kvm_scan *scan = k->side->scan(k->kernel);
	uint32_t nr_read = 0;

	if (k->side->look(k->kernel) != 0)
		return process_ended(k) ? -UNI_EGONE : -UNI_EAGAIN;
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct uni_bpf_item *item = &scan->vcpu[i];

		if (!uni_vcpuset_has(set, i))
			continue;
		memset(&ret[i], 0, sizeof(ret[i]));
		ret[i].state = UNI_VCPU_OFFLINE;
		if (i >= scan->nr_vcpus || item->vcpu.tid == 0)
			continue;
		uni_kvm_scan_regs(&item->vcpu.regs, &ret[i]);
		if (ret[i].state == UNI_VCPU_UNKNOWN)
			continue;
		nr_read++;
		if (item->vcpu.on_rq == 0)
			ret[i].state = UNI_VCPU_HALTED;
		note_never_started(&ret[i]);
	}
	return nr_read != 0 ? 0 : -UNI_EAGAIN;
}

/* The time until which stops are awaited. */
static uint64_t stop_deadline(const struct snap *s, uint64_t ask_ns, unsigned flags)
{
	if ((flags & UNI_SNAP_BRIEF) != 0 && s->nr_wait > 1)
		return ask_ns + UNI_KVM_PATIENCE_NS;
	return ask_ns + (s->k->patience_ns != 0 ? s->k->patience_ns : STOP_NS);
}

/* If at least one of several has stopped, and another has not (yet), all are resumed. */
static bool gave_up(const struct snap *s, uint64_t ask_ns)
{
	uint32_t late = 0;

	for (uint32_t i = 0; i < s->nr_wait; i++)
		late += s->k->wait[i]->state == UNI_HOLD_ASKED;
	if (s->nr_wait < 2 || late == 0)
		return false;
	(void)uni_kvm_release(&s->k->base);
	s->k->base.stood_ns = late == s->nr_wait ? 0 : uni_now_ns() - ask_ns;
	uni_kvm_let_all_go(s->k);
	return true;
}

int uni_kvm_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct snap s = { .k = (struct uni_kvm *)t,
		.set = set,
		.ret = ret,
		.single = uni_vcpuset_count(set) == 1 };
	uint64_t ask_ns, wait_ns;
	uint32_t nr_read;
	int rc = -UNI_EAGAIN;

	if (!uni_vcpuset_fits(set, s.k->nr))
		return -UNI_EINVAL;
	if (s.k->rests)
		return process_ended(s.k) ? -UNI_EGONE : uni_kvm_rest_snap(s.k, set, ret);
	if (s.k->kernel != NULL && (flags & UNI_SNAP_HOLD) == 0)
		return snap_running(s.k, set, ret);
	if (!uni_kvm_is_prepared(s.k))
		return process_ended(s.k) ? -UNI_EGONE : -UNI_EAGAIN;
	uni_kvm_watchdog_stop_again(&s.k->watchdog);
	uni_kvm_watchdog_hold(&s.k->watchdog);
	for (uint32_t i = 0; i < s.k->nr; i++) {
		if (!in_set(&s, i))
			continue;
		memset(&ret[i], 0, sizeof(ret[i]));
		ret[i].state = UNI_VCPU_UNKNOWN;
		prepare_vcpu(&s, i);
	}
	ask_ns = uni_now_ns();
	for (uint32_t i = 0; i < s.k->nr; i++) {
		if (in_set(&s, i))
			ask_to_stop(&s, i);
	}
	if (s.nr_wait != 0)
		uni_hold_wait(s.k->wait, s.nr_wait, stop_deadline(&s, ask_ns, flags));
	if ((flags & UNI_SNAP_BRIEF) != 0 && gave_up(&s, ask_ns))
		return process_ended(s.k) ? -UNI_EGONE : -UNI_EAGAIN;
	wait_ns = waited_for_host(&s);
	t->stop_ns = ask_ns + uni_min(wait_ns, uni_now_ns() - ask_ns);
	nr_read = read_all(&s, &rc);
	if (nr_read == 0 || (flags & UNI_SNAP_HOLD) == 0)
		(void)uni_kvm_release(t);
	if (nr_read != 0)
		return 0;
	return process_ended(s.k) || !any_thread(s.k) ? -UNI_EGONE : rc;
}
