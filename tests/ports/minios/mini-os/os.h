/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Mini-OS: what the port uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#define PAGE_SIZE  4096
#define STACK_SIZE 65536
#define barrier()  __asm__ volatile("" ::: "memory")
#define mb	   barrier
#define rmb	   barrier
#define wmb	   barrier
void *memset(void *at, int byte, size_t size);
void printk(const char *format, ...);
struct vcpu_time_info {
	uint32_t tsc_to_system_mul;
	int8_t tsc_shift;
};
struct shared_info {
	struct {
		struct vcpu_time_info time;
	} vcpu_info[1];
};
extern struct shared_info *HYPERVISOR_shared_info;
#define __HYPERVISOR_sched_op 29
struct pt_regs {
	unsigned long rip, rsp, rbp;
};
unsigned long alloc_page(void);
unsigned long virt_to_mfn(const void *at);
uint32_t gnttab_grant_access(uint16_t domain, unsigned long frame, int read_only);
#define XBT_NIL 0
char *xenbus_printf(int transaction, const char *node, const char *path, const char *format, ...);
struct thread *create_thread(char *name, void (*function)(void *data), void *data);
