/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and return values of traced calls as text. */
#ifndef UNI_TRACE_VALUES_H
#define UNI_TRACE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "obj/params.h"
#include "uniscope/trace_abi.h"

/* The guest's copy of a text that an argument pointed to when the call was made. */
struct uni_trace_copied {
	const char *text; /* within the record; NULL: nothing was copied */
	uint16_t len;
	uint8_t flags; /* UNI_TRACE_TEXT_CUT, _BAD */
};
/* From the words of an entry with arguments. */
void uni_trace_copied(
	const uint64_t *words, size_t nr, struct uni_trace_copied ret[UNI_TRACE_ARGS]);

/* A variable that the guest read then. */
struct uni_trace_got {
	uint32_t address; /* low half */
	bool is_signed;
	uint64_t value;
};
/* From the words of an entry with arguments, or of an exit with a value. Returns how many. */
size_t uni_trace_reads(const uint64_t *words, size_t nr, bool is_value,
	struct uni_trace_got ret[UNI_TRACE_READS_OF]);
__int128 uni_trace_got_number(const struct uni_trace_got *g);

/* "a=5, s=0xffff8000, path=\"/etc\""; a parameter that is not in a general register is "x=?". p
 * NULL: the function is not known; shows all registers in hex. words: of an entry with arguments.
 */
void uni_trace_args_text(
	const struct uni_params *p, const uint64_t *words, size_t nr, struct uni_strbuf *out);
/* A register as a number of the parameter's type; p NULL: all of it, without a sign. */
__int128 uni_trace_value(const struct uni_param *p, uint64_t reg);
/* "ret=5"; "" where nothing is returned, or not in a general register. */
void uni_trace_value_text(const struct uni_params *p, uint64_t reg, struct uni_strbuf *out);

#endif
