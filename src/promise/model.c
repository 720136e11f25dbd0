/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/checked.h"
#include "promise/model_priv.h"

static struct uni_promise *get_promise(struct uni_promise_builder *b, uint32_t i)
{
	return i == UNI_PROMISE_NONE ? NULL : &b->m.all.v[i];
}

static bool is_lock(const struct uni_promise_builder *b, uint32_t i)
{
	return i != UNI_PROMISE_NONE && b->m.all.v[i].type == UNI_PROMISE_TYPE_LOCK;
}

static void end_pause(struct uni_promise_builder *b, struct uni_promise_cpu *c)
{
	if (c->pause != UNI_PROMISE_NONE)
		b->m.pauses.v[c->pause].end = b->now;
	c->pause = UNI_PROMISE_NONE;
}

static int begin_pause(
	struct uni_promise_builder *b, struct uni_promise_cpu *c, uint32_t cpu, uint8_t why)
{
	if (c->pause != UNI_PROMISE_NONE)
		return 0;
	if (!uni_promise_push(&b->m.pauses,
		    ((struct uni_promise_pause){ b->now, b->now, cpu, UNI_PE_HIATUS, why })))
		return -UNI_ENOMEM;
	c->pause = (uint32_t)b->m.pauses.nr - 1;
	return 0;
}

static void end_run(struct uni_promise_builder *b, struct uni_promise_cpu *c)
{
	struct uni_promise_run *r;

	if (c->run == UNI_PROMISE_NONE)
		return;
	r = &b->m.runs.v[c->run];
	r->end = b->now;
	b->m.all.v[r->promise].run_ns += r->end - r->begin;
	uni_promise_ran_in_wait(b, r);
	b->m.all.v[r->promise].last = b->m.all.v[r->promise].ran = b->now;
	c->run = UNI_PROMISE_NONE;
}

/* Does this wait want the value of `on`, or of the promise that became `on`? */
static bool is_for(struct uni_promise_builder *b, const struct uni_promise_wait *w, uint32_t on)
{
	return uni_promise_meant(&b->m, w->on) == on;
}

/* The promise runs again, or has ended: none of its waits goes on. The wait that woke it is the one
 * for the value that came, `on` if that is known. */
uint32_t uni_promise_stop_waits(
	struct uni_promise_builder *b, uint32_t who, uint32_t on, uint32_t cpu)
{
	uint32_t woke = UNI_PROMISE_NONE;
	struct uni_promise *p = &b->m.all.v[who];
	uint64_t since = b->now; /* waits for several things at a time count once */
	uint64_t gave_up = uni_promise_gave_up(b, who);

	for (uint32_t i = p->first_wait; i != UNI_PROMISE_NONE; i = b->m.waits.v[i].next) {
		struct uni_promise_wait *w = &b->m.waits.v[i];

		if (w->end != UNI_PROMISE_OPEN)
			break; /* all older ones have ended, too */
		w->end = b->now;
		w->cpu = cpu;
		p->nr_open--;
		since = w->begin;
		if (w->ready == UNI_PROMISE_OPEN && is_for(b, w, on))
			w->ready = b->now;
		w->given_up = w->ready == UNI_PROMISE_OPEN;
		if (w->given_up)
			w->end = uni_max(w->begin, gave_up);
		if (!w->given_up && (woke == UNI_PROMISE_NONE || is_for(b, w, on)))
			woke = i;
	}
	p->wait_ns += uni_promise_waited(
		p, since, woke == UNI_PROMISE_NONE ? uni_max(since, gave_up) : b->now);
	p->ran_ns = 0;
	return woke;
}

/* `who` has the CPU from now on, because of `on`. */
static int run_promise(struct uni_promise_builder *b, uint32_t cpu, uint32_t who, uint32_t on)
{
	struct uni_promise_cpu *c = &b->cpus[cpu];
	uint32_t wait = UNI_PROMISE_NONE;
	bool waits = who != UNI_PROMISE_NONE && on == UNI_PROMISE_NONE &&
		     uni_promise_waits_for_lock(b, who);

	/* Whoever wakes up need not have got the lock that it waits for. */
	if (waits)
		uni_promise_run_in_wait(b, who);
	if (c->run != UNI_PROMISE_NONE && b->m.runs.v[c->run].promise == who)
		return 0;
	end_run(b, c);
	if (who == UNI_PROMISE_NONE)
		return begin_pause(b, c, cpu, UNI_HIATUS_WORK);
	end_pause(b, c);
	if (!waits)
		wait = uni_promise_stop_waits(b, who, on, cpu);
	if (!uni_promise_push(&b->m.runs,
		    ((struct uni_promise_run){ b->now, b->now, who, cpu, wait, UNI_PROMISE_NONE })))
		return -UNI_ENOMEM;
	c->run = (uint32_t)b->m.runs.nr - 1;
	c->silence = UNI_PROMISE_NONE;
	b->m.all.v[who].nr_runs++;
	return 0;
}

uint32_t uni_promise_running(const struct uni_promise_builder *b, uint32_t cpu)
{
	uint32_t run = b->cpus[cpu].run;

	return run == UNI_PROMISE_NONE ? UNI_PROMISE_NONE : b->m.runs.v[run].promise;
}

static bool has_cpu(const struct uni_promise_builder *b, uint32_t who)
{
	for (uint32_t i = 0; i < UNI_PROMISE_CPUS; i++) {
		if (uni_promise_running(b, i) == who)
			return true;
	}
	return false;
}

static int add_edge(struct uni_promise_builder *b, uint32_t from, uint32_t to, uint8_t kind)
{
	const struct uni_promise_edge e = { b->now, from, to, kind };

	if (from == UNI_PROMISE_NONE || to == UNI_PROMISE_NONE || from == to)
		return 0;
	return uni_promise_push(&b->m.edges, e) ? 0 : -UNI_ENOMEM;
}

/* How long the chain of waits is that let the CPU's promise run now. */
uint32_t uni_promise_chain(const struct uni_promise_builder *b, uint32_t cpu)
{
	uint32_t run = b->cpus[cpu].run;
	uint32_t wait = run == UNI_PROMISE_NONE ? UNI_PROMISE_NONE : b->m.runs.v[run].wait;

	return wait == UNI_PROMISE_NONE ? 0 : b->m.waits.v[wait].depth;
}

/* Does it wait for `on` already? Looking once more is no other wait. */
static bool is_waiting(struct uni_promise_builder *b, uint32_t who, uint32_t on)
{
	uint32_t i = b->m.all.v[who].first_wait;

	for (; i != UNI_PROMISE_NONE; i = b->m.waits.v[i].next) {
		const struct uni_promise_wait *w = &b->m.waits.v[i];

		if (w->end != UNI_PROMISE_OPEN)
			return false; /* all older ones have ended, too */
		if (w->ready == UNI_PROMISE_OPEN && is_for(b, w, on))
			return true;
	}
	return false;
}

static int begin_wait(struct uni_promise_builder *b, uint32_t who, uint32_t on)
{
	struct uni_promise_wait w = { .begin = b->now,
		.ready = UNI_PROMISE_OPEN,
		.end = UNI_PROMISE_OPEN,
		.ran = UNI_PROMISE_OPEN,
		.waiter = who,
		.on = on,
		.depth = 1,
		.waker = UNI_PROMISE_NONE };
	struct uni_promise *p = get_promise(b, who), *of = get_promise(b, on);
	uint32_t index;

	if (p == NULL || of == NULL)
		return 0;
	if (is_waiting(b, who, on)) {
		uni_promise_waits_on(b, who);
		return 0;
	}
	if (p->nr_open >= UNI_PROMISE_WAITS) {
		b->m.not_kept++;
		return 0;
	}
	w.next = p->first_wait;
	w.next_on = of->waiters;
	if (!uni_promise_push(&b->m.waits, w))
		return -UNI_ENOMEM;
	index = (uint32_t)b->m.waits.nr - 1;
	p->first_wait = index;
	p->nr_open++;
	p->nr_waits++;
	of->waiters = index;
	if (of->last_waiter == UNI_PROMISE_NONE)
		of->last_waiter = index;
	return 0;
}

/* The value of `who` is there, from `waker` on that CPU: its waiters may run. */
static void wake_all(struct uni_promise_builder *b, uint32_t cpu, uint32_t who, uint32_t waker)
{
	struct uni_promise *p = &b->m.all.v[who];

	for (uint32_t i = p->waiters; i != UNI_PROMISE_NONE; i = b->m.waits.v[i].next_on) {
		struct uni_promise_wait *w = &b->m.waits.v[i];

		if (w->end != UNI_PROMISE_OPEN || w->ready != UNI_PROMISE_OPEN)
			continue;
		w->ready = b->now;
		w->waker = waker;
		w->depth = uni_promise_chain(b, cpu) + 1;
	}
	p->waiters = p->last_waiter = UNI_PROMISE_NONE;
}

/* Only `who` of those that wait for `on`. */
static void wake_one(struct uni_promise_builder *b, uint32_t cpu, uint32_t who, uint32_t on)
{
	uint32_t waker = uni_promise_running(b, cpu), i = b->m.all.v[who].first_wait;

	for (; i != UNI_PROMISE_NONE; i = b->m.waits.v[i].next) {
		struct uni_promise_wait *w = &b->m.waits.v[i];

		if (w->end != UNI_PROMISE_OPEN)
			break;
		if (w->ready != UNI_PROMISE_OPEN || !is_for(b, w, on))
			continue;
		w->ready = b->now;
		w->waker = waker;
		w->depth = uni_promise_chain(b, cpu) + 1;
	}
}

/* Waiters for `from` now wait for `to`. */
static void hand_waiters(struct uni_promise_builder *b, uint32_t from, uint32_t to)
{
	struct uni_promise *f = &b->m.all.v[from], *t = &b->m.all.v[to];

	if (f->waiters == UNI_PROMISE_NONE || from == to)
		return;
	b->m.waits.v[f->last_waiter].next_on = t->waiters;
	if (t->last_waiter == UNI_PROMISE_NONE)
		t->last_waiter = f->last_waiter;
	t->waiters = f->waiters;
	f->waiters = f->last_waiter = UNI_PROMISE_NONE;
}

/* The guest's list is read after its trace began. If an id of it is made only now, it is the same
 * one: its life begins here. */
static uint32_t find_listed(struct uni_promise_builder *b, uint64_t id)
{
	uint32_t i = uni_promise_find(b, id);
	struct uni_promise *p = get_promise(b, i);

	if (p == NULL || !p->told || p->fate != UNI_FATE_OPEN || p->nr_runs != 0)
		return UNI_PROMISE_NONE;
	p->told = false;
	p->begin = p->last = b->now;
	for (uint32_t w = p->first_wait; w != UNI_PROMISE_NONE; w = b->m.waits.v[w].next)
		b->m.waits.v[w].begin = b->now;
	return i;
}

static int create_promise(
	struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t by)
{
	uint32_t made;
	struct uni_promise *p;

	if (e->other == UNI_PROMISE_NOBODY)
		return 0;
	made = find_listed(b, e->other);
	if (made == UNI_PROMISE_NONE && uni_promise_add(b, e->other, &made) != 0)
		return -UNI_ENOMEM;
	p = &b->m.all.v[made];
	p->created = true;
	p->creator = by;
	p->type = e->type;
	return 0;
}

/* Does not change the running promise: it was open before. */
static int open_now(struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t by)
{
	uint32_t i;

	if (e->other == UNI_PROMISE_NOBODY)
		return 0;
	if (uni_promise_know(b, e->other, &i) != 0)
		return -UNI_ENOMEM;
	b->m.all.v[i].told = true;
	b->m.all.v[i].creator = by;
	b->m.all.v[i].type = e->type;
	if (e->type == UNI_PROMISE_TYPE_GONE && b->m.all.v[i].fate == UNI_FATE_OPEN) {
		b->m.all.v[i].type = UNI_PROMISE_TYPE_THREAD;
		b->m.all.v[i].fate = UNI_FATE_RESOLVED;
		b->m.all.v[i].end = b->now;
	}
	return 0;
}

static int end_promise(struct uni_promise_builder *b, const struct uni_promise_event *e,
	uint32_t who, uint32_t other)
{
	/* The one that ends: of `become` it is the first that is named. */
	uint32_t ends = e->kind == UNI_PE_BECOME ? who : other;
	struct uni_promise *p = get_promise(b, ends);
	uint32_t text = 0;

	if (p == NULL || p->fate != UNI_FATE_OPEN)
		return 0;
	if (e->kind == UNI_PE_FAIL && uni_promise_text(b, e, &text) != 0)
		return -UNI_ENOMEM;
	if (e->kind == UNI_PE_BECOME && (other == UNI_PROMISE_NONE || other == ends))
		return 0; /* a promise that becomes itself does not change */
	p->end = b->now;
	p->failure = text;
	if (e->kind == UNI_PE_BECOME) {
		p->fate = UNI_FATE_BECAME;
		p->other = p->heir = other;
		hand_waiters(b, ends, other);
		return 0;
	}
	uni_promise_lock_end(b, ends);
	p->fate = e->kind == UNI_PE_FAIL ? UNI_FATE_FAILED : UNI_FATE_RESOLVED;
	p->resolver = who;
	p->depth = uni_promise_chain(b, e->cpu);
	(void)uni_promise_stop_waits(b, ends, UNI_PROMISE_NONE, e->cpu);
	wake_all(b, e->cpu, ends, who);
	return add_edge(b, who, ends, e->kind);
}

static int add_label(struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t who)
{
	struct uni_promise_label l = { .time = b->now, .promise = who };

	if (who == UNI_PROMISE_NONE)
		return 0;
	if (uni_promise_text(b, e, &l.text) != 0 || !uni_promise_push(&b->m.labels, l))
		return -UNI_ENOMEM;
	return b->m.all.v[who].label == 0 ? uni_promise_set_label(b, who, l.text) : 0;
}

static int add_count(struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t who)
{
	struct uni_promise_count c = { .time = b->now, .value = e->value, .promise = who };

	if (uni_promise_text(b, e, &c.counter) != 0)
		return -UNI_ENOMEM;
	while (b->counters.nr <= c.counter) {
		if (!uni_vec_push(&b->counters, 0))
			return -UNI_ENOMEM;
	}
	if (e->kind == UNI_PE_INCREASE)
		c.value = (int64_t)((uint64_t)c.value + (uint64_t)b->counters.v[c.counter]);
	b->counters.v[c.counter] = c.value;
	return uni_promise_push(&b->m.counts, c) ? 0 : -UNI_ENOMEM;
}

/*
 * A guest that tells of no waits still has a list of its threads. One that has run since has waited
 * from then on. Its own events know better.
 */
static int waits_now(
	struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t who, uint32_t on)
{
	const struct uni_promise *p = get_promise(b, who);
	size_t nr = b->m.waits.nr;
	struct uni_promise_wait *w;
	uint32_t text;
	int rc;

	if (p == NULL || on == UNI_PROMISE_NONE || p->nr_open != 0 || p->fate != UNI_FATE_OPEN)
		return 0;
	if (b->m.all.v[on].label == 0 && e->text_len != 0 &&
		(uni_promise_text(b, e, &text) != 0 || uni_promise_set_label(b, on, text) != 0))
		return -UNI_ENOMEM;
	rc = begin_wait(b, who, on);
	if (rc != 0 || b->m.waits.nr == nr)
		return rc;
	w = &b->m.waits.v[nr];
	p = &b->m.all.v[who];
	w->listed = true;
	w->undated = p->nr_runs == 0 || has_cpu(b, who);
	if (!w->undated)
		w->begin = p->ran;
	return 0;
}

/* A signal after which no other promise runs at once. */
static int notify_promise(struct uni_promise_builder *b, uint32_t cpu, uint32_t who, uint32_t of)
{
	struct uni_promise *p = get_promise(b, of);

	if (p == NULL)
		return 0;
	if (p->type == UNI_PROMISE_TYPE_LOCK)
		return uni_promise_lock_give(b, of, cpu);
	if (who == UNI_PROMISE_NONE) {
		p->nr_lonely++;
		p->taken = false;
		p->lonely = b->now;
		p->lonely_by = uni_promise_running(b, cpu);
		return 0;
	}
	wake_one(b, cpu, who, of);
	return add_edge(b, of, who, UNI_PE_NOTIFY);
}

static int pause_event(struct uni_promise_builder *b, const struct uni_promise_event *e)
{
	struct uni_promise_cpu *c = &b->cpus[e->cpu];
	uint64_t ns = (uint64_t)e->value;

	switch (e->kind) {
	case UNI_PE_GC:
		if (ns > b->now - b->m.begin)
			ns = b->now - b->m.begin;
		return uni_promise_push(&b->m.pauses, ((struct uni_promise_pause){ b->now - ns,
							      b->now, e->cpu, UNI_PE_GC, 0 }))
			       ? 0
			       : -UNI_ENOMEM;
	case UNI_PE_HIATUS:
		end_run(b, c);
		return begin_pause(b, c, e->cpu, (uint8_t)e->value);
	case UNI_PE_RESUME:
		end_pause(b, c);
		return 0;
	case UNI_PE_ALL_WAIT:
		b->m.end_told = true;
		b->m.end_unnamed = (uint64_t)e->value;
		return 0;
	case UNI_PE_ALL_OPEN:
		b->m.begin_told = true;
		b->m.begin_missed += (uint64_t)e->value;
		return 0;
	default: /* LOST */
		end_run(b, c);
		end_pause(b, c);
		b->m.gaps++;
		b->m.last_gap = b->now;
		if (e->value > 0)
			b->m.lost += (uint64_t)e->value;
		return 0;
	}
}

/* `who` has taken the value of `other`, which is a lock if it is now that one's owner. */
static int read_value(struct uni_promise_builder *b, const struct uni_promise_event *e,
	uint32_t who, uint32_t other)
{
	bool locks = is_lock(b, other) && who != UNI_PROMISE_NONE;
	int rc;

	if (locks)
		uni_promise_lock_came(b, who, other);
	rc = run_promise(b, e->cpu, who, other);
	if (other != UNI_PROMISE_NONE)
		b->m.all.v[other].taken = true;
	if (rc == 0 && locks)
		rc = uni_promise_lock_take(b, who, other, e->cpu, false);
	return rc != 0 ? rc : add_edge(b, other, who, e->kind);
}

static int promise_event(struct uni_promise_builder *b, const struct uni_promise_event *e,
	uint32_t who, uint32_t other)
{
	int rc;

	switch (e->kind) {
	case UNI_PE_OPEN_NOW:
		return open_now(b, e, who);
	case UNI_PE_CREATE:
		rc = run_promise(b, e->cpu, who, UNI_PROMISE_NONE);
		return rc != 0 ? rc : create_promise(b, e, who);
	case UNI_PE_READ:
		return read_value(b, e, who, other);
	case UNI_PE_SIGNAL:
		rc = run_promise(b, e->cpu, who, other);
		return rc != 0 ? rc : add_edge(b, other, who, e->kind);
	case UNI_PE_RESOLVE:
	case UNI_PE_FAIL:
		rc = run_promise(b, e->cpu, who, UNI_PROMISE_NONE);
		return rc != 0 ? rc : end_promise(b, e, who, other);
	case UNI_PE_BECOME:
		return end_promise(b, e, who, other);
	case UNI_PE_LABEL:
		return add_label(b, e, who);
	case UNI_PE_SWITCH:
		return run_promise(b, e->cpu, who, UNI_PROMISE_NONE);
	case UNI_PE_TRY_READ:
		rc = run_promise(b, e->cpu, who, UNI_PROMISE_NONE);
		if (rc == 0)
			rc = begin_wait(b, who, other);
		return rc != 0 ? rc : add_edge(b, other, who, e->kind);
	case UNI_PE_READ_LATER:
		if (is_lock(b, who))
			return uni_promise_lock_take(b, other, who, e->cpu, true);
		return begin_wait(b, who, other);
	case UNI_PE_WAITS_NOW:
		return waits_now(b, e, who, other);
	case UNI_PE_NOTIFY:
		return notify_promise(b, e->cpu, who, other);
	case UNI_PE_SHOULD_RESOLVE:
		if (who != UNI_PROMISE_NONE)
			b->m.all.v[who].should_resolve = true;
		return 0;
	default:
		return add_count(b, e, who);
	}
}

/* Does such an event say that its thread has the CPU? */
static bool means_running(uint8_t kind)
{
	return kind <= UNI_PE_FAIL || (kind >= UNI_PE_SWITCH && kind <= UNI_PE_TRY_READ);
}

int uni_promise_builder_heard(struct uni_promise_builder *b, uint32_t cpu, uint64_t time)
{
	struct uni_promise_silence s = { .end = time, .next = UNI_PROMISE_NONE };
	struct uni_promise_cpu *c;
	uint32_t index = (uint32_t)b->m.silences.nr;

	if (cpu >= UNI_PROMISE_CPUS || time <= b->cpus[cpu].heard)
		return 0;
	c = &b->cpus[cpu];
	s.begin = c->heard;
	c->heard = time;
	if (c->run == UNI_PROMISE_NONE || time - s.begin < UNI_PROMISE_SILENT)
		return 0;
	if (!uni_promise_push(&b->m.silences, s))
		return -UNI_ENOMEM;
	if (c->silence == UNI_PROMISE_NONE)
		b->m.runs.v[c->run].silence = index;
	else
		b->m.silences.v[c->silence].next = index;
	c->silence = index;
	return 0;
}

int uni_promise_builder_add(struct uni_promise_builder *b, const struct uni_promise_event *event)
{
	uint32_t named = UNI_PROMISE_NONE, who, other = UNI_PROMISE_NONE;

	if (event->cpu >= UNI_PROMISE_CPUS || event->kind >= UNI_PE_NR)
		return 0;
	if (event->time < b->now)
		b->m.backwards++;
	else
		b->now = event->time;
	if (b->m.begin == UINT64_MAX)
		b->m.begin = b->now;
	b->m.end = b->now;
	b->m.events += event->kind != UNI_PE_LOST;
	if (uni_promise_builder_heard(b, event->cpu, b->now) != 0)
		return -UNI_ENOMEM;
	if (event->kind == UNI_PE_GC || event->kind == UNI_PE_ALL_OPEN ||
		(event->kind >= UNI_PE_HIATUS && event->kind != UNI_PE_WAITS_NOW))
		return pause_event(b, event);
	if (uni_promise_know(b, event->thread, &named) != 0)
		return -UNI_ENOMEM;
	if (event->kind != UNI_PE_CREATE && event->kind != UNI_PE_OPEN_NOW &&
		uni_promise_know(b, event->other, &other) != 0)
		return -UNI_ENOMEM;
	who = uni_promise_meant(&b->m, named);
	other = uni_promise_meant(&b->m, other);
	if (other != UNI_PROMISE_NONE && uni_promise_names_lock(event))
		b->m.all.v[other].type = UNI_PROMISE_TYPE_LOCK;
	if (who != UNI_PROMISE_NONE && event->kind != UNI_PE_SWITCH && means_running(event->kind))
		uni_promise_leave_lock(b, who, other, event->cpu);
	/* Ends the waits from before it became another one. */
	if (who != named && means_running(event->kind))
		(void)uni_promise_stop_waits(b, named, other, event->cpu);
	return promise_event(b, event, who, other);
}

const struct uni_promise_model *uni_promise_builder_finish(struct uni_promise_builder *b)
{
	if (b->m.begin == UINT64_MAX)
		b->m.begin = b->m.end = 0;
	for (unsigned i = 0; i < UNI_PROMISE_CPUS; i++) {
		/* If there is no memory for a silence, its time counts as heard. */
		(void)uni_promise_builder_heard(b, i, b->m.end);
		end_run(b, &b->cpus[i]);
		end_pause(b, &b->cpus[i]);
	}
	for (uint32_t i = 0; i < b->m.all.nr; i++) {
		b->m.all.v[i].heir = uni_promise_meant(&b->m, i);
		uni_promise_end_waits(&b->m, i);
		b->m.all.v[i].wait_ns += uni_promise_open_wait_ns(&b->m, &b->m.all.v[i]);
	}
	uni_promise_mark_needed(&b->m);
	return &b->m;
}
