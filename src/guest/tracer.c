/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that a guest tells the tracer of, as MirageOS' are: promises, which have no stack. The
 * guest keeps a table of those that are open (uni_promise_keep()), and its layout is ours. The
 * table says which of them was the last to get a CPU. In a guest with one CPU that one runs on vCPU
 * 0. For guests that have no threads of another kind.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "guest/model.h"
#include "uniscope/promise.h"

#define ROOM_MAX 65536u

enum { HEAD, KEEPER };

static const struct uni_model_struct structs[] = { { 0 } };

struct table {
	uint64_t first; /* place */
	uint32_t room;
	bool whole;	  /* nothing of it is missing or just being changed */
	uint64_t running; /* a promise; UNI_PROMISE_NOBODY: none */
};

/* 0: it has none. */
static bool read_table_address(struct uni_look *look, uint64_t *ret)
{
	return uni_look_u64(
		look, look->m->sym[HEAD] + offsetof(struct uni_trace_head, promises), ret);
}

static bool find_table(struct uni_look *look, struct table *ret)
{
	struct uni_trace_promises t;
	uint64_t table;

	if (!read_table_address(look, &table) || table == 0 ||
		uni_as_read(look->as, uni_gva_of(table), &t, sizeof(t)) != 0 || t.room == 0 ||
		t.room > ROOM_MAX || (t.room & (t.room - 1)) != 0 ||
		!uni_range_ok(table, sizeof(t) + t.room * sizeof(struct uni_trace_promise)))
		return false;
	*ret = (struct table){ table + sizeof(t), t.room, t.busy == 0 && t.missed == 0,
		t.running != 0 ? t.running : UNI_PROMISE_NOBODY };
	return true;
}

static uint64_t place_at(const struct table *t, uint32_t i)
{
	return t->first + i * sizeof(struct uni_trace_promise);
}

static bool read_place(struct uni_look *look, uint64_t at, struct uni_trace_promise *ret)
{
	return uni_as_read(look->as, uni_gva_of(at), ret, sizeof(*ret)) == 0;
}

/* Whatever waits is a thread, too, but for a lock: it waits for its owner. */
static bool is_thread(const struct uni_trace_promise *p)
{
	return p->id != UNI_PROMISE_NOBODY && p->type != UNI_PROMISE_LOCK &&
	       (p->type == UNI_PROMISE_ASYNC || p->type == UNI_PROMISE_THREAD ||
		       p->waits_for != UNI_PROMISE_NOBODY);
}

static void each_told_thread(struct uni_look *look)
{
	struct table t;
	uint64_t table;

	if (!find_table(look, &t)) {
		if (!read_table_address(look, &table) || table != 0)
			(void)uni_look_cut(look, UNI_THREADS_FAULT);
		return;
	}
	for (uint32_t i = 0; i < t.room; i++) {
		struct uni_trace_promise p;

		if (!read_place(look, place_at(&t, i), &p)) {
			look->list->cut = UNI_THREADS_FAULT;
			return;
		}
		if (is_thread(&p) && !uni_look_add(look, place_at(&t, i)))
			return;
	}
	if (!t.whole)
		look->list->cut = UNI_THREADS_MORE;
}

/* The place that has this promise: searched as the guest does (guest/promise_table.c). 0: none. */
static uint64_t find_promise(struct uni_look *look, uint64_t id)
{
	struct table t = { 0 };
	struct uni_trace_promise p;
	uint32_t i;

	if (!find_table(look, &t))
		return 0;
	i = (uint32_t)(id * 0x9e3779b97f4a7c15ull >> 32);
	for (uint32_t n = 0; n < t.room; n++, i++) {
		uint64_t at = place_at(&t, i & (t.room - 1));

		if (!read_place(look, at, &p) || p.id == UNI_PROMISE_NOBODY)
			return 0;
		if (p.id == id)
			return at;
	}
	return 0;
}

static void read_name(struct uni_look *look, uint64_t place, char *ret, size_t cap)
{
	uni_look_text(look, place + offsetof(struct uni_trace_promise, name),
		sizeof(((struct uni_trace_promise *)0)->name), ret, cap);
}

/* As the OCaml port names one: "sleep 2000 us". */
static bool is_sleep(const char *name)
{
	static const char begin[] = "sleep ";
	size_t n;

	if (strncmp(name, begin, sizeof(begin) - 1) != 0)
		return false;
	name += sizeof(begin) - 1;
	n = strspn(name, "0123456789");
	return n != 0 && strcmp(name + n, " us") == 0;
}

static void read_wait(
	struct uni_look *look, const struct uni_trace_promise *p, struct uni_guest_thread *t)
{
	uint64_t of = find_promise(look, p->waits_for);

	t->state = UNI_THREAD_BLOCKED;
	t->wait_on = p->waits_for;
	if (of != 0)
		read_name(look, of, t->wait_name, sizeof(t->wait_name));
	if ((p->flags & UNI_TRACE_PROMISE_MORE) != 0)
		(void)snprintf(t->wait_name, sizeof(t->wait_name), "several");
	else if (t->wait_name[0] == '\0')
		(void)snprintf(t->wait_name, sizeof(t->wait_name), "a promise");
	else if (is_sleep(t->wait_name))
		t->state = UNI_THREAD_SLEEPING;
}

static bool read_thread(struct uni_look *look, struct uni_guest_thread *t)
{
	struct uni_trace_promise p;

	if (!read_place(look, t->object, &p))
		return false;
	t->number = p.id;
	t->has_number = true;
	if (p.waits_for != UNI_PROMISE_NOBODY)
		read_wait(look, &p, t);
	read_name(look, t->object, t->name, sizeof(t->name));
	uni_look_blank(look, t);
	return true;
}

/* With several CPUs, the table does not say on which one. A thread that waits is about to leave
 * its CPU, or has left it unheard. */
static uint64_t find_current(struct uni_look *look, uint32_t vcpu)
{
	struct table t = { 0 };
	struct uni_trace_promise p;
	uint32_t nr_cpus;
	uint64_t at;

	if (vcpu != 0 ||
		uni_as_read(look->as,
			uni_gva_of(look->m->sym[HEAD] + offsetof(struct uni_trace_head, nr_cpus)),
			&nr_cpus, sizeof(nr_cpus)) != 0 ||
		nr_cpus != 1 || !find_table(look, &t) || t.running == UNI_PROMISE_NOBODY)
		return 0;
	at = find_promise(look, t.running);
	if (at == 0 || !read_place(look, at, &p) || p.waits_for != UNI_PROMISE_NOBODY)
		return 0;
	return is_thread(&p) || p.name[0] != '\0' ? at : 0;
}

const struct uni_guest_ops uni_guest_tracer = {
	.name = "tracer",
	.title = "uniscope's tracer",
	.no_stacks = true,
	.syms = { [HEAD] = "uni_trace_head", [KEEPER] = "uni_promise_keeper" },
	.structs = structs,
	.each = each_told_thread,
	.read = read_thread,
	.current = find_current,
};
