/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/call_rules.h"

#include <inttypes.h>
#include <stdlib.h>

#include "app/term.h"

int uni_call_rules_parse(
	const struct uni_opt_list *texts, struct uni_call_rules *ret, struct uni_err *err)
{
	int rc = 0;

	*ret = (struct uni_call_rules){ .nr = texts->items.nr };
	if (ret->nr == 0)
		return 0;
	if (ret->nr > UNI_CALL_RULES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "--rule may be given %d times at most",
			UNI_CALL_RULES_MAX);
	ret->rule = calloc(ret->nr, sizeof(*ret->rule));
	if (ret->rule == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; rc == 0 && i < ret->nr; i++)
		rc = uni_call_rule_parse(texts->items.v[i], &ret->rule[i], err);
	return rc;
}

static int look_at_all(
	struct uni_call_picker *picker, const struct uni_trace_open *t, struct uni_err *err)
{
	const struct uni_call_event *e;
	struct uni_calls *calls;
	size_t nr;
	int rc = uni_calls_open(t->in, &t->filter, t->funcs, &calls, err);

	if (rc != 0)
		return rc;
	while ((rc = uni_calls_read(calls, &e, &nr)) == 1) {
		rc = uni_call_picker_look(picker, e, nr);
		if (rc != 0)
			break;
	}
	uni_calls_close(calls);
	return rc == 0 ? 0 : uni_err_nomem(err);
}

int uni_call_rules_begin(struct uni_call_rules *r, const struct uni_trace_open *t,
	struct uni_trace_values *values, struct uni_err *err)
{
	if (r->rule == NULL)
		return 0;
	r->picker =
		uni_call_picker_create(r->rule, r->nr, t->funcs, uni_trace_values_params, values);
	if (r->picker == NULL)
		return uni_err_nomem(err);
	return uni_call_picker_looks_first(r->picker) ? look_at_all(r->picker, t, err) : 0;
}

void uni_call_rules_note(const struct uni_call_rules *r)
{
	uint64_t unknown = r->picker != NULL ? uni_call_picker_unknown(r->picker) : 0;

	if (unknown != 0)
		uni_note("%" PRIu64
			 " call%s left out because an argument that --rule asks for is not "
			 "known. Record them with --args (for text, FUNCTION(ARGUMENT:s)). A name "
			 "needs debug data, a number such as 1 does not",
			unknown, unknown == 1 ? " was" : "s were");
}

void uni_call_rules_deinit(struct uni_call_rules *r)
{
	uni_call_picker_destroy(r->picker);
	free(r->rule);
	*r = (struct uni_call_rules){ 0 };
}
