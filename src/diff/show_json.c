/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/show_priv.h"

#include "base/checked.h"
#include "base/json.h"

/* How the spread was found, "128 blocks of time": for headings. */
static const char *spread_origin(const struct uni_diff_show *s, enum uni_side side)
{
	if (uni_diff_of_runs(s->d))
		return "runs";
	return uni_diff_is_independent(s->d, side) ? "samples" : "blocks";
}

static void put_json_value(struct uni_json *j, const struct uni_diff_value *v)
{
	uni_json_object(j);
	uni_json_kv(double, j, "before", v->c.before.share);
	uni_json_kv(double, j, "after", v->c.after.share);
	uni_json_kv(double, j, "difference", v->c.diff);
	uni_json_key(j, "interval");
	uni_json_array(j);
	uni_json_double(j, v->c.low);
	uni_json_double(j, v->c.high);
	uni_json_array_end(j);
	uni_json_kv(double, j, "p", v->c.p);
	uni_json_kv(double, j, "q", v->q);
	uni_json_kv(bool, j, "tested", v->tested);
	uni_json_kv(bool, j, "changed", v->changed);
	uni_json_object_end(j);
}

static void put_json_side(struct uni_json *j, const struct uni_diff_show *s, enum uni_side side)
{
	const struct uni_diff_side_info *i = &s->side[side];

	uni_json_key(j, uni_diff_side_names[side]);
	uni_json_object(j);
	uni_json_key(j, "files");
	uni_json_array(j);
	for (size_t n = 0; n < i->nr; n++)
		uni_json_str(j, i->path[n]);
	uni_json_array_end(j);
	uni_json_key(j, "samples");
	if (i->samples > 0)
		uni_json_double(j, i->samples);
	else
		uni_json_null(j);
	uni_json_kv(str, j, "spread_from", spread_origin(s, side));
	if (s->traced)
		uni_json_kv(double, j, "stolen", uni_diff_stolen(i));
	uni_json_object_end(j);
}

/* The unit of work, and its total: null if the work is not known. */
static void put_json_work(struct uni_json *j, const struct uni_diff_show *s)
{
	uni_json_kv(str, j, "per", s->per);
	uni_json_key(j, "total");
	if (!s->r->has_work) {
		uni_json_null(j);
		return;
	}
	uni_json_object(j);
	uni_json_kv(str, j, "unit", s->value);
	uni_json_kv(double, j, "value_before", uni_diff_work_value(s->d));
	uni_json_kv(double, j, "units_before", uni_diff_work_units(s->d, UNI_BEFORE));
	uni_json_kv(double, j, "units_after", uni_diff_work_units(s->d, UNI_AFTER));
	uni_json_key(j, "relative");
	put_json_value(j, &s->r->whole);
	uni_json_object_end(j);
}

static void put_json_functions(struct uni_json *j, const struct uni_diff_show *s)
{
	uni_json_key(j, "functions");
	uni_json_array(j);
	for (size_t i = 0; i < s->r->nr; i++) {
		const struct uni_diff_row *row = &s->r->row[i];

		if (s->max_rows != 0 && i >= uni_max(s->max_rows, s->r->nr_changed))
			break;
		uni_json_object(j);
		uni_json_kv(str, j, "name", uni_diff_name(s->d, row->function));
		uni_json_kv(str, j, "new_name", uni_diff_new_name(s->d, row->function));
		uni_json_kv(bool, j, "inlined_before",
			uni_diff_was_inlined(s->d, row->function, UNI_BEFORE));
		uni_json_kv(bool, j, "inlined_after",
			uni_diff_was_inlined(s->d, row->function, UNI_AFTER));
		for (int col = 0; col < UNI_COLUMNS; col++) {
			uni_json_key(j, uni_diff_column_names[col]);
			put_json_value(j, &row->value[col]);
		}
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void put_json_conditions(struct uni_json *j, const struct uni_diff_show *s)
{
	uni_json_key(j, "conditions");
	uni_json_array(j);
	for (size_t i = 0; i < s->nr_conditions; i++) {
		const struct uni_condition *c = &s->condition[i];

		uni_json_object(j);
		uni_json_kv(str, j, "condition", c->text);
		uni_json_kv(str, j, "result", uni_diff_condition_words[c->result]);
		uni_json_kv(str, j, "function",
			c->row < s->r->nr ? uni_diff_name(s->d, s->r->row[c->row].function) : NULL);
		uni_json_kv(u64, j, "functions_named", c->nr_named);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

void uni_diff_json(const struct uni_diff_show *s, struct uni_sink *out)
{
	static const char *const verdicts[] = {
		[UNI_VERDICT_SAME] = "same",
		[UNI_VERDICT_SMALLER] = "smaller",
		[UNI_VERDICT_LARGER] = "larger",
		[UNI_VERDICT_FASTER] = "faster",
		[UNI_VERDICT_SLOWER] = "slower",
		[UNI_VERDICT_UNSURE] = "cannot tell",
	};
	struct uni_strbuf line;
	struct uni_json j;

	uni_strbuf_init(&line);
	uni_diff_verdict(s, &line);
	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-diff");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(str, &j, "verdict", verdicts[s->r->verdict]);
	uni_json_kv(str, &j, "text", line.s);
	uni_json_kv(str, &j, "of", s->of);
	uni_json_kv(str, &j, "counted", s->counted);
	uni_json_kv(bool, &j, "inlined", s->inlined);
	uni_record_part_json(&j, s->part != NULL ? &s->only : NULL);
	put_json_work(&j, s);
	put_json_side(&j, s, UNI_BEFORE);
	put_json_side(&j, s, UNI_AFTER);
	put_json_conditions(&j, s);
	uni_json_kv(double, &j, "threshold", s->limits->threshold);
	uni_json_kv(double, &j, "tolerance", s->limits->tolerance);
	uni_json_kv(double, &j, "bound", s->r->bound);
	uni_json_kv(double, &j, "more", s->r->more);
	uni_json_kv(double, &j, "correlation", s->r->corr);
	put_json_functions(&j, s);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
	uni_strbuf_deinit(&line);
}
