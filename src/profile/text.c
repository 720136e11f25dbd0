/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "profile/outline.h"

#define HOT_PERCENT  10.0
#define WARM_PERCENT 2.0

void uni_text_number(char *ret, double v)
{
	char digits[48];
	int n = v < 1e30 && v > -1e30 ? snprintf(digits, sizeof(digits), "%.0f", v) : 0, o = 0;

	if (n <= 0 || n >= (int)sizeof(digits)) {
		(void)snprintf(ret, UNI_NUMBER_MAX, "%g", v);
		return;
	}
	for (int i = 0; i < n; i++) {
		if (i != 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
			ret[o++] = ',';
		ret[o++] = digits[i];
	}
	ret[o] = '\0';
}

const char *uni_text_heat(double percent)
{
	return percent < WARM_PERCENT ? "" : percent >= HOT_PERCENT ? "\x1b[1;31m" : "\x1b[33m";
}

static const char *colour_on(const struct uni_text_opts *opts, double percent)
{
	return opts->colour ? uni_text_heat(percent) : "";
}

static void put_heading(const struct uni_text_opts *opts, struct uni_sink *out, const char *text)
{
	uni_sink_printf(out, "%s%s%s\n", opts->colour ? "\x1b[2m" : "", text,
		opts->colour ? "\x1b[0m" : "");
}

/* The name, cut to the room that is left after `used` columns; a character counts as one. */
static void put_name(
	const struct uni_text_opts *opts, struct uni_sink *out, const char *name, size_t used)
{
	size_t room = opts->width > used + 8 ? opts->width - used : 8, n = 0, end = 0, cut = 0;

	if (opts->width == 0) {
		uni_sink_puts(out, name);
		return;
	}
	for (; name[end] != '\0' && n <= room; end++) {
		if (((unsigned char)name[end] & 0xc0) == 0x80)
			continue;
		if (n == room - 2)
			cut = end;
		n++;
	}
	if (n <= room) {
		uni_sink_puts(out, name);
	} else {
		uni_sink_write(out, name, cut);
		uni_sink_puts(out, "..");
	}
}

static double text_percent(double v, double total)
{
	return total > 0.0 ? 100.0 * v / total : 0.0;
}

static const char *row_name(const struct uni_profile *p, const struct uni_func_row *row)
{
	return uni_profile_str(p, uni_profile_get_frame(p, row->frame)->name);
}

static void put_kind(const struct uni_profile *p, uint32_t frame, struct uni_sink *out)
{
	if (frame != UNI_NODE_NONE && uni_profile_get_frame(p, frame)->kind == UNI_FK_INLINED)
		uni_sink_puts(out, " [inlined]");
}

/* Synthetic rows ("vcpu 0", "[truncated]") without self value only repeat the rows below. */
static bool row_shown(const struct uni_profile *p, const struct uni_func_row *row)
{
	return uni_profile_get_frame(p, row->frame)->kind != UNI_FK_SYNTHETIC || row->self != 0.0 ||
	       row->self2 != 0.0;
}

struct sums {
	double before, after; /* after: of the second column */
	bool diff;
};

static struct sums sums_of(const struct uni_profile *p)
{
	return (struct sums){ .before = uni_profile_total(p),
		.after = uni_profile_total2(p, UNI_NODE_ROOT),
		.diff = uni_profile_has_second(p) };
}

static void put_row(const struct uni_profile *p, const struct uni_text_opts *opts,
	const struct uni_func_row *row, const struct sums *sum, struct uni_sink *out)
{
	char self[UNI_NUMBER_MAX], total[UNI_NUMBER_MAX];
	double self_percent = text_percent(row->self, sum->before);
	size_t used = 48;

	uni_text_number(self, row->self);
	uni_text_number(total, row->total);
	uni_sink_printf(out, "%s%12s %8.2f%%%s %14s %8.2f%%  ", colour_on(opts, self_percent), self,
		self_percent, *colour_on(opts, self_percent) != '\0' ? "\x1b[0m" : "", total,
		text_percent(row->total, sum->before));
	if (sum->diff) {
		uni_sink_printf(out, "%+9.2f %+9.2f  ",
			text_percent(row->self2, sum->after) - self_percent,
			text_percent(row->total2, sum->after) -
				text_percent(row->total, sum->before));
		used += 21;
	}
	put_name(opts, out, row_name(p, row), used);
	put_kind(p, row->frame, out);
	uni_sink_puts(out, uni_profile_mark(p, row->frame));
	uni_sink_putc(out, '\n');
}

int uni_text_functions(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out)
{
	_cleanup_free_ struct uni_func_row *rows = NULL;
	struct sums sum = sums_of(p);
	size_t nr = 0, shown = 0, left = 0;
	bool unsure = false;

	if (uni_profile_functions(p, &rows, &nr) != 0)
		return -UNI_ENOMEM;
	put_heading(opts, out,
		sum.diff ? "        SELF                     TOTAL           D-SELF   D-TOTAL  "
			   "FUNCTION"
			 : "        SELF                     TOTAL            FUNCTION");
	for (size_t i = 0; i < nr; i++) {
		if (!row_shown(p, &rows[i]))
			continue;
		if ((opts->max_rows != 0 && shown == opts->max_rows) ||
			uni_outline_share(p, rows[i].total, rows[i].total2) < opts->min_percent) {
			left++;
			continue;
		}
		put_row(p, opts, &rows[i], &sum, out);
		unsure = unsure || uni_profile_mark(p, rows[i].frame)[0] != '\0';
		shown++;
	}
	if (left != 0)
		uni_sink_printf(out, "%12s %zu more function%s\n", "and", left, uni_plural(left));
	if (unsure)
		uni_sink_puts(out, UNI_UNSURE_LEGEND);
	return 0;
}

/* The call tree */

struct tree {
	const struct uni_profile *p;
	const struct uni_text_opts *opts;
	struct uni_sink *out;
	struct sums sum;
};

static void put_branch(const struct tree *t, const struct uni_outline_line *b)
{
	const struct uni_node *n = uni_profile_node(t->p, b->node);
	double total = text_percent(n->total, t->sum.before),
	       self = text_percent(n->self, t->sum.before);
	size_t used = 22;

	uni_sink_printf(t->out, "%s%8.2f%%%s %8.2f%%  ", colour_on(t->opts, total), total,
		*colour_on(t->opts, total) != '\0' ? "\x1b[0m" : "", self);
	if (t->sum.diff) {
		uni_sink_printf(t->out, "%+9.2f  ",
			text_percent(uni_profile_total2(t->p, b->node), t->sum.after) - total);
		used += 11;
	}
	for (uint32_t i = 0; i < b->indent; i++)
		uni_sink_puts(t->out, b->forked && i + 1 == b->indent ? "|- " : "|  ");
	put_name(t->opts, t->out, uni_profile_node_name(t->p, b->node), used + 3 * b->indent);
	put_kind(t->p, n->frame, t->out);
	if (t->opts->sure != NULL && n->frame != UNI_NODE_NONE && t->opts->sure[n->frame] != 0)
		uni_sink_puts(t->out, " *");
	uni_sink_puts(t->out, uni_profile_mark(t->p, n->frame));
	uni_sink_putc(t->out, '\n');
}

int uni_text_tree(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out)
{
	struct tree t = { .p = p, .opts = opts, .out = out, .sum = sums_of(p) };
	struct uni_outline_opts how = { .max_lines = opts->max_rows,
		.min_percent = opts->min_percent,
		.max_depth = opts->max_depth };
	struct uni_outline o = { 0 };
	int rc = uni_outline_init(&o, p, &how);

	put_heading(opts, out,
		t.sum.diff ? "   TOTAL      SELF     D-TOTAL  FUNCTION"
			   : "   TOTAL      SELF   FUNCTION");
	uni_vec_foreach (l, &o.lines)
		put_branch(&t, l);
	if (o.left != 0)
		uni_sink_printf(
			out, "%9s %zu more branch%s\n", "and", o.left, o.left == 1 ? "" : "es");
	uni_outline_deinit(&o);
	return rc;
}

/* vCPUs */

static int put_vcpu(const struct uni_profile *p, const struct uni_text_opts *opts,
	const char *guest, uint32_t node, struct uni_sink *out)
{
	_cleanup_free_ struct uni_func_row *rows = NULL;
	const struct uni_node *n = uni_profile_node(p, node);
	char number[UNI_NUMBER_MAX], name[64];
	size_t nr = 0, i = 0;

	if (uni_profile_functions_below(p, node, &rows, &nr) != 0)
		return -UNI_ENOMEM;
	while (i < nr && !row_shown(p, &rows[i]))
		i++;
	uni_text_number(number, n->total);
	(void)snprintf(name, sizeof(name), "%.40s%s%.16s", guest, guest[0] != '\0' ? " " : "",
		uni_profile_node_name(p, node));
	uni_sink_printf(out, "%-10s %14s %8.2f%%  ", name, number,
		text_percent(n->total, uni_profile_total(p)));
	if (i < nr) {
		uni_sink_printf(out, "%8.2f%%  ", text_percent(rows[i].self, n->total));
		put_name(opts, out, row_name(p, &rows[i]), 48);
		uni_sink_puts(out, uni_profile_mark(p, rows[i].frame));
	}
	uni_sink_putc(out, '\n');
	return 0;
}

static bool is_synthetic(const struct uni_profile *p, uint32_t node)
{
	uint32_t frame = uni_profile_node(p, node)->frame;

	return uni_profile_get_frame(p, frame)->kind == UNI_FK_SYNTHETIC;
}

static bool is_vcpu(const struct uni_profile *p, uint32_t node)
{
	return is_synthetic(p, node) && strncmp(uni_profile_node_name(p, node), "vcpu ", 5) == 0;
}

/* Those right below the root, or below a guest's frame. */
static int put_vcpus(const struct uni_profile *p, const struct uni_text_opts *opts,
	const char *guest, uint32_t parent, bool *any, struct uni_sink *out)
{
	uint32_t c = uni_profile_node(p, parent)->child;
	int rc = 0;

	for (; c != UNI_NODE_NONE && rc == 0; c = uni_profile_node(p, c)->next) {
		if (!is_vcpu(p, c))
			continue;
		if (!*any)
			put_heading(opts, out,
				"VCPU              SAMPLES               HOTTEST FUNCTION");
		*any = true;
		rc = put_vcpu(p, opts, guest, c, out);
	}
	return rc;
}

int uni_text_vcpus(
	const struct uni_profile *p, const struct uni_text_opts *opts, struct uni_sink *out)
{
	uint32_t c = uni_profile_node(p, UNI_NODE_ROOT)->child;
	bool any = false;
	int rc = put_vcpus(p, opts, "", UNI_NODE_ROOT, &any, out);

	for (; c != UNI_NODE_NONE && rc == 0; c = uni_profile_node(p, c)->next) {
		if (is_synthetic(p, c) && !is_vcpu(p, c))
			rc = put_vcpus(p, opts, uni_profile_node_name(p, c), c, &any, out);
	}
	return rc;
}
