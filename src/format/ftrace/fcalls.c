/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/ftrace/fcalls.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"

#define BATCH 512 /* lines read at once */

struct frame {
	uint64_t begin_ns;
	uint64_t begin_spent; /* cpu.spent_ns then */
	uint64_t off_ns;      /* its thread was switched away, this was its newest call */
	uint64_t turn;	      /* cpu.turn when it began */
	uint32_t func;
	uint16_t depth, cpu;
};

struct thread {
	UNI_VEC(struct frame) open;
	UNI_VEC(uint64_t) sum; /* by depth: of the calls there since one ended above them */
	bool is_off;
	uint16_t off_cpu;     /* that it was switched away on, */
	uint64_t off_since;   /* spent_ns of that CPU then */
	uint64_t unopened_ns; /* time off the CPU during calls whose opening line is missing */
};

struct cpu {
	uint64_t now_ns;
	/* Time in calls that began and ended within one turn of a thread: only these show how long
	 * it ran, because others may have waited. */
	uint64_t spent_ns;
	uint64_t turn;	 /* counts switches */
	uint32_t thread; /* that runs */
	bool named;	 /* the text names it */
};

struct uni_fcalls {
	const struct uni_ftext *t;
	struct thread *threads; /* the text's, then one for each CPU */
	size_t nr_threads;
	struct cpu cpus[UNI_FTEXT_CPUS_MAX];
	UNI_VEC(struct uni_call_event) batch;
	size_t next; /* line */
	bool ended, oom;
	struct uni_fcalls_stats stats;
};

/* A CPU's first switch tells which thread ran before it. */
static void find_first(struct uni_fcalls *c)
{
	for (uint32_t i = 0; i < UNI_FTEXT_CPUS_MAX; i++)
		c->cpus[i].thread = (uint32_t)c->t->threads.nr + i;
	for (size_t i = 0; i < c->t->events.nr; i++) {
		const struct uni_ftext_event *e = &c->t->events.v[i];
		struct cpu *cpu = &c->cpus[e->cpu];

		if (e->kind == UNI_FTEXT_SWITCH && !cpu->named) {
			cpu->thread = e->name;
			cpu->named = true;
		}
	}
}

struct uni_fcalls *uni_fcalls_open(const struct uni_ftext *t)
{
	struct uni_fcalls *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->t = t;
	c->nr_threads = t->threads.nr + UNI_FTEXT_CPUS_MAX;
	c->threads = calloc(c->nr_threads, sizeof(*c->threads));
	if (c->threads == NULL) {
		free(c);
		return NULL;
	}
	find_first(c);
	return c;
}

void uni_fcalls_close(struct uni_fcalls *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->nr_threads; i++) {
		uni_vec_free(&c->threads[i].open);
		uni_vec_free(&c->threads[i].sum);
	}
	free(c->threads);
	uni_vec_free(&c->batch);
	free(c);
}

const struct uni_fcalls_stats *uni_fcalls_stats(const struct uni_fcalls *c)
{
	return &c->stats;
}

static const char *func_name(void *ctx, uint32_t func)
{
	const struct uni_fcalls *c = ctx;

	return uni_strtab_get(c->t->strings, func);
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	const struct uni_fcalls *c = ctx;
	const char *name;

	if (thread >= c->t->threads.nr) {
		*number_ret = 0;
		return "tid";
	}
	*number_ret = c->t->threads.v[thread].id;
	name = uni_strtab_get(c->t->strings, c->t->threads.v[thread].name);
	return name[0] != '\0' ? name : "tid";
}

static void put_call(struct uni_fcalls *c, const struct uni_call_event *e)
{
	if (!uni_vec_push(&c->batch, *e))
		c->oom = true;
}

/* Makes sure that sums exist for this depth and the one below it. */
static bool make_sums(struct uni_fcalls *c, struct thread *t, size_t depth)
{
	size_t want = depth + 2, more;

	if (want <= t->sum.nr)
		return true;
	more = want - t->sum.nr;
	if (!uni_vec_grow(&t->sum, more)) {
		c->oom = true;
		return false;
	}
	memset(t->sum.v + t->sum.nr, 0, more * sizeof(t->sum.v[0]));
	t->sum.nr = want;
	return true;
}

/* Self time of a call that ended at this depth. */
static uint64_t settle_call(struct uni_fcalls *c, struct thread *t, size_t depth, uint64_t ns)
{
	uint64_t below = t->sum.v[depth + 1];

	t->sum.v[depth + 1] = 0;
	t->sum.v[depth] += ns;
	if (below <= ns)
		return ns - below;
	c->stats.overfull++;
	return 0;
}

static void leave_call(
	struct uni_fcalls *c, const struct frame *f, struct uni_call_event e, unsigned flags)
{
	struct thread *t = &c->threads[e.thread];

	e.type = UNI_CALL_LEAVE;
	e.flags = (uint8_t)flags;
	e.func = f->func;
	e.depth = f->depth;
	e.self = settle_call(c, t, f->depth, e.duration);
	e.off = uni_min(f->off_ns, e.self);
	e.self -= e.off;
	put_call(c, &e);
}

/* Ends calls at this depth and below, if their closing braces are missing. */
static void cut_down_to(struct uni_fcalls *c, struct uni_call_event e, size_t depth)
{
	struct thread *t = &c->threads[e.thread];

	while (t->open.nr != 0 && t->open.v[t->open.nr - 1].depth >= depth) {
		const struct frame *f = &t->open.v[--t->open.nr];

		e.duration = uni_max(e.ns - uni_min(e.ns, f->begin_ns), t->sum.v[f->depth + 1]);
		c->stats.unclosed++;
		leave_call(c, f, e, UNI_CALL_CUT);
	}
}

static uint64_t call_duration(struct uni_fcalls *c, const struct uni_ftext_event *l, uint64_t below)
{
	uint64_t ns = l->ns;

	if ((l->flags & UNI_FTEXT_TIMED) == 0) {
		c->stats.untimed++;
		return below;
	}
	/* Nanos shows the first eight digits, however many there are. */
	if ((l->flags & UNI_FTEXT_DAMAGED) != 0 && ns < below && ns != 0) {
		while (ns < below && ns <= UINT64_MAX / 10)
			ns *= 10;
		c->stats.repaired++;
	}
	return ns;
}

static void open_call(
	struct uni_fcalls *c, const struct uni_ftext_event *l, struct uni_call_event e)
{
	struct thread *t = &c->threads[e.thread];
	struct frame f = { .begin_ns = e.ns,
		.begin_spent = c->cpus[e.cpu].spent_ns,
		.turn = c->cpus[e.cpu].turn,
		.func = l->name,
		.depth = (uint16_t)e.depth,
		.cpu = e.cpu };

	cut_down_to(c, e, e.depth);
	t->sum.v[e.depth + 1] = 0;
	if (!uni_vec_push(&t->open, f))
		c->oom = true;
	e.type = UNI_CALL_ENTER;
	e.func = f.func;
	put_call(c, &e);
}

static void leaf_call(
	struct uni_fcalls *c, const struct uni_ftext_event *l, struct uni_call_event e)
{
	struct thread *t = &c->threads[e.thread];
	struct frame f = { .func = l->name, .depth = (uint16_t)e.depth };

	cut_down_to(c, e, e.depth);
	t->sum.v[e.depth + 1] = 0;
	c->stats.calls++;
	e.func = f.func;
	if ((l->flags & UNI_FTEXT_TIMED) == 0) {
		c->stats.untimed++;
		e.type = UNI_CALL_LEAF;
		put_call(c, &e);
		return;
	}
	e.type = UNI_CALL_ENTER;
	put_call(c, &e);
	e.duration = uni_min(l->ns, UINT64_MAX - e.ns);
	e.ns += e.duration;
	e.tsc = e.ns;
	c->cpus[e.cpu].now_ns = e.ns;
	c->cpus[e.cpu].spent_ns += e.duration;
	leave_call(c, &f, e, 0);
}

/* Its opening line is missing, or belongs to another call. */
static void end_unopened(
	struct uni_fcalls *c, const struct uni_ftext_event *l, struct uni_call_event e)
{
	struct thread *t = &c->threads[e.thread];
	struct frame f = { .depth = (uint16_t)e.depth, .off_ns = t->unopened_ns };

	t->unopened_ns = 0;
	c->stats.unopened++;
	if ((l->flags & UNI_FTEXT_BARE) != 0) {
		(void)settle_call(c, t, e.depth, e.duration);
		e.type = UNI_CALL_RETURN;
		e.duration = 0;
		put_call(c, &e);
		return;
	}
	f.func = l->name;
	c->stats.calls++;
	leave_call(c, &f, e, UNI_CALL_BEGAN);
}

static void spend_on_cpu(struct cpu *cpu, const struct frame *f, const struct uni_call_event *e)
{
	if (f->cpu == e->cpu && f->turn == cpu->turn)
		cpu->spent_ns = uni_max(cpu->spent_ns, f->begin_spent + e->duration);
}

static void close_call(
	struct uni_fcalls *c, const struct uni_ftext_event *l, struct uni_call_event e)
{
	struct thread *t = &c->threads[e.thread];
	uint64_t begin, below;
	const struct frame *top;
	struct frame f = { 0 };
	bool known;

	cut_down_to(c, e, e.depth + 1);
	top = t->open.nr != 0 ? &t->open.v[t->open.nr - 1] : NULL;
	known = top != NULL && top->depth == e.depth &&
		((l->flags & UNI_FTEXT_BARE) != 0 || top->func == l->name);
	if (known)
		f = t->open.v[--t->open.nr];
	else
		cut_down_to(c, e, e.depth);
	below = t->sum.v[e.depth + 1];
	begin = known ? f.begin_ns : e.ns - uni_min(e.ns, below);
	e.duration = call_duration(c, l, below);
	e.duration = uni_min(e.duration, UINT64_MAX - begin);
	e.ns = uni_max(e.ns, begin + e.duration);
	e.tsc = e.ns;
	c->cpus[e.cpu].now_ns = e.ns;
	if (!known) {
		end_unopened(c, l, e);
		return;
	}
	c->stats.calls++;
	spend_on_cpu(&c->cpus[e.cpu], &f, &e);
	leave_call(c, &f, e, 0);
}

/*
 * The text does not tell how long a thread was away. It was at least as long as other threads ran
 * on this CPU meanwhile. If the thread comes back on another CPU, or after threads without calls,
 * nothing is known.
 */
static void switch_threads(struct uni_fcalls *c, const struct uni_ftext_event *l)
{
	struct thread *from = &c->threads[l->name], *to = &c->threads[l->other];
	struct cpu *cpu = &c->cpus[l->cpu];
	uint64_t away = 0;

	if (to->is_off && to->off_cpu == l->cpu)
		away = cpu->spent_ns - to->off_since;
	to->is_off = false;
	if (to->open.nr != 0)
		to->open.v[to->open.nr - 1].off_ns += away;
	else
		to->unopened_ns += away;
	from->is_off = true;
	from->off_cpu = l->cpu;
	from->off_since = cpu->spent_ns;
	cpu->thread = l->other;
	cpu->turn++;
}

static void one_line(struct uni_fcalls *c, const struct uni_ftext_event *l)
{
	struct cpu *cpu = &c->cpus[l->cpu];
	struct uni_call_event e = { .cpu = l->cpu, .depth = l->depth };
	const struct thread *t;

	if (l->kind == UNI_FTEXT_HIT)
		cpu->now_ns = l->ns;
	if (l->kind == UNI_FTEXT_SWITCH)
		cpu->thread = l->name;
	else if ((l->flags & UNI_FTEXT_OWNED) != 0)
		cpu->thread = l->thread;
	e.thread = cpu->thread;
	e.ns = e.tsc = cpu->now_ns;
	t = &c->threads[e.thread];
	/* Without indentation, only braces show the depth. */
	if (!c->t->nested && l->kind != UNI_FTEXT_SWITCH)
		e.depth = (uint32_t)uni_min(
			t->open.nr - (l->kind == UNI_FTEXT_CLOSE && t->open.nr != 0),
			(size_t)UNI_FTEXT_DEPTH_MAX);
	if (!make_sums(c, &c->threads[e.thread], e.depth))
		return;
	switch (l->kind) {
	case UNI_FTEXT_OPEN:
		open_call(c, l, e);
		break;
	case UNI_FTEXT_LEAF:
		leaf_call(c, l, e);
		break;
	case UNI_FTEXT_CLOSE:
		close_call(c, l, e);
		break;
	case UNI_FTEXT_SWITCH:
		e.type = UNI_CALL_SWITCH;
		e.next = l->other;
		switch_threads(c, l);
		put_call(c, &e);
		break;
	case UNI_FTEXT_LOST:
		e.type = UNI_CALL_LOST;
		e.count = l->ns;
		put_call(c, &e);
		break;
	default:
		e.type = UNI_CALL_ENTRY;
		e.func = l->name;
		e.caller = l->other;
		c->stats.calls++;
		put_call(c, &e);
		break;
	}
}

/* Ends the calls that are still open at the end. */
static void end_open_calls(struct uni_fcalls *c)
{
	for (uint32_t i = 0; i < c->nr_threads; i++) {
		const struct thread *t = &c->threads[i];
		struct uni_call_event e = { .thread = i };

		if (t->open.nr == 0)
			continue;
		e.cpu = t->open.v[t->open.nr - 1].cpu;
		e.ns = e.tsc = c->cpus[e.cpu].now_ns;
		cut_down_to(c, e, 0);
	}
	c->ended = true;
}

static int read_events(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_fcalls *c = ctx;

	c->batch.nr = 0;
	while (c->batch.nr == 0 && !c->ended) {
		size_t stop = uni_min(c->next + BATCH, c->t->events.nr);

		while (c->next < stop && !c->oom)
			one_line(c, &c->t->events.v[c->next++]);
		if (c->next == c->t->events.nr)
			end_open_calls(c);
		if (c->oom)
			return -UNI_ENOMEM;
	}
	*ret = c->batch.v;
	*nr_ret = c->batch.nr;
	return c->batch.nr != 0;
}

/* A text has one form; as a call graph, entries alone would be nothing. */
static int write_text(void *ctx, bool function, struct uni_sink *out, struct uni_err *err)
{
	const struct uni_fcalls *c = ctx;

	if (function && c->t->tracer == UNI_FTEXT_GRAPH)
		return uni_err_set(err, UNI_ENOTSUP,
			"a function_graph text has no times, which function needs");
	if (!function && c->t->tracer == UNI_FTEXT_FUNCTION)
		return uni_err_set(err, UNI_ENOTSUP,
			"a text of the tracer function has entries only: give -O tracer=function");
	uni_ftext_write(c->t, out);
	return 0;
}

struct uni_timeline uni_fcalls_timeline(struct uni_fcalls *c)
{
	return (struct uni_timeline){ .ctx = c,
		.read = read_events,
		.func = func_name,
		.thread = thread_name,
		.text = write_text };
}
