/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the tracer its ring as Unikraft boots, and says which memory it may read text from. */
#include <uk/alloc.h>
#include <uk/config.h>
#include <uk/init.h>
#include <uk/plat/memory.h>
#include <uk/print.h>
#include "uniscope/promise.h"
#include "uniscope/trace.h"

/* With CONFIG_PAGING, Unikraft maps all physical memory there; without, each address to itself. */
#ifdef CONFIG_PAGING
#define LINEAR 0xffffff8000000000UL
#else
#define LINEAR 0UL
#endif

#define RAM	(UKPLAT_MEMRT_FREE | UKPLAT_MEMRT_KERNEL | UKPLAT_MEMRT_INITRD | UKPLAT_MEMRT_STACK)
#define LOW_RAM 0x100000000UL /* what lies above has a hole for devices in front of it */

static uint64_t rules[2048];

#if CONFIG_LIBUNISCOPE_TRACE_KEEP
/* A table is a power of two, and never more than three quarters full. */
#define KEPT_BYTES (64UL * 3 * CONFIG_LIBUNISCOPE_TRACE_KEEP + 1088)

static void keep_locks(void)
{
	static uint8_t table[KEPT_BYTES] __attribute__((aligned(64)));

	(void)uni_promise_keep(table, sizeof(table));
}
#else
static void keep_locks(void)
{
}
#endif

static uint64_t ram_end(void)
{
	struct ukplat_memregion_desc *md;
	uint64_t end = 0;

	ukplat_memregion_foreach(&md, RAM, 0, 0)
	{
		if (md->pbase >= end && md->pbase < LOW_RAM && md->len <= LOW_RAM - md->pbase) {
			end = md->pbase;
			end += md->len;
		}
	}
	return end;
}

static int start(struct uk_init_ctx *ctx __unused)
{
	const __sz size = (__sz)CONFIG_LIBUNISCOPE_TRACE_KIB * 1024;
	const struct uni_trace_memory memory = { .linear = LINEAR, .size = ram_end() };
	void *ring = uk_memalign(uk_alloc_get_default(), UNI_TRACE_SUB_SIZE, size);

	/* The guest boots without it, too. */
	if (!ring || uni_trace_init(ring, size, 1, (void *)0, UNI_TRACE_OVERWRITE, 0) != 0)
		uk_pr_err("uniscope-trace: no %d KiB for the ring\n", CONFIG_LIBUNISCOPE_TRACE_KIB);
	else if (uni_trace_copy_text(rules, sizeof(rules), &memory) != 0)
		uk_pr_err("uniscope-trace: texts are not copied\n");
	if (uni_trace_head.nr_cpus)
		keep_locks();
	return 0;
}

uk_lib_initcall(start, 0);
