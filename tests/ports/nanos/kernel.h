/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Nanos: what the port uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int64_t s64;
typedef uint64_t u64;
typedef u8 boolean;
typedef struct heap *heap;
typedef struct kernel_heaps *kernel_heaps;
typedef struct pageflags {
	u64 w;
} pageflags;
#define INVALID_ADDRESS	    ((void *)-1ull)
#define u64_from_pointer(p) ((u64)(p))
#define pointer_from_u64(n) ((void *)(n))
#define FRAME_FULL	    1
typedef struct context {
	u64 *frame;
	int type;
} * context;
struct cpuinfo_machine {
	void *self;
	u8 uniscope[64] __attribute__((aligned(64)));
	u64 tss[13];
};
typedef struct cpuinfo {
	struct cpuinfo_machine m;
	u32 id;
} * cpuinfo;
extern u64 present_processors;
cpuinfo cpuinfo_from_id(int cpu);
context get_current_context(cpuinfo c);
boolean is_syscall_context(context c);
boolean is_thread_context(context c);
u64 get_pagetable_base(u64 at);
u64 *pointer_from_pteaddr(u64 physical);
u64 page_from_pte(u64 entry);
kernel_heaps get_kernel_heaps(void);
void *heap_virtual_page(kernel_heaps heaps);
void *heap_page_backed(kernel_heaps heaps);
void *allocate(heap h, u64 size);
void zero(void *at, u64 size);
pageflags pageflags_device(void);
pageflags pageflags_writable(pageflags flags);
void map(u64 at, u64 physical, u64 size, pageflags flags);
void set_ist(struct cpuinfo_machine *cpu, int i, u64 sp);
u64 rdtsc(void);
void rputs(const char *text);
