/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void sum_up(struct uni_live_sums *sums, const struct uni_live_guests *guests,
	const struct uni_history_chain *c, uint64_t weight)
{
	uint32_t first = guests->first_vcpu[c->guest],
		 nr = guests->first_vcpu[c->guest + 1] - first;

	sums->weight += weight;
	if (c->stop == UNI_STOP_ROOT)
		sums->complete += weight;
	if (c->vcpu < nr && c->state < UNI_VCPU_STATE_NR)
		sums->state[first + c->vcpu][c->state] += weight;
}

static void begin_sums(struct uni_live_sums *sums, const struct uni_live_guests *guests)
{
	memset(sums, 0,
		offsetof(struct uni_live_sums, state) +
			guests->first_vcpu[guests->nr] * sizeof(sums->state[0]));
}

int uni_live_each(const struct uni_history *h, const struct uni_live_guests *guests,
	const struct uni_live_opts *opts, int (*fn)(void *ctx, const struct uni_sample *s),
	void *ctx, struct uni_live_sums *sums_ret)
{
	_cleanup_free_ uint64_t *weight = calloc(uni_history_nr_chains(h) + 1, sizeof(*weight));
	struct uni_history_chain c;
	int rc = weight == NULL ? -UNI_ENOMEM : 0;

	begin_sums(sums_ret, guests);
	if (rc == 0)
		uni_history_weigh(h, opts->since_ns, opts->until_ns, weight);
	for (size_t i = 0; rc == 0 && i < uni_history_nr_chains(h); i++) {
		struct uni_sample s;

		if (weight[i] == 0 || !uni_history_chain(h, i, &c) || c.guest >= guests->nr)
			continue;
		sum_up(sums_ret, guests, &c, weight[i]);
		s = (struct uni_sample){ .weight = weight[i],
			.guest = c.guest,
			.vcpu = c.vcpu,
			.stop = c.stop,
			.state = c.state,
			.nr = c.nr,
			.pc = c.pc,
			.flags = c.flags };
		if (!uni_sample_passes(&opts->filter, &s))
			continue;
		sums_ret->shown += weight[i];
		rc = fn(ctx, &s);
	}
	return rc;
}

static int add_chain(void *builder, const struct uni_sample *s)
{
	return uni_builder_add(builder, s);
}

int uni_live_profile(const struct uni_history *h, const struct uni_live_guests *guests,
	const struct uni_live_opts *opts, struct uni_profile **ret, struct uni_live_sums *sums_ret)
{
	struct uni_build_opts how = { .naming = opts->naming };
	struct uni_builder *b = NULL;
	int rc = uni_builder_create(&how, guests->guest, guests->nr, &b);

	if (rc == 0)
		rc = uni_live_each(h, guests, opts, add_chain, b, sums_ret);
	if (rc == 0)
		rc = uni_builder_finish(b, ret);
	uni_builder_destroy(b);
	return rc;
}

const char *uni_live_sort_name(enum uni_live_sort by)
{
	static const char *const names[UNI_LIVE_SORT_NR] = { "self", "total", "name" };

	return by < UNI_LIVE_SORT_NR ? names[by] : "";
}

static const char *row_name(const struct uni_profile *p, const struct uni_func_row *row)
{
	return uni_profile_str(p, uni_profile_get_frame(p, row->frame)->name);
}

struct order {
	const struct uni_profile *p;
	enum uni_live_sort by;
};

static int heavier_first(double x, double y)
{
	return (x < y) - (x > y);
}

static int row_cmp(const void *a, const void *b, void *ctx)
{
	const struct uni_func_row *x = a, *y = b;
	const struct order *o = ctx;
	int self = heavier_first(x->self, y->self), total = heavier_first(x->total, y->total);
	int r = o->by == UNI_LIVE_SELF ? self : o->by == UNI_LIVE_TOTAL ? total : 0;

	if (r == 0 && o->by != UNI_LIVE_NAME)
		r = o->by == UNI_LIVE_SELF ? total : self;
	if (r == 0)
		r = strcmp(row_name(o->p, x), row_name(o->p, y));
	return r != 0 ? r : (x->frame > y->frame) - (x->frame < y->frame);
}

int uni_live_rows(const struct uni_profile *p, enum uni_live_sort by, const char *filter,
	struct uni_func_row **ret, size_t *nr_ret)
{
	struct order order = { .p = p, .by = by };
	struct uni_func_row *rows = NULL;
	size_t nr = 0, used = 0;
	int rc = uni_profile_functions(p, &rows, &nr);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		if (filter == NULL || filter[0] == '\0' ||
			strcasestr(row_name(p, &rows[i]), filter) != NULL)
			rows[used++] = rows[i];
	}
	qsort_r(rows, used, sizeof(*rows), row_cmp, &order);
	*ret = rows;
	*nr_ret = used;
	return 0;
}
