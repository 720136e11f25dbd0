/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest whose trace rings have no end: 64 CPUs with the largest possible ring. Nearly nothing of
 * it is mapped, and its numbers run on for as long as somebody reads them.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "uniscope/trace_abi.h"

#define NR_CPUS 64
#define NR_SUBS (UINT64_C(1) << 20)
#define BASE	UINT64_C(0x100000000000)

struct uni_trace_head uni_trace_head = { .magic = UNI_TRACE_MAGIC,
	.version = UNI_TRACE_VERSION,
	.size = sizeof(struct uni_trace_head),
	.machine = 62, /* EM_X86_64 */
	.nr_cpus = NR_CPUS,
	.sub_size = UNI_TRACE_SUB_SIZE };
static struct uni_trace_ring ring[NR_CPUS];
static struct uni_trace_cpu cpu[NR_CPUS];
static struct uni_trace_hooks hooks;

int main(void)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	struct uni_trace_sub *sub[NR_CPUS];

	for (unsigned i = 0; i < NR_CPUS; i++) {
		const uint64_t base = BASE + i * NR_SUBS * UNI_TRACE_SUB_SIZE;

		sub[i] = mmap((void *)base, UNI_TRACE_SUB_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (sub[i] == MAP_FAILED)
			return 1;
		sub[i]->begin_seq = NR_SUBS << 8;
		sub[i]->open_bytes = UNI_TRACE_SUB_HEAD - UNI_TRACE_SUB_SIZE;
		cpu[i].wptr = base + UNI_TRACE_SUB_HEAD;
		cpu[i].self = (uint64_t)(uintptr_t)&cpu[i];
		ring[i].cpu = (uint64_t)(uintptr_t)&cpu[i];
		ring[i].base = base;
		ring[i].nr_subs = NR_SUBS;
	}
	uni_trace_head.rings = (uint64_t)(uintptr_t)ring;
	uni_trace_head.hooks = (uint64_t)(uintptr_t)&hooks;
	uni_trace_head.control.enable = 1;
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;) {
		atomic_thread_fence(memory_order_seq_cst);
		for (unsigned i = 0; i < NR_CPUS; i++)
			*(volatile uint64_t *)&sub[i]->begin_seq += NR_SUBS;
		(void)nanosleep(&nap, NULL);
	}
}
