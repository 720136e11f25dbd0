/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structures in which Unikraft keeps its threads, with the same names and members but, on
 * purpose, not always at the same places. -DNO_AUXSP: as before 0.17. -DNO_COOP: with another
 * scheduler. -DNO_NAME: a version to come.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef NO_AUXSP
#define SHIFT 0
#else
#define SHIFT 1
#endif
#define RUNNABLE (4u << SHIFT)
#define EXITED	 (8u << SHIFT)

struct uk_sched;
struct uk_thread;

struct ukarch_ctx {
	uintptr_t ip, sp;
};

struct uk_thread {
	uint64_t something_new;
	struct ukarch_ctx ctx;
#ifndef NO_AUXSP
	uintptr_t auxsp;
#endif
	uint32_t flags;
	int64_t wakeup_time;
	struct uk_sched *sched;
#ifndef NO_NAME
	const char *name;
#endif
	struct {
		struct uk_thread *tqe_next, **tqe_prev;
	} thread_list;
};

struct uk_thread_list {
	struct uk_thread *tqh_first, **tqh_last;
};

struct uk_sched {
	void (*yield)(struct uk_sched *s);
	struct uk_thread_list thread_list, exited_threads;
	struct uk_sched *next;
};

#ifndef NO_COOP
struct schedcoop {
	uint64_t something_else;
	struct uk_sched sched;
	struct uk_thread idle;
};
#endif

void ukarch_ctx_switch(void), _start(void);
extern char switched_out[], called_from[], ctx_clear[], ctx_call[];

__asm__(".globl ukarch_ctx_switch, switched_out, called_from, ctx_clear, ctx_call\n"
	"ukarch_ctx_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"switched_out:\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	"called_from:\n"
	"	ret\n"
	"ctx_clear:\n"
	"	xor %rdi, %rdi\n"
	"	xor %r9, %r9\n"
	"	xor %ebx, %ebx\n"
	"	ret\n"
	"ctx_call:\n"
	"	xor %rbp, %rbp\n"
	"	pop %rdi\n"
	"	ret\n");

/* r15, r14, r13, r12, rbx, rbp, return address, and one word more. */
uint64_t stack_waits[8] = { 15, 14, 13, 12, 3, 6, (uint64_t)called_from, 99 };
/* One that has not run yet, with the argument of its function. */
uint64_t stack_starts[4] = { (uint64_t)ctx_call, 77, (uint64_t)_start, 0 };

#ifndef NO_COOP
struct schedcoop coop;
#define SCHED_TWO (&coop.sched)
#else
struct uk_sched sched_two;
#define SCHED_TWO (&sched_two)
#endif
struct uk_thread waits, sleeps, starts, runs, exited;

#ifdef NO_NAME
#define NAME(s)
#else
#define NAME(s) .name = (s),
#endif

struct uk_sched sched_one = { .thread_list = { &runs, NULL }, .next = SCHED_TWO };
#ifndef NO_COOP
static void schedcoop_schedule(struct uk_sched *s)
{
	coop.something_else++;
}

/* Its idle thread could run at any time. */
struct schedcoop coop = { .sched.yield = schedcoop_schedule,
	.sched.thread_list = { &starts, NULL },
	.idle = { .flags = RUNNABLE,
		.sched = &coop.sched,
		NAME("idle").thread_list = { NULL, NULL } } };
#define AFTER_STARTS (&coop.idle)
#else
struct uk_sched sched_two = { .thread_list = { &starts, NULL } };
#define AFTER_STARTS NULL
#endif
struct uk_sched *uk_sched_head = &sched_one;

struct uk_thread runs = {
	.ctx = { 1, 1 }, .flags = RUNNABLE, NAME("runs").thread_list = { &waits, NULL }
};
struct uk_thread waits = { .ctx = { (uintptr_t)switched_out, (uintptr_t)stack_waits },
	NAME("waits\twith\x1b[0m").thread_list = { &sleeps, NULL } };
struct uk_thread sleeps = { .ctx = { (uintptr_t)switched_out, (uintptr_t)stack_waits },
	.wakeup_time = 5,
	NAME(NULL).thread_list = { &exited, NULL } };
struct uk_thread exited = { .flags = EXITED, NAME("exited").thread_list = { NULL, NULL } };
struct uk_thread starts = { .ctx = { (uintptr_t)ctx_clear, (uintptr_t)stack_starts },
	.flags = RUNNABLE,
	.sched = &sched_one, /* not idle, although GCC puts it where that scheduler would have it */
	NAME("starts").thread_list = { AFTER_STARTS, NULL } };

struct uk_thread *__uk_sched_thread_current[2] = { &runs, NULL };

void _start(void)
{
	ukarch_ctx_switch();
	for (;;)
		;
}
