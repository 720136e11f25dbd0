/* SPDX-License-Identifier: BSD-2-Clause */
/* Which promises are listed, and in which order. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "promise/query.h"
#include "promise/query_priv.h"

uint64_t uni_promise_life(const struct uni_promise_model *m, const struct uni_promise *p)
{
	return (p->end == UNI_PROMISE_OPEN ? m->end : p->end) - p->begin;
}

/* Those to look at first. */
static unsigned promise_rank(const struct uni_promise *p)
{
	if (p->fate != UNI_FATE_OPEN)
		return p->fate == UNI_FATE_FAILED ? 2 : 3;
	return p->should_resolve ? 0 : 1;
}

/* The sort key, because the promises themselves are scattered in memory. */
struct key {
	uint64_t life;
	uint32_t i;
	uint8_t rank;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *p = a, *q = b;

	if (p->rank != q->rank)
		return p->rank < q->rank ? -1 : 1;
	if (p->life != q->life)
		return p->life > q->life ? -1 : 1;
	return p->i < q->i ? -1 : 1;
}

#define NAMELESS "a promise" /* the OCaml port calls so what a thread waits for and has no name */

/* A program on Lwt makes a promise at each `>>=`. A thread is one that its program calls so, one
 * with a name, or one that others wait for now. One from before the trace is a thread if it runs.
 */
static bool is_thread(const struct uni_promise_model *m, const struct uni_promise *p)
{
	bool named = p->label != 0 && strcmp(uni_strtab_get(m->text, p->label), NAMELESS) != 0;

	return named || p->awaited || p->should_resolve || p->type == UNI_PROMISE_TYPE_THREAD ||
	       p->type == UNI_PROMISE_TYPE_ASYNC || p->type == UNI_PROMISE_TYPE_LOCK ||
	       (!p->created && p->nr_runs != 0);
}

static bool is_listed(
	const struct uni_promise_model *m, uint32_t i, const struct uni_promise_list_opts *opts)
{
	const struct uni_promise *p = &m->all.v[i];
	char buf[96];

	if (opts->open_only && p->fate != UNI_FATE_OPEN)
		return false;
	return opts->like == NULL ||
	       uni_glob_match(opts->like, uni_promise_name(m, i, buf, sizeof(buf))) ||
	       uni_glob_match(opts->like, uni_strtab_get(m->text, p->label)) ||
	       uni_glob_match(opts->like, uni_promise_type_name(p->type));
}

struct ended {
	uint32_t label;
	uint8_t fate;
	struct key key;
};

static int compare_ended(const void *a, const void *b)
{
	const struct ended *p = a, *q = b;

	if (p->label != q->label)
		return p->label < q->label ? -1 : 1;
	if (p->fate != q->fate)
		return p->fate < q->fate ? -1 : 1;
	return compare_keys(&p->key, &q->key);
}

struct keys {
	UNI_VEC(struct key) listed;
	UNI_VEC(struct ended) ended; /* waits with a name */
};

static bool add_key(struct keys *keys, const struct uni_promise_model *m, uint32_t i, bool each)
{
	const struct uni_promise *p = &m->all.v[i];
	const struct key k = { uni_promise_life(m, p), i, (uint8_t)promise_rank(p) };

	if (each || p->type != UNI_PROMISE_TYPE_WAIT || p->label == 0 || p->fate == UNI_FATE_OPEN ||
		p->awaited || p->should_resolve)
		return uni_vec_push(&keys->listed, k);
	return uni_vec_push(
		&keys->ended, ((struct ended){ .label = p->label, .fate = p->fate, .key = k }));
}

/* The longest wait of each name and fate is listed. */
static bool add_ended(struct keys *keys, struct uni_promise_rows *rows)
{
	const struct ended *last = NULL;

	if (keys->ended.nr != 0)
		qsort(keys->ended.v, keys->ended.nr, sizeof(keys->ended.v[0]), compare_ended);
	uni_vec_foreach (e, &keys->ended) {
		if (last != NULL && last->label == e->label && last->fate == e->fate) {
			rows->alike++;
			continue;
		}
		last = e;
		if (!uni_vec_push(&keys->listed, e->key))
			return false;
	}
	return true;
}

int uni_promise_list(const struct uni_promise_model *m, const struct uni_promise_list_opts *opts,
	struct uni_promise_rows *ret)
{
	bool all = opts->all || opts->like != NULL;
	struct uni_promise_rows rows = { 0 };
	struct keys keys = { 0 };
	size_t nr;

	for (uint32_t i = 0; i < m->all.nr; i++) {
		if (!is_listed(m, i, opts))
			continue;
		if (!all && !is_thread(m, &m->all.v[i]))
			rows.nameless++;
		else if (!add_key(&keys, m, i, all))
			goto fail;
	}
	if (!add_ended(&keys, &rows))
		goto fail;
	if (keys.listed.nr != 0)
		qsort(keys.listed.v, keys.listed.nr, sizeof(keys.listed.v[0]), compare_keys);
	nr = opts->max != 0 ? uni_min(opts->max, keys.listed.nr) : keys.listed.nr;
	rows.more = keys.listed.nr - nr;
	if (!uni_vec_grow_to(&rows.all, nr))
		goto fail;
	for (; rows.all.nr < nr; rows.all.nr++)
		rows.all.v[rows.all.nr] = keys.listed.v[rows.all.nr].i;
	uni_vec_free(&keys.listed);
	uni_vec_free(&keys.ended);
	*ret = rows;
	return 0;
fail:
	uni_vec_free(&keys.listed);
	uni_vec_free(&keys.ended);
	return -UNI_ENOMEM;
}
