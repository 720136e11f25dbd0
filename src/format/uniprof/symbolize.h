/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uniprof's stack traces with names for addresses: what its companion symbolize made of them, line
 * for line, but for what that got wrong.
 */
#ifndef UNI_FORMAT_UNIPROF_SYMBOLIZE_H
#define UNI_FORMAT_UNIPROF_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sink.h"
#include "obj/usym.h"

struct uni_symbolize_stats {
	uint64_t traces;
	uint64_t broken;  /* of those: marked [truncated] */
	uint64_t unknown; /* addresses without a name */
	uint64_t missed;  /* missed deadlines, according to uniprof */
	uint64_t failed;  /* vCPUs that it could not read */
};

/* Outermost frame of a trace with names that was broken off. */
#define UNI_SYMBOLIZE_TRUNCATED "[truncated]"

/*
 * Writes a frame: "name+0x10", or "[unknown]+0x1f" with the address itself (then returns false). A
 * caller that is not exact is looked up at the call, one byte back. bias: the difference between
 * addresses and those of the table.
 */
bool uni_symbolize_frame(const struct uni_symtab *symtab, uint64_t bias, uint64_t addr, bool exact,
	struct uni_sink *out);

/*
 * Comments, blank lines, counts and names stay as they are. An address becomes "name" at a symbol's
 * start, else "name+0x10", or "[unknown]+0x1f" with the address itself. Callers are looked up at
 * the call, one byte back, unless `as_is`. A trace that is cut off (it ends in "0", or in no count)
 * gets the outermost frame "[truncated]" and counts once. Lines outside any trace are left out and
 * counted. Text is cleaned.
 */
void uni_symbolize(const struct uni_symtab *symtab, bool as_is, const char *data, size_t size,
	struct uni_sink *out, struct uni_symbolize_stats *ret);

#endif
