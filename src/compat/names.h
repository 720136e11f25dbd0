/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared code of the front ends for older tools: names of guests and symbols. */
#ifndef UNI_COMPAT_NAMES_H
#define UNI_COMPAT_NAMES_H

#include "base/err.h"
#include "format/uniprof/symbolize.h"
#include "obj/usym.h"

#define UNI_COMPAT_TARGET_MAX 4352

/* A domain number becomes xen:dom=N; everything else stays. */
int uni_compat_target(const char *operand, char ret[UNI_COMPAT_TARGET_MAX], struct uni_err *err);

/* ELF, .usym, or a table, in which the last of several names goes before the others. */
int uni_compat_symbols(const char *path, const struct uni_image_search *search,
	struct uni_symtab **ret, struct uni_err *err);

/* Reports facts that the trace itself lacks: missed deadlines, traces that were cut off. */
void uni_compat_note_trace(const char *path, const struct uni_symbolize_stats *stats);

#endif
