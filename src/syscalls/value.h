/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of system calls as strace shows them. */
#ifndef UNI_SYSCALLS_VALUE_H
#define UNI_SYSCALLS_VALUE_H

#include "base/strbuf.h"
#include "syscalls/table.h"
#include "trace/values.h"

/* Text in the guest, for arguments that point to some; NULL: they are shown as addresses. */
struct uni_sysc_memory {
	/* Copies up to cap bytes; how many. 0: they cannot be had. */
	size_t (*read)(void *ctx, uint64_t va, void *buf, size_t cap);
	void *ctx;
	size_t string_max; /* bytes shown of one */
};

/* def NULL: all in hex. copied: texts that were copied when the call was made, or NULL. memory may
 * be NULL. */
void uni_sysc_args(const struct uni_sysc_def *def, const uint64_t *arg, unsigned nr,
	const struct uni_trace_copied *copied, const struct uni_sysc_memory *memory,
	struct uni_strbuf *out);

/* Has the call no mode, because its argument before that makes no file (kind: that argument's)? */
bool uni_sysc_no_mode(char kind, uint64_t flags);

/* The call's result from a register: sign-extended if the call returns an int. */
int64_t uni_sysc_result(const struct uni_sysc_def *def, uint64_t reg);
/* Is it an error? Then *errno_ret is which, a positive number. */
bool uni_sysc_is_error(int64_t result, int *errno_ret);
/* "ENOENT", or NULL: not known. */
const char *uni_sysc_error_name(int error);
/* -1: no error has this name (without a minus sign). */
int uni_sysc_error_of(const char *name, size_t len);

#endif
