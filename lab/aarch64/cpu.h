/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU's instructions and this architecture's own interfaces. */
#ifndef LAB_AARCH64_CPU_H
#define LAB_AARCH64_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "lab_truth.h"
#include "layout.h"

#define LAB_PAGE_SIZE 4096ULL

/* Descriptors (Arm ARM, D8.3). */
#define PTE_VALID  0x1ULL
#define PTE_TABLE  0x2ULL /* or a page, at the last level */
#define PTE_DEVICE (0ULL << 2)
#define PTE_NORMAL (1ULL << 2)
#define PTE_RO	   (1ULL << 7)
#define PTE_SHARED (3ULL << 8)
#define PTE_AF	   (1ULL << 10)
#define PTE_PXN	   (1ULL << 53)
#define PTE_UXN	   (1ULL << 54)
#define PTE_ADDR   0x0000fffffffff000ULL

#define lab_read_sysreg(name)                                      \
	({                                                         \
		uint64_t lab_v_;                                   \
		__asm__ volatile("mrs %0, " #name : "=r"(lab_v_)); \
		lab_v_;                                            \
	})
#define lab_write_sysreg(name, v) \
	__asm__ volatile("msr " #name ", %0\n\tisb" : : "r"((uint64_t)(v)) : "memory")

/* Through the linear map, which holds RAM and the devices that we use. */
static inline void *lab_phys(uint64_t pa)
{
	return (void *)(LAB_LINEAR + pa);
}

static inline uint32_t lab_mmio_read(uint64_t pa)
{
	uint32_t v;

	__asm__ volatile("ldr %w0, [%1]" : "=r"(v) : "r"(lab_phys(pa)) : "memory");
	return v;
}

static inline void lab_mmio_write(uint64_t pa, uint32_t v)
{
	__asm__ volatile("str %w0, [%1]" : : "r"(v), "r"(lab_phys(pa)) : "memory");
}

/* dtb.c: what the loader says. Sets the command line. */
void lab_dtb_read(uint64_t *ram_end_ret);

/* paging.c */
void lab_paging_init(uint64_t ram_end);
void lab_paging_load(void);
void lab_page_alloc_init(uint64_t ram_end);
uint64_t lab_page_alloc(unsigned nr); /* PA of nr zeroed pages in a row; never fails, never freed */

/*
 * smp.c, and what it is made of in machine.c. Start is asked again until the vCPU is there; false:
 * there is none.
 */
uint64_t lab_ap_setup(void);
void lab_ap_main(void);
bool lab_vcpu_start(unsigned cpu, uint64_t stack_top, unsigned attempt);
void lab_vcpu_park(void); /* stops this one for good */

/* machine.c */
uint64_t lab_psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c);
void lab_cpu_init(unsigned cpu);
void lab_uart_init(void);
void lab_trap(void);
void lab_timer_tick(void);
uint64_t lab_setup(void);

#endif
