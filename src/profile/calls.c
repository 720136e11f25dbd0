/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "base/vec.h"

struct stack {
	UNI_VEC(uint32_t) nodes;
	uint32_t root; /* node of the thread; UNI_NODE_ROOT: of all, or not asked yet */
};

struct adder {
	struct uni_profile *p;
	const struct uni_timeline *tl;
	bool count, per_thread;
	UNI_VEC(uint32_t) frames; /* of functions; UNI_NODE_NONE: not asked yet */
	UNI_VEC(struct stack) stacks;
	const struct uni_profile_calls_watch *watch; /* or NULL */
	struct uni_profile_calls *stats;
};

static uint32_t frame_of(struct adder *a, uint32_t func)
{
	const char *name;

	if (func >= a->frames.nr) {
		size_t more = func + 1 - a->frames.nr;

		if (!uni_vec_grow(&a->frames, more))
			return UNI_NODE_NONE;
		memset(a->frames.v + a->frames.nr, 0xff, more * sizeof(a->frames.v[0]));
		a->frames.nr = func + 1;
	}
	if (a->frames.v[func] == UNI_NODE_NONE) {
		name = a->tl->func(a->tl->ctx, func);
		if (name[0] == '\0')
			name = "[unknown]";
		a->frames.v[func] =
			uni_profile_frame_named(a->p, name, strlen(name), uni_frame_kind_of(name));
	}
	return a->frames.v[func];
}

static struct stack *stack_of(struct adder *a, uint32_t thread)
{
	if (thread >= a->stacks.nr) {
		size_t more = thread + 1 - a->stacks.nr;

		if (!uni_vec_grow(&a->stacks, more))
			return NULL;
		memset(a->stacks.v + a->stacks.nr, 0, more * sizeof(a->stacks.v[0]));
		a->stacks.nr = thread + 1;
	}
	return &a->stacks.v[thread];
}

static uint32_t newest_node(const struct stack *s)
{
	return s->nodes.nr != 0 ? s->nodes.v[s->nodes.nr - 1] : s->root;
}

/* Threads of the same name are one; a thread without a name has the number that all formats
 * show. */
static uint32_t thread_node(struct adder *a, uint32_t thread)
{
	char text[UNI_TEXT_MAX + 32];
	uint64_t number;
	const char *name = a->tl->thread(a->tl->ctx, thread, &number);
	uint32_t frame;
	int n;

	if (strcmp(name, "tid") == 0)
		n = snprintf(text, sizeof(text), "thread %" PRIu64, number);
	else
		n = snprintf(text, sizeof(text), "thread %s", name);
	frame = uni_profile_frame_named(
		a->p, text, uni_min((size_t)n, sizeof(text) - 1), UNI_FK_SYNTHETIC);
	return frame == UNI_NODE_NONE ? UNI_NODE_NONE
				      : uni_profile_child(a->p, UNI_NODE_ROOT, frame);
}

/* Below the newest call of the thread. */
static uint32_t child_of_call(struct adder *a, struct stack *s, const struct uni_call_event *e)
{
	uint32_t frame = frame_of(a, e->func);

	if (a->per_thread && s->root == UNI_NODE_ROOT)
		s->root = thread_node(a, e->thread);
	if (frame == UNI_NODE_NONE || s->root == UNI_NODE_NONE)
		return UNI_NODE_NONE;
	/* In mode callers nothing else is known of the caller. */
	if (e->type == UNI_CALL_ENTRY && e->caller != UNI_FUNC_NONE && s->nodes.nr == 0) {
		uint32_t by = frame_of(a, e->caller);

		by = by != UNI_NODE_NONE ? uni_profile_child(a->p, newest_node(s), by) : by;
		return by != UNI_NODE_NONE ? uni_profile_child(a->p, by, frame) : by;
	}
	return uni_profile_child(a->p, newest_node(s), frame);
}

static int tell_watcher(const struct adder *a, uint32_t thread, uint64_t ns, uint32_t node)
{
	return a->watch != NULL && a->watch->runs != NULL
		       ? a->watch->runs(a->watch->ctx, thread, ns, node)
		       : 0;
}

static int add_ended_call(struct adder *a, uint32_t node, const struct uni_call_event *e)
{
	if (node == UNI_NODE_NONE)
		return -UNI_ENOMEM;
	a->stats->calls++;
	a->stats->cut += (e->flags & UNI_CALL_CUT) != 0;
	uni_profile_add_self(a->p, node, a->count ? 1.0 : (double)e->self, 0.0);
	if (a->watch != NULL && a->watch->added != NULL)
		return a->watch->added(a->watch->ctx, e, node);
	return 0;
}

static int enter_profile_call(struct adder *a, struct stack *s, const struct uni_call_event *e)
{
	uint32_t node = child_of_call(a, s, e);

	if (node == UNI_NODE_NONE || !uni_vec_push(&s->nodes, node))
		return -UNI_ENOMEM;
	return tell_watcher(a, e->thread, e->ns, node);
}

static int leave_profile_call(struct adder *a, struct stack *s, const struct uni_call_event *e)
{
	int rc;

	/* A call of which only the end is there. */
	if ((e->flags & UNI_CALL_BEGAN) != 0 && s->nodes.nr <= e->depth)
		return add_ended_call(a, child_of_call(a, s, e), e);
	/* It was not known to be this thread's when it began, which only the choice of some shows.
	 */
	if (s->nodes.nr == 0)
		return add_ended_call(a, child_of_call(a, s, e), e);
	rc = add_ended_call(a, s->nodes.v[--s->nodes.nr], e);
	return rc == 0 ? tell_watcher(a, e->thread, e->ns, newest_node(s)) : rc;
}

/* One thread leaves the CPU; the other goes on at its last place. */
static int change_thread(struct adder *a, const struct uni_call_event *e)
{
	const struct stack *next = stack_of(a, e->next);
	int rc;

	if (next == NULL)
		return -UNI_ENOMEM;
	rc = tell_watcher(a, e->thread, e->ns, UNI_NODE_NONE);
	return rc == 0 ? tell_watcher(a, e->next, e->ns, newest_node(next)) : rc;
}

static int take_call_event(struct adder *a, const struct uni_call_event *e)
{
	struct stack *s = stack_of(a, e->thread);

	if (s == NULL)
		return -UNI_ENOMEM;
	switch (e->type) {
	case UNI_CALL_ENTER:
		return enter_profile_call(a, s, e);
	case UNI_CALL_LEAVE:
		return leave_profile_call(a, s, e);
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		return add_ended_call(a, child_of_call(a, s, e), e);
	case UNI_CALL_SWITCH:
		return a->watch != NULL ? change_thread(a, e) : 0;
	case UNI_CALL_LOST:
		a->stats->lost += e->count;
		return 0;
	default:
		return 0;
	}
}

static int add_all(const struct adder *init, struct uni_profile_calls *ret)
{
	struct adder a = *init;
	const struct uni_timeline *tl = a.tl;
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	*ret = (struct uni_profile_calls){ 0 };
	a.stats = ret;
	uni_profile_set_unit(a.p, a.count ? "calls" : "ns");
	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr && rc == 1; i++)
			rc = take_call_event(&a, &e[i]) == 0 ? 1 : -UNI_ENOMEM;
		if (rc < 0)
			break;
	}
	for (size_t i = 0; i < a.stacks.nr; i++)
		uni_vec_free(&a.stacks.v[i].nodes);
	uni_vec_free(&a.stacks);
	uni_vec_free(&a.frames);
	return rc;
}

int uni_profile_add_calls(struct uni_profile *p, const struct uni_timeline *tl, bool count,
	const struct uni_profile_calls_watch *watch, struct uni_profile_calls *ret)
{
	return add_all(&(struct adder){ .p = p, .tl = tl, .count = count, .watch = watch }, ret);
}

int uni_profile_add_calls_by_thread(struct uni_profile *p, const struct uni_timeline *tl,
	bool count, struct uni_profile_calls *ret)
{
	return add_all(
		&(struct adder){ .p = p, .tl = tl, .count = count, .per_thread = true }, ret);
}
