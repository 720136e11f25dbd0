/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of threads and promises that are open now (struct uni_trace_promises), for a recording
 * that begins when something already hangs. Places are found by hashing, and the next ones after.
 * Whoever finds the table busy leaves it as it is and counts that: an interrupt cannot wait for the
 * code that it interrupted. */
#include "uniscope/promise.h"

#include "machine.h"
#include "promise_table.h"

#define TRIES 1000 /* while another CPU changes it */

static struct uni_trace_promises *table;

static struct uni_trace_promise *table_places(void)
{
	return (struct uni_trace_promise *)(table + 1);
}

static uint32_t hash_of(uint64_t id)
{
	return (uint32_t)(id * 0x9e3779b97f4a7c15ULL >> 32);
}

static uint32_t home_of(uint64_t id)
{
	return hash_of(id) & (table->room - 1);
}

/* Promises that have become others are still waited for by their own ids. A newer one may take the
 * place of an older one, which is `forgotten` then. Equal ids: an empty place. */
#define BECAME 256
static struct {
	uint64_t id, other;
} became[BECAME];
static int forgotten;

/* The one that it has become, through any number of others. */
static uint64_t find_meant(uint64_t id)
{
	for (unsigned n = 0; n < BECAME; n++) {
		unsigned i = hash_of(id) % BECAME;

		if (became[i].id != id || became[i].other == id)
			break;
		id = became[i].other;
	}
	return id;
}

/* other == id: it is made anew. */
static void keep_meant(uint64_t id, uint64_t other)
{
	unsigned i = hash_of(id) % BECAME;

	if (became[i].id != id && other == id)
		return;
	forgotten |= became[i].id != id && became[i].id != became[i].other;
	became[i].id = id;
	became[i].other = other;
}

static struct uni_trace_promise *find_place(uint64_t id)
{
	for (uint32_t n = 0, i = home_of(id); n < table->room;
		n++, i = (i + 1) & (table->room - 1)) {
		if (table_places()[i].id == id)
			return &table_places()[i];
		if (table_places()[i].id == UNI_PROMISE_NOBODY)
			break;
	}
	return (void *)0;
}

/* The place of `id`, or a new one; NULL: there is no room. */
static struct uni_trace_promise *find_or_add(uint64_t id)
{
	struct uni_trace_promise *p = find_place(id);
	uint32_t i = home_of(id);

	if (p || id == UNI_PROMISE_NOBODY)
		return p;
	if (table->used >= table->room / 4 * 3) {
		table->missed++;
		return p;
	}
	while (table_places()[i].id != UNI_PROMISE_NOBODY)
		i = (i + 1) & (table->room - 1);
	p = &table_places()[i];
	*p = (struct uni_trace_promise){ .id = id,
		.creator = UNI_PROMISE_NOBODY,
		.waits_for = UNI_PROMISE_NOBODY,
		.since = uni_machine_time(),
		.type = UNI_TRACE_PROMISE_UNTOLD };
	table->used++;
	return p;
}

/* Entries behind it that collided with it move up, so that no search ends too early. */
static void remove_place(struct uni_trace_promise *p)
{
	uint32_t mask = table->room - 1, hole = (uint32_t)(p - table_places());

	for (uint32_t i = (hole + 1) & mask; table_places()[i].id != UNI_PROMISE_NOBODY;
		i = (i + 1) & mask) {
		if (((i - home_of(table_places()[i].id)) & mask) < ((i - hole) & mask))
			continue;
		table_places()[hole] = table_places()[i];
		hole = i;
	}
	table_places()[hole].id = UNI_PROMISE_NOBODY;
	table->used--;
}

static void note_wait(uint64_t who, uint64_t on)
{
	struct uni_trace_promise *p = find_or_add(who), *of;

	if (p && p->waits_for != on) {
		p->flags |= p->waits_for != UNI_PROMISE_NOBODY ? UNI_TRACE_PROMISE_MORE : 0;
		p->waits_for = on;
		p->since = uni_machine_time();
	}
	/* Which one it is now is not known. */
	if (forgotten && on != UNI_PROMISE_NOBODY && !find_place(on))
		table->missed++;
	of = find_or_add(on);
	if (of)
		of->flags |= UNI_TRACE_PROMISE_AWAITED;
}

static void note_run(uint64_t who)
{
	struct uni_trace_promise *p = find_place(who);

	if (p) {
		p->waits_for = UNI_PROMISE_NOBODY;
		p->flags &= ~(uint32_t)UNI_TRACE_PROMISE_MORE;
	}
}

static int is_lock(const struct uni_trace_promise *p)
{
	return p && p->type == UNI_PROMISE_LOCK;
}

/* Whoever wakes up need not have got the lock that it waits for. */
static void note_switch(uint64_t who)
{
	const struct uni_trace_promise *p = find_place(who);

	table->running = who;
	if (p && p->waits_for != UNI_PROMISE_NOBODY && !is_lock(find_place(p->waits_for)))
		note_run(who);
}

/* The lock waits for its owner, NOBODY for none. */
static void note_owner(uint64_t lock, uint64_t owner)
{
	struct uni_trace_promise *p = owner == UNI_PROMISE_NOBODY ? find_place(lock)
								  : find_or_add(lock),
				 *has = find_place(owner);

	if (has && owner != UNI_PROMISE_NOBODY)
		has->flags |= UNI_TRACE_PROMISE_OWNS;

	if (!p)
		return;
	p->type = UNI_PROMISE_LOCK;
	p->waits_for = owner;
	p->flags &= ~(uint32_t)UNI_TRACE_PROMISE_ORPHAN;
	p->since = uni_machine_time();
	/* There may be any number of locks without a name. */
	if (owner == UNI_PROMISE_NOBODY && !p->name[0] && !(p->flags & UNI_TRACE_PROMISE_AWAITED))
		remove_place(p);
}

static void note_become(uint64_t which, uint64_t other)
{
	struct uni_trace_promise *p = find_place(which),
				 *to = which == other ? (void *)0 : find_or_add(other);

	if (which != other)
		keep_meant(which, other);
	if (table->running == which)
		table->running = other;
	if (!p || !to)
		return;
	for (uint32_t i = 0;
		p->flags & (UNI_TRACE_PROMISE_AWAITED | UNI_TRACE_PROMISE_OWNS) && i < table->room;
		i++) {
		if (table_places()[i].id != UNI_PROMISE_NOBODY &&
			table_places()[i].waits_for == which)
			table_places()[i].waits_for = other;
	}
	to->flags |= p->flags & (UNI_TRACE_PROMISE_AWAITED | UNI_TRACE_PROMISE_MUST_END |
					UNI_TRACE_PROMISE_OWNS);
	for (unsigned i = 0; !to->name[0] && i < sizeof(p->name) && p->name[i]; i++)
		to->name[i] = p->name[i];
	remove_place(p);
}

static void note_create(uint64_t by, uint64_t made, uint32_t type)
{
	struct uni_trace_promise *p = find_place(made);

	keep_meant(made, made);
	if (p)
		remove_place(p);
	p = find_or_add(made);
	if (p) {
		p->creator = by;
		p->type = type;
	}
}

/* The first one, as in a recording: others are remarks on what it does. */
static void note_name(uint64_t which, const char *text)
{
	struct uni_trace_promise *p = find_or_add(which);

	if (!p || p->name[0])
		return;
	for (unsigned i = 0; i < sizeof(p->name) - 1 && text[i]; i++)
		p->name[i] = text[i];
}

static void note_end(uint64_t which)
{
	struct uni_trace_promise *p = find_place(which);

	if (table->running == which)
		table->running = UNI_PROMISE_NOBODY;
	if (!p)
		return;
	for (uint32_t i = 0; p->flags & UNI_TRACE_PROMISE_OWNS && i < table->room; i++) {
		struct uni_trace_promise *lock = &table_places()[i];

		if (is_lock(lock) && lock->waits_for == which)
			lock->flags |= UNI_TRACE_PROMISE_ORPHAN;
	}
	remove_place(p);
}

static void set_flags(struct uni_trace_promise *p, uint32_t set, uint32_t clear)
{
	if (p)
		p->flags = (p->flags & ~clear) | set;
}

static void change_lock(unsigned kind, uint64_t a, uint64_t lock)
{
	struct uni_trace_promise *p;

	if (kind == UNI_PROMISE_TRY_READ) {
		note_wait(a, lock);
		p = find_place(lock);
		if (p)
			p->type = UNI_PROMISE_LOCK;
		return;
	}
	note_owner(lock, a);
	note_run(a);
}

static void change_table(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text)
{
	a = find_meant(a);
	b = kind == UNI_PROMISE_CREATE ? b : find_meant(b);
	if (c == UNI_PROMISE_LOCK && kind != UNI_PROMISE_CREATE) {
		change_lock(kind, a, b);
		return;
	}
	switch (kind) {
	case UNI_PROMISE_CREATE:
		note_create(a, b, c);
		break;
	case UNI_PROMISE_READ:
		set_flags(find_place(b), 0, UNI_TRACE_PROMISE_LONELY);
		note_run(a);
		break;
	case UNI_PROMISE_RESOLVE:
	case UNI_PROMISE_FAIL:
		note_end(b);
		break;
	case UNI_PROMISE_BECOME:
		note_become(a, b);
		break;
	case UNI_PROMISE_LABEL:
		note_name(a, text);
		break;
	case UNI_PROMISE_SWITCH:
		note_switch(a);
		break;
	case UNI_PROMISE_HIATUS:
		table->running = UNI_PROMISE_NOBODY;
		break;
	case UNI_PROMISE_SIGNAL:
		note_run(a);
		break;
	case UNI_PROMISE_TRY_READ:
	case UNI_PROMISE_READ_LATER:
		note_wait(a, b);
		break;
	case UNI_PROMISE_NOTIFY:
		note_run(a);
		if (a == UNI_PROMISE_NOBODY)
			set_flags(find_or_add(b), UNI_TRACE_PROMISE_LONELY, 0);
		break;
	case UNI_PROMISE_SHOULD_RESOLVE:
		set_flags(find_or_add(a), UNI_TRACE_PROMISE_MUST_END, 0);
		break;
	default:
		break;
	}
}

static void keep_event(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text)
{
	for (int i = 0; __atomic_exchange_n(&table->busy, 1, __ATOMIC_ACQUIRE); i++) {
		if (i == TRIES) {
			__atomic_fetch_add(&table->missed, 1, __ATOMIC_RELAXED);
			return;
		}
	}
	change_table(kind, a, b, c, text);
	__atomic_store_n(&table->busy, 0, __ATOMIC_RELEASE);
}

int uni_promise_keep(void *mem, uint64_t size)
{
	uint32_t room = 16;

	if (((uint64_t)mem & 63) || size < sizeof(*table) + room * sizeof(*table_places()))
		return -1;
	while (room < 65536 && sizeof(*table) + 2ULL * room * sizeof(*table_places()) <= size)
		room *= 2;
	table = mem;
	*table = (struct uni_trace_promises){ .room = room };
	for (uint32_t i = 0; i < room; i++)
		table_places()[i].id = UNI_PROMISE_NOBODY;
	for (uint32_t i = 0; i < BECAME; i++)
		became[i].id = became[i].other = 0;
	forgotten = 0;
	uni_promise_keeper = keep_event;
	uni_trace_head.promises = (uint64_t)table;
	uni_machine_release();
	uni_trace_head.features |= UNI_TRACE_KEEPS_PROMISES;
	*(volatile uint32_t *)&uni_trace_head.control.promises |= UNI_TRACE_PROMISES_KEEP;
	return 0;
}
