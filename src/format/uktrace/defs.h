/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Definitions of Unikraft's tracepoints: the structures in section .uk_tracepoints_list of the
 * image with debug data (docs/formats/uk-trace.md). A record in the guest's buffer refers to a
 * definition by its address there, its cookie.
 */
#ifndef UNI_FORMAT_UKTRACE_DEFS_H
#define UNI_FORMAT_UKTRACE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strtab.h"
#include "base/vec.h"

#define UNI_UKT_ARGS_MAX 16 /* Unikraft's macros stop at 7 */
#define UNI_UKT_DEFS_MAX (1u << 20)

enum uni_ukt_type { UNI_UKT_INT = 0, UNI_UKT_STRING = 1 };

struct uni_ukt_arg_def {
	uint8_t size; /* bytes, of an integer */
	uint8_t type; /* enum uni_ukt_type */
};

struct uni_ukt_def {
	uint64_t cookie;
	const char *name, *format; /* clean; borrowed from the table */
	uint8_t nr_args;
	bool readable; /* all arguments are of types that are known */
	struct uni_ukt_arg_def arg[UNI_UKT_ARGS_MAX];
};

struct uni_ukt_defs {
	UNI_VEC(struct uni_ukt_def) all; /* by cookie */
	struct uni_strtab *text;
	uint64_t damaged; /* bytes that are no definition and no padding */
};

/* ret needs no initialization; free it whenever this returned 0. */
int uni_ukt_defs_parse(
	const void *data, size_t size, struct uni_ukt_defs *ret, struct uni_err *err);
void uni_ukt_defs_free(struct uni_ukt_defs *d); /* of a zeroed one nothing */
/* NULL: none has this cookie. */
const struct uni_ukt_def *uni_ukt_defs_find(const struct uni_ukt_defs *d, uint64_t cookie);

#endif
