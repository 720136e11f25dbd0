/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of calls: each line is a row or counted as bad, and the cells hold all rows. */
#include <stdlib.h>

#include "format/csv/calls.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_callcsv_stats st = { 0 };
	struct uni_err err = { 0 };
	struct uni_call_table t, merged;
	uint64_t calls = 0;

	require(uni_call_table_init(&t) == 0);
	if (uni_callcsv_read((const char *)data, size, &t, &st, &err) == 0) {
		for (size_t i = 0; i < t.cells.nr; i++) {
			const struct uni_call_cell *c = &t.cells.v[i];

			calls += c->calls;
			told_text(uni_call_table_name(&t, c));
			told(&c->where, sizeof(*c) - offsetof(struct uni_call_cell, where));
		}
		told_u64(st.bad_lines);
		told_u64(st.first_bad_line);
		require(calls == st.rows);
		require((st.bad_lines == 0) == (st.first_bad_line == 0));
		uni_call_table_sort(&t);
		require(uni_call_table_merge(&t, &merged) == 0);
		require(merged.cells.nr <= t.cells.nr);
		uni_call_table_deinit(&merged);
	} else {
		require(st.rows <= st.bad_lines); /* most of it is something else */
	}
	told_text(err.msg);
	uni_call_table_deinit(&t);
	return 0;
}
