/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of `--rule` (trace/rules.h), for a trace that a command has opened. */
#ifndef UNI_APP_CALL_RULES_H
#define UNI_APP_CALL_RULES_H

#include "app/options.h"
#include "app/trace_values.h"
#include "trace/rules.h"

struct uni_call_rules {
	struct uni_call_rule *rule; /* NULL: there is none */
	size_t nr;
	struct uni_call_picker *picker;
};

/* Before a file is opened. Deinit it in any case. */
int uni_call_rules_parse(
	const struct uni_opt_list *texts, struct uni_call_rules *ret, struct uni_err *err);
/* Makes the picker, if there are rules. Walks the trace once if a rule asks for times. */
int uni_call_rules_begin(struct uni_call_rules *r, const struct uni_trace_open *t,
	struct uni_trace_values *values, struct uni_err *err);
/* Says on stderr which calls no rule could judge. */
void uni_call_rules_note(const struct uni_call_rules *r);
void uni_call_rules_deinit(struct uni_call_rules *r);

#endif
