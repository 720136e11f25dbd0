/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breakpoints as an operation of the target. A guest that ran into one goes on like this:
 *
 *   hit -> registers of all vCPUs -> fn() -> remove -> step each that stands there -> insert -> run
 *
 * Only the vCPU that is stepped runs meanwhile. So no other one slips by.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "backend/gdb/gdb.h"

#define LOOK_NS	  (200 * UNI_NSEC_PER_MSEC) /* how often we give a sign of life */
#define BUSY_NS	  (10 * UNI_NSEC_PER_MSEC)  /* while the guardian is at work */
#define ANSWER_NS UNI_NSEC_PER_SEC
#define STEP_NS	  (5 * UNI_NSEC_PER_SEC) /* its thread may wait for a CPU of the host */
#define STEPS_MAX 64
#define INSN_MAX  16 /* bytes */

/*
 * A vCPU may stand at a breakpoint again for the same call: an interrupt or a fault came before the
 * instruction was executed. The stack pointer is the same then. The oldest one is forgotten.
 */
static bool is_same_call(struct uni_gdb_target *t, unsigned which, uint64_t sp)
{
	for (size_t i = 0; i < uni_array_len(t->again); i++) {
		if (t->again[i].sp != sp || t->again[i].which != which || !t->again[i].used)
			continue;
		t->again[i].used = false;
		return true;
	}
	return false;
}

static void expect_again(struct uni_gdb_target *t, unsigned which, uint64_t sp)
{
	size_t i = t->next_again++ % uni_array_len(t->again);

	t->again[i].used = true;
	t->again[i].which = which;
	t->again[i].sp = sp;
}

/* The stub has stopped again, by the step or by somebody else, who then has to resume it. */
static int step_once(struct uni_gdb_stub *s, uint32_t vcpu)
{
	struct uni_gdb_link *l = &s->link;
	int rc;

	/* A stop ends the step of the vCPU that Hc has chosen. */
	uni_gdb_link_packet(l, "Hc%s", s->thread[vcpu].text);
	rc = uni_gdb_link_ask(l, uni_now_ns() + ANSWER_NS);
	if (rc != 0)
		return rc;
	l->stopped_event = l->acked = false;
	uni_gdb_link_packet(l, "vCont;s:%s", s->thread[vcpu].text);
	rc = uni_gdb_link_send(l, uni_now_ns() + ANSWER_NS);
	if (rc == 0)
		rc = uni_gdb_link_stopped(l, uni_now_ns() + STEP_NS);
	if (rc == 0 && l->signal != UNI_GDB_TRAP)
		s->state = UNI_GDB_PAUSED;
	l->stopped_event = false;
	return rc;
}

/* Elsewhere, with another stack than a call or a return leaves: an interrupt or a fault came first.
 */
static bool was_interrupted(const struct uni_regs *before, const struct uni_regs *now)
{
	return now->pc - before->pc >= INSN_MAX && now->sp != before->sp &&
	       now->sp != before->sp - sizeof(uint64_t) && now->sp != before->sp + sizeof(uint64_t);
}

/*
 * Steps until the pc has moved. A stop may have an older reason: another vCPU ran into a breakpoint
 * just before. Then nothing was executed. Returns 1 if it still has to execute the instruction.
 */
static int step_over(struct uni_gdb_target *t, uint32_t vcpu)
{
	struct uni_gdb_stub *s = &t->stub;
	const struct uni_regs before = t->regs[vcpu];
	struct uni_vcpuset set = { 0 };
	struct uni_regs now = before;

	uni_vcpuset_add(&set, vcpu);
	for (int i = 0; i < STEPS_MAX && s->state == UNI_GDB_HELD && now.pc == before.pc; i++) {
		int rc = step_once(s, vcpu);

		if (rc != 0)
			return uni_gdb_stub_recover(s, rc);
		rc = uni_gdb_stub_snap(s, &set, &now);
		if (rc != 0)
			return rc;
	}
	return now.pc == before.pc || was_interrupted(&before, &now);
}

/* Calls fn for all vCPUs at breakpoints, and steps them over. The breakpoints are not there. */
static int serve_vcpus(struct uni_gdb_target *t, const int8_t *stands, uni_break_fn fn, void *ctx)
{
	int rc = 0;

	for (int v = 0; v < t->stub.nr_threads; v++) {
		if (stands[v] >= 0 && !is_same_call(t, (unsigned)stands[v], t->regs[v].sp))
			fn(ctx, (unsigned)stands[v], (uint32_t)v, &t->regs[v]);
	}
	for (int v = 0; v < t->stub.nr_threads && rc >= 0; v++) {
		if (stands[v] < 0)
			continue;
		rc = step_over(t, (uint32_t)v);
		if (rc != 0)
			expect_again(t, (unsigned)stands[v], t->regs[v].sp);
	}
	/* After a failure the others have been counted as well. */
	return rc < 0 ? rc : 0;
}

static int put_back(struct uni_gdb_target *t, const uint64_t addr[UNI_BREAKS_MAX])
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < UNI_BREAKS_MAX; i++) {
		if (addr[i] != 0)
			rc = uni_gdb_breaks_insert(&t->stub, i, addr[i]);
	}
	return rc != 0 ? uni_gdb_stub_recover(&t->stub, rc) : 0;
}

/* In a guest that was paused by somebody else we may have stopped what runs again. */
static int let_run(struct uni_gdb_stub *s)
{
	if (s->state == UNI_GDB_PAUSED && s->link.stopped_event)
		s->state = UNI_GDB_HELD;
	if (s->state == UNI_GDB_PAUSED)
		return uni_gdb_link_settle(&s->link, uni_now_ns() + ANSWER_NS);
	return uni_gdb_stub_resume(s);
}

static int find_standing(
	struct uni_gdb_target *t, int8_t *stands, uint64_t addr_ret[UNI_BREAKS_MAX])
{
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)t->stub.nr_threads);
	int rc = uni_gdb_stub_snap(&t->stub, &all, t->regs);

	for (int v = 0; rc == 0 && v < t->stub.nr_threads; v++) {
		stands[v] = (int8_t)uni_gdb_breaks_at(t->stub.breaks, t->regs[v].pc);
		if (stands[v] >= 0)
			addr_ret[stands[v]] = t->regs[v].pc;
	}
	return rc;
}

/* Returns 1: calls were counted; 0: the stop had another reason; the guest runs again. */
static int serve_stop(struct uni_gdb_target *t, uni_break_fn fn, void *ctx)
{
	struct uni_gdb_stub *s = &t->stub;
	uint64_t addr[UNI_BREAKS_MAX] = { 0 };
	int8_t stands[UNI_VCPU_MAX];
	bool any = false;
	int rc = find_standing(t, stands, addr);

	for (size_t i = 0; rc == 0 && i < UNI_BREAKS_MAX; i++) {
		if (addr[i] == 0)
			continue;
		any = true;
		rc = uni_gdb_breaks_remove(s, i);
		if (rc != 0)
			return uni_gdb_stub_recover(s, rc);
	}
	if (rc == 0 && any)
		rc = serve_vcpus(t, stands, fn, ctx);
	if (rc == 0 && any)
		rc = put_back(t, addr);
	if (rc == 0)
		rc = let_run(s);
	return rc == 0 && any ? 1 : rc;
}

/* The guardian, or we after a failure, have removed them. Whatever was read is of before. */
static int breaks_are_gone(struct uni_gdb_target *t)
{
	if (t->stub.state == UNI_GDB_RUNNING)
		uni_gdb_link_reset(&t->stub.link);
	t->stub.link.acked = true;
	return -UNI_EAGAIN;
}

static void wait_a_little(struct uni_gdb_target *t, int rc, uint64_t until_ns)
{
	const struct timespec nap = uni_ns_timespec(BUSY_NS);

	if (rc == -UNI_EAGAIN)
		(void)nanosleep(&nap, NULL);
	else
		(void)uni_wait_fd(
			t->stub.link.fd, POLLIN, uni_min(until_ns, uni_now_ns() + LOOK_NS));
}

static int wait_for_hit(struct uni_target *base, uint64_t until_ns, uni_break_fn fn, void *ctx,
	struct uni_break_stop *ret)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	int rc;

	do {
		ret->stop_ns = uni_now_ns();
		rc = uni_gdb_begin(t);
		if (rc == 0 && !uni_gdb_breaks_any(t->stub.breaks))
			rc = breaks_are_gone(t);
		else if (rc == 0)
			ret->there_ns = ret->stop_ns;
		if (rc == 0 && t->stub.state == UNI_GDB_HELD)
			rc = serve_stop(t, fn, ctx);
		uni_gdb_end(t);
		ret->removed = rc == -UNI_EGONE && !uni_gdb_breaks_any(t->stub.breaks);
		if (rc == 1)
			ret->pause_ns = uni_now_ns() - ret->stop_ns;
		if ((rc != 0 && rc != -UNI_EAGAIN) ||
			(rc == -UNI_EAGAIN && !uni_gdb_breaks_any(t->stub.breaks)))
			return rc;
		wait_a_little(t, rc, until_ns);
	} while (uni_now_ns() < until_ns);
	return 0;
}

/* A running guest is stopped first, so that each exchange is with a guest that stands. */
static int insert_all(struct uni_gdb_target *t, const uint64_t addr[UNI_BREAKS_MAX])
{
	const struct uni_vcpuset first = uni_vcpuset_first(1);
	int rc = uni_gdb_begin(t);

	if (rc == 0)
		rc = uni_gdb_stub_snap(&t->stub, &first, t->regs);
	if (rc != 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < UNI_BREAKS_MAX; i++) {
		if (addr[i] != 0)
			rc = uni_gdb_breaks_insert(&t->stub, i, addr[i]);
	}
	if (rc == 0)
		return let_run(&t->stub);
	return rc == -UNI_ENOTSUP && uni_gdb_stub_reset(&t->stub) == 0
		       ? rc
		       : uni_gdb_stub_recover(&t->stub, rc);
}

static int set_breaks(
	struct uni_target *base, const uint64_t addr[UNI_BREAKS_MAX], struct uni_err *err)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	int rc;

	if (!t->stub.qemu)
		return uni_err_set(err, UNI_ENOTSUP,
			"breakpoints are set through the gdb stub of QEMU only, and this is "
			"another one");
	memset(t->again, 0, sizeof(t->again));
	rc = insert_all(t, addr);
	uni_gdb_end(t);
	if (rc == -UNI_ENOTSUP)
		return uni_err_set(
			err, UNI_ENOTSUP, "the gdb stub inserts no (more) hardware breakpoints");
	return rc != 0 ? uni_err_set(err, (enum uni_errcode) - rc, "breakpoints cannot be set: %s",
				 uni_strerror(rc))
		       : 0;
}

static int clear_break(struct uni_target *base, unsigned which)
{
	struct uni_gdb_target *t = (struct uni_gdb_target *)base;
	const struct uni_vcpuset first = uni_vcpuset_first(1);
	int rc;

	if (which >= UNI_BREAKS_MAX)
		return -UNI_EINVAL;
	rc = uni_gdb_begin(t);
	if (rc == 0 && atomic_load(&t->stub.breaks->addr[which]) != 0) {
		rc = uni_gdb_stub_snap(&t->stub, &first, t->regs);
		if (rc == 0) {
			rc = uni_gdb_breaks_remove(&t->stub, which);
			rc = rc == 0 ? let_run(&t->stub) : uni_gdb_stub_recover(&t->stub, rc);
		}
	}
	uni_gdb_end(t);
	return rc;
}

const struct uni_break_ops uni_gdb_break_ops = {
	.set = set_breaks,
	.wait = wait_for_hit,
	.clear = clear_break,
};
