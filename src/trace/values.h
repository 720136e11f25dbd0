/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and return values of traced calls as text. */
#ifndef UNI_TRACE_VALUES_H
#define UNI_TRACE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "obj/params.h"

/* "a=5, s=0xffff8000"; a parameter that is not in a general register is "x=?". p NULL: the function
 * is not known; shows all registers in hex. Text that does not fit is cut. */
void uni_trace_args_text(
	const struct uni_params *p, const uint64_t *reg, size_t nr, char *buf, size_t size);
/* "ret=5"; "" where nothing is returned, or not in a general register. */
void uni_trace_value_text(const struct uni_params *p, uint64_t reg, char *buf, size_t size);

#endif
