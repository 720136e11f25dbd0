/* SPDX-License-Identifier: BSD-2-Clause */
/* Records which thread runs. The linker puts this function in front of Unikraft's own switch
 * (--wrap), so no file of Unikraft is changed. */
#include <uk/essentials.h>
#include <uk/thread.h>
#include "uniscope/promise.h"
#include "uniscope/trace.h"

void __real_ukarch_ctx_switch(struct ukarch_ctx *store, struct ukarch_ctx *load);
void __wrap_ukarch_ctx_switch(struct ukarch_ctx *store, struct ukarch_ctx *load);

/* Both contexts lie in their threads. A thread that has exited does not go on. */
void __wrap_ukarch_ctx_switch(struct ukarch_ctx *store, struct ukarch_ctx *load)
{
	struct uk_thread *prev = __containerof(store, struct uk_thread, ctx);
	struct uk_thread *next = __containerof(load, struct uk_thread, ctx);

	if (uk_thread_is_exited(prev)) {
		uni_trace_switch_over((uint64_t)prev, (uint64_t)next, 0);
		uni_promise_resolve((uint64_t)prev, (uint64_t)prev);
	} else {
		uni_trace_switch((uint64_t)prev, (uint64_t)next, 0);
	}
	uni_promise_switch((uint64_t)next);
	__real_ukarch_ctx_switch(store, load);
}
