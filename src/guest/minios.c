/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mini-OS: one list of threads, cooperative, one vCPU. It has no variable for the current thread,
 * but the lowest word of a stack has the address of its thread. Events are handled on another
 * stack. A thread that was switched out goes on at the end of __arch_switch_threads().
 */
#include "guest/model.h"

#define RUNNABLE 1u /* RUNNABLE_FLAG of sched.h */

/* Stacks are aligned to their size, which no debug data tells: 64 KiB on x86, unless configured. */
#define STACK_SHIFT_MIN 12u
#define STACK_SHIFT_MAX 20u

enum { SWITCH, LIST, IDLE };
enum { NAME, STACK, SP, IP, NEXT, FLAGS, WAKEUP, NR };

static const char *const paths[NR] = { "name", "stack", "sp", "ip", "thread_list.tqe_next", "flags",
	"wakeup_time" };

static const struct uni_model_struct structs[] = { { "thread", NR, paths }, { 0 } };

static void each_minios_thread(struct uni_look *look)
{
	uint64_t first;

	if (uni_look_u64(look, look->m->sym[LIST], &first))
		uni_look_list(look, first, NEXT);
	else
		(void)uni_look_cut(look, UNI_THREADS_FAULT);
}

static bool is_idle(struct uni_look *look, uint64_t thread)
{
	uint64_t idle;

	return look->m->sym[IDLE] != 0 && uni_look_u64(look, look->m->sym[IDLE], &idle) &&
	       idle == thread;
}

static bool read_thread(struct uni_look *look, struct uni_guest_thread *t)
{
	uint64_t ip, sp, flags, wakeup, name;

	if (!uni_look_member(look, t->object, IP, &ip) ||
		!uni_look_member(look, t->object, SP, &sp) ||
		!uni_look_member(look, t->object, FLAGS, &flags) ||
		!uni_look_member(look, t->object, WAKEUP, &wakeup) ||
		!uni_look_member(look, t->object, NAME, &name))
		return false;
	if (is_idle(look, t->object))
		t->state = UNI_THREAD_IDLE;
	else if (flags & RUNNABLE)
		t->state = UNI_THREAD_READY;
	else
		t->state = wakeup != 0 ? UNI_THREAD_WAITING : UNI_THREAD_BLOCKED;
	if (name != 0)
		uni_look_text(look, name, UNI_THREAD_NAME_MAX - 1, t->name, sizeof(t->name));
	if (look->list != NULL)
		uni_look_saved(look, ip, sp, t);
	return true;
}

/*
 * The thread that has this stack. The word at the stack's start points at the thread, and the
 * thread points at its stack.
 */
static uint64_t owner_of(struct uni_look *look, uint64_t sp)
{
	for (unsigned shift = STACK_SHIFT_MIN; shift <= STACK_SHIFT_MAX; shift++) {
		uint64_t base = sp >> shift << shift, object, stack;

		if (uni_look_u64(look, base, &object) && object != 0 &&
			uni_look_member(look, object, STACK, &stack) && stack == base)
			return object;
	}
	return 0;
}

/*
 * Events are handled on a stack of their own, which ends where a thread's stack would end. Its
 * first word is the stack pointer of the thread that was interrupted.
 */
static uint64_t interrupted_stack(struct uni_look *look, uint64_t sp)
{
	for (unsigned shift = STACK_SHIFT_MIN; shift <= STACK_SHIFT_MAX; shift++) {
		uint64_t top = ((sp - 1) >> shift << shift) + (1ull << shift), of, object;

		if (!uni_look_u64(look, top - 8, &of))
			continue;
		object = owner_of(look, of);
		if (object != 0)
			return object;
	}
	return 0;
}

static uint64_t current_minios_thread(struct uni_look *look, uint32_t vcpu)
{
	const struct uni_regs *regs = &look->regs[vcpu];
	uint64_t object = regs->sp_valid ? owner_of(look, regs->sp) : 0;

	return object != 0 || !regs->sp_valid ? object : interrupted_stack(look, regs->sp);
}

const struct uni_guest_ops uni_guest_minios = {
	.name = "minios",
	.title = "Mini-OS",
	.syms = { [SWITCH] = "__arch_switch_threads",
		[LIST] = "thread_list",
		[IDLE] = "?idle_thread" },
	.structs = structs,
	.each = each_minios_thread,
	.read = read_thread,
	.current = current_minios_thread,
};
