/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of exits for people and for programs. */
#include "base/json.h"
#include "base/text.h"
#include "profile/exits.h"

#define HOT_PERCENT 10.0

static double exit_percent(double v, double total)
{
	return total > 0.0 ? 100.0 * v / total : 0.0;
}

static double mean_us(const struct uni_exit_row *r)
{
	return r->exits > 0 ? uni_exit_row_cost_ns(r) / r->exits / 1e3 : 0;
}

/* A percentile of halts is their duration, not their cost. */
static void put_p99(const struct uni_exit_row *r, struct uni_sink *out)
{
	if (r->halt)
		uni_sink_printf(out, " %9s", "-");
	else
		uni_sink_printf(out, " %9.1f", r->p99_ns / 1e3);
}

static void put_row(const struct uni_exit_table *t, const struct uni_exit_row *r,
	const struct uni_text_opts *opts, struct uni_sink *out)
{
	const struct uni_exit_row *sum = uni_exit_table_sum(t);
	double cost = uni_exit_row_cost_ns(r);
	bool hot = opts->colour && exit_percent(cost, sum->host_ns) >= HOT_PERCENT;
	char exits[UNI_NUMBER_MAX];

	uni_text_number(exits, r->exits);
	uni_sink_printf(out, "%s%12s %6.2f%% %10.1f %6.2f%%%s %9.1f", hot ? "\x1b[1;31m" : "",
		exits, exit_percent(r->exits, sum->exits), cost / 1e6,
		exit_percent(cost, sum->host_ns), hot ? "\x1b[0m" : "", mean_us(r));
	put_p99(r, out);
	uni_sink_printf(out, " %9.1f %9.1f %5.0f%%  %-24s %s%s%s\n", r->asleep_ns / 1e6,
		r->stolen_ns / 1e6, exit_percent(r->userspace, r->exits), r->label, r->guest,
		r->guest[0] != '\0' ? ": " : "", r->function);
}

void uni_text_exits(
	const struct uni_exit_table *t, const struct uni_text_opts *opts, struct uni_sink *out)
{
	const struct uni_exit_row *rows, *sum = uni_exit_table_sum(t);
	size_t nr = uni_exit_table_rows(t, &rows), shown = 0;

	uni_sink_printf(out,
		"%s       EXITS            HOST ms         MEAN us    P99 us ASLEEP ms STOLEN ms   "
		"VMM  "
		"EXIT                     FUNCTION%s\n",
		opts->colour ? "\x1b[2m" : "", opts->colour ? "\x1b[0m" : "");
	for (; shown < nr && (opts->max_rows == 0 || shown < opts->max_rows); shown++) {
		double share = exit_percent(uni_exit_row_cost_ns(&rows[shown]), sum->host_ns);

		if (share < opts->min_percent &&
			exit_percent(rows[shown].exits, sum->exits) < opts->min_percent)
			break;
		put_row(t, &rows[shown], opts, out);
	}
	if (shown < nr)
		uni_sink_printf(
			out, "%12s %zu more row%s\n", "and", nr - shown, uni_plural(nr - shown));
}

static void json_row(struct uni_json *j, const struct uni_exit_row *r, bool names)
{
	uni_json_object(j);
	if (names) {
		uni_json_kv(str, j, "exit", r->label);
		uni_json_kv(str, j, "numbers", r->isa);
		uni_json_kv(str, j, "function", r->function);
		if (r->guest[0] != '\0')
			uni_json_kv(str, j, "guest", r->guest);
		uni_json_kv(bool, j, "halt", r->halt);
	}
	uni_json_kv(double, j, "exits", r->exits);
	uni_json_kv(double, j, "to_vmm", r->userspace);
	uni_json_kv(double, j, "host_ns", r->host_ns);
	uni_json_kv(double, j, "asleep_ns", r->asleep_ns);
	uni_json_kv(double, j, "stolen_ns", r->stolen_ns);
	if (names) {
		uni_json_kv(double, j, "p50_ns", r->p50_ns);
		uni_json_kv(double, j, "p99_ns", r->p99_ns);
	}
	uni_json_object_end(j);
}

void uni_json_exits(
	const struct uni_exit_table *t, const struct uni_record_part *part, struct uni_sink *out)
{
	const struct uni_exit_row *rows;
	size_t nr = uni_exit_table_rows(t, &rows);
	struct uni_json j;

	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-exits");
	uni_json_kv(u64, &j, "version", 1);
	uni_record_part_json(&j, part);
	uni_json_key(&j, "rows");
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++)
		json_row(&j, &rows[i], true);
	uni_json_array_end(&j);
	uni_json_key(&j, "total");
	json_row(&j, uni_exit_table_sum(t), false);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}
