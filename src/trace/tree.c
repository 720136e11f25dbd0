/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "trace/walk.h"
#include "trace/walk_calls.h"

/* A node while it is counted. */
struct node {
	uint32_t func, parent;
	uint32_t last_func, last_child; /* the child that was called last */
	uint64_t calls, made, total, self;
};

struct tree {
	struct uni_walk walk; /* first: ops get this */
	UNI_VEC(struct node) node;
	uint32_t *slot; /* nodes by parent and function; 0: free */
	uint32_t nr_slots;
};

static uint32_t probe_node(const struct tree *s, uint32_t parent, uint32_t func)
{
	uint32_t mask = s->nr_slots - 1, i = (uint32_t)uni_hash_pair(parent, func) & mask;

	while (s->slot[i] != 0 &&
		(s->node.v[s->slot[i]].parent != parent || s->node.v[s->slot[i]].func != func))
		i = (i + 1) & mask;
	return i;
}

static bool more_slots(struct tree *s)
{
	uint32_t *old = s->slot;

	s->slot = calloc((size_t)s->nr_slots * 2, sizeof(*s->slot));
	if (s->slot == NULL) {
		s->slot = old;
		return false;
	}
	s->nr_slots *= 2;
	free(old);
	for (uint32_t i = UNI_CALL_NODE_MORE + 1; i < s->node.nr; i++)
		s->slot[probe_node(s, s->node.v[i].parent, s->node.v[i].func)] = i;
	return true;
}

static uint32_t add_node(struct tree *s, uint32_t parent, uint32_t func)
{
	const struct node n = { .func = func, .parent = parent, .last_func = UINT32_MAX };

	if (s->node.nr >= UNI_CALL_NODES_MAX)
		return UNI_CALL_NODE_MORE;
	if ((s->node.nr >= s->nr_slots / 2 && !more_slots(s)) || !uni_vec_push(&s->node, n)) {
		s->walk.failed = -UNI_ENOMEM;
		return UNI_CALL_NODE_MORE;
	}
	return (uint32_t)s->node.nr - 1;
}

static __attribute__((noinline)) uint32_t find_child(struct tree *s, uint32_t parent, uint32_t func)
{
	uint32_t i = probe_node(s, parent, func), child = s->slot[i];

	if (parent == UNI_CALL_NODE_MORE)
		return parent;
	if (child == 0) {
		child = add_node(s, parent, func);
		if (child != UNI_CALL_NODE_MORE)
			s->slot[probe_node(s, parent, func)] = child;
	}
	s->node.v[parent].last_func = func;
	s->node.v[parent].last_child = child;
	return child;
}

static inline uint32_t child_of(struct tree *s, uint32_t parent, uint32_t func)
{
	const struct node *n = &s->node.v[parent];

	return n->last_func == func ? n->last_child : find_child(s, parent, func);
}

static inline void tree_enter(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f)
{
	(void)c;
	f->node = child_of((struct tree *)w, f[-1].node, f->func);
}

static inline void tree_leave(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f,
	uint64_t time, unsigned flags)
{
	struct node *n = &((struct tree *)w)->node.v[f->node];
	uint64_t took = uni_walk_took(w, f->begin, time), other = f->child + f->off;

	(void)flags;
	f[-1].child += took;
	if (c->muted)
		return;
	n->calls++;
	n->total += took;
	n->self += took > other ? took - other : 0;
}

static inline void tree_leaf(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *top,
	uint32_t func, uint64_t time, enum uni_call_type type)
{
	struct tree *s = (struct tree *)w;
	uint32_t parent = top->node, node;

	(void)time;
	(void)type;
	if (w->caller != UNI_FUNC_NONE)
		parent = child_of(s, parent, w->caller);
	node = child_of(s, parent, func);
	if (c->muted)
		return;
	s->node.v[node].calls++;
	s->node.v[parent].made += w->caller != UNI_FUNC_NONE;
}

static void tree_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max);

static const struct uni_walk_ops ops = {
	.span = tree_span,
	.enter = tree_enter,
	.began = tree_enter,
	.leave = tree_leave,
	.leaf = tree_leaf,
};

static void tree_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max)
{
	if (w->functions)
		uni_walk_span(w, c, until, max, &ops, true);
	else
		uni_walk_span(w, c, until, max, &ops, false);
}

static bool tree_init(struct tree *s)
{
	const struct node n = { .last_func = UINT32_MAX };

	s->nr_slots = 1024;
	s->slot = calloc(s->nr_slots, sizeof(*s->slot));
	return s->slot != NULL && uni_vec_push(&s->node, n) && uni_vec_push(&s->node, n);
}

static int tree_walk(struct tree *s)
{
	struct uni_walk *w = &s->walk;
	int rc = 0;

	if (w->filter.rules != NULL)
		return uni_walk_all_calls(w);
	if (w->from != 0) {
		rc = uni_walk_all(w, w->from - 1);
		uni_walk_restart(w, w->from);
		for (size_t i = 0; i < s->node.nr; i++)
			s->node.v[i].calls = s->node.v[i].made = s->node.v[i].total =
				s->node.v[i].self = 0;
		w->stats = (struct uni_calls_stats){ 0 };
	}
	if (rc == 0)
		rc = uni_walk_all(w, w->to);
	uni_walk_finish(w);
	return rc != 0 ? rc : w->failed;
}

/* Children in front of their elder siblings. */
static void link_nodes(struct uni_call_tree *t)
{
	for (uint32_t i = 1; i < t->node.nr; i++) {
		struct uni_call_node *n = &t->node.v[i], *parent = &t->node.v[n->parent];

		n->next = parent->child;
		parent->child = i;
		if (n->parent == 0) {
			parent->total += n->total;
			parent->calls += n->calls;
		}
	}
}

static int tree_give(const struct tree *s, struct uni_call_tree *ret)
{
	if (!uni_vec_grow(&ret->node, s->node.nr))
		return -UNI_ENOMEM;
	for (size_t i = 0; i < s->node.nr; i++) {
		const struct node *n = &s->node.v[i];

		ret->node.v[ret->node.nr++] = (struct uni_call_node){ .func = n->func,
			.parent = n->parent,
			.calls = n->calls,
			.made = n->made,
			.total = n->total,
			.self = n->self };
	}
	link_nodes(ret);
	ret->stats = s->walk.stats;
	return 0;
}

int uni_call_tree_make(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_call_tree *ret, struct uni_err *err)
{
	struct tree *s = calloc(1, sizeof(*s));
	int rc;

	*ret = (struct uni_call_tree){ 0 };
	if (s == NULL)
		return uni_err_nomem(err);
	rc = uni_walk_init(&s->walk, in, filter, funcs, &ops, err);
	if (rc == 0) {
		rc = tree_init(s) ? tree_walk(s) : -UNI_ENOMEM;
		if (rc == 0)
			rc = tree_give(s, ret);
		if (rc != 0)
			(void)uni_err_nomem(err);
		uni_walk_deinit(&s->walk);
	}
	uni_vec_free(&s->node);
	free(s->slot);
	free(s);
	return rc;
}

void uni_call_tree_deinit(struct uni_call_tree *t)
{
	uni_vec_free(&t->node);
}

/* --- of some functions ------------------------------------------------------------------------ */

/* Merges into *ret; finds nodes there by parent and function. */
struct merge {
	struct tree s; /* only its nodes and slots */
	const struct uni_call_tree *from;
	uint32_t *to; /* node of s by node of from; UINT32_MAX: not within a matching one */
};

static void count_node(struct node *n, const struct uni_call_node *from)
{
	n->calls += from->calls;
	n->total += from->total;
	n->self += from->self;
}

static void add_callers(struct merge *m, uint32_t at)
{
	const struct uni_call_node *v = m->from->node.v;
	uint32_t to = 0;

	for (uint32_t i = v[at].parent; i != 0; i = v[i].parent) {
		to = child_of(&m->s, to, v[i].func);
		m->s.node.v[to].calls += v[at].calls;
		m->s.node.v[to].total += v[at].total;
	}
}

/* Whether a function matches is asked once for each. */
static uint8_t *match_all(struct uni_funcs *funcs, const char *glob)
{
	uint32_t nr = uni_funcs_nr(funcs);
	uint8_t *ret = calloc(nr + 1, 1);

	for (uint32_t i = 1; ret != NULL && i < nr; i++)
		ret[i] = uni_glob_match(glob, uni_funcs_name(funcs, i));
	return ret;
}

static int merge_all(struct merge *m, const uint8_t *match, bool callers)
{
	const struct uni_call_node *v = m->from->node.v;
	bool any = false;

	m->to[0] = UINT32_MAX;
	for (uint32_t i = 1; i < m->from->node.nr && m->s.walk.failed == 0; i++) {
		uint32_t above = m->to[v[i].parent];

		m->to[i] = UINT32_MAX;
		if (above == UINT32_MAX && match[v[i].func] != 0) {
			any = true;
			m->to[i] = 0;
			count_node(&m->s.node.v[0], &v[i]);
			if (callers)
				add_callers(m, i);
		} else if (above != UINT32_MAX) {
			m->to[i] = callers ? 0 : child_of(&m->s, above, v[i].func);
			if (!callers)
				count_node(&m->s.node.v[m->to[i]], &v[i]);
		}
	}
	if (m->s.walk.failed != 0)
		return m->s.walk.failed;
	return any ? 0 : -UNI_ENOENT;
}

int uni_call_tree_of(const struct uni_call_tree *t, struct uni_funcs *funcs, const char *glob,
	bool callers, struct uni_call_tree *ret)
{
	struct merge *m = calloc(1, sizeof(*m));
	uint8_t *match = match_all(funcs, glob);
	int rc = -UNI_ENOMEM;

	*ret = (struct uni_call_tree){ 0 };
	if (m != NULL && match != NULL) {
		m->from = t;
		m->to = malloc(t->node.nr * sizeof(*m->to));
		m->s.walk.rate.mult = UINT64_C(1) << 32; /* these are ns already */
		if (m->to != NULL && tree_init(&m->s))
			rc = merge_all(m, match, callers);
		if (rc == 0)
			rc = tree_give(&m->s, ret);
		if (rc == 0) {
			ret->node.v[0].total = m->s.node.v[0].total;
			ret->node.v[0].calls = m->s.node.v[0].calls;
			ret->node.v[0].self = callers ? 0 : m->s.node.v[0].self;
		}
		uni_vec_free(&m->s.node);
		free(m->s.slot);
		free(m->to);
	}
	free(m);
	free(match);
	return rc;
}
