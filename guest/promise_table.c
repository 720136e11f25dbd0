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

static struct uni_trace_promise *places(void)
{
	return (struct uni_trace_promise *)(table + 1);
}

static uint32_t home(uint64_t id)
{
	return (uint32_t)(id * 0x9e3779b97f4a7c15ULL >> 32) & (table->room - 1);
}

static struct uni_trace_promise *find(uint64_t id)
{
	for (uint32_t n = 0, i = home(id); n < table->room; n++, i = (i + 1) & (table->room - 1)) {
		if (places()[i].id == id)
			return &places()[i];
		if (places()[i].id == UNI_PROMISE_NOBODY)
			break;
	}
	return (void *)0;
}

/* The place of `id`, or a new one; NULL: there is no room. */
static struct uni_trace_promise *know(uint64_t id)
{
	struct uni_trace_promise *p = find(id);
	uint32_t i = home(id);

	if (p || id == UNI_PROMISE_NOBODY)
		return p;
	if (table->used >= table->room / 4 * 3) {
		table->missed++;
		return p;
	}
	while (places()[i].id != UNI_PROMISE_NOBODY)
		i = (i + 1) & (table->room - 1);
	p = &places()[i];
	*p = (struct uni_trace_promise){ .id = id,
		.creator = UNI_PROMISE_NOBODY,
		.waits_for = UNI_PROMISE_NOBODY,
		.since = uni_machine_time(),
		.type = UNI_TRACE_PROMISE_UNTOLD };
	table->used++;
	return p;
}

/* Entries behind it that collided with it move up, so that no search ends too early. */
static void forget(struct uni_trace_promise *p)
{
	uint32_t mask = table->room - 1, hole = (uint32_t)(p - places());

	for (uint32_t i = (hole + 1) & mask; places()[i].id != UNI_PROMISE_NOBODY;
		i = (i + 1) & mask) {
		if (((i - home(places()[i].id)) & mask) < ((i - hole) & mask))
			continue;
		places()[hole] = places()[i];
		hole = i;
	}
	places()[hole].id = UNI_PROMISE_NOBODY;
	table->used--;
}

static void wait(uint64_t who, uint64_t on)
{
	struct uni_trace_promise *p = know(who), *of;

	if (p && p->waits_for != on) {
		p->flags |= p->waits_for != UNI_PROMISE_NOBODY ? UNI_TRACE_PROMISE_MORE : 0;
		p->waits_for = on;
		p->since = uni_machine_time();
	}
	of = know(on);
	if (of)
		of->flags |= UNI_TRACE_PROMISE_AWAITED;
}

static void runs(uint64_t who)
{
	struct uni_trace_promise *p = find(who);

	if (p) {
		p->waits_for = UNI_PROMISE_NOBODY;
		p->flags &= ~(uint32_t)UNI_TRACE_PROMISE_MORE;
	}
}

static void become(uint64_t which, uint64_t other)
{
	struct uni_trace_promise *p = find(which), *to = which == other ? (void *)0 : know(other);

	if (!p || !to)
		return;
	for (uint32_t i = 0; p->flags & UNI_TRACE_PROMISE_AWAITED && i < table->room; i++) {
		if (places()[i].id != UNI_PROMISE_NOBODY && places()[i].waits_for == which)
			places()[i].waits_for = other;
	}
	to->flags |= p->flags & (UNI_TRACE_PROMISE_AWAITED | UNI_TRACE_PROMISE_MUST_END);
	for (unsigned i = 0; !to->name[0] && i < sizeof(p->name) && p->name[i]; i++)
		to->name[i] = p->name[i];
	forget(p);
}

static void create(uint64_t by, uint64_t made, uint32_t type)
{
	struct uni_trace_promise *p = find(made);

	if (p)
		forget(p);
	p = know(made);
	if (p) {
		p->creator = by;
		p->type = type;
	}
}

static void name(uint64_t which, const char *text)
{
	struct uni_trace_promise *p = know(which);
	unsigned i = 0;

	for (; p && i < sizeof(p->name); i++)
		p->name[i] = 0;
	for (i = 0; p && i < sizeof(p->name) - 1 && text[i]; i++)
		p->name[i] = text[i];
}

static void end(uint64_t which)
{
	struct uni_trace_promise *p = find(which);

	if (p)
		forget(p);
}

static void flag(struct uni_trace_promise *p, uint32_t set, uint32_t clear)
{
	if (p)
		p->flags = (p->flags & ~clear) | set;
}

static void change(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text)
{
	switch (kind) {
	case UNI_PROMISE_CREATE:
		create(a, b, c);
		break;
	case UNI_PROMISE_READ:
		flag(find(b), 0, UNI_TRACE_PROMISE_LONELY);
		runs(a);
		break;
	case UNI_PROMISE_RESOLVE:
	case UNI_PROMISE_FAIL:
		end(b);
		break;
	case UNI_PROMISE_BECOME:
		become(a, b);
		break;
	case UNI_PROMISE_LABEL:
		name(a, text);
		break;
	case UNI_PROMISE_SWITCH:
	case UNI_PROMISE_SIGNAL:
		runs(a);
		break;
	case UNI_PROMISE_TRY_READ:
	case UNI_PROMISE_READ_LATER:
		wait(a, b);
		break;
	case UNI_PROMISE_NOTIFY:
		runs(a);
		if (a == UNI_PROMISE_NOBODY)
			flag(know(b), UNI_TRACE_PROMISE_LONELY, 0);
		break;
	case UNI_PROMISE_SHOULD_RESOLVE:
		flag(know(a), UNI_TRACE_PROMISE_MUST_END, 0);
		break;
	default:
		break;
	}
}

static void keep(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text)
{
	for (int i = 0; __atomic_exchange_n(&table->busy, 1, __ATOMIC_ACQUIRE); i++) {
		if (i == TRIES) {
			__atomic_fetch_add(&table->missed, 1, __ATOMIC_RELAXED);
			return;
		}
	}
	change(kind, a, b, c, text);
	__atomic_store_n(&table->busy, 0, __ATOMIC_RELEASE);
}

int uni_promise_keep(void *mem, uint64_t size)
{
	uint32_t room = 16;

	if (((uint64_t)mem & 63) || size < sizeof(*table) + room * sizeof(*places()))
		return -1;
	while (room < 65536 && sizeof(*table) + 2ULL * room * sizeof(*places()) <= size)
		room *= 2;
	table = mem;
	*table = (struct uni_trace_promises){ .room = room };
	for (uint32_t i = 0; i < room; i++)
		places()[i].id = UNI_PROMISE_NOBODY;
	uni_promise_keeper = keep;
	uni_trace_head.promises = (uint64_t)table;
	uni_machine_release();
	uni_trace_head.features |= UNI_TRACE_KEEPS_PROMISES;
	*(volatile uint32_t *)&uni_trace_head.control.promises |= UNI_TRACE_PROMISES_KEEP;
	return 0;
}
