/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that Nanos takes of itself on a PC, and the port on which it gives them away: the second
 * serial one. Nanos' kernel runs with interrupts off, so its own timer would see programs and idle
 * time alone. Here a timer of the HPET ticks as a non-maskable interrupt of all CPUs. Each CPU has
 * a stack for it, and what it interrupts is not touched. The rings are the tracer's, too.
 */
#include <unix_internal.h>

#include "uniscope/sample.h"
#include "uniscope/stream.h"
#include "uniscope/trace.h"

#include "../pc.h"

/* The ring of a CPU. Samples are read as they come, but a trace may be read at its end. */
#ifdef UNISCOPE_TRACE
#define RING (16u * UNI_TRACE_SUB_SIZE)
#else
#define RING (4u * UNI_TRACE_SUB_SIZE)
#endif
#define MOST_CPUS  256 /* as the tracer has them */
#define STACK	   16368
#define STACK_MOST 65536 /* bytes above the stack pointer, in which frames are looked for */
#define TICK_HZ	   1000
#define PER_TICK   1024		       /* bytes that a tick moves at most */
#define SECOND	   1000000000000000ull /* femtoseconds */
#define IST	   7		       /* Nanos has 1 and 2 */
#define NMI	   2
#define HLT	   0xf4
#define PIT_GSI	   2 /* ticks all the time */

#define PAGE	    4096
#define PTE_PRESENT 0x01
#define PTE_LARGE   0x80

#define HPET		0xfed00000 /* Nanos looks for it there, too */
#define HPET_TIMERS	0x00	   /* bits 8 to 12: the last one's number */
#define HPET_FEMTO	0x04	   /* femtoseconds of a count */
#define HPET_ON		0x10
#define HPET_NOW	0xf0
#define HPET_TIMER	0x120 /* the second one: Nanos has the first */
#define HPET_ROUTES	0x124 /* a bit for each of the I/O APIC's entries that it reaches */
#define HPET_AT		0x128
#define HPET_SLOWEST	100000000 /* femtoseconds */
#define TIMER_INT	0x004
#define TIMER_PERIODIC	0x008
#define TIMER_CAN	0x010 /* be periodic */
#define TIMER_SET	0x040
#define TIMER_32BIT	0x100
#define TIMER_ROUTE(at) ((u32)(at) << 9)

#define IO_APIC	      0xfec00000
#define IO_APIC_INDEX 0x00
#define IO_APIC_DATA  0x10
#define IO_APIC_ENTRY 0x10  /* two registers for each */
#define AS_NMI	      0x400 /* at each edge */
#define EVERY_CPU     0xff000000

struct interrupted {
	u64 rip, cs, flags, rsp;
};

/* A CPU's, as nmi.S has it. */
struct stack {
	u8 bytes[STACK];
	cpuinfo info; /* what %gs is in the kernel */
	u64 rest;
};

_Static_assert(sizeof(struct stack) % 16 == 0 && STACK % 16 == 0, "as interrupts align them");
_Static_assert(offsetof(struct cpuinfo, m.uniscope) == UNI_TRACE_GS, "where hooks look for it");

void uniscope_start(void);
void uniscope_nmi(void);
void uniscope_tick(const struct interrupted *f, u64 rbp, cpuinfo info);
void uniscope_switch(context prev, context next);
boolean ioapic_int_is_free(unsigned int entry);

static struct uni_trace_cpu *areas[MOST_CPUS];
static struct uni_trace_sampler samplers[MOST_CPUS];
static struct uni_stream stream;

/* --- in the interrupt ------------------------------------------------------------------------- */

/*
 * Returns where the page ends that is mapped at `at`; 0: there is none. No lock may be taken here.
 * An entry is one word, and the memory of a table that is not used any more stays mapped.
 */
static u64 mapping_end(u64 at)
{
	u64 table = get_pagetable_base(at), entry;

	if ((u64)((s64)(at << 16) >> 16) != at)
		return 0;
	for (unsigned shift = 39;; shift -= 9) {
		entry = ((volatile u64 *)pointer_from_pteaddr(table))[at >> shift & 511];
		if (!(entry & PTE_PRESENT))
			return 0;
		if (shift == 12 || entry & PTE_LARGE)
			return (at | ((1ull << shift) - 1)) + 1;
		table = page_from_pte(entry);
	}
}

/* Any stack that is mapped: of the kernel, or of a program. */
static void find_stack(struct uni_sample_at *at)
{
	u64 most = at->sp + STACK_MOST, end = at->sp, next;

	while (end < most && (next = mapping_end(end)) > end)
		end = next;
	at->stack_low = at->sp;
	at->stack_high = end < most ? end : most;
}

/* The thread that a context works for, or else itself. */
static u64 owner(context c)
{
	if (c && is_syscall_context(c) && ((syscall_context)c)->t)
		return u64_from_pointer(((syscall_context)c)->t);
	return u64_from_pointer(c);
}

void uniscope_tick(const struct interrupted *f, u64 rbp, cpuinfo info)
{
	struct uni_sample_at at = { .pc = f->rip, .sp = f->rsp, .fp = rbp };

	if (uni_sample_hz()) {
		at.idle = !(f->cs & 3) && ((const u8 *)at.pc)[-1] == HLT;
		at.thread = owner(get_current_context(info));
		find_stack(&at);
	}
	uni_sample_tick(&at);
	if (info->id == 0)
		(void)uni_stream_poll(&stream, PER_TICK);
}

/* --- a CPU goes to another context ------------------------------------------------------------ */

/*
 * A system call or a loop of events whose frame is saved goes on later. All others leave their
 * stack for good, and begin again at its top: what they called is over.
 */
void uniscope_switch(context prev, context next)
{
	if (!prev)
		return;
	if (prev != next && prev->frame[FRAME_FULL] && !is_thread_context(prev))
		uni_trace_switch(owner(prev), owner(next), 0);
	else
		uni_trace_switch_over(owner(prev), owner(next), 0);
}

/* --- before ----------------------------------------------------------------------------------- */

static volatile u32 *map_device(u64 physical)
{
	void *at = allocate((heap)heap_virtual_page(get_kernel_heaps()), PAGE);

	if (at == INVALID_ADDRESS)
		return 0;
	map(u64_from_pointer(at), physical, PAGE, pageflags_writable(pageflags_device()));
	return at;
}

static volatile u32 *reg(volatile u32 *device, unsigned at)
{
	return device + at / sizeof(u32);
}

/* The first free entry that the timer reaches; -1: none. */
static int find_entry(volatile u32 *hpet)
{
	u32 routes = *reg(hpet, HPET_ROUTES);

	for (int i = 0; i < 32; i++) {
		if (routes >> i & 1 && i != PIT_GSI && ioapic_int_is_free(i))
			return i;
	}
	return -1;
}

/* Is it there? */
static boolean can_count(volatile u32 *hpet)
{
	u32 femto = *reg(hpet, HPET_FEMTO);

	return femto && femto <= HPET_SLOWEST;
}

static boolean can_tick(volatile u32 *hpet)
{
	return can_count(hpet) && *reg(hpet, HPET_TIMERS) >> 8 & 0x1f &&
	       *reg(hpet, HPET_TIMER) & TIMER_CAN && find_entry(hpet) >= 0;
}

/* The time stamp counter's, against the HPET in a 50th of a second. */
static u64 measure_frequency(volatile u32 *hpet)
{
	u32 hz = (u32)(SECOND / *reg(hpet, HPET_FEMTO)), from = *reg(hpet, HPET_NOW), passed;
	u64 begin = rdtsc();

	do {
		passed = *reg(hpet, HPET_NOW) - from;
	} while (passed < hz / 50);
	return (rdtsc() - begin) * hz / passed;
}

static void start_ticks(volatile u32 *hpet, volatile u32 *io_apic)
{
	u32 period = (u32)(SECOND / TICK_HZ / *reg(hpet, HPET_FEMTO));
	int entry = find_entry(hpet);

	*reg(io_apic, IO_APIC_INDEX) = (u32)(IO_APIC_ENTRY + 2 * entry + 1);
	*reg(io_apic, IO_APIC_DATA) = EVERY_CPU;
	*reg(io_apic, IO_APIC_INDEX) = (u32)(IO_APIC_ENTRY + 2 * entry);
	*reg(io_apic, IO_APIC_DATA) = AS_NMI;
	*reg(hpet, HPET_TIMER) =
		TIMER_INT | TIMER_PERIODIC | TIMER_SET | TIMER_32BIT | TIMER_ROUTE(entry);
	*reg(hpet, HPET_AT) = *reg(hpet, HPET_NOW) + period;
	*reg(hpet, HPET_AT) = period;
}

/* Vector 2 of the table that all CPUs use: as it is, but for the function and its stack. */
static void take_vector(u64 handler)
{
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) table;
	u64 *gate;

	asm volatile("sidt %0" : "=m"(table));
	gate = pointer_from_u64(table.base + NMI * 16);
	gate[1] = handler >> 32;
	gate[0] = (gate[0] & 0x0000fff8ffff0000) | (handler & 0xffff) | (u64)IST << 32 |
		  (handler >> 16 & 0xffff) << 48;
}

/* Returns how many there are; 0: no memory. */
static unsigned set_up_cpus(void)
{
	u64 most = present_processors < MOST_CPUS ? present_processors : MOST_CPUS;
	struct stack *s = allocate((heap)heap_page_backed(get_kernel_heaps()), most * sizeof(*s));
	unsigned nr = 0;

	if (s == INVALID_ADDRESS)
		return 0;
	for (u64 i = 0; i < most; i++) {
		cpuinfo info = cpuinfo_from_id((int)i);

		if (!info || info == INVALID_ADDRESS)
			continue; /* it did not start */
		s[nr].info = info;
		set_ist(&info->m, IST, u64_from_pointer(&s[nr].info));
		zero(info->m.uniscope, sizeof(info->m.uniscope));
		areas[nr++] = (struct uni_trace_cpu *)info->m.uniscope;
	}
	return nr;
}

void uniscope_start(void)
{
	const struct uni_stream_config config = { .read = uni_pc_com2_read,
		.write = uni_pc_com2_write,
		.name = "nanos",
		.seed = rdtsc() };
	volatile u32 *hpet = map_device(HPET), *io_apic = map_device(IO_APIC);
	unsigned nr = set_up_cpus();
	void *rings = allocate((heap)heap_page_backed(get_kernel_heaps()), nr * RING);

	if (!hpet || !io_apic || !nr || rings == INVALID_ADDRESS) {
		rputs("uniscope: no memory\n");
		return;
	}
	if (can_count(hpet))
		*reg(hpet, HPET_ON) |= 1;
	if (uni_trace_init(rings, nr * RING, nr, areas, UNI_TRACE_OVERWRITE,
		    can_count(hpet) ? measure_frequency(hpet) : 0) != 0) {
		rputs("uniscope: no ring\n");
		return;
	}
	if (!can_tick(hpet)) {
		rputs("uniscope: calls alone: no HPET that ticks\n");
		return;
	}
	uni_sample_init(samplers, TICK_HZ);
	uni_stream_init(&stream, &config);
	uni_pc_com2_open();
	take_vector(u64_from_pointer(uniscope_nmi));
	start_ticks(hpet, io_apic);
}
