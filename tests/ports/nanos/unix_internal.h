/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Nanos: what the port uses. */
#include <kernel.h>
typedef struct thread {
	struct context context;
} * thread;
typedef struct syscall_context {
	struct context context;
	thread t;
} * syscall_context;
