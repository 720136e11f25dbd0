/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#include <uk/essentials.h>
struct uk_init_ctx {
	int argc;
};
#define uk_lib_initcall(f, prio) int (*const called_##f)(struct uk_init_ctx *) = (f)
