/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU's instructions and this architecture's own interfaces. */
#ifndef LAB_X86_64_CPU_H
#define LAB_X86_64_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "lab_truth.h"
#include "layout.h"

#define LAB_PAGE_SIZE 4096ULL
#define MSR_EFER      0xc0000080U
#define MSR_APICBASE  0x1bU

#define PTE_PRESENT 0x1ULL
#define PTE_WRITE   0x2ULL
#define PTE_PWT	    0x8ULL
#define PTE_PCD	    0x10ULL
#define PTE_LARGE   0x80ULL
#define PTE_NX	    (1ULL << 63)
#define PTE_ADDR    0x000ffffffffff000ULL

/* %gs points at it. */
struct lab_cpu {
	uint64_t id; /* %gs:0, read by lab_cpu_id() */
	uint64_t unused[7];
	uint64_t trace[8]; /* %gs:LAB_TRACE_GS, the tracer's (guest/) where it is linked */
} __attribute__((aligned(64)));

/* The first one's: code that runs before lab_trace_init() can be traced, too (UNI_TRACE_AREA). */
#define LAB_CPU_FIRST                                                  \
	{                                                              \
		.trace = { 0xfff8, 0, 0, (uint64_t)lab_cpus[0].trace } \
	}
extern struct lab_cpu lab_cpus[];

/* %gs points at this until lab_cpu_init(), so that code that runs until then can be traced. */
#ifdef LAB_TRACE
extern char uni_trace_early[];
#define LAB_EARLY_GS ((uint64_t)uni_trace_early - LAB_TRACE_GS)
#else
#define LAB_EARLY_GS 0
#endif

struct lab_trap_frame {
	uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

static inline void lab_outb(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void lab_outw(uint16_t port, uint16_t value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline void lab_outl(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t lab_inb(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline uint64_t lab_rdmsr(uint32_t msr)
{
	uint32_t lo, hi;

	__asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
	return (uint64_t)hi << 32 | lo;
}

static inline void lab_wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr" : : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

static inline void lab_cpuid(
	uint32_t leaf, uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
	__asm__ volatile("cpuid"
			 : "=a"(*eax), "=b"(*ebx), "=c"(*ecx), "=d"(*edx)
			 : "0"(leaf), "2"(0));
}

static inline uint64_t lab_read_cr2(void)
{
	uint64_t v;

	__asm__ volatile("movq %%cr2, %0" : "=r"(v));
	return v;
}

static inline uint64_t lab_read_cr3(void)
{
	uint64_t v;

	__asm__ volatile("movq %%cr3, %0" : "=r"(v));
	return v;
}

static inline void lab_write_cr3(uint64_t v)
{
	__asm__ volatile("movq %0, %%cr3" : : "r"(v) : "memory");
}

static inline void *lab_phys(uint64_t pa)
{
	return (void *)(LAB_LINEAR + pa);
}

/* pvh.c: what the loader says. */
struct lab_boot_info {
	uint64_t ram_end;   /* end of the RAM range that holds the image */
	unsigned nr_ranges; /* RAM below 4 GiB */
	struct {
		uint64_t start, end;
	} range[16];
	uint64_t module_pa, module_size; /* -initrd; size 0: none */
};
void lab_pvh_read(struct lab_boot_info *ret);

/*
 * paging.c. Physical addresses are those of the machine. If the guest runs on machine frames (Xen
 * PV), they are its own count of its pages, and tables.c translates.
 */
extern uint64_t lab_boot_cr3; /* of the tables that vCPUs start on */
void lab_paging_init(const struct lab_boot_info *info);
void lab_paging_load(void);
/* Instead of lab_paging_init(): takes over live tables in which LAB_LINEAR is mapped. */
void lab_paging_adopt(uint64_t root_pa);
void lab_page_alloc_init(uint64_t start, uint64_t end);
void lab_page_alloc_behind_image(const struct lab_boot_info *info);
uint64_t lab_page_alloc(unsigned nr); /* PA of nr zeroed pages in a row; never fails, never freed */
/* Maps one leaf; size_shift is 12, 21 or 30. */
void lab_map(uint64_t va, uint64_t pa, uint64_t flags, unsigned size_shift);
/* The entry that maps va at the level of size_shift, in the live tables; tables are made. */
uint64_t *lab_map_entry(uint64_t va, unsigned size_shift);
bool lab_has_huge(void);
uint64_t lab_root_pa(void);

/* tables.c: how page tables are read and written here. */
uint64_t lab_table_alloc(void);	       /* PA of a zeroed page that can become a table */
uint64_t lab_table_pa(uint64_t entry); /* of what the entry points to */
/* False: a hypervisor does not allow that entry; it is 0 now. */
bool lab_pte_set(uint64_t *entry, uint64_t value);
void lab_tlb_flush(uint64_t va);

/* program.c */
void lab_program_init(const struct lab_boot_info *info);

/* timer.c: the two interrupt controllers of a PC, their first vector. */
#define LAB_VECTOR_PIC 32
void lab_pic_accept(unsigned irq);
void lab_pic_done(void);
void lab_irq_port(void);	     /* traps.S */
void lab_port_irq(void);	     /* serial.c */
void lab_irq_step(void);	     /* traps.S */
void lab_step_done(uint64_t *frame); /* step.c; rbp, rip, cs, rflags, rsp */

/*
 * The way to a profiler, serial.c or xen/port.c; what uni_stream_config asks for. lab_port_poll()
 * is inside.c's: whether something waits for room.
 */
void lab_port_open(void);
unsigned lab_port_read(void *ctx, void *buf, unsigned size);
unsigned lab_port_write(void *ctx, const void *data, unsigned size);
bool lab_port_poll(void);

/* apic.c: the local APIC of the vCPU that asks. */
void lab_apic_accept_pic(void);
uint32_t lab_apic_id(void);
void lab_apic_send_init(uint32_t apic_id);
void lab_apic_send_startup(uint32_t apic_id, uint64_t pa);

/*
 * The timer interrupts the first vCPU, which interrupts the others with each tick: apic.c. On Xen
 * nothing of that is there. inside.c does the work of a tick.
 */
#define LAB_VECTOR_TICK 64
void lab_tick_accept(void); /* by a further vCPU */
void lab_tick_others(void);
void lab_irq_tick(void); /* traps.S */
void lab_tick_done(void);
void lab_tick_other(const uint64_t *frame);

/*
 * smp.c, and what it is made of in sipi.c. Start is asked again until the vCPU is there; false:
 * there is none.
 */
uint64_t lab_ap_setup(void);
void lab_ap_main(void);
bool lab_vcpu_start(unsigned cpu, uint64_t stack_top, unsigned attempt);
void lab_vcpu_park(void); /* stops this one for good */

/* trap.c */
void lab_trap_init(void);
void lab_trap_init_cpu(unsigned cpu);
void lab_trap(const struct lab_trap_frame *frame);
void lab_timer_tick(const uint64_t *frame);
void lab_tick_of(const uint64_t *frame); /* what the timer interrupted, as irq.inc has it */
void lab_spurious(void);
void lab_set_gate(unsigned vector, void (*entry)(void), unsigned ist);

void lab_cpu_init(unsigned cpu);
void lab_uart_init(void);
void lab_tsc_calibrate(void);
uint64_t lab_main_stack_init(void); /* returns its top */
uint64_t lab_setup(void);

#endif
