/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/walk_calls.h"

#include "trace/walk_threads.h"

static void run_thread(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t thread, uint64_t time)
{
	uni_walk_run_on(w, c, thread);
	if (w->ops->switched != NULL)
		w->ops->switched(w, c, time);
}

/* NULL: there is no room. */
static struct uni_walk_frame *push_frame(
	struct uni_walk *w, struct uni_walk_cpu *c, const struct uni_call_event *e, uint64_t time)
{
	struct uni_walk_thread *t = &w->thread[e->thread];
	uint32_t runs = c->thread;
	bool room;

	c->thread = e->thread;
	room = uni_walk_grow(w, c);
	c->thread = runs;
	if (!room)
		return NULL;
	uni_walk_open(&t->frame[t->nr], e->func, time);
	return &t->frame[t->nr++];
}

static void enter_call(struct uni_walk *w, struct uni_walk_cpu *c, const struct uni_call_event *e)
{
	struct uni_walk_frame *f = push_frame(w, c, e, e->tsc);

	if (f != NULL)
		w->ops->enter(w, c, f);
}

static void take_began(struct uni_walk *w, struct uni_walk_cpu *c, const struct uni_call_event *e)
{
	struct uni_walk_frame *f = push_frame(w, c, e, w->from);

	if (f != NULL && w->ops->began != NULL)
		w->ops->began(w, c->thread == e->thread ? c : NULL, f);
}

static void leave_call(struct uni_walk *w, struct uni_walk_cpu *c, const struct uni_call_event *e)
{
	struct uni_walk_thread *t = &w->thread[c->thread];
	struct uni_walk_frame *f = &t->frame[t->nr - 1];

	if (t->nr == 1)
		return;
	f->off = e->off;
	w->ops->leave(w, c, f, e->tsc, e->flags & ~(unsigned)UNI_CALL_BEGAN);
	t->nr--;
}

static void know_thread(struct uni_walk *w, const struct uni_walk_calls *s, uint32_t thread)
{
	if (!w->thread[thread].known)
		uni_walk_know_thread(w, thread, uni_calls_thread(s->calls, thread).id);
}

static void take_other(struct uni_walk *w, const struct uni_walk_calls *s, struct uni_walk_cpu *c,
	const struct uni_call_event *e)
{
	bool is_switch = e->type == UNI_CALL_SWITCH;

	if (is_switch) {
		know_thread(w, s, e->thread);
		know_thread(w, s, e->next);
	}
	if (w->ops->other != NULL)
		w->ops->other(w, c, e->tsc, (enum uni_call_type)e->type,
			e->type == UNI_CALL_LOST ? e->count
			: is_switch		 ? e->reason
						 : 0,
			is_switch ? e->next : c->thread);
	if (is_switch)
		run_thread(w, c, e->next, e->tsc);
}

static void take_leaf(struct uni_walk *w, struct uni_walk_cpu *c, const struct uni_call_event *e)
{
	const struct uni_walk_thread *t = &w->thread[c->thread];

	w->caller = e->type == UNI_CALL_ENTRY && t->nr == 1 ? e->caller : UNI_FUNC_NONE;
	w->ops->leaf(w, c, &t->frame[t->nr - 1], e->func, e->tsc, (enum uni_call_type)e->type);
	w->caller = UNI_FUNC_NONE;
}

static void take_event(
	struct uni_walk *w, const struct uni_walk_calls *s, const struct uni_call_event *e)
{
	struct uni_walk_cpu *c = &w->cpu[e->cpu];

	if (e->type == UNI_CALL_ENTER && (e->flags & UNI_CALL_BEGAN) != 0) {
		take_began(w, c, e);
		return;
	}
	if (e->thread != c->thread)
		run_thread(w, c, e->thread, e->tsc);
	if (e->type == UNI_CALL_SWITCH || e->type == UNI_CALL_LOST || e->type == UNI_CALL_RETURN)
		take_other(w, s, c, e);
	else if (e->type == UNI_CALL_ENTER)
		enter_call(w, c, e);
	else if (e->type == UNI_CALL_LEAVE)
		leave_call(w, c, e);
	else if (e->type == UNI_CALL_LEAF || e->type == UNI_CALL_ENTRY)
		take_leaf(w, c, e);
}

static int take_events(struct uni_walk *w, const struct uni_walk_calls *s,
	const struct uni_call_event *e, size_t nr)
{
	if (!uni_walk_threads_room(w, uni_calls_nr_threads(s->calls)))
		return w->failed;
	for (size_t i = 0; i < nr && w->failed == 0; i++)
		take_event(w, s, &e[i]);
	return w->failed;
}

/* Takes over which thread runs on which CPU when it begins. */
static int begin_window(struct uni_walk *w, const struct uni_walk_calls *s)
{
	bool over;
	const struct uni_walk *own = uni_calls_walked(s->calls, &over);

	if (!uni_walk_threads_room(w, own->nr_threads))
		return w->failed;
	for (uint32_t i = 0; i < own->nr_threads; i++) {
		if (own->thread[i].known)
			uni_walk_know_thread(w, i, own->thread[i].id);
	}
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		uni_walk_run_on(w, &w->cpu[i], own->cpu[i].thread);
		w->cpu[i].last = own->cpu[i].last;
	}
	uni_calls_announce(s->calls);
	return 0;
}

int uni_walk_calls_open(struct uni_walk *w, struct uni_walk_calls *ret)
{
	struct uni_calls_filter filter = w->filter;
	int rc;

	*ret = (struct uni_walk_calls){ .rules = *w->filter.rules };
	/* A call may begin on a CPU, or in a thread, that is not chosen, or not known yet. */
	ret->rules.all = true;
	filter.rules = &ret->rules;
	filter.function = NULL; /* rows are chosen at the end */
	rc = uni_calls_open(w->in, &filter, w->funcs, &ret->calls, NULL);
	return rc == 0 && w->from != 0 ? begin_window(w, ret) : rc;
}

int uni_walk_calls(struct uni_walk *w, struct uni_walk_calls *s)
{
	const struct uni_call_event *e;
	const struct uni_walk *own;
	bool over = false;
	size_t nr;
	int rc;

	while ((rc = uni_calls_read(s->calls, &e, &nr)) == 1) {
		(void)uni_calls_walked(s->calls, &over);
		if (over || take_events(w, s, e, nr) != 0)
			break;
	}
	own = uni_calls_walked(s->calls, &over);
	s->end = over && rc == 1 ? e : NULL;
	s->nr_end = over && rc == 1 ? nr : 0;
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		w->cpu[i].at = own->cpu[i].at;
		w->cpu[i].end = own->cpu[i].end;
	}
	return rc < 0 ? rc : w->failed;
}

int uni_walk_calls_close(struct uni_walk *w, struct uni_walk_calls *s)
{
	if (s->calls == NULL)
		return w->failed;
	(void)take_events(w, s, s->end, s->nr_end);
	w->stats = *uni_calls_stats(s->calls);
	w->filter.rules->unknown = s->rules.unknown;
	uni_calls_close(s->calls);
	*s = (struct uni_walk_calls){ 0 };
	return w->failed;
}

int uni_walk_all_calls(struct uni_walk *w)
{
	struct uni_walk_calls s;
	int rc = uni_walk_calls_open(w, &s), end;

	if (rc == 0)
		rc = uni_walk_calls(w, &s);
	end = uni_walk_calls_close(w, &s);
	return rc != 0 ? rc : end;
}
