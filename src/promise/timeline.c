/* SPDX-License-Identifier: BSD-2-Clause */
#include "promise/timeline.h"

#include <stdlib.h>

#include "base/vec.h"
#include "promise/record.h"

struct uni_promise_timeline {
	UNI_VEC(struct uni_call_event) all;
	UNI_VEC(uint64_t) words;
	bool was_read;
};

struct uni_promise_timeline *uni_promise_timeline_create(void)
{
	return calloc(1, sizeof(struct uni_promise_timeline));
}

void uni_promise_timeline_destroy(struct uni_promise_timeline *t)
{
	if (t == NULL)
		return;
	uni_vec_free(&t->all);
	uni_vec_free(&t->words);
	free(t);
}

int uni_promise_timeline_add(void *arg, const struct uni_promise_event *event)
{
	struct uni_promise_timeline *t = arg;
	struct uni_call_event e = {
		.type = UNI_CALL_EXT, .cpu = (uint16_t)event->cpu, .ns = event->time
	};
	uint64_t words[UNI_PROMISE_WORDS];

	if (event->kind == UNI_PE_LOST) {
		e.type = UNI_CALL_LOST;
		e.count = event->value > 0 ? (uint64_t)event->value : 0;
		return uni_vec_push(&t->all, e) ? 0 : -UNI_ENOMEM;
	}
	if (t->words.nr > UINT32_MAX - UNI_PROMISE_WORDS)
		return -UNI_ENOMEM;
	e.first = (uint32_t)t->words.nr;
	e.nr = (uint16_t)uni_promise_to_record(event, words, &e.cls);
	for (unsigned i = 0; i < e.nr; i++) {
		if (!uni_vec_push(&t->words, words[i]))
			return -UNI_ENOMEM;
	}
	return uni_vec_push(&t->all, e) ? 0 : -UNI_ENOMEM;
}

static int read_once(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_promise_timeline *t = ctx;

	if (t->was_read || t->all.nr == 0)
		return 0;
	t->was_read = true;
	*ret = t->all.v;
	*nr_ret = t->all.nr;
	return 1;
}

static const char *no_func(void *ctx, uint32_t func)
{
	return "";
}

static const char *no_thread(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	*number_ret = 0;
	return "";
}

static const uint64_t *words_of(void *ctx, const struct uni_call_event *e)
{
	return ((struct uni_promise_timeline *)ctx)->words.v + e->first;
}

struct uni_timeline uni_promise_timeline_get(struct uni_promise_timeline *t)
{
	return (struct uni_timeline){ .ctx = t,
		.read = read_once,
		.func = no_func,
		.thread = no_thread,
		.words = words_of,
		.ns_per_cycle = 1 };
}
