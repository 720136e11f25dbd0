/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/diff_exact.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "diff/condition.h"
#include "obj/demangle.h"
#include "obj/usym.h"
#include "profile/text.h"
#include "recording/exact.h"
#include "recording/recording.h"

bool uni_exact_diff_has(const char *path)
{
	return uni_exact_is_there(path, 0);
}

static char *name_of(const struct uni_symtab *symtab, uint64_t start, bool mangled)
{
	char text[UNI_TEXT_MAX];
	const char *name = NULL;
	uint64_t offset;

	if (symtab != NULL && uni_symtab_lookup(symtab, start, &name, &offset)) {
		if (!mangled && uni_demangle(name, text, sizeof(text)))
			name = text;
		return strdup(name);
	}
	(void)snprintf(text, sizeof(text), "%#" PRIx64, start);
	return strdup(text);
}

struct rows {
	UNI_VEC(struct uni_exact_diff_row) v;
};

/* A function's numbers of one side, as a row of its own. */
static int add_side(
	struct rows *rows, const char *path, unsigned side, bool mangled, struct uni_err *err)
{
	_cleanup_free_ struct uni_exact_total *total = NULL;
	const struct uni_exact_function *f;
	struct uni_recording *rec = NULL;
	struct uni_exact *e = NULL;
	uint32_t nr = 0;
	int rc = uni_recording_open(path, &rec, err);

	if (rc == 0)
		rc = uni_exact_load(path, 0, &e, err);
	if (rc == 0 && uni_exact_count_functions(e, &total, &nr) != 0)
		rc = uni_err_nomem(err);
	f = rc == 0 ? uni_exact_functions(e, &nr) : NULL;
	for (uint32_t i = 1; rc == 0 && i < nr; i++) {
		struct uni_exact_diff_row row = { 0 };

		if (total[i].insns == 0 && total[i].calls == 0)
			continue;
		row.insns[side] = total[i].insns;
		row.calls[side] = total[i].calls;
		row.name = name_of(uni_recording_guest(rec, 0).symtab, f[i].start, mangled);
		if (row.name == NULL || !uni_vec_push(&rows->v, row)) {
			free(row.name);
			rc = uni_err_nomem(err);
		}
	}
	uni_exact_destroy(e);
	uni_recording_close(rec);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct uni_exact_diff_row *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static uint64_t change_of(const struct uni_exact_diff_row *r)
{
	return r->insns[1] > r->insns[0] ? r->insns[1] - r->insns[0] : r->insns[0] - r->insns[1];
}

static int by_change(const void *a, const void *b)
{
	const struct uni_exact_diff_row *x = a, *y = b;

	if (change_of(x) != change_of(y))
		return change_of(x) < change_of(y) ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Rows of one name become one. */
static size_t merge_rows(struct uni_exact_diff_row *row, size_t nr)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		if (n == 0 || strcmp(row[n - 1].name, row[i].name) != 0) {
			row[n++] = row[i];
			continue;
		}
		for (unsigned s = 0; s < 2; s++) {
			row[n - 1].insns[s] += row[i].insns[s];
			row[n - 1].calls[s] += row[i].calls[s];
		}
		free(row[i].name);
	}
	return n;
}

int uni_exact_diff_open(const char *before, const char *after, bool mangled,
	struct uni_exact_diff *ret, struct uni_err *err)
{
	struct rows rows = { 0 };
	int rc = add_side(&rows, before, 0, mangled, err);

	if (rc == 0)
		rc = add_side(&rows, after, 1, mangled, err);
	*ret = (struct uni_exact_diff){ .row = rows.v.v, .nr = rows.v.nr };
	if (rc != 0) {
		uni_exact_diff_deinit(ret);
		return rc;
	}
	if (ret->nr != 0)
		qsort(ret->row, ret->nr, sizeof(*ret->row), by_name);
	ret->nr = merge_rows(ret->row, ret->nr);
	for (size_t i = 0; i < ret->nr; i++) {
		ret->insns[0] += ret->row[i].insns[0];
		ret->insns[1] += ret->row[i].insns[1];
	}
	if (ret->nr != 0)
		qsort(ret->row, ret->nr, sizeof(*ret->row), by_change);
	return 0;
}

void uni_exact_diff_deinit(struct uni_exact_diff *d)
{
	for (size_t i = 0; i < d->nr; i++)
		free(d->row[i].name);
	free(d->row);
	*d = (struct uni_exact_diff){ 0 };
}

static double share_of(const struct uni_exact_diff *d, const struct uni_exact_diff_row *r, int side)
{
	return d->insns[side] == 0 ? 0 : (double)r->insns[side] / (double)d->insns[side];
}

static double find_growth(uint64_t before, uint64_t after)
{
	if (before == 0)
		return after == 0 ? 0 : INFINITY;
	return (double)after / (double)before - 1;
}

int uni_exact_diff_judge(const struct uni_exact_diff *d, const char *condition,
	struct uni_exact_judged *ret, struct uni_err *err)
{
	static const struct uni_diff_limits none = { 0 };
	struct uni_condition c;
	int rc = uni_condition_parse(condition, &none, &c, err);

	if (rc != 0)
		return rc;
	*ret = (struct uni_exact_judged){ .text = condition,
		.relative = c.glob == NULL || c.relative,
		.known = c.glob == NULL,
		.change = find_growth(d->insns[0], d->insns[1]) };
	for (size_t i = 0; c.glob != NULL && i < d->nr; i++) {
		const struct uni_exact_diff_row *r = &d->row[i];
		double change = c.relative ? find_growth(r->insns[0], r->insns[1])
					   : share_of(d, r, 1) - share_of(d, r, 0);

		if (fnmatch(c.glob, r->name, 0) != 0 || (ret->known && change <= ret->change))
			continue;
		ret->known = true;
		ret->name = r->name;
		ret->change = change;
	}
	ret->failed = ret->known && ret->change >= c.limit;
	uni_condition_deinit(&c);
	return 0;
}

static bool is_changed(const struct uni_exact_diff_row *r)
{
	return r->insns[0] != r->insns[1] || r->calls[0] != r->calls[1];
}

static size_t count_changed(const struct uni_exact_diff *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->nr; i++)
		n += is_changed(&d->row[i]);
	return n;
}

/* "+1,234", "-5", "0". */
static void number_change(char ret[UNI_NUMBER_MAX + 1], uint64_t before, uint64_t after)
{
	char number[UNI_NUMBER_MAX];

	uni_text_number(number, (double)(after > before ? after - before : before - after));
	(void)snprintf(ret, UNI_NUMBER_MAX + 1, "%s%s",
		after > before	 ? "+"
		: after < before ? "-"
				 : "",
		number);
}

static void put_verdict(const struct uni_exact_diff *d, struct uni_sink *out)
{
	char change[UNI_NUMBER_MAX + 1];

	number_change(change, d->insns[0], d->insns[1]);
	if (count_changed(d) == 0)
		uni_sink_printf(
			out, "the same: each function has the same instructions and calls\n");
	else if (d->insns[0] == d->insns[1])
		uni_sink_printf(
			out, "as many instructions, in other functions or by other calls\n");
	else
		uni_sink_printf(out, "%s instructions: %s (%+.3g %%)\n",
			d->insns[1] > d->insns[0] ? "more" : "fewer", change,
			d->insns[0] == 0 ? 100.0
					 : ((double)d->insns[1] / (double)d->insns[0] - 1) * 100);
}

static void put_judged(const struct uni_exact_judged *c, struct uni_sink *out)
{
	uni_sink_printf(out, "%s: %s: ", c->failed ? "failed" : "passed", c->text);
	if (!c->known) {
		uni_sink_puts(out, "no function of these recordings has such a name\n");
		return;
	}
	if (c->name != NULL)
		uni_sink_printf(out, "%s ", c->name);
	if (isinf(c->change))
		uni_sink_puts(out, "is new\n");
	else
		uni_sink_printf(out, "%+.2f %s\n", 100 * c->change,
			c->relative ? "% of its instructions" : "points");
}

void uni_exact_diff_text(const struct uni_exact_diff *d, const struct uni_exact_judged *judged,
	size_t nr_judged, uint64_t max, bool all, struct uni_sink *out)
{
	size_t shown = 0, wanted = all ? d->nr : count_changed(d);

	put_verdict(d, out);
	for (size_t i = 0; i < nr_judged; i++)
		put_judged(&judged[i], out);
	if (wanted != 0)
		uni_sink_printf(out, "\n%18s %16s %12s %10s  FUNCTION\n", "INSTRUCTIONS", "CHANGE",
			"CALLS", "CHANGE");
	for (size_t i = 0; i < d->nr && (max == 0 || shown < max); i++) {
		const struct uni_exact_diff_row *r = &d->row[i];
		char insns[UNI_NUMBER_MAX], more[UNI_NUMBER_MAX + 1], calls[UNI_NUMBER_MAX],
			others[UNI_NUMBER_MAX + 1];

		if (!all && !is_changed(r))
			continue;
		uni_text_number(insns, (double)r->insns[1]);
		uni_text_number(calls, (double)r->calls[1]);
		number_change(more, r->insns[0], r->insns[1]);
		number_change(others, r->calls[0], r->calls[1]);
		uni_sink_printf(
			out, "%18s %16s %12s %10s  %s\n", insns, more, calls, others, r->name);
		shown++;
	}
	if (shown < wanted)
		uni_sink_printf(out, "(%zu more functions)\n", wanted - shown);
}

void uni_exact_diff_json(const struct uni_exact_diff *d, bool all, struct uni_sink *out)
{
	struct uni_json j;

	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-exact-diff");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(u64, &j, "instructions_before", d->insns[0]);
	uni_json_kv(u64, &j, "instructions_after", d->insns[1]);
	uni_json_key(&j, "functions");
	uni_json_array(&j);
	for (size_t i = 0; i < d->nr; i++) {
		const struct uni_exact_diff_row *r = &d->row[i];

		if (!all && !is_changed(r))
			continue;
		uni_json_object(&j);
		uni_json_kv(str, &j, "name", r->name);
		uni_json_kv(u64, &j, "instructions_before", r->insns[0]);
		uni_json_kv(u64, &j, "instructions_after", r->insns[1]);
		uni_json_kv(u64, &j, "calls_before", r->calls[0]);
		uni_json_kv(u64, &j, "calls_after", r->calls[1]);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}
