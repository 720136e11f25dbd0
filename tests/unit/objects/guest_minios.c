/* SPDX-License-Identifier: BSD-2-Clause */
/* The structures in which Mini-OS keeps its threads, with the same names and members. */
#include <stddef.h>
#include <stdint.h>

#define STACK_WORDS 2048 /* 16 KiB */

struct thread {
	char *name, *stack;
	unsigned long sp, ip;
	struct {
		struct thread *tqe_next, **tqe_prev;
	} thread_list;
	uint32_t flags;
	int64_t wakeup_time;
};

struct thread_list {
	struct thread *tqh_first, **tqh_last;
};

void __arch_switch_threads(void);
extern char switched_out[], called_from[];

__asm__(".globl __arch_switch_threads, switched_out, called_from\n"
	"__arch_switch_threads:\n"
	"	push %rbp\n"
	"switched_out:\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	"called_from:\n"
	"	ret\n");

struct thread idle, waits, runs;

__attribute__((aligned(sizeof(uint64_t) * STACK_WORDS)))
uint64_t stack_runs[STACK_WORDS] = { (uint64_t)&runs };
/* For events: its first word is where the interrupted thread's registers are. */
__attribute__((aligned(sizeof(uint64_t) * STACK_WORDS)))
uint64_t stack_events[STACK_WORDS] = { [STACK_WORDS - 1] = (uint64_t)&stack_runs[1900] };
uint64_t stack_waits[8] = { 15, 14, 13, 12, 3, 6, (uint64_t)called_from, 99 };

static struct thread_list thread_list = { &idle, NULL };

struct thread idle = { .name = "Idle",
	.sp = (unsigned long)stack_waits,
	.ip = (unsigned long)switched_out,
	.wakeup_time = 7,
	.thread_list = { &waits, NULL } };
struct thread waits = { .name = "waits",
	.sp = (unsigned long)stack_waits,
	.ip = (unsigned long)switched_out,
	.thread_list = { &runs, NULL } };
#ifndef NO_IDLE
struct thread *idle_thread = &idle;
#endif
struct thread runs = { .name = "runs", .stack = (char *)stack_runs, .flags = 1 };

void _start(void);
void _start(void)
{
	__asm__ volatile("" : : "r"(&thread_list) : "memory");
	__arch_switch_threads();
	for (;;)
		;
}
