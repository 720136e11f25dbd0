/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of `--args`: "FUNCTION", or "FUNCTION(ARGUMENT:s, ARGUMENT>NUMBER, @VARIABLE, ...)" for
 * the text behind arguments, for calls with such arguments alone, and for variables of the guest
 * that are read with each call. FUNCTION is a glob. ARGUMENT is a parameter's name, for which the
 * image needs debug data, or the number of a general argument register, from 1 on. s: text that
 * ends in a NUL; b: bytes, whose number is the next argument; a number behind it limits the bytes
 * (64). VARIABLE: obj/variable.h. "FUNCTION(return)": the value that it returns alone.
 */
#ifndef UNI_TRACING_WANTS_H
#define UNI_TRACING_WANTS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"
#include "obj/params.h"
#include "obj/variable.h"
#include "trace/rules.h"
#include "uniscope/trace_abi.h"

#define UNI_TRACE_WANT_BYTES 64 /* of a text, if no limit is given */

struct uni_trace_want {
	char function[256]; /* glob */
	unsigned nr;
	struct uni_trace_want_text {
		char param[UNI_PARAM_NAME]; /* "": by its number */
		uint8_t arg;		    /* from 0 on */
		bool is_buffer;
		uint16_t bytes;
	} text[UNI_TRACE_ARGS];
	unsigned nr_conditions;
	struct uni_call_condition condition[UNI_TRACE_ARGS]; /* of numbers */
	unsigned nr_reads;
	char read[UNI_TRACE_READS_OF][UNI_VARIABLE_NAME];
	bool returns;
};

int uni_trace_want_parse(const char *text, struct uni_trace_want *ret, struct uni_err *err);

/* Does any of them ask for this function? */
bool uni_trace_wants_match(const struct uni_trace_want *want, size_t nr, const char *function);
/* Do those that ask for it ask for what it returns alone? */
bool uni_trace_wants_value_alone(
	const struct uni_trace_want *want, size_t nr, const char *function);
/* Does any ask for a parameter by name? */
bool uni_trace_wants_name(const struct uni_trace_want *want, size_t nr);
/* Does any ask for text? */
bool uni_trace_wants_text(const struct uni_trace_want *want, size_t nr);
/* Does any have a condition? */
bool uni_trace_wants_condition(const struct uni_trace_want *want, size_t nr);

/* Does any ask for a variable? */
bool uni_trace_wants_read(const struct uni_trace_want *want, size_t nr);

/* Text, conditions and variables that the guest's tracer heeds. */
struct uni_trace_rules {
	UNI_VEC(struct uni_trace_text_rule) text;
	UNI_VEC(struct uni_trace_condition) condition;
	UNI_VEC(struct uni_trace_read) read;
};
struct uni_traced_function {
	const char *name;
	uint64_t svma, bias; /* of its entry in the image, and from there to the guest */
	const struct uni_image *image;
	struct uni_debug *debug; /* NULL: no names are given */
};
/* Adds what these words ask of a function. -UNI_ENOENT: it has no such parameter, or the image no
 * such variable. -UNI_EUSAGE: an argument cannot be such a number. */
int uni_trace_rules_add(struct uni_trace_rules *rules, const struct uni_trace_want *want, size_t nr,
	const struct uni_traced_function *f, struct uni_err *err);
/* By rising function. */
void uni_trace_rules_sort(struct uni_trace_rules *rules);
void uni_trace_rules_deinit(struct uni_trace_rules *rules);

#endif
