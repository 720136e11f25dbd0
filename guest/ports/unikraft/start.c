/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the tracer its ring as Unikraft boots. */
#include <uk/alloc.h>
#include <uk/config.h>
#include <uk/init.h>
#include "uniscope/trace.h"

static int start(struct uk_init_ctx *ctx __unused)
{
	const __sz size = (__sz)CONFIG_LIBUNISCOPE_TRACE_KIB * 1024;
	void *ring = uk_memalign(uk_alloc_get_default(), UNI_TRACE_SUB_SIZE, size);

	return ring ? uni_trace_init(ring, size, 1, (void *)0, UNI_TRACE_OVERWRITE, 0) : -1;
}

uk_lib_initcall(start, 0);
