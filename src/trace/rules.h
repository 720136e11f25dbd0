/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules for the calls of single functions: "FUNCTION(CONDITION, ...):OPTION,...". FUNCTION is a
 * glob. A call that a rule forbids is left out with all calls in it.
 *
 *	tcp_input(len>1000)	only with such arguments: = != < <= > >= a number
 *	open(path~/etc/)	a copied text matches this glob; !~ is the contrary
 *	malloc(return=0)	only calls that returned such a number
 *	malloc(@heap.used>9)	only if a variable that was read with the call was so
 *	malloc:skip		none
 *	parse:depth=2		at most 2 levels, its own is the first
 *	memcpy:min=10us		no shorter ones
 *	malloc:below=parse	only calls that such a function made, directly or not
 *
 * Durations, depths and callers are those of the trace, not of what is left of it. The time of a
 *call left out counts as its caller's own.
 */
#ifndef UNI_TRACE_RULES_H
#define UNI_TRACE_RULES_H

#include "base/err.h"
#include "obj/params.h"
#include "obj/variable.h"
#include "trace/calls.h"
#include "uniscope/trace_abi.h"

#define UNI_CALL_RULES_MAX 32

enum uni_call_op {
	UNI_CALL_OP_EQ,
	UNI_CALL_OP_NE,
	UNI_CALL_OP_LT,
	UNI_CALL_OP_LE,
	UNI_CALL_OP_GT,
	UNI_CALL_OP_GE,
	UNI_CALL_OP_LIKE,
	UNI_CALL_OP_UNLIKE,
};

struct uni_call_rule {
	char function[256];
	unsigned nr;
	struct uni_call_condition {
		char param[UNI_VARIABLE_NAME]; /* "": by its number; "@heap.used"; "return" */
		uint8_t arg;		       /* from 0 on */
		uint8_t op;
		__int128 value;
		char text[128]; /* glob */
	} condition[UNI_TRACE_ARGS];
	bool skip;
	uint32_t depth;	 /* 0: all */
	uint64_t min_ns; /* 0: all */
	char below[256]; /* glob; "": anywhere */
};

/* "len>1000", "path~/etc/": *at then stands behind it. False: it is no condition. */
bool uni_call_condition_take(const char **at, struct uni_call_condition *ret);
int uni_call_rule_parse(const char *text, struct uni_call_rule *ret, struct uni_err *err);

struct uni_call_picker; /* opaque */

/* Both are borrowed. NULL: out of memory. */
struct uni_call_picker *uni_call_picker_create(
	struct uni_calls_rules *rules, struct uni_funcs *funcs);
void uni_call_picker_destroy(struct uni_call_picker *p); /* NULL-safe */

/* Do rules depend on how calls end? Then all events of `calls` have to be given to _look() first.
 */
bool uni_call_picker_looks_first(const struct uni_call_picker *p);
int uni_call_picker_look(struct uni_call_picker *p, const struct uni_calls *calls,
	const struct uni_call_event *e, size_t nr);

/* Chooses among these events of a read of `calls`. *ret is valid until the next call. 0 or
 * -UNI_ENOMEM. */
int uni_call_picker_pick(struct uni_call_picker *p, const struct uni_calls *calls,
	const struct uni_call_event *e, size_t nr, const struct uni_call_event **ret,
	size_t *nr_ret);

#endif
