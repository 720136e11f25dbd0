/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that an interrupt switches. Each leaf of `preempt_rec` sends an interrupt to its own CPU.
 * The handler saves all registers on the thread's stack, takes the next thread's stack, and goes
 * back there by iret. Each second time it has sent another one before. That comes directly behind
 * the iret, before the thread has gone on.
 *
 * Known answer: `preempt_rec` is called 63 times a round, by each of three threads, and by nothing
 * but itself and `preempt_work`.
 */
#include "lab.h"
#include "cpu.h"

#define VECTOR	  65
#define SELF	  0x40000 /* the APIC's command: to this CPU */
#define THREADS	  3
#define REGISTERS 15
#define DEPTH	  5
#define STACK	  4096

void preempt_tick(void);
uint64_t preempt_next(uint64_t rsp);

const char lab_app_name[] = "preempt";

static uint64_t stack[THREADS][STACK] __attribute__((aligned(16)));
static uint64_t saved[THREADS], rounds;
static volatile uint64_t current, ticks, done, calls;

static volatile uint32_t *apic_reg(unsigned offset)
{
	return (volatile uint32_t *)(LAB_APIC + offset);
}

static void send(void)
{
	*apic_reg(0x300) = SELF | VECTOR;
}

/* By the handler, with interrupts off. */
uint64_t preempt_next(uint64_t rsp)
{
	*apic_reg(0xb0) = 0;
	saved[current] = rsp;
	current = (current + 1) % THREADS;
	if (ticks++ % 2 == 0)
		send();
	return saved[current];
}

LAB_FUNC static void preempt_rec(uint64_t depth)
{
	calls++;
	if (depth == 0) {
		send();
		return;
	}
	preempt_rec(depth - 1);
	preempt_rec(depth - 1);
}

LAB_FUNC static void preempt_work(void)
{
	for (uint64_t i = 0; i < rounds; i++)
		preempt_rec(DEPTH);
	done++;
	while (done < THREADS)
		send();
}

LAB_FUNC static void preempt_thread(void)
{
	preempt_work();
	for (;;)
		send();
}

/* As the handler leaves a thread: its registers, and what iret takes. */
static uint64_t first_frame(uint64_t *top)
{
	uint64_t *frame = top - REGISTERS - 6;

	frame[REGISTERS] = (uint64_t)preempt_thread;
	frame[REGISTERS + 1] = LAB_SEL_CODE;
	frame[REGISTERS + 2] = 0x202; /* interrupts are on */
	frame[REGISTERS + 3] = (uint64_t)(top - 1);
	frame[REGISTERS + 4] = 0; /* no stack segment */
	return (uint64_t)frame;
}

LAB_FUNC void app_main(void)
{
	rounds = lab_rounds(10);
	lab_outb(0x21, 0xff); /* interrupts of the firmware's devices */
	lab_outb(0xa1, 0xff);
	*apic_reg(0xf0) = 0x1ff;
	lab_set_gate(VECTOR, preempt_tick, 0);
	for (unsigned i = 1; i < THREADS; i++)
		saved[i] = first_frame(stack[i] + STACK);
	__asm__ volatile("sti" : : : "memory");
	preempt_work();
	__asm__ volatile("cli" : : : "memory");
	lab_printf("lab: %lu calls, %lu ticks\n", calls, ticks);
}
