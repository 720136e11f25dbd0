/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/boot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "app/boot_traces.h"
#include "app/child.h"
#include "app/signals.h"
#include "app/term.h"
#include "backend/vcpuset.h"

#define LOOK_NS (100 * UNI_NSEC_PER_MSEC)
/* of waiting, before a message about it, even without a terminal */
#define SAY_NS	    (3 * UNI_NSEC_PER_SEC)
#define RESET_PC    0xfffffff0u
#define HALTED_NS   (500 * UNI_NSEC_PER_MSEC) /* between looks at a guest that uses no CPU */
#define NR_ASTRAY   3			      /* looks in a row */
#define NR_SAME	    50			      /* looks that all show the same registers, ... */
#define SAME_CPU_NS (3 * UNI_NSEC_PER_SEC)    /* ... while QEMU has worked for this long */

#define SIGNAL_NS (200 * UNI_NSEC_PER_MSEC) /* between looks whether a signal has stopped QEMU */

static uint64_t since_begin(const struct uni_boot *b, uint64_t wall_ns)
{
	return wall_ns > b->begin_wall_ns ? wall_ns - b->begin_wall_ns : 0;
}

static enum uni_boot_end end_of_reason(const char *reason)
{
	static const struct {
		const char *reason;
		enum uni_boot_end end;
	} known[] = {
		{ "guest-shutdown", UNI_BOOT_SHUTDOWN },
		{ "guest-reset", UNI_BOOT_RESET },
		{ "guest-panic", UNI_BOOT_PANIC },
	};

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (strcmp(reason, known[i].reason) == 0)
			return known[i].end;
	}
	return UNI_BOOT_OUTSIDE;
}

static void on_event(void *ctx, const struct uni_qmp_event *e)
{
	uint64_t wall_ns = e->wall_ns != 0 ? e->wall_ns : uni_realtime_ns();
	struct uni_boot *b = ctx;
	enum uni_boot_end end = UNI_BOOT_GOES_ON;

	if (strcmp(e->name, "GUEST_PANICKED") == 0 || strcmp(e->name, "GUEST_CRASHLOADED") == 0)
		end = UNI_BOOT_PANIC;
	else if (strcmp(e->name, "SHUTDOWN") == 0)
		end = end_of_reason(e->reason);
	else if (strcmp(e->name, "STOP") == 0 || strcmp(e->name, "RESUME") == 0)
		b->stopped = e->name[0] == 'S';
	if (b->stopped && strcmp(e->name, "STOP") == 0)
		b->stop_ns = since_begin(b, wall_ns);
	if (end == UNI_BOOT_GOES_ON || b->end != UNI_BOOT_GOES_ON)
		return;
	b->end = end;
	b->end_ns = since_begin(b, wall_ns);
	(void)snprintf(b->reason, sizeof(b->reason), "%s", e->reason);
}

int uni_boot_begin(struct uni_boot *b, struct uni_err *err)
{
	int rc;

	b->begin_ns = uni_now_ns();
	b->begin_wall_ns = uni_realtime_ns();
	uni_qmp_on_event(b->q->qmp, on_event, b);
	rc = uni_qmp_cont(b->q->qmp);
	/* A guest may have ended QEMU before that has answered. */
	if (rc != 0 && rc != -UNI_EGONE)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"QEMU does not let the guest run: %s", uni_strerror(rc));
	return 0;
}

/* Looks up the PC by the image's addresses, with paging and without. NULL: not in its code. */
static const struct uni_segment *code_at(
	const struct uni_boot *b, const struct uni_qmp_cpu *c, uint64_t *svma_ret)
{
	for (size_t i = 0; i < b->nr_segments; i++) {
		const struct uni_segment *s = &b->segment[i];

		*svma_ret = c->pc;
		if (s->exec && uni_range_has(s->vaddr, s->mem_size, c->pc))
			return s;
		*svma_ret = c->pc - s->paddr + s->vaddr;
		if (s->exec && !c->paging && uni_range_has(s->paddr, s->mem_size, c->pc))
			return s;
	}
	return NULL;
}

/* Asked now, QEMU would answer when it goes on, or never. */
static bool may_ask(const struct uni_boot *b)
{
	return b->q->pid > 0 && !uni_process_is_stopped(b->q->pid);
}

/* Firmware for PVH and multiboot never enables paging. For a guest that does, attaching shows the
 * state. */
static int look_at_cpu(struct uni_boot *b)
{
	struct uni_qmp_cpu now;
	uint64_t svma;
	int rc = uni_qmp_cpu(b->q->qmp, 0, &now);

	if (rc == -UNI_ENOTSUP)
		b->ran = true; /* another architecture: no firmware unless asked for */
	if (rc != 0)
		return rc;
	if (b->has_cpu && now.key == b->cpu.key) {
		b->nr_same++;
	} else {
		b->nr_same = 0;
		b->same_cpu_ns = uni_process_cpu_ns(b->q->pid);
	}
	b->cpu = now;
	b->has_cpu = true;
	b->nr_astray = uni_boot_is_astray(b) ? b->nr_astray + 1 : 0;
	b->ran = b->ran || now.paging || b->nr_segments == 0 || code_at(b, &now, &svma) != NULL;
	return 0;
}

/* Nothing wakes it, or it goes round on the spot. */
static bool is_stuck(const struct uni_boot *b)
{
	if (b->stopped || b->nr_same < NR_SAME)
		return false;
	return b->cpu.halted ? !b->cpu.interrupts
			     : uni_process_cpu_ns(b->q->pid) - b->same_cpu_ns >= SAME_CPU_NS;
}

/* Its registers as one number, if no interrupt wakes any vCPU; else 0. The others may not have been
 * started. first: vCPU 0 was looked at just now. */
static uint64_t key_if_halted(const struct uni_boot *b, bool first)
{
	uint64_t key = 0;

	for (uint32_t v = 0; v < UNI_VCPU_MAX; v++) {
		struct uni_qmp_cpu c = b->cpu;
		int rc = v == 0 && first ? 0 : uni_qmp_cpu(b->q->qmp, v, &c);

		if (rc != 0)
			return rc == -UNI_ENOTSUP ? key : 0; /* there is no such vCPU */
		if ((!c.halted || c.interrupts) && (v == 0 || c.pc != RESET_PC))
			return 0;
		key = uni_hash_pair(key, c.key) | 1;
	}
	return key;
}

/* Is it over, although its VMM runs on? With KVM asked only while QEMU has little to do, because a
 * vCPU stops for the question. */
static enum uni_boot_end look_again(struct uni_boot *b)
{
	const bool tcg = strncmp(b->q->accel, "tcg", 3) == 0;
	uint64_t now_ns = uni_now_ns(), cpu_ns, key = 0;
	bool idle, halted, first;

	if (now_ns - b->look_ns < HALTED_NS || b->held || b->unsettled || !may_ask(b))
		return UNI_BOOT_GOES_ON;
	cpu_ns = uni_process_cpu_ns(b->q->pid);
	idle = b->look_ns != 0 && (tcg || cpu_ns - b->look_cpu_ns < (now_ns - b->look_ns) / 4);
	first = tcg && look_at_cpu(b) == 0; /* KVM ends a guest that has gone astray */
	if (idle)
		key = key_if_halted(b, first);
	halted = key != 0 && key == b->halted_key;
	b->look_ns = now_ns;
	b->look_cpu_ns = cpu_ns;
	b->halted_key = key;
	if (b->nr_astray >= NR_ASTRAY)
		return UNI_BOOT_ASTRAY;
	return halted ? UNI_BOOT_HALTED : UNI_BOOT_GOES_ON;
}

static void end_now(struct uni_boot *b, enum uni_boot_end end)
{
	b->end = end;
	b->end_ns = uni_now_ns() - b->begin_ns;
}

/* Why does the VMM hold it? The gdb stub, by which we sample, is no reason. */
static void ask_why_stopped(struct uni_boot *b)
{
	char status[32] = "";
	bool running;

	/* QEMU may read a question before a sample's request to go on that was sent earlier. Before
	 * it answers the second one, it has read that, too. */
	for (int i = 0; i < 2; i++) {
		if (uni_qmp_status(b->q->qmp, &running, status, sizeof(status)) != 0 || running ||
			b->end != UNI_BOOT_GOES_ON || strcmp(status, "debug") == 0)
			return;
	}
	if (strcmp(status, "internal-error") == 0) {
		b->end = UNI_BOOT_INTERNAL;
		b->end_ns = b->stop_ns;
		return;
	}
	b->held = true;
	uni_note("after %.1f s the VMM stopped the guest (%s): there are no samples until "
		 "the one who stopped it lets it go on",
		(double)b->stop_ns / 1e9, status);
}

static void follow_stops(struct uni_boot *b)
{
	/* A QEMU that goes on stops first, for a sample that was asked for meanwhile. Until the
	 * stub has answered that sample, the target is not settled. */
	if (b->stopped && !b->held && !b->frozen && !b->unsettled && b->end == UNI_BOOT_GOES_ON)
		ask_why_stopped(b);
	if (b->stopped || !b->held)
		return;
	b->held = false;
	uni_note("after %.1f s the guest goes on", (double)(uni_now_ns() - b->begin_ns) / 1e9);
}

/* No event tells of it. */
static void follow_signal(struct uni_boot *b)
{
	uint64_t now_ns = uni_now_ns();
	bool frozen;

	if (now_ns - b->frozen_look_ns < SIGNAL_NS || b->q->pid <= 0 || b->end != UNI_BOOT_GOES_ON)
		return;
	b->frozen_look_ns = now_ns;
	frozen = !may_ask(b);
	if (frozen == b->frozen)
		return;
	b->frozen = frozen;
	if (frozen)
		uni_note("after %.1f s: a signal has stopped QEMU, pid %d: there are no samples "
			 "until kill -CONT %d lets it run",
			(double)(now_ns - b->begin_ns) / 1e9, (int)b->q->pid, (int)b->q->pid);
	else
		uni_note("after %.1f s the guest goes on", (double)(now_ns - b->begin_ns) / 1e9);
}

bool uni_boot_awake(const struct uni_boot *b)
{
	return b->end == UNI_BOOT_GOES_ON && !b->held && !b->frozen;
}

/* QEMU keeps a guest that has ended: learn from it while it is still there. */
static void look_back(struct uni_boot *b)
{
	if (b->watched || b->unsettled || !may_ask(b))
		return;
	b->watched = true;
	(void)look_at_cpu(b);
	b->ran = b->ran || uni_boot_has_written(b) || uni_boot_was_entered(b);
}

bool uni_boot_ended(struct uni_boot *b)
{
	const bool there = b->q->pid > 0; /* its status is told once */
	int rc = uni_qmp_poll(b->q->qmp), status = 0;

	follow_stops(b);
	follow_signal(b);
	if (uni_qemu_ended(b->q, &status) || (rc == -UNI_EGONE && uni_qemu_ending(b->q, &status))) {
		if (b->end == UNI_BOOT_GOES_ON)
			end_now(b, UNI_BOOT_EXITED);
		if (there)
			b->status = status;
		/* Only the booted program knows the device that does this. */
		b->ran = b->ran || uni_qemu_was_debug_exit(b->q, status);
	}
	if (b->end == UNI_BOOT_GOES_ON) {
		enum uni_boot_end end = look_again(b);

		if (end != UNI_BOOT_GOES_ON)
			end_now(b, end);
	}
	if (b->end != UNI_BOOT_GOES_ON)
		look_back(b);
	if (b->end == UNI_BOOT_HALTED && !b->ran)
		b->end = UNI_BOOT_STUCK;
	return b->end != UNI_BOOT_GOES_ON;
}

bool uni_boot_over(struct uni_boot *b)
{
	/* A stub stops the guest itself; KVM's vCPUs are stopped without the VMM. */
	const bool kvm = strcmp(b->q->accel, "kvm") == 0;
	int rc = uni_qmp_poll(b->q->qmp);

	return rc != 0 || b->end != UNI_BOOT_GOES_ON || (kvm && b->stopped && !b->held);
}

bool uni_boot_never_ran(const struct uni_boot *b)
{
	return b->end != UNI_BOOT_GOES_ON && b->end <= UNI_BOOT_EXITED && b->watched && !b->ran;
}

static void say_waiting(struct uni_boot *b, uint64_t took_ns)
{
	uni_progress("still in firmware: the guest has not executed %s yet (%.0f s, at 0x%" PRIx64
		     ")",
		b->name, (double)took_ns / 1e9, b->cpu.pc);
	if (took_ns < SAY_NS || b->said_waiting || b->quiet)
		return;
	b->said_waiting = true;
	uni_note("still in firmware: the guest has not executed %s yet; waiting until it does",
		b->name);
}

int uni_boot_wait(struct uni_boot *b, uint64_t wait_ns, struct uni_err *err)
{
	const struct timespec nap = uni_ns_timespec(LOOK_NS);
	pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER; /* nothing is held */
	char line[512];

	while (!uni_boot_ended(b)) {
		uint64_t took_ns = uni_now_ns() - b->begin_ns;
		bool stuck, astray;

		uni_signals_suspend(&gate);
		if (may_ask(b))
			(void)look_at_cpu(b);
		stuck = is_stuck(b);
		astray = b->nr_astray >= NR_ASTRAY;
		/* Its code may lie elsewhere than in the image. */
		b->ran = b->ran || (stuck && (uni_boot_was_entered(b) || uni_boot_has_written(b)));
		if (b->ran && b->nr_astray == 0) {
			uni_progress_end();
			return 0;
		}
		if (atomic_load(uni_signals_stop()))
			return uni_err_set(err, UNI_EAGAIN,
				"ended by you after %.1f s: the guest was still in its firmware",
				(double)took_ns / 1e9);
		if (astray || stuck || took_ns >= wait_ns) {
			end_now(b, astray  ? UNI_BOOT_ASTRAY
				   : stuck ? UNI_BOOT_STUCK
					   : UNI_BOOT_LATE);
			look_back(b);
			break;
		}
		say_waiting(b, took_ns);
		(void)nanosleep(&nap, NULL);
	}
	uni_progress_end();
	uni_boot_tell(b, line, sizeof(line));
	return uni_err_set(err, b->end == UNI_BOOT_LATE ? UNI_ETIMEDOUT : UNI_EGONE, "%s", line);
}

/* QEMU stops a guest that asked for its end a moment later. */
static const char *place_words(const struct uni_boot *b)
{
	if (b->end != UNI_BOOT_SHUTDOWN && b->end != UNI_BOOT_RESET && b->end != UNI_BOOT_PANIC)
		return "at";
	return strncmp(b->q->accel, "tcg", 3) == 0
		       ? "stopped there or before the next block of code, at"
		       : "stopped there or soon after, at";
}

/* ", at 0x200012 (main+0x12)", ", at 0xffff0: uniscope did not see it execute app.elf". A reset has
 * taken the place where it was, and a guest may end before uniscope looks. */
static void tell_where(const struct uni_boot *b, char *ret, size_t cap)
{
	char at[80] = "";
	const struct uni_symbol *fn = NULL;
	uint64_t svma = 0;

	if (b->has_cpu && b->watched)
		(void)snprintf(at, sizeof(at), " %s 0x%" PRIx64, place_words(b), b->cpu.pc);
	if (!b->ran) {
		(void)snprintf(ret, cap, "%s%s: uniscope did not see it execute %s",
			at[0] != '\0' ? "," : "", at, b->name);
		return;
	}
	if (at[0] != '\0' && (b->cpu.pc == 0xfff0 || b->cpu.pc == 0xfffffff0)) {
		(void)snprintf(
			ret, cap, " in %s: KVM has reset its vCPU, so where is not known", b->name);
		return;
	}
	if (at[0] != '\0' && b->image != NULL && code_at(b, &b->cpu, &svma) != NULL)
		fn = uni_image_lookup(b->image, svma);
	if (fn != NULL)
		(void)snprintf(ret, cap, ",%s (%s+0x%" PRIx64 ")", at,
			uni_image_sym_name(b->image, fn), svma - fn->addr);
	else
		(void)snprintf(ret, cap, "%s%s", at[0] != '\0' ? "," : "", at);
}

static void tell_exit(const struct uni_boot *b, const char *after, char *ret, size_t cap)
{
	if (uni_qemu_was_debug_exit(b->q, b->status))
		(void)snprintf(ret, cap,
			"the guest ended by QEMU's debug exit%s, with code 0x%x (QEMU's status %d)",
			after, WEXITSTATUS(b->status) >> 1, WEXITSTATUS(b->status));
	else if (WIFSIGNALED(b->status))
		(void)snprintf(ret, cap, "the guest ended: QEMU died%s by signal %d; see %s", after,
			WTERMSIG(b->status), b->console);
	else
		(void)snprintf(ret, cap, "the guest ended: QEMU left%s with status %d; see %s",
			after, WEXITSTATUS(b->status), b->console);
}

/* QEMU's message on the console when KVM gives up. */
static const char *internal_cause(const struct uni_boot *b)
{
	static const struct {
		const char *words, *cause;
	} known[] = {
		{ "emulation failure", "this KVM does not emulate an instruction of the guest" },
		{ "Suberror: 1", "this KVM does not emulate an instruction of the guest" },
		{ "kvm run failed", "KVM_RUN fails" },
	};

	if (b->nr_astray != 0)
		return "the guest has no memory at this address";
	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (uni_child_has_said(b->console, known[i].words))
			return known[i].cause;
	}
	return "KVM gave up (internal error)";
}

void uni_boot_tell(struct uni_boot *b, char *ret, size_t cap)
{
	char after[32], where[256];

	if (b->image == NULL && b->read_image != NULL)
		b->read_image(b);
	(void)snprintf(after, sizeof(after), " after %.2f s", (double)b->end_ns / 1e9);
	tell_where(b, where, sizeof(where));
	switch (b->end) {
	case UNI_BOOT_GOES_ON:
		(void)snprintf(ret, cap, "the guest runs");
		break;
	case UNI_BOOT_SHUTDOWN:
		(void)snprintf(ret, cap, "the guest shut down%s%s", after, where);
		break;
	case UNI_BOOT_RESET:
		(void)snprintf(ret, cap, "the guest reset itself (a reboot, or a triple fault)%s%s",
			after, where);
		break;
	case UNI_BOOT_PANIC:
		(void)snprintf(ret, cap, "the guest panicked%s%s; its last words may be in %s",
			after, where, b->console);
		break;
	case UNI_BOOT_INTERNAL:
		(void)snprintf(ret, cap, "the guest died%s%s: %s", after, where, internal_cause(b));
		break;
	case UNI_BOOT_OUTSIDE:
		(void)snprintf(ret, cap, "the guest was ended from outside (%s)%s%s", b->reason,
			after, where);
		break;
	case UNI_BOOT_EXITED:
		tell_exit(b, after, ret, cap);
		break;
	case UNI_BOOT_HALTED:
		(void)snprintf(ret, cap,
			"the guest has halted for good, seen%s%s: interrupts are off, so that "
			"none wakes it",
			after, where);
		break;
	case UNI_BOOT_ASTRAY:
		(void)snprintf(ret, cap, "the guest has jumped to where it has no memory, seen%s%s",
			after, where);
		break;
	case UNI_BOOT_STUCK:
		(void)snprintf(ret, cap,
			"the guest stays in its firmware at 0x%" PRIx64
			" (%s), looked at for %.1f s: it never executed %s",
			b->cpu.pc,
			b->cpu.halted ? "halted with interrupts off" : "it repeats one instruction",
			(double)b->end_ns / 1e9, b->name);
		break;
	case UNI_BOOT_LATE:
		(void)snprintf(ret, cap,
			"waited %.0f s: the guest is still in its firmware, at 0x%" PRIx64
			", and has not executed %s (--wait SECONDS waits longer)",
			(double)b->end_ns / 1e9, b->cpu.pc, b->name);
		break;
	}
}
