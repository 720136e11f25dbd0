/* SPDX-License-Identifier: BSD-2-Clause */
/* A filter of system calls in the making. */
#ifndef UNI_BASE_FILTER_H
#define UNI_BASE_FILTER_H

#include <seccomp.h>
#include <stddef.h>

#include "base/confine.h"

/* A reader's calls that are allowed with all arguments; the architecture may not have some. */
extern const int uni_filter_reader[];
extern const size_t uni_filter_nr_reader;

/* 0, or -errno. */
int uni_filter_add(scmp_filter_ctx f, const int *calls, size_t nr);
/* Allows the call if its argument `arg` has one of these values. */
int uni_filter_add_each(
	scmp_filter_ctx f, int call, unsigned arg, const unsigned long *v, size_t nr);
/* A reader's calls, and what `more` adds. Returns as uni_confine_calls(). */
int uni_filter_load(int (*more)(scmp_filter_ctx f, enum uni_confined what), enum uni_confined what,
	struct uni_err *err);

#endif
