/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "syscalls/log.h"

struct row {
	const char *name;
	uint64_t calls, errors, ns;
	bool summed; /* by the guest */
};

struct table {
	UNI_VEC(struct row) rows;
	uint32_t *at; /* row + 1 by text of the log */
	struct row total;
};

static struct row *row_of(struct table *t, const struct uni_sysc_log *log, uint32_t name)
{
	if (t->at[name] == 0) {
		if (!uni_vec_push(
			    &t->rows, ((struct row){ .name = uni_strtab_get(log->text, name) })))
			return NULL;
		t->at[name] = (uint32_t)t->rows.nr;
	}
	return &t->rows.v[t->at[name] - 1];
}

static void add_to_row(struct row *r, uint64_t calls, uint64_t errors, uint64_t ns)
{
	r->calls += calls;
	r->errors += errors;
	r->ns += ns;
}

/* Like strace, which sums up calls that have returned; a call that never does counts without
 * time. */
static int sum_up(struct table *t, const struct uni_sysc_log *log)
{
	/* The guest's own sums have times. Its printed lines of the same calls have none, and would
	 * count twice. */
	for (size_t i = 0; i < log->sums.nr; i++) {
		const struct uni_sysc_sum *s = &log->sums.v[i];
		struct row *r = row_of(t, log, s->name);

		if (r == NULL)
			return -UNI_ENOMEM;
		add_to_row(r, s->calls, s->errors, s->ns);
		r->summed = true;
	}
	for (size_t i = 0; i < log->all.nr; i++) {
		const struct uni_sysc_entry *e = &log->all.v[i];
		bool returned = e->end == UNI_SYSC_OK || e->end == UNI_SYSC_FAILED;
		uint64_t ns = e->has_duration && returned ? e->end_ns - e->begin_ns : 0;
		struct row *r;

		if (!uni_sysc_filter_end(log->filter, e->end))
			continue;
		r = row_of(t, log, e->name);
		if (r == NULL)
			return -UNI_ENOMEM;
		if (!r->summed)
			add_to_row(r, 1, e->end == UNI_SYSC_FAILED, ns);
	}
	return 0;
}

/* The greater first; equal ones by name. */
static int compare_rows(uint64_t x, uint64_t y, const struct row *a, const struct row *b)
{
	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(a->name, b->name);
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare_rows(x->ns, y->ns, x, y);
}

static int by_calls(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare_rows(x->calls, y->calls, x, y);
}

static int by_errors(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare_rows(x->errors, y->errors, x, y);
}

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void put_row(struct uni_sink *out, const struct row *r, const struct row *total)
{
	double share = total->ns != 0 ? 100.0 * (double)r->ns / (double)total->ns : 0.0;
	unsigned long long each = r->calls != 0 ? r->ns / UNI_NSEC_PER_USEC / r->calls : 0;

	uni_sink_printf(out, "%6.2f %4llu.%06llu %11llu %9" PRIu64 " ", share,
		r->ns / UNI_NSEC_PER_SEC, r->ns % UNI_NSEC_PER_SEC / UNI_NSEC_PER_USEC, each,
		r->calls);
	if (r->errors != 0)
		uni_sink_printf(out, "%9" PRIu64, r->errors);
	else
		uni_sink_printf(out, "%9s", "");
	uni_sink_printf(out, " %s\n", r->name);
}

static void put_rule(struct uni_sink *out)
{
	uni_sink_puts(out, "------ ----------- ----------- --------- --------- ----------------\n");
}

static void put_table(struct table *t, struct uni_sink *out)
{
	t->total = (struct row){ .name = "total" };
	for (size_t i = 0; i < t->rows.nr; i++)
		add_to_row(&t->total, t->rows.v[i].calls, t->rows.v[i].errors, t->rows.v[i].ns);
	uni_sink_puts(out, "% time     seconds  usecs/call     calls    errors syscall\n");
	put_rule(out);
	for (size_t i = 0; i < t->rows.nr; i++)
		put_row(out, &t->rows.v[i], &t->total);
	put_rule(out);
	put_row(out, &t->total, &t->total);
}

int uni_sysc_summary(
	const struct uni_sysc_log *log, enum uni_sysc_order order, struct uni_sink *out)
{
	static int (*const orders[])(const void *a, const void *b) = {
		[UNI_SYSC_BY_TIME] = by_time,
		[UNI_SYSC_BY_CALLS] = by_calls,
		[UNI_SYSC_BY_ERRORS] = by_errors,
		[UNI_SYSC_BY_NAME] = by_name,
	};
	struct table t = { .at = calloc(uni_strtab_nr(log->text) + 1, sizeof(*t.at)) };
	int rc = t.at != NULL ? sum_up(&t, log) : -UNI_ENOMEM;

	if (rc == 0) {
		if (t.rows.nr > 1)
			qsort(t.rows.v, t.rows.nr, sizeof(t.rows.v[0]), orders[order]);
		put_table(&t, out);
	}
	free(t.at);
	uni_vec_free(&t.rows);
	return rc;
}
