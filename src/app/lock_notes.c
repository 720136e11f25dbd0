/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/lock_notes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "promise/query.h"
#include "promise/record.h"

#define NAME 96

struct uni_lock_notes {
	const struct uni_trace_input *in;
	struct uni_trace_values *values;
	struct uni_promise_builder *builder;
	bool failed; /* no memory: nothing is told any more */
};

struct uni_lock_notes *uni_lock_notes_open(
	const struct uni_trace_input *in, struct uni_trace_values *values)
{
	struct uni_lock_notes *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	*n = (struct uni_lock_notes){ in, values, uni_promise_builder_create(), false };
	if (n->builder == NULL) {
		uni_lock_notes_close(n);
		return NULL;
	}
	return n;
}

void uni_lock_notes_close(struct uni_lock_notes *n)
{
	if (n == NULL)
		return;
	uni_promise_builder_destroy(n->builder);
	free(n);
}

/* Gives it a name if the guest did not: the last one in the list of threads, or its variable's. */
static void name_promise(struct uni_lock_notes *n, uint32_t i)
{
	const struct uni_promise *p = &uni_promise_builder_model(n->builder)->all.v[i];

	for (size_t k = n->in->nr_threads; p->label == 0 && k-- > 0;) {
		if (n->in->thread[k].id == p->id &&
			uni_promise_builder_name(n->builder, p->id, n->in->thread[k].name) != 0)
			n->failed = true;
	}
	if (uni_promise_builder_name_thing(n->builder, i, uni_trace_values_at, n->values) != 0)
		n->failed = true;
}

static const char *name_of(struct uni_lock_notes *n, uint32_t i, char buf[NAME])
{
	return uni_promise_name(uni_promise_builder_model(n->builder), i, buf, NAME);
}

static void tell_event(struct uni_lock_notes *n, const struct uni_promise_event *p, uint32_t owner,
	char *ret, size_t cap)
{
	char lock_buf[NAME], buf[NAME], owner_buf[NAME];
	const uint32_t all[] = { uni_promise_find(n->builder, p->other),
		uni_promise_find(n->builder, p->thread), owner };
	const char *lock, *who;

	/* Two of one name are told apart, once both have it. */
	for (size_t i = 0; i < uni_array_len(all); i++) {
		if (all[i] != UNI_PROMISE_NONE)
			name_promise(n, all[i]);
	}
	lock = name_of(n, all[0], lock_buf);
	who = name_of(n, all[1], buf);

	if (p->kind == UNI_PE_NOTIFY)
		(void)snprintf(ret, cap, "%s is given back", lock);
	else if (p->kind == UNI_PE_READ)
		(void)snprintf(ret, cap, "%s has %s", who, lock);
	else if (owner == UNI_PROMISE_NONE)
		(void)snprintf(ret, cap, "%s waits for %s", who, lock);
	else
		(void)snprintf(ret, cap, "%s waits for %s, which %s has", who, lock,
			name_of(n, owner, owner_buf));
}

void uni_lock_notes_text(
	struct uni_lock_notes *n, const struct uni_call_event *e, char *ret, size_t cap)
{
	const uint64_t *words = uni_calls_words(n->values->calls, e);
	struct uni_promise_event p;
	uint32_t lock, owner = UNI_PROMISE_NONE;

	ret[0] = '\0';
	if (n->failed || !uni_promise_of_record(e->cls, words, e->nr, e->cpu, e->ns, 1, &p))
		return;
	lock = uni_promise_find(n->builder, p.other);
	if (lock != UNI_PROMISE_NONE)
		owner = uni_promise_owner(uni_promise_builder_model(n->builder), lock);
	n->failed = uni_promise_builder_add(n->builder, &p) != 0;
	if (!n->failed && uni_promise_names_lock(&p))
		tell_event(n, &p, owner, ret, cap);
}
