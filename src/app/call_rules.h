/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of `--rule` (trace/rules.h). */
#ifndef UNI_APP_CALL_RULES_H
#define UNI_APP_CALL_RULES_H

#include "app/options.h"
#include "app/trace_values.h"
#include "trace/rules.h"

#define UNI_RULE_OPTION(list)                                                                  \
	{                                                                                      \
		0, "rule", UNI_OPT_LIST, &(list), "RULE",                                      \
			"leave out calls, with the calls in them. 'tcp_input(len>1000)' "      \
			"and 'open(path~/etc/*)' keep those with such arguments (of "          \
			"--args), 'malloc(return=0)' and 'malloc(@heap.used>9)' such "         \
			"values and variables. FUNCTION:skip keeps none, FUNCTION:depth=2 at " \
			"most "                                                                \
			"this many levels, FUNCTION:min=10us no shorter ones, "                \
			"FUNCTION:below=CALLER only those from there. May be given "           \
			"several times",                                                       \
			NULL, NULL                                                             \
	}

/* Before a file is opened. values is borrowed: it tells what is known of a function. Free it in any
 * case. */
int uni_call_rules_parse(const struct uni_opt_list *texts, struct uni_trace_values *values,
	struct uni_calls_rules *ret, struct uni_err *err);
/* For a filter: NULL if there are none. */
static inline struct uni_calls_rules *uni_call_rules_get(struct uni_calls_rules *r)
{
	return r->nr != 0 ? r : NULL;
}
/* Says on stderr how many calls no rule could judge. */
void uni_call_rules_note(const struct uni_calls_rules *r);
void uni_call_rules_free(struct uni_calls_rules *r);

#endif
