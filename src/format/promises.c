/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/promises.h"

#include <stdio.h>

#include "base/checked.h"

#define NAME_BYTES 128
#define LOOK_RUNS \
	256 /* that end behind a moment, for the one that had begun: CPUs run side by side */

struct walk {
	const struct uni_promise_model *m;
	int (*fn)(void *arg, const struct uni_promise_part *part);
	void *arg;
};

static const char *model_text(const struct walk *w, uint32_t s)
{
	return uni_strtab_get(w->m->text, s);
}

static uint64_t closed_end(const struct walk *w, uint64_t begin, uint64_t end)
{
	return uni_max(begin, end == UNI_PROMISE_OPEN ? w->m->end : end);
}

static int walk_lives(struct walk *w)
{
	static const char *const fates[] = { "", "resolved", "failed", "became another" };
	char buf[NAME_BYTES];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->all.nr; i++) {
		const struct uni_promise *p = &w->m->all.v[i];
		const struct uni_promise_part part = { .kind = UNI_PART_LIFE,
			.nr = (uint32_t)i,
			.begin = p->begin,
			.end = closed_end(w, p->begin, p->end),
			.fate = p->fate < uni_array_len(fates) ? fates[p->fate] : "",
			.name = uni_promise_name(w->m, (uint32_t)i, buf, sizeof(buf)) };

		rc = w->fn(w->arg, &part);
	}
	return rc;
}

static int walk_waits(struct walk *w)
{
	char buf[NAME_BYTES], name[NAME_BYTES + 16];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->waits.nr; i++) {
		const struct uni_promise_wait *x = &w->m->waits.v[i];
		const struct uni_promise_part part = { .kind = UNI_PART_WAIT,
			.nr = (uint32_t)i,
			.promise = x->waiter,
			.begin = x->begin,
			.end = closed_end(w, x->begin, x->end),
			.name = name };

		(void)snprintf(name, sizeof(name), "waits for %s",
			uni_promise_name(w->m, x->on, buf, sizeof(buf)));
		rc = w->fn(w->arg, &part);
	}
	return rc;
}

static int walk_labels(struct walk *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->labels.nr; i++) {
		const struct uni_promise_label *l = &w->m->labels.v[i];
		const struct uni_promise_part part = { .kind = UNI_PART_LABEL,
			.nr = l->promise,
			.begin = l->time,
			.end = l->time,
			.name = model_text(w, l->text) };

		if (l->promise != UNI_PROMISE_NONE)
			rc = w->fn(w->arg, &part);
	}
	return rc;
}

static int walk_runs(struct walk *w)
{
	char buf[NAME_BYTES];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->runs.nr; i++) {
		const struct uni_promise_run *r = &w->m->runs.v[i];
		const struct uni_promise_part part = { .kind = UNI_PART_RUN,
			.nr = r->promise,
			.cpu = r->cpu,
			.begin = r->begin,
			.end = closed_end(w, r->begin, r->end),
			.name = uni_promise_name(w->m, r->promise, buf, sizeof(buf)) };

		rc = w->fn(w->arg, &part);
	}
	return rc;
}

static int walk_pauses(struct walk *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->pauses.nr; i++) {
		const struct uni_promise_pause *p = &w->m->pauses.v[i];
		const struct uni_promise_part part = { .kind = UNI_PART_PAUSE,
			.cpu = p->cpu,
			.begin = p->begin,
			.end = closed_end(w, p->begin, p->end),
			.name = p->kind == UNI_PE_GC ? "[gc]" : "[sleep]" };

		rc = w->fn(w->arg, &part);
	}
	return rc;
}

/* The CPU that ran `who` at that time; false: not known. */
static bool find_cpu(const struct walk *w, uint32_t who, uint64_t time, uint32_t *cpu_ret)
{
	size_t low = 0, high = w->m->runs.nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->m->runs.v[mid].end < time)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i < w->m->runs.nr && i - low < LOOK_RUNS; i++) {
		const struct uni_promise_run *r = &w->m->runs.v[i];

		if (r->promise != who || r->begin > time)
			continue;
		*cpu_ret = r->cpu;
		return true;
	}
	return false;
}

static int walk_wakes(struct walk *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->runs.nr; i++) {
		const struct uni_promise_run *r = &w->m->runs.v[i];
		const struct uni_promise_wait *x =
			r->wait != UNI_PROMISE_NONE ? &w->m->waits.v[r->wait] : NULL;
		struct uni_promise_part part = {
			.kind = UNI_PART_WAKE, .nr = r->wait, .cpu = r->cpu, .name = "wakes"
		};

		if (x == NULL || x->waker == UNI_PROMISE_NONE || x->ready > r->begin ||
			!find_cpu(w, x->waker, x->ready, &part.from))
			continue;
		part.begin = x->ready;
		part.end = r->begin;
		rc = w->fn(w->arg, &part);
	}
	return rc;
}

static int walk_counts(struct walk *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->m->counts.nr; i++) {
		const struct uni_promise_count *c = &w->m->counts.v[i];
		const struct uni_promise_part part = { .kind = UNI_PART_COUNT,
			.nr = c->counter,
			.begin = c->time,
			.end = c->time,
			.value = c->value,
			.name = model_text(w, c->counter) };

		rc = w->fn(w->arg, &part);
	}
	return rc;
}

int uni_promise_parts(const struct uni_promise_model *m,
	int (*fn)(void *arg, const struct uni_promise_part *part), void *arg)
{
	static int (*const all[])(struct walk *) = { walk_lives, walk_waits, walk_labels, walk_runs,
		walk_pauses, walk_wakes, walk_counts };
	struct walk w = { m, fn, arg };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < uni_array_len(all); i++)
		rc = all[i](&w);
	return rc;
}
