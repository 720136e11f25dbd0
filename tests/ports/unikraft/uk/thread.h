/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#include <uk/essentials.h>
#define __STACK_SIZE 65536
struct ukarch_ctx {
	unsigned long ip, sp;
};
struct uk_thread {
	struct ukarch_ctx ctx;
	struct {
		void *stack;
	} _mem;
};
struct uk_thread *uk_thread_current(void);
int uk_thread_is_exited(const struct uk_thread *t);
