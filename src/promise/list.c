/* SPDX-License-Identifier: BSD-2-Clause */
/* Which promises are listed, and in which order. */
#include <stdlib.h>

#include "base/text.h"
#include "promise/query.h"
#include "promise/query_priv.h"

uint64_t uni_promise_life(const struct uni_promise_model *m, const struct uni_promise *p)
{
	return (p->end == UNI_PROMISE_OPEN ? m->end : p->end) - p->begin;
}

/* Those to look at first. */
static int rank(const struct uni_promise *p)
{
	if (p->fate != UNI_FATE_OPEN)
		return p->fate == UNI_FATE_FAILED ? 2 : 3;
	return p->should_resolve ? 0 : 1;
}

static int order(const void *a, const void *b, void *arg)
{
	const struct uni_promise_model *m = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct uni_promise *p = &m->all.v[i], *q = &m->all.v[j];
	uint64_t x = uni_promise_life(m, p), y = uni_promise_life(m, q);

	if (rank(p) != rank(q))
		return rank(p) - rank(q);
	if (x != y)
		return x > y ? -1 : 1;
	return i < j ? -1 : 1;
}

static bool wanted(
	const struct uni_promise_model *m, uint32_t i, const struct uni_promise_list_opts *opts)
{
	const struct uni_promise *p = &m->all.v[i];
	char buf[96];

	if (opts->open_only && p->fate != UNI_FATE_OPEN)
		return false;
	return opts->like == NULL ||
	       uni_glob_match(opts->like, uni_promise_name(m, i, buf, sizeof(buf))) ||
	       uni_glob_match(opts->like, uni_promise_type_name(p->type));
}

int uni_promise_list(const struct uni_promise_model *m, const struct uni_promise_list_opts *opts,
	struct uni_promise_rows *ret)
{
	struct uni_promise_rows rows = { 0 };

	for (uint32_t i = 0; i < m->all.nr; i++) {
		if (wanted(m, i, opts) && !uni_vec_push(&rows.all, i)) {
			uni_vec_free(&rows.all);
			return -UNI_ENOMEM;
		}
	}
	if (rows.all.nr != 0)
		qsort_r(rows.all.v, rows.all.nr, sizeof(rows.all.v[0]), order,
			(void *)(uintptr_t)m);
	if (opts->max != 0 && opts->max < rows.all.nr) {
		rows.more = rows.all.nr - opts->max;
		rows.all.nr = opts->max;
	}
	*ret = rows;
	return 0;
}
