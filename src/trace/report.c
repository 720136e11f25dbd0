/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

void uni_trace_span(char ret[UNI_SPAN_MAX], uint64_t ns)
{
	static const struct {
		uint64_t from, unit;
		const char *name;
	} units[] = {
		{ UINT64_C(1000000000), 1000000000, "s " },
		{ UINT64_C(1000000), 1000000, "ms" },
		{ UINT64_C(1000), 1000, "us" },
		{ 0, 1, "ns" },
	};
	size_t i = 0;

	while (ns < units[i].from)
		i++;
	if (units[i].unit == 1)
		(void)snprintf(ret, UNI_SPAN_MAX, "%7" PRIu64 " ns", ns);
	else
		(void)snprintf(ret, UNI_SPAN_MAX, "%3" PRIu64 ".%03u %s", ns / units[i].unit,
			(unsigned)(ns % units[i].unit * 1000 / units[i].unit), units[i].name);
}

int uni_trace_sort_named(const char *name, enum uni_trace_sort *ret)
{
	static const char *const names[] = { "self", "total", "calls", "avg", "max", "p99",
		"name" };

	for (size_t i = 0; i < uni_array_len(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum uni_trace_sort)i;
			return 0;
		}
	}
	return -UNI_EINVAL;
}

struct key {
	uint64_t v;
	const char *name;
	struct uni_func_stats f;
};

static uint64_t sort_value(const struct uni_func_stats *f, enum uni_trace_sort by)
{
	switch (by) {
	case UNI_TRACE_BY_TOTAL:
		return f->total;
	case UNI_TRACE_BY_CALLS:
		return f->calls;
	case UNI_TRACE_BY_AVG:
		return uni_func_avg(f);
	case UNI_TRACE_BY_MAX:
		return f->max;
	case UNI_TRACE_BY_P99:
		return f->p99;
	case UNI_TRACE_BY_NAME:
		return 0;
	default:
		return f->self;
	}
}

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->v != y->v)
		return x->v < y->v ? 1 : -1;
	return strcmp(x->name, y->name);
}

void uni_trace_report_sort(
	struct uni_trace_report *r, struct uni_funcs *funcs, enum uni_trace_sort by)
{
	struct key *key = malloc((r->func.nr != 0 ? r->func.nr : 1) * sizeof(*key));

	/* Without memory the order stays as it is. */
	if (key == NULL)
		return;
	for (size_t i = 0; i < r->func.nr; i++)
		key[i] = (struct key){ sort_value(&r->func.v[i], by),
			uni_funcs_name(funcs, r->func.v[i].func), r->func.v[i] };
	qsort(key, r->func.nr, sizeof(*key), by_key);
	for (size_t i = 0; i < r->func.nr; i++)
		r->func.v[i] = key[i].f;
	free(key);
}

static void put_span(struct uni_sink *out, uint64_t ns, bool known)
{
	char text[UNI_SPAN_MAX];

	uni_trace_span(text, ns);
	uni_sink_printf(out, " %10s", known ? text : "-");
}

void uni_trace_report_print(const struct uni_trace_report *r, struct uni_funcs *funcs,
	uint64_t max_rows, struct uni_sink *out)
{
	size_t nr = max_rows == 0 ? r->func.nr : uni_min(max_rows, (uint64_t)r->func.nr);

	uni_sink_printf(out, "%12s %10s %10s %10s %10s %10s %10s %10s  %s\n", "CALLS", "TOTAL",
		"SELF", "AVG", "MIN", "P50", "P99", "MAX", "FUNCTION");
	for (size_t i = 0; i < nr; i++) {
		const struct uni_func_stats *f = &r->func.v[i];
		bool known = uni_calls_have_time(f->calls, f->timed);
		bool ended = known && f->timed > f->cut;

		uni_sink_printf(out, "%12" PRIu64, f->calls);
		put_span(out, f->total, known);
		put_span(out, f->self, known);
		put_span(out, uni_func_avg(f), known);
		put_span(out, f->min, ended);
		put_span(out, f->p50, ended && f->p50 + f->p99 != 0);
		put_span(out, f->p99, ended && f->p50 + f->p99 != 0);
		put_span(out, f->max, ended);
		uni_sink_printf(out, "  %s", uni_funcs_name(funcs, f->func));
		if (f->cut != 0)
			uni_sink_printf(out, " (%" PRIu64 " without return)", f->cut);
		uni_sink_putc(out, '\n');
	}
	if (nr < r->func.nr)
		uni_sink_printf(out, "(%zu more functions)\n", r->func.nr - nr);
}

/* --- two traces ------------------------------------------------------------------------------- */

struct named {
	const char *name;
	const struct uni_func_stats *f;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct named *names_of(const struct uni_trace_report *r, struct uni_funcs *funcs)
{
	struct named *v = malloc((r->func.nr != 0 ? r->func.nr : 1) * sizeof(*v));

	for (size_t i = 0; v != NULL && i < r->func.nr; i++)
		v[i] = (struct named){ uni_funcs_name(funcs, r->func.v[i].func), &r->func.v[i] };
	if (v != NULL)
		qsort(v, r->func.nr, sizeof(*v), by_name);
	return v;
}

static uint64_t distance_of(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int by_difference(const void *a, const void *b)
{
	const struct uni_func_diff *x = a, *y = b;
	uint64_t dx = distance_of(x->a.self, x->b.self), dy = distance_of(y->a.self, y->b.self);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int join_by_name(const struct named *a, size_t nr_a, const struct named *b, size_t nr_b,
	struct uni_trace_diff *ret)
{
	while (nr_a != 0 || nr_b != 0) {
		int order = nr_a == 0 ? 1 : nr_b == 0 ? -1 : strcmp(a->name, b->name);
		struct uni_func_diff d = { .name = order <= 0 ? a->name : b->name };

		if (order <= 0) {
			d.a = *a->f;
			a++;
			nr_a--;
		}
		if (order >= 0) {
			d.b = *b->f;
			b++;
			nr_b--;
		}
		if (!uni_vec_push(&ret->func, d))
			return -UNI_ENOMEM;
	}
	return 0;
}

int uni_trace_diff_make(const struct uni_trace_report *a, struct uni_funcs *a_funcs,
	const struct uni_trace_report *b, struct uni_funcs *b_funcs, struct uni_trace_diff *ret)
{
	struct named *na = names_of(a, a_funcs), *nb = names_of(b, b_funcs);
	int rc = -UNI_ENOMEM;

	*ret = (struct uni_trace_diff){ 0 };
	if (na != NULL && nb != NULL)
		rc = join_by_name(na, a->func.nr, nb, b->func.nr, ret);
	if (rc == 0 && ret->func.nr != 0)
		qsort(ret->func.v, ret->func.nr, sizeof(*ret->func.v), by_difference);
	if (rc != 0)
		uni_trace_diff_deinit(ret);
	free(na);
	free(nb);
	return rc;
}

static void put_change(struct uni_sink *out, uint64_t a, uint64_t b)
{
	char text[UNI_SPAN_MAX], *digits = text;

	uni_trace_span(text, distance_of(a, b));
	while (*digits == ' ')
		digits++;
	uni_sink_printf(out, " %s%-10s", a == b ? " " : b > a ? "+" : "-", digits);
}

void uni_trace_diff_print(const struct uni_trace_diff *d, uint64_t max_rows, struct uni_sink *out)
{
	size_t nr = max_rows == 0 ? d->func.nr : uni_min(max_rows, (uint64_t)d->func.nr);

	uni_sink_printf(out, "%12s %12s %11s %10s %-11s %10s %10s  %s\n", "CALLS BEFORE",
		"CALLS AFTER", "SELF BEFORE", "SELF AFTER", "  CHANGE", "AVG BEFORE", "AVG AFTER",
		"FUNCTION");
	for (size_t i = 0; i < nr; i++) {
		const struct uni_func_diff *f = &d->func.v[i];
		bool a_known = uni_calls_have_time(f->a.calls, f->a.timed);
		bool b_known = uni_calls_have_time(f->b.calls, f->b.timed);

		uni_sink_printf(out, "%12" PRIu64 " %12" PRIu64 " ", f->a.calls, f->b.calls);
		put_span(out, f->a.self, a_known);
		put_span(out, f->b.self, b_known);
		if ((a_known || f->a.calls == 0) && (b_known || f->b.calls == 0))
			put_change(out, f->a.self, f->b.self);
		else
			uni_sink_printf(out, "  %-10s", "-");
		put_span(out, uni_func_avg(&f->a), a_known);
		put_span(out, uni_func_avg(&f->b), b_known);
		uni_sink_printf(out, "  %s\n", f->name);
	}
	if (nr < d->func.nr)
		uni_sink_printf(out, "(%zu more functions)\n", d->func.nr - nr);
}

void uni_trace_diff_deinit(struct uni_trace_diff *d)
{
	uni_vec_free(&d->func);
}
