/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.csv as a profile: the self time of each function in nanoseconds, below its thread. Such a
 * file does not record callers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/stack.h"
#include "format/csv/calls.h"

static int sniff_csv(const char *data, size_t size)
{
	return uni_callcsv_is(data, size) ? 100 : 0;
}

static int add_cells(
	const struct uni_call_table *t, struct uni_profile *p, struct uni_import_stats *st)
{
	struct uni_stack s;
	int rc = uni_stack_init(&s, p) ? 0 : -UNI_ENOMEM;

	uni_profile_set_unit(p, "ns");
	for (size_t i = 0; rc == 0 && i < t->cells.nr; i++) {
		const struct uni_call_cell *c = &t->cells.v[i];
		const char *name = uni_call_table_name(t, c);
		char thread[32];
		int n = snprintf(thread, sizeof(thread), "tid %" PRIu64, c->where);

		uni_stack_push(&s, uni_stack_name(&s, thread, (size_t)n));
		uni_stack_push(&s, uni_stack_name(&s, name, strlen(name)));
		rc = uni_stack_flush(&s, false, (double)c->self_ns, 0.0, st);
	}
	uni_stack_deinit(&s);
	return rc;
}

static int read_csv(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_callcsv_stats rows = { 0 };
	struct uni_import_stats st = { 0 };
	struct uni_call_table t;
	int rc = uni_call_table_init(&t);

	if (rc != 0)
		return uni_err_nomem(err);
	rc = uni_callcsv_read(data, size, &t, &rows, err);
	if (rc == 0 && rows.rows == 0)
		rc = uni_err_set(err, UNI_EFORMAT, "a trace.csv without a call");
	if (rc == 0 && add_cells(&t, p, &st) != 0)
		rc = uni_err_nomem(err);
	uni_call_table_deinit(&t);
	if (rc != 0)
		return rc;
	st.stacks = rows.rows;
	st.bad_lines = rows.bad_lines;
	st.first_bad_line = rows.first_bad_line;
	*stats_ret = st;
	return 0;
}

const struct uni_importer uni_importer_csv = {
	.name = "csv",
	.summary = "trace.csv of Nanos' trace utilities: a row a call, by its own time",
	.lost = "single calls, their number and times in all: `uniscope compat runtime-breakdown`, "
		"`summarize-trace`",
	.sniff = sniff_csv,
	.read = read_csv,
};
