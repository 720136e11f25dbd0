/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/show_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "profile/text.h"

const char *const uni_diff_column_names[UNI_COLUMNS] = { "self", "total" };
const char *const uni_diff_side_names[UNI_SIDES] = { "before", "after" };
const char *const uni_diff_condition_words[] = {
	[UNI_CONDITION_PASSED] = "passed",
	[UNI_CONDITION_UNSURE] = "cannot tell",
	[UNI_CONDITION_FAILED] = "failed",
};

#define COUNT_WHOLE  1000  /* from here on, a count has no decimals */
#define STOLEN_SHOWN 0.001 /* less is not worth a line */

/* Two digits: more would claim to know more. */
static double round_up(double v)
{
	double unit = v >= 100 ? pow(10, floor(log10(v)) - 1) : 1;

	return ceil(v / unit) * unit;
}

static bool is_time(const struct uni_diff_show *s)
{
	return strcmp(s->counted, "time") == 0;
}

double uni_diff_stolen(const struct uni_diff_side_info *side)
{
	double all = side->host_on + side->host_ready;

	return all > 0 ? side->host_ready / all : NAN; /* also of NAN */
}

/* More of the same would not help. */
static bool is_host_busy(const struct uni_diff_show *s)
{
	return s->limits->stolen[UNI_BEFORE] + s->limits->stolen[UNI_AFTER] >
	       s->limits->tolerance / 2;
}

/* More samples would not be a better answer than those without the begin. */
static void put_phase(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	double part = 0, seconds = 0;

	for (int side = 0; side < UNI_SIDES; side++) {
		part = fmax(part, s->r->phase[side]);
		seconds = fmax(seconds, s->r->phase[side] * s->side[side].seconds);
	}
	uni_strbuf_addf(ret, "; the first %.0f %% are another phase than the rest: leave that out",
		ceil(100 * part));
	if (seconds > 0 && s->side[UNI_BEFORE].nr == 1 && s->side[UNI_AFTER].nr == 1)
		uni_strbuf_addf(ret, " (--from %.2g)", seconds);
}

static void put_needed(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	const struct uni_diff_side_info *b = &s->side[UNI_BEFORE], *a = &s->side[UNI_AFTER];
	double fewest = fmin(b->samples, a->samples);
	char number[UNI_NUMBER_MAX];

	if (is_host_busy(s)) {
		uni_strbuf_adds(ret, "; the host was busy: trace on an idle one, or compare "
				     "--of calls");
		return;
	}
	if (fmax(s->r->phase[UNI_BEFORE], s->r->phase[UNI_AFTER]) > 0) {
		put_phase(s, ret);
		return;
	}
	if (uni_diff_of_runs(s->d)) {
		uni_strbuf_addf(ret, "; about %.0f runs of each side would tell",
			round_up(s->r->more * (double)uni_min(b->nr, a->nr)));
		return;
	}
	if (!(fewest > 0)) {
		uni_strbuf_addf(ret, "; %s: give %d recordings of each side",
			is_time(s) ? "the number of samples is not known"
				   : "one run tells nothing of the spread of counts",
			UNI_DIFF_RUNS_MIN);
		return;
	}
	uni_text_number(number, round_up(s->r->more * fewest));
	uni_strbuf_addf(ret, "; about %s %s of each side would tell", number, a->unit);
}

/* The value of a unit of work; `sign`: a difference. */
static void put_work_value(
	const struct uni_diff_show *s, double share, bool sign, struct uni_strbuf *ret)
{
	static const struct {
		const char *name;
		double size;
	} units[] = { { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 } };
	double v = share * (s->r->each ? 1 : uni_diff_work_value(s->d));
	char number[UNI_NUMBER_MAX];
	size_t i = 0;

	if (strcmp(s->value, "s") != 0 && fabs(v) >= COUNT_WHOLE) {
		uni_text_number(number, fabs(v));
		uni_strbuf_addf(ret, "%s%s %s", v < 0 ? "-" : sign ? "+" : "", number, s->value);
		return;
	}
	if (strcmp(s->value, "s") != 0) {
		uni_strbuf_addf(ret, sign ? "%+.4g %s" : "%.4g %s", v, s->value);
		return;
	}
	if (v == 0) {
		uni_strbuf_adds(ret, "0");
		return;
	}
	while (i + 1 < uni_array_len(units) && fabs(v) < units[i].size)
		i++;
	uni_strbuf_addf(ret, sign ? "%+.3f %s" : "%.3f %s", v / units[i].size, units[i].name);
}

static void put_whole(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	const struct uni_change *c = &s->r->whole.c;

	uni_strbuf_addf(ret, "%+.1f %% of %s per %s (95 %%: %+.1f to %+.1f %%): ", 100 * c->diff,
		s->whole, s->per, 100 * c->low, 100 * c->high);
	put_work_value(s, c->after.share, false, ret);
	uni_strbuf_adds(ret, ", ");
	put_work_value(s, c->before.share, false, ret);
	uni_strbuf_adds(ret, " before");
}

/* For known work: times, not shares. */
static void put_largest_of_work(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	const struct uni_diff_row *row = &s->r->row[s->r->main_row];
	enum uni_column col = uni_diff_main_column(row);
	const struct uni_change *c = &row->value[col].c;

	uni_strbuf_addf(ret, "%s takes ", uni_diff_name(s->d, row->function));
	put_work_value(s, c->after.share, false, ret);
	uni_strbuf_addf(ret, "%s per %s, ", col == UNI_TOTAL ? " (with callees)" : "", s->per);
	put_work_value(s, c->before.share, false, ret);
	uni_strbuf_adds(ret, " before (95 %: ");
	put_work_value(s, c->low, true, ret);
	uni_strbuf_adds(ret, " to ");
	put_work_value(s, c->high, true, ret);
	uni_strbuf_adds(ret, ")");
}

/* The change of a single call. */
static void put_call(const struct uni_diff_show *s, size_t row, struct uni_strbuf *ret)
{
	enum uni_column col = uni_diff_main_column(&s->r->row[row]);
	const struct uni_change *c = &s->r->row[row].value[col].c;

	uni_strbuf_addf(ret, "a call of %s takes ", uni_diff_name(s->d, s->r->row[row].function));
	put_work_value(s, c->after.share, false, ret);
	uni_strbuf_adds(ret, col == UNI_TOTAL ? " with callees, " : " itself, ");
	put_work_value(s, c->before.share, false, ret);
	uni_strbuf_addf(ret, " before (95 %%: %+.1f to %+.1f %%)", 100 * c->low, 100 * c->high);
}

static void put_largest(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	const struct uni_diff_row *row = &s->r->row[s->r->main_row];
	enum uni_column col = uni_diff_main_column(row);
	const struct uni_change *c = &row->value[col].c;

	if (s->r->each)
		put_call(s, s->r->main_row, ret);
	else if (s->r->has_work)
		put_largest_of_work(s, ret);
	else
		uni_strbuf_addf(ret,
			"%s takes %.1f %% %s%s, %.1f %% before (95 %%: %+.1f to %+.1f points)",
			uni_diff_name(s->d, row->function), 100 * c->after.share,
			col == UNI_TOTAL ? "(with callees) of " : "of ", s->whole,
			100 * c->before.share, 100 * c->low, 100 * c->high);
	if (s->r->nr_changed > 1)
		uni_strbuf_addf(
			ret, "; %zu larger, %zu smaller", s->r->nr_larger, s->r->nr_smaller);
}

/* Less time is faster. Fewer instructions need not be. */
static void put_direction(const struct uni_diff_show *s, bool more, struct uni_strbuf *ret)
{
	if (is_time(s))
		uni_strbuf_adds(ret, more ? "slower: " : "faster: ");
	else
		uni_strbuf_addf(ret, "%s %s: ", more ? "more" : "fewer", s->counted);
}

/* The same with --per call. */
static void put_verdict_of_calls(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	switch (s->r->verdict) {
	case UNI_VERDICT_SLOWER:
	case UNI_VERDICT_FASTER:
		uni_strbuf_adds(ret, s->r->verdict == UNI_VERDICT_SLOWER ? "slower: " : "faster: ");
		put_largest(s, ret);
		return;
	case UNI_VERDICT_SAME:
		uni_strbuf_addf(ret,
			"the same: no call of a function takes more or less by more than %.1f %% "
			"(95 %%)",
			100 * s->r->bound);
		return;
	default:
		break;
	}
	uni_strbuf_adds(ret, "cannot tell: ");
	if (s->r->bound_row == s->r->nr)
		uni_strbuf_adds(ret, "no function has enough calls on both sides");
	else
		put_call(s, s->r->bound_row, ret);
	if (is_host_busy(s))
		put_needed(s, ret);
}

void uni_diff_verdict(const struct uni_diff_show *s, struct uni_strbuf *ret)
{
	if (s->r->each) {
		put_verdict_of_calls(s, ret);
		return;
	}
	switch (s->r->verdict) {
	case UNI_VERDICT_SAME:
		if (s->r->has_work) {
			uni_strbuf_adds(ret, "the same: ");
			put_whole(s, ret);
			return;
		}
		uni_strbuf_addf(ret,
			"the same: no function's own share of %s moved by more than %.1f points "
			"(95 %%)",
			s->whole, 100 * s->r->bound);
		return;
	case UNI_VERDICT_SLOWER:
	case UNI_VERDICT_FASTER:
		put_direction(s, s->r->verdict == UNI_VERDICT_SLOWER, ret);
		put_whole(s, ret);
		return;
	case UNI_VERDICT_LARGER:
	case UNI_VERDICT_SMALLER:
		uni_strbuf_addf(ret,
			"%s %s: ", s->r->verdict == UNI_VERDICT_LARGER ? "larger" : "smaller",
			s->r->has_work ? "part" : "share");
		put_largest(s, ret);
		return;
	case UNI_VERDICT_UNSURE:
		break;
	}
	uni_strbuf_adds(ret, "cannot tell: ");
	if (s->r->has_work) {
		put_whole(s, ret);
		put_needed(s, ret);
		return;
	}
	if (s->r->bound_row == s->r->nr) {
		uni_strbuf_adds(ret, "no function has a share that could be compared");
		return;
	}
	uni_strbuf_addf(ret, "%s may have moved by %.1f points",
		uni_diff_name(s->d, s->r->row[s->r->bound_row].function), 100 * s->r->bound);
	put_needed(s, ret);
}

static void put_condition(
	const struct uni_diff_show *s, const struct uni_condition *c, struct uni_sink *out)
{
	const struct uni_change *v;

	uni_sink_printf(out, "%s: %s: ", uni_diff_condition_words[c->result], c->text);
	if (c->glob == NULL) {
		v = &s->r->whole.c;
		uni_sink_printf(out, "%+.2f %% (95 %%: %+.2f to %+.2f)\n", 100 * v->diff,
			100 * v->low, 100 * v->high);
		return;
	}
	if (c->row == s->r->nr) {
		uni_sink_puts(
			out, c->nr_named != 0
				     ? "no function with such a name has a share worth comparing\n"
				     : "no function of these recordings has such a name\n");
		return;
	}
	v = &s->r->row[c->row].value[c->column].c;
	uni_sink_printf(out, "%s (%s) %+.2f %s (95 %%: %+.2f to %+.2f)\n",
		uni_diff_name(s->d, s->r->row[c->row].function), uni_diff_column_names[c->column],
		100 * v->diff, c->relative ? "%" : "points", 100 * v->low, 100 * v->high);
}

static void put_side(const struct uni_diff_show *s, enum uni_side side, struct uni_sink *out)
{
	const struct uni_diff_side_info *i = &s->side[side];
	const struct uni_blocks b = uni_diff_whole(s->d, side);
	char number[UNI_NUMBER_MAX];

	uni_sink_printf(out, "%-8s ", uni_diff_side_names[side]);
	for (size_t n = 0; n < i->nr && n < 3; n++)
		uni_sink_printf(out, "%s%s", n != 0 ? ", " : "", i->path[n]);
	if (i->nr > 3)
		uni_sink_printf(out, " and %zu more", i->nr - 3);
	uni_text_number(number, i->samples);
	if (i->samples > 0)
		uni_sink_printf(out, ": %s %.*s", number, (int)strlen(i->unit) - (i->samples == 1),
			i->unit); /* "samples" */
	uni_text_number(number, i->counted);
	if (!(i->samples > 0) && !is_time(s))
		uni_sink_printf(out, ": %s %s", number, s->counted);
	if (i->seconds > 0)
		uni_sink_printf(out, " in %.1f s", i->seconds);
	uni_text_number(number, uni_diff_work_units(s->d, side));
	if (s->r->has_work && strcmp(s->per, "run") != 0)
		uni_sink_printf(out, ", %s times '%s'", number, s->per);
	if (uni_diff_is_independent(s->d, side))
		uni_sink_puts(out, i->samples > 0 ? ", taken as independent\n" : "\n");
	else
		uni_sink_printf(out, ", %zu %s\n", b.nr,
			uni_diff_of_runs(s->d) ? "runs" : "blocks of time");
}

static void put_notes(const struct uni_diff_show *s, struct uni_sink *out)
{
	bool independent = uni_diff_is_independent(s->d, UNI_BEFORE) ||
			   uni_diff_is_independent(s->d, UNI_AFTER);

	if (s->hint != NULL)
		uni_sink_printf(out, "note     %s\n", s->hint);
	if (s->no_inline != NULL)
		uni_sink_printf(out,
			"note     %s has no inlined functions (it was not closed, or its image has "
			"no debug data): both sides are without\n",
			s->no_inline);
	if (independent && fmin(s->side[UNI_BEFORE].samples, s->side[UNI_AFTER].samples) > 0)
		uni_sink_printf(out,
			"note     without times, samples count as independent: bursts make the "
			"true intervals wider\n");
	else if (!uni_diff_of_runs(s->d) && s->hint == NULL)
		uni_sink_printf(out,
			"note     one run tells nothing of differences between runs: give %d of "
			"each side for that\n",
			UNI_DIFF_RUNS_MIN);
}

/* In the time of a trace, what the host did is not told from the guest's own work. */
static void put_stolen(const struct uni_diff_show *s, struct uni_sink *out)
{
	double before = uni_diff_stolen(&s->side[UNI_BEFORE]);
	double after = uni_diff_stolen(&s->side[UNI_AFTER]);

	if (isnan(before) || isnan(after))
		uni_sink_puts(out, "note     it is not known how long the host ran something else: "
				   "that counts as time of the calls\n");
	else if (fmax(before, after) >= STOLEN_SHOWN)
		uni_sink_printf(out,
			"note     the host ran something else for %.1f %% of the guest's time "
			"before, %.1f %% after: the intervals hold that\n",
			100 * before, 100 * after);
}

static const char *mark_of(const struct uni_diff_show *s, const struct uni_diff_row *row)
{
	bool before = uni_diff_was_inlined(s->d, row->function, UNI_BEFORE);
	bool after = uni_diff_was_inlined(s->d, row->function, UNI_AFTER);
	const struct uni_change *c = &row->value[UNI_TOTAL].c;

	if (c->before.share == 0)
		return after ? "  (new, inlined)" : "  (new)";
	if (c->after.share == 0)
		return before ? "  (gone, was inlined)" : "  (gone)";
	if (before != after)
		return before ? "  (was inlined before)" : "  (inlined after)";
	return "";
}

static void put_name(
	const struct uni_diff_show *s, const struct uni_diff_row *row, struct uni_sink *out)
{
	const char *now = uni_diff_new_name(s->d, row->function);

	uni_sink_puts(out, uni_diff_name(s->d, row->function));
	if (now != NULL)
		uni_sink_printf(out, "  (the same code is %s after)", now);
	uni_sink_puts(out, mark_of(s, row));
	uni_sink_putc(out, '\n');
}

static void put_times(const struct uni_diff_show *s, const struct uni_diff_row *row,
	enum uni_column col, struct uni_sink *out)
{
	const struct uni_diff_value *v = &row->value[col];
	struct uni_strbuf before, after;

	uni_strbuf_init(&before);
	uni_strbuf_init(&after);
	put_work_value(s, v->c.before.share, false, &before);
	put_work_value(s, v->c.after.share, false, &after);
	uni_sink_printf(out, "%11s %11s %+8.2f  %+7.2f .. %+7.2f  %7.4f %s %-6s ", before.s,
		after.s, 100 * v->c.diff, 100 * v->c.low, 100 * v->c.high, v->c.p,
		v->changed ? "*" : " ", uni_diff_column_names[col]);
	put_name(s, row, out);
	uni_strbuf_deinit(&before);
	uni_strbuf_deinit(&after);
}

static void put_value(const struct uni_diff_show *s, const struct uni_diff_row *row,
	enum uni_column col, struct uni_sink *out)
{
	const struct uni_diff_value *v = &row->value[col];

	if (s->r->each) {
		put_times(s, row, col, out);
		return;
	}
	uni_sink_printf(out, "%7.2f%% %7.2f%% %+8.2f  %+7.2f .. %+7.2f  %7.4f %s %-6s ",
		100 * v->c.before.share, 100 * v->c.after.share, 100 * v->c.diff, 100 * v->c.low,
		100 * v->c.high, v->c.p, v->changed ? "*" : " ", uni_diff_column_names[col]);
	put_name(s, row, out);
}

static bool is_shown(const struct uni_diff_show *s, const struct uni_diff_value *v)
{
	return v->changed || (s->all && (v->tested || s->max_rows == 0));
}

static const char heading[] = "\n BEFORE    AFTER     DIFF       95 % INTERVAL          P          "
			      "FUNCTION\n";
static const char heading_of_calls[] = "\n     BEFORE       AFTER CHANGE %     95 % INTERVAL"
				       "          P          FUNCTION\n";

/* The whole that the numbers are parts of. */
static void put_scale(const struct uni_diff_show *s, struct uni_sink *out)
{
	struct uni_strbuf line;

	uni_strbuf_init(&line);
	if (s->r->each) {
		uni_sink_puts(out, "per call each function by its own calls, if it has enough\n");
	} else if (s->r->has_work) {
		put_work_value(s, 1, false, &line);
		uni_sink_printf(out, "100 %%    %s%s%s per %s, which is that of before\n", line.s,
			is_time(s) ? " of " : "", is_time(s) ? s->whole : "", s->per);
	} else {
		uni_sink_printf(out, "100 %%    %s, of each side by itself\n", s->whole);
	}
	uni_strbuf_deinit(&line);
}

void uni_diff_text(const struct uni_diff_show *s, struct uni_sink *out)
{
	struct uni_strbuf line;
	size_t shown = 0, left = 0;

	uni_strbuf_init(&line);
	uni_diff_verdict(s, &line);
	uni_sink_printf(out, "%s\n", line.s);
	for (size_t i = 0; i < s->nr_conditions; i++)
		put_condition(s, &s->condition[i], out);
	uni_sink_putc(out, '\n');
	put_side(s, UNI_BEFORE, out);
	put_side(s, UNI_AFTER, out);
	if (s->part != NULL)
		uni_sink_printf(out, "part     %s\n", s->part);
	put_scale(s, out);
	uni_strbuf_deinit(&line);
	put_notes(s, out);
	if (s->traced)
		put_stolen(s, out);
	for (size_t i = 0; i < s->r->nr; i++) {
		const struct uni_diff_row *row = &s->r->row[i];
		bool any =
			is_shown(s, &row->value[UNI_SELF]) || is_shown(s, &row->value[UNI_TOTAL]);

		if (any && s->max_rows != 0 && shown == s->max_rows) {
			left++;
			continue;
		}
		if (any && shown++ == 0)
			uni_sink_puts(out, s->r->each ? heading_of_calls : heading);
		for (int col = 0; col < UNI_COLUMNS; col++) {
			if (is_shown(s, &row->value[col]))
				put_value(s, row, (enum uni_column)col, out);
		}
	}
	if (left != 0)
		uni_sink_printf(out, "and %zu more function%s\n", left, uni_plural(left));
}
