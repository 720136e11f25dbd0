/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that leave their CPU with calls open, and come back, perhaps on another CPU. */
#include <string.h>

#include "page/calls_priv.h"

static const char waiting[] = "[waiting]";

/* The node "[waiting]" below the newest open call. */
static uint32_t waiting_node(struct uni_calls_adder *a, const struct uni_calls_open *t)
{
	if (a->waiting == 0)
		a->waiting = uni_profile_frame_named(
			a->ret->tree, waiting, strlen(waiting), uni_frame_kind_of(waiting));
	return a->waiting == UNI_NODE_NONE ? UNI_NODE_NONE
					   : uni_profile_child(a->ret->tree,
						     t->calls.v[t->calls.nr - 1].node, a->waiting);
}

/* Adds the wait until now; *length_ret is its length. */
static int wait_until(struct uni_calls_adder *a, uint32_t thread, const struct uni_calls_open *t,
	uint64_t now, uint64_t *length_ret)
{
	struct uni_calls_span s = { .begin = t->out_ns, .node = t->out_node, .cpu = t->cpu };

	*length_ret = 0;
	if (t->out_of == 0 || t->out_of != t->calls.nr || now <= t->out_ns)
		return 0;
	*length_ret = s.duration = now - t->out_ns;
	return uni_calls_add_part(a, thread, (uint32_t)t->calls.nr, &s);
}

/*
 * Moves the open calls to another CPU. Calls that began before the requested time stay: their time
 * within it is not known here.
 */
static int move_open_calls(
	struct uni_calls_adder *a, uint32_t thread, struct uni_calls_open *t, uint64_t now)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->calls.nr; i++) {
		struct uni_calls_call *c = &t->calls.v[i];
		const struct uni_calls_span s = { .begin = c->begin,
			.duration = now - uni_min(c->begin, now),
			.node = c->node,
			.cpu = t->cpu };

		if (c->began)
			continue;
		rc = uni_calls_add_part(a, thread, (uint32_t)i, &s);
		c->begin = now;
		c->whole = false;
	}
	return rc;
}

static int come_back(struct uni_calls_adder *a, uint32_t thread, struct uni_calls_open *t,
	const struct uni_call_event *e)
{
	uint64_t waited;
	int rc = wait_until(a, thread, t, e->ns, &waited);

	if (t->calls.nr != 0)
		t->calls.v[t->calls.nr - 1].waited += waited;
	if (rc == 0 && t->out_of != 0 && e->cpu != t->cpu)
		rc = move_open_calls(a, thread, t, e->ns);
	t->out_of = 0;
	t->cpu = e->cpu;
	return rc;
}

int uni_calls_switch(struct uni_calls_adder *a, const struct uni_call_event *e)
{
	/* Other threads have no calls. */
	if (e->thread < a->threads.nr) {
		struct uni_calls_open *t = &a->threads.v[e->thread];

		t->out_ns = e->ns;
		t->out_of = t->calls.nr;
		t->cpu = e->cpu;
		/*
		 * Makes the node now, and not when the thread is back, so that a growing trace has
		 * the same tree.
		 */
		if (t->out_of != 0) {
			t->out_node = waiting_node(a, t);
			if (t->out_node == UNI_NODE_NONE)
				return -UNI_ENOMEM;
		}
	}
	return e->next < a->threads.nr ? come_back(a, e->next, &a->threads.v[e->next], e) : 0;
}

int uni_calls_wait_end(struct uni_calls_adder *a, struct uni_calls_open *t,
	const struct uni_call_event *e, uint64_t *waited_ret)
{
	int rc;

	/* A thread that is seen to return is back; otherwise its calls end where they are. */
	if ((e->flags & UNI_CALL_CUT) == 0 && (rc = uni_calls_seen(a, t, e)) != 0)
		return rc;
	rc = wait_until(a, e->thread, t, e->ns, waited_ret);
	*waited_ret += t->calls.v[t->calls.nr - 1].waited;
	return rc;
}

int uni_calls_seen(
	struct uni_calls_adder *a, struct uni_calls_open *t, const struct uni_call_event *e)
{
	return t->out_of != 0 ? come_back(a, e->thread, t, e) : 0;
}
