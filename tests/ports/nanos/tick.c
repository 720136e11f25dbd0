/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nanos' port as a program: its interrupt is entered as the CPU would enter it. The two
 * instructions that a program may not use are played by a handler of signals. Page tables and
 * devices are arrays.
 */
#define _GNU_SOURCE /* REG_RIP */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "nanos/self.c"

#define PROGRAM_GS 0x123456789abcdef0ull
#define PHYS	   0x7000000000ull /* of the tables: they are not where they are mapped */
#define TABLES	   6
#define AT	   0xffffc00012345ff8ull
#define SYSCALL	   1
#define THREAD	   2
#define ENTRIES	   24
#define FEMTO	   10000000

static struct {
	u64 gs, gs_in_tick;
	struct uni_sample_at at;
	cpuinfo polled;
	unsigned ticks;
	u64 from, to;
	unsigned kept, over; /* switches that leave calls, or end them */
} seen = { .gs = PROGRAM_GS };
static u32 hz;
static struct stack stacks[2] __attribute__((aligned(16)));
static struct cpuinfo infos[2] = { { .id = 0 }, { .id = 1 } };
static context running[2];
static u64 tables[TABLES][512] __attribute__((aligned(PAGE)));
static u32 hpet[256], io_apic[8], taken;
u64 present_processors = 2;

/* --- what the kernel and the library do ------------------------------------------------------- */

void uni_trace_switch(u64 prev, u64 next, u32 reason)
{
	seen.from = prev;
	seen.to = next;
	seen.kept++;
	(void)reason;
}

void uni_trace_switch_over(u64 prev, u64 next, u32 reason)
{
	seen.from = prev;
	seen.to = next;
	seen.over++;
	(void)reason;
}

cpuinfo cpuinfo_from_id(int cpu)
{
	return &infos[cpu];
}

context get_current_context(cpuinfo c)
{
	return running[c - infos];
}

boolean is_syscall_context(context c)
{
	return c->type == SYSCALL;
}

boolean is_thread_context(context c)
{
	return c->type == THREAD;
}

u64 get_pagetable_base(u64 at)
{
	(void)at;
	return PHYS;
}

u64 *pointer_from_pteaddr(u64 physical)
{
	assert(physical >= PHYS && physical < PHYS + sizeof(tables));
	return tables[(physical - PHYS) / PAGE];
}

u64 page_from_pte(u64 entry)
{
	return entry & 0x000ffffffffff000;
}

boolean ioapic_int_is_free(unsigned int entry)
{
	return entry < ENTRIES && !(taken >> entry & 1);
}

uint32_t uni_sample_hz(void)
{
	return hz;
}

void uni_sample_tick(const struct uni_sample_at *at)
{
	seen.at = *at;
	seen.gs_in_tick = seen.gs;
	seen.ticks++;
	assert(!(__builtin_ia32_readeflags_u64() & 0x400));
	__asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
}

int uni_stream_poll(struct uni_stream *s, unsigned most)
{
	(void)s;
	(void)most;
	seen.polled = (cpuinfo)seen.gs;
	return 0;
}

kernel_heaps get_kernel_heaps(void)
{
	return NULL;
}

void *heap_virtual_page(kernel_heaps heaps)
{
	return heaps;
}

void *heap_page_backed(kernel_heaps heaps)
{
	return heaps;
}

void *allocate(heap h, u64 size)
{
	(void)h;
	return size <= sizeof(stacks) ? stacks : INVALID_ADDRESS;
}

void zero(void *at, u64 size)
{
	memset(at, 0, size);
}

void set_ist(struct cpuinfo_machine *cpu, int i, u64 sp)
{
	cpu->tss[i] = sp;
}

pageflags pageflags_device(void)
{
	return (pageflags){ 0 };
}

pageflags pageflags_writable(pageflags flags)
{
	return flags;
}

void map(u64 at, u64 physical, u64 size, pageflags flags)
{
	(void)at, (void)physical, (void)size, (void)flags;
}

u64 rdtsc(void)
{
	return __builtin_ia32_rdtsc();
}

void rputs(const char *text)
{
	(void)puts(text);
}

int uni_trace_init(void *mem, uint64_t size, unsigned nr_cpus, struct uni_trace_cpu *const *c,
	enum uni_trace_ring_mode mode, uint64_t tsc_hz)
{
	(void)mem, (void)size, (void)nr_cpus, (void)c, (void)mode, (void)tsc_hz;
	return 0;
}

void uni_sample_init(struct uni_trace_sampler *s, uint32_t tick_hz)
{
	(void)s, (void)tick_hz;
}

void uni_stream_init(struct uni_stream *s, const struct uni_stream_config *config)
{
	(void)s, (void)config;
}

/* --- the interrupt ---------------------------------------------------------------------------- */

static void play_msr(int nr, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	const u8 *code = (const u8 *)r[REG_RIP];

	(void)nr, (void)info;
	assert(code[0] == 0x0f && (code[1] == 0x32 || code[1] == 0x30) && r[REG_RCX] == 0xc0000101);
	if (code[1] == 0x32) {
		r[REG_RAX] = (u32)seen.gs;
		r[REG_RDX] = (greg_t)(seen.gs >> 32);
	} else {
		seen.gs = (u64)r[REG_RDX] << 32 | (u32)r[REG_RAX];
	}
	r[REG_RIP] += 2;
}

/* Enters it with a number in each register. Returns them as they are behind it: flags in the place
 * of the stack pointer, and at the end by how much that has moved. */
void interrupt(u64 stack_end, u64 regs[17]);
__asm__(".text\n"
	"interrupt:\n"
	"	push	%rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rsi\n"
	"	mov	%rsp, saved(%rip)\n"
	"	mov	%rsp, %rax\n"
	"	mov	%rdi, %rsp\n"
	"	mov	%ss, %ecx; push %rcx\n"
	"	push	%rax\n"
	"	pushfq; orq $0x401, (%rsp)\n" /* carry, and direction: C code has to find it clear
					       */
	"	mov	%cs, %ecx; push %rcx\n"
	"	lea	behind(%rip), %rax; push %rax\n"
	"	mov	$100, %eax; mov $101, %ecx; mov $102, %edx; mov $103, %ebx; mov $105, "
	"%ebp\n"
	"	mov	$106, %esi; mov $107, %edi; mov $108, %r8d; mov $109, %r9d; mov $110, "
	"%r10d\n"
	"	mov	$111, %r11d; mov $112, %r12d; mov $113, %r13d; mov $114, %r14d; mov $115, "
	"%r15d\n"
	"	std; jmp	uniscope_nmi\n"
	"behind:\n"
	"	push	%rsi\n"
	"	mov	8(%rsp), %rsi\n"
	"	mov	%rax, (%rsi); mov %rcx, 8(%rsi); mov %rdx, 16(%rsi); mov %rbx, 24(%rsi)\n"
	"	mov	%rbp, 40(%rsi); pop 48(%rsi); mov %rdi, 56(%rsi); mov %r8, 64(%rsi)\n"
	"	mov	%r9, 72(%rsi); mov %r10, 80(%rsi); mov %r11, 88(%rsi); mov %r12, 96(%rsi)\n"
	"	mov	%r13, 104(%rsi); mov %r14, 112(%rsi); mov %r15, 120(%rsi)\n"
	"	pushfq; pop 32(%rsi)\n"
	"	cld\n"
	"	mov	saved(%rip), %rcx; sub %rsp, %rcx; mov %rcx, 128(%rsi)\n"
	"	pop	%rsi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	".local	saved\n"
	".comm	saved, 8, 8\n");

static void check_interrupt(void)
{
	struct sigaction a = { .sa_sigaction = play_msr, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static u8 other[65536];
	stack_t on = { .ss_sp = other, .ss_size = sizeof(other) };
	u64 regs[17];

	assert(sigaltstack(&on, NULL) == 0 && sigaction(SIGSEGV, &a, NULL) == 0);
	assert(set_up_cpus() == 2);
	for (unsigned i = 0; i < 2; i++) {
		assert((u8 *)areas[i] == infos[i].m.uniscope && stacks[i].info == &infos[i]);
		assert(infos[i].m.tss[IST] == (u64)stacks[i].bytes + STACK);
		interrupt(infos[i].m.tss[IST], regs);
		for (u64 r = 0; r < 16; r++)
			assert(r == 4 || regs[r] == 100 + r);
		assert((regs[4] & 0x401) == 0x401 && regs[16] == 0);
		assert(seen.ticks == i + 1 && seen.gs == PROGRAM_GS);
		assert(seen.gs_in_tick == (u64)&infos[i] && seen.at.fp == 105);
		assert(seen.polled == &infos[0]); /* the first CPU has the port */
	}
}

/* --- stacks and threads ----------------------------------------------------------------------- */

static void map_page(u64 at, unsigned level_of_last, u64 flags)
{
	for (unsigned level = 0; level <= level_of_last; level++) {
		u64 next = level == level_of_last ? flags : PHYS + (level + 1) * PAGE + 1;

		tables[level][at >> (39 - 9 * level) & 511] = next;
	}
}

static void expect_stack(u64 sp, u64 high)
{
	struct uni_sample_at at = { .sp = sp };

	find_stack(&at);
	assert(at.stack_low == sp && at.stack_high == high);
}

static void check_stacks(void)
{
	expect_stack(AT, AT); /* nothing is mapped */
	map_page(AT, 3, 0x1003);
	expect_stack(AT, 0xffffc00012346000);
	map_page(AT + PAGE, 3, 0x3003);
	expect_stack(AT, 0xffffc00012347000);
	map_page(AT + PAGE, 3, 0x3002); /* not present */
	expect_stack(AT, 0xffffc00012346000);
	map_page(AT, 2, 0x200083); /* 2 MiB */
	expect_stack(AT, AT + STACK_MOST);
	expect_stack(0xffffc00012400000 - 16, 0xffffc00012400000);
	expect_stack(AT & 0xffffffffffff, AT & 0xffffffffffff); /* no address */
	expect_stack(-16ull, STACK_MOST - 16);			/* none is above it */
}

static void check_threads(void)
{
	struct thread t = { .context.type = THREAD };
	struct syscall_context s = { .context.type = SYSCALL, .t = &t };
	struct context kernel = { 0 };

	assert(owner(NULL) == 0 && owner(&kernel) == (u64)&kernel);
	assert(owner(&t.context) == (u64)&t && owner(&s.context) == (u64)&t);
	s.t = NULL; /* the call goes on without its thread */
	assert(owner(&s.context) == (u64)&s);
}

/* The next frame of a thread is its program's, so its calls in the kernel are over. */
static void check_switches(void)
{
	u64 saved[2] = { [FRAME_FULL] = 1 }, empty[2] = { 0 };
	struct thread t = { .context = { .type = THREAD, .frame = saved } };
	struct syscall_context s = { .context = { .type = SYSCALL, .frame = saved }, .t = &t };
	struct context kernel = { .frame = empty };

	uniscope_switch(NULL, &kernel); /* the first one of a CPU */
	assert(seen.kept == 0 && seen.over == 0);
	uniscope_switch(&s.context, &kernel);
	assert(seen.kept == 1 && seen.from == (u64)&t && seen.to == (u64)&kernel);
	uniscope_switch(&kernel, &s.context);
	assert(seen.over == 1 && seen.from == (u64)&kernel && seen.to == (u64)&t);
	uniscope_switch(&t.context, &kernel);
	assert(seen.over == 2 && seen.from == (u64)&t);
	/* It begins again, though its frame is saved. */
	uniscope_switch(&s.context, &s.context);
	assert(seen.kept == 1 && seen.over == 3);
}

/* A program's code is never idle, and may not be there to be read. */
static void check_idle(void)
{
	static const u8 code[] = { 0x90, HLT, 0x90 };
	struct interrupted f = { .rip = (u64)&code[2], .cs = 8 };

	hz = 99;
	uniscope_tick(&f, 0, &infos[0]);
	assert(seen.at.idle && seen.at.pc == f.rip);
	f.rip--;
	uniscope_tick(&f, 0, &infos[0]);
	assert(!seen.at.idle);
	f = (struct interrupted){ .rip = 0x10, .cs = 0x2b };
	uniscope_tick(&f, 0, &infos[0]);
	assert(!seen.at.idle);
}

/* --- devices ---------------------------------------------------------------------------------- */

static void check_devices(void)
{
	hpet[HPET_FEMTO / 4] = FEMTO;
	hpet[HPET_TIMERS / 4] = 2 << 8;
	hpet[HPET_TIMER / 4] = TIMER_CAN;
	hpet[HPET_ROUTES / 4] = 1 << 2 | 1 << 8 | 1u << 23;
	hpet[HPET_NOW / 4] = 1000;
	assert(can_tick(hpet) && find_entry(hpet) == 8);
	taken = 1 << 8;
	assert(find_entry(hpet) == 23);
	start_ticks(hpet, io_apic);
	assert(io_apic[0] == 0x10 + 2 * 23 && io_apic[4] == AS_NMI);
	assert(hpet[HPET_TIMER / 4] == (0x14c | 23 << 9));
	assert(hpet[HPET_AT / 4] == 100000); /* a millisecond of 10 ns each */
	taken |= 1 << 23;
	assert(!can_tick(hpet)); /* the one that is left ticks all the time */
	taken = 0;
	hpet[HPET_TIMER / 4] = 0;
	assert(!can_tick(hpet));
	memset(hpet, 0xff, sizeof(hpet)); /* there is none */
	assert(!can_tick(hpet));
}

int main(void)
{
	check_interrupt();
	check_stacks();
	check_threads();
	check_switches();
	check_idle();
	check_devices();
	return 0;
}
