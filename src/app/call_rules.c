/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/call_rules.h"

#include <inttypes.h>
#include <stdlib.h>

#include "app/term.h"

int uni_call_rules_parse(const struct uni_opt_list *texts, struct uni_trace_values *values,
	struct uni_calls_rules *ret, struct uni_err *err)
{
	struct uni_call_rule *rule;
	int rc = 0;

	*ret = (struct uni_calls_rules){ 0 };
	if (texts->items.nr == 0)
		return 0;
	if (texts->items.nr > UNI_CALL_RULES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "--rule may be given %d times at most",
			UNI_CALL_RULES_MAX);
	rule = calloc(texts->items.nr, sizeof(*rule));
	if (rule == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; rc == 0 && i < texts->items.nr; i++)
		rc = uni_call_rule_parse(texts->items.v[i], &rule[i], err);
	*ret = (struct uni_calls_rules){ .rule = rule,
		.nr = texts->items.nr,
		.params = uni_trace_values_params,
		.variable = uni_trace_values_variable,
		.ctx = values };
	return rc;
}

void uni_call_rules_note(const struct uni_calls_rules *r)
{
	if (r->unknown != 0)
		uni_note("%" PRIu64
			 " call%s left out because an argument that --rule asks for is not "
			 "known. Record them with --args (for text, FUNCTION(ARGUMENT:s)). A name "
			 "needs debug data, a number such as 1 does not",
			r->unknown, r->unknown == 1 ? " was" : "s were");
}

void uni_call_rules_free(struct uni_calls_rules *r)
{
	free(r->rule);
	*r = (struct uni_calls_rules){ 0 };
}
