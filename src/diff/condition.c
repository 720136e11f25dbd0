/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/condition.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define FORM                                                                                   \
	"a condition is 'function GLOB +NUMBERpp' (percentage points), 'total +NUMBER%%', or " \
	"with "                                                                                \
	"--per call 'function GLOB +NUMBER%%'"

/* "+5%" at the end of text. */
static bool parse_limit(const char *plus, const char *unit, double *ret)
{
	char *end;

	*ret = strtod(plus + 1, &end) / 100;
	return end != plus + 1 && strcmp(end, unit) == 0 && *ret > 0;
}

int uni_condition_parse(const char *text, const struct uni_diff_limits *limits,
	struct uni_condition *ret, struct uni_err *err)
{
	static const char function[] = "function ";
	const char *glob = text + strlen(function), *plus = strrchr(text, '+');
	bool whole = strncmp(text, "total +", 7) == 0, ok, relative = false;
	double limit;

	if (whole)
		ok = parse_limit(text + 6, "%", &limit);
	else
		ok = strncmp(text, function, strlen(function)) == 0 && plus != NULL &&
		     plus >= glob + 2 && plus[-1] == ' ';
	if (ok && !whole) {
		relative = parse_limit(plus, "%", &limit);
		ok = relative || parse_limit(plus, "pp", &limit);
	}
	if (ok && !whole && !relative && limit > 1)
		return uni_err_set(err, UNI_EUSAGE,
			"--fail-if '%s': no share grows by more than 100 percentage points", text);
	if (!ok)
		return uni_err_set(err, UNI_EUSAGE, "--fail-if '%s': " FORM, text);
	if (limit < limits->threshold)
		return uni_err_set(err, UNI_EUSAGE,
			"--fail-if '%s': --threshold (%g points) hides such changes", text,
			100 * limits->threshold);
	*ret = (struct uni_condition){ .text = text,
		.glob = whole ? NULL : strndup(glob, (size_t)(plus - 1 - glob)),
		.limit = limit,
		.relative = relative };
	return whole || ret->glob != NULL ? 0 : uni_err_nomem(err);
}

static enum uni_condition_result judge_value(
	const struct uni_condition *c, const struct uni_diff_value *v)
{
	if (v->changed && v->c.diff >= c->limit)
		return UNI_CONDITION_FAILED;
	return v->c.high >= c->limit ? UNI_CONDITION_UNSURE : UNI_CONDITION_PASSED;
}

/* That of before, or that of after. */
static bool has_name(const struct uni_condition *c, const struct uni_diff_sides *d, size_t function)
{
	const char *now = uni_diff_new_name(d, function);

	return fnmatch(c->glob, uni_diff_name(d, function), 0) == 0 ||
	       (now != NULL && fnmatch(c->glob, now, 0) == 0);
}

void uni_condition_judge(
	struct uni_condition *c, const struct uni_diff_sides *d, const struct uni_diff_result *r)
{
	double most = 0;

	c->row = r->nr;
	if (c->glob == NULL) {
		c->result = judge_value(c, &r->whole);
		return;
	}
	for (size_t f = 0; f < uni_diff_nr_functions(d); f++)
		c->nr_named += fnmatch(c->glob, uni_diff_name(d, f), 0) == 0;
	for (size_t i = 0; i < r->nr * UNI_COLUMNS; i++) {
		const struct uni_diff_row *row = &r->row[i / UNI_COLUMNS];
		const struct uni_diff_value *v = &row->value[i % UNI_COLUMNS];
		enum uni_condition_result one;

		if (!v->tested || !has_name(c, d, row->function))
			continue;
		one = judge_value(c, v);
		if (c->row < r->nr && (one < c->result || (one == c->result && v->c.high <= most)))
			continue;
		most = v->c.high;
		c->result = one;
		c->row = i / UNI_COLUMNS;
		c->column = (enum uni_column)(i % UNI_COLUMNS);
	}
}

void uni_condition_deinit(struct uni_condition *c)
{
	free(c->glob);
	c->glob = NULL;
}
