/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page has limited numbers of promises and of other things. It has the first ones, and those that
 * the findings are about, wherever they are: users look for the latter.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/err.h"
#include "page/parts.h"
#include "promise/query.h"

#define FINDINGS_MAX 65536
#define PARTS_EACH   8 /* runs, waits, ... that each promise may have on average */

/* The number in the page; 0: none, or left out. */
static uint64_t index_of(const struct uni_part_promises *p, uint32_t i)
{
	return i == UNI_PROMISE_NONE ? 0 : p->number[i];
}

static uint32_t use_text(struct uni_part_promises *p, uint32_t text)
{
	p->used[text] = true;
	return text;
}

/* Is there room for one more thing that belongs to `who`? */
static bool takes_part(struct uni_part_promises *p, struct uni_column *c, uint32_t who)
{
	if (who != UNI_PROMISE_NONE && p->number[who] == 0)
		return false;
	if (c != NULL && c->nr < p->max_parts)
		return true;
	p->left_parts++;
	return false;
}

static uint64_t since_begin(const struct uni_promise_model *m, uint64_t time)
{
	return time > m->begin ? time - m->begin : 0;
}

/* 0: never. */
static uint64_t time_or_never(const struct uni_promise_model *m, uint64_t time)
{
	return time == UNI_PROMISE_OPEN ? 0 : since_begin(m, time) + 1;
}

static void put_promises(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *id = uni_blob_column(b, "p.id"), *type = uni_blob_column(b, "p.type");
	struct uni_column *fate = uni_blob_column(b, "p.fate");
	struct uni_column *flags = uni_blob_column(b, "p.flags");
	struct uni_column *begin = uni_blob_column(b, "p.begin");
	struct uni_column *life = uni_blob_column(b, "p.life");
	struct uni_column *run = uni_blob_column(b, "p.run"), *wait = uni_blob_column(b, "p.wait");
	struct uni_column *creator = uni_blob_column(b, "p.creator");
	struct uni_column *resolver = uni_blob_column(b, "p.resolver");
	struct uni_column *other = uni_blob_column(b, "p.other");
	struct uni_column *label = uni_blob_column(b, "p.label");
	struct uni_column *failure = uni_blob_column(b, "p.failure");

	for (size_t i = 0; i < m->all.nr; i++) {
		const struct uni_promise *one = &m->all.v[i];
		uint64_t end = one->end != UNI_PROMISE_OPEN ? one->end : one->last;

		if (p->number[i] == 0)
			continue;
		uni_column_put(id, one->id);
		uni_column_put(type, one->type + !uni_promise_has_kind(one));
		uni_column_put(fate, one->fate);
		uni_column_put(
			flags, (unsigned)one->created | (unsigned)one->should_resolve << 1 |
				       (unsigned)uni_promise_shares_label(m, (uint32_t)i) << 2);
		uni_column_put(begin, since_begin(m, one->begin));
		uni_column_put(life, end > one->begin ? end - one->begin : 0);
		uni_column_put(run, one->run_ns);
		uni_column_put(wait, one->wait_ns);
		uni_column_put(creator, index_of(p, one->creator));
		uni_column_put(resolver, index_of(p, one->resolver));
		uni_column_put(other, one->fate == UNI_FATE_BECAME ? index_of(p, one->other) : 0);
		uni_column_put(label, use_text(p, one->label));
		uni_column_put(failure, use_text(p, one->failure));
	}
}

static void put_runs(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *who = uni_blob_column(b, "run.who");
	struct uni_column *cpu = uni_blob_column(b, "run.cpu");
	struct uni_column *begin = uni_blob_column(b, "run.begin");
	struct uni_column *dur = uni_blob_column(b, "run.dur");
	uint64_t last = m->begin;

	for (size_t i = 0; i < m->runs.nr; i++) {
		const struct uni_promise_run *r = &m->runs.v[i];

		if (!takes_part(p, who, r->promise))
			continue;
		uni_column_put(who, p->number[r->promise] - 1);
		uni_column_put(cpu, r->cpu);
		uni_column_put_signed(begin, (int64_t)(r->begin - last));
		uni_column_put(dur, r->end > r->begin ? r->end - r->begin : 0);
		last = r->begin;
	}
}

static void put_waits(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *who = uni_blob_column(b, "wait.who");
	struct uni_column *on = uni_blob_column(b, "wait.on");
	struct uni_column *waker = uni_blob_column(b, "wait.waker");
	struct uni_column *begin = uni_blob_column(b, "wait.begin");
	struct uni_column *ready = uni_blob_column(b, "wait.ready");
	struct uni_column *end = uni_blob_column(b, "wait.end");

	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		/* A wait for a promise that was left out cannot be shown. */
		if (p->number[w->on] == 0 || !takes_part(p, who, w->waiter))
			continue;
		uni_column_put(who, p->number[w->waiter] - 1);
		uni_column_put(on, p->number[w->on] - 1);
		uni_column_put(waker, index_of(p, w->waker));
		uni_column_put(begin, since_begin(m, w->begin));
		uni_column_put(ready, time_or_never(m, w->ready));
		uni_column_put(end, time_or_never(m, w->end));
	}
}

static void put_edges(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *kind = uni_blob_column(b, "edge.kind");
	struct uni_column *from = uni_blob_column(b, "edge.from");
	struct uni_column *to = uni_blob_column(b, "edge.to");
	struct uni_column *time = uni_blob_column(b, "edge.time");

	for (size_t i = 0; i < m->edges.nr; i++) {
		const struct uni_promise_edge *e = &m->edges.v[i];

		if (!takes_part(p, kind, e->from) || !takes_part(p, kind, e->to))
			continue;
		uni_column_put(kind, e->kind);
		uni_column_put(from, index_of(p, e->from));
		uni_column_put(to, index_of(p, e->to));
		uni_column_put(time, since_begin(m, e->time));
	}
}

static void put_labels(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *who = uni_blob_column(b, "label.who");
	struct uni_column *time = uni_blob_column(b, "label.time");
	struct uni_column *text = uni_blob_column(b, "label.text");

	for (size_t i = 0; i < m->labels.nr; i++) {
		const struct uni_promise_label *l = &m->labels.v[i];

		if (!takes_part(p, who, l->promise))
			continue;
		uni_column_put(who, p->number[l->promise] - 1);
		uni_column_put(time, since_begin(m, l->time));
		uni_column_put(text, use_text(p, l->text));
	}
}

static void put_counts(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *what = uni_blob_column(b, "count.what");
	struct uni_column *time = uni_blob_column(b, "count.time");
	struct uni_column *value = uni_blob_column(b, "count.value");

	for (size_t i = 0; i < m->counts.nr; i++) {
		const struct uni_promise_count *c = &m->counts.v[i];

		if (!takes_part(p, what, UNI_PROMISE_NONE))
			continue;
		uni_column_put(what, use_text(p, c->counter));
		uni_column_put(time, since_begin(m, c->time));
		uni_column_put_signed(value, c->value);
	}
}

static void put_pauses(
	struct uni_blob *b, const struct uni_promise_model *m, struct uni_part_promises *p)
{
	struct uni_column *kind = uni_blob_column(b, "pause.kind");
	struct uni_column *cpu = uni_blob_column(b, "pause.cpu");
	struct uni_column *begin = uni_blob_column(b, "pause.begin");
	struct uni_column *dur = uni_blob_column(b, "pause.dur");

	for (size_t i = 0; i < m->pauses.nr; i++) {
		const struct uni_promise_pause *one = &m->pauses.v[i];

		if (!takes_part(p, kind, UNI_PROMISE_NONE))
			continue;
		uni_column_put(kind, one->kind);
		uni_column_put(cpu, one->cpu);
		uni_column_put(begin, since_begin(m, one->begin));
		uni_column_put(dur, one->end > one->begin ? one->end - one->begin : 0);
	}
}

static void keep_promise(struct uni_part_promises *p, uint32_t i)
{
	if (i != UNI_PROMISE_NONE)
		p->number[i] = 1;
}

/* Keeps the promises that findings are about; returns how many findings have room. */
static size_t keep_found(
	struct uni_part_promises *p, const struct uni_finding *all, size_t nr, uint64_t max)
{
	size_t most = uni_min(nr, (size_t)uni_min(max, (uint64_t)FINDINGS_MAX));

	for (size_t i = 0; i < most; i++) {
		keep_promise(p, all[i].who);
		keep_promise(p, all[i].other);
		keep_promise(p, all[i].by);
	}
	p->left_parts += nr - most;
	return most;
}

/* Numbers the promises from 1 on, in their order. */
static void choose_promises(
	struct uni_part_promises *p, const struct uni_promise_model *m, uint64_t max)
{
	uint32_t next = 0;

	for (size_t i = 0; i < m->all.nr && i < max; i++)
		p->number[i] = 1;
	p->nr_findings = keep_found(p, p->findings.all.v, p->findings.all.nr, max);
	p->nr_doubts = keep_found(p, p->findings.doubts.v, p->findings.doubts.nr, max);
	for (size_t i = 0; i < m->all.nr; i++) {
		if (p->number[i] != 0)
			p->number[i] = ++next;
	}
	p->left_out = m->all.nr - next;
}

int uni_part_promises(struct uni_blob *b, const struct uni_promise_model *m, uint64_t max,
	struct uni_part_promises *p)
{
	max = max != 0 ? max : UNI_PAGE_PROMISES_MAX;
	p->max_parts = PARTS_EACH * max;
	p->number = calloc(m->all.nr + 1, sizeof(*p->number));
	p->used = calloc((size_t)uni_strtab_nr(m->text) + 1, sizeof(*p->used));
	if (p->number == NULL || p->used == NULL ||
		uni_promise_findings(m, UNI_PROMISE_BUSY_NS, &p->findings) != 0)
		return -UNI_ENOMEM;
	choose_promises(p, m, max);
	put_promises(b, m, p);
	put_runs(b, m, p);
	put_waits(b, m, p);
	put_edges(b, m, p);
	put_labels(b, m, p);
	put_counts(b, m, p);
	put_pauses(b, m, p);
	return 0;
}

void uni_part_promises_deinit(struct uni_part_promises *p)
{
	free(p->number);
	free(p->used);
	uni_findings_deinit(&p->findings);
}

static void describe_names(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_part_promises *p)
{
	uni_json_key(j, "strings");
	uni_json_array(j);
	for (uint32_t i = 0; i < uni_strtab_nr(m->text); i++)
		uni_json_str(j, p->used[i] ? uni_strtab_get(m->text, i) : "");
	uni_json_array_end(j);
	uni_json_key(j, "types");
	uni_json_array(j);
	/* As uni_promise_name() says them. */
	for (unsigned i = 0; i < UNI_PROMISE_TYPE_UNKNOWN; i++)
		uni_json_str(j, uni_promise_type_name(i));
	uni_json_str(j, "thread");
	uni_json_str(j, "unknown");
	uni_json_array_end(j);
	uni_json_key(j, "kinds");
	uni_json_array(j);
	for (unsigned i = 0; i < UNI_PE_NR; i++)
		uni_json_str(j, uni_promise_kind_name(i));
	uni_json_array_end(j);
}

static void describe_findings(struct uni_json *j, const struct uni_promise_model *m,
	const struct uni_part_promises *p, const char *key, const struct uni_finding *all,
	size_t nr)
{
	static const char *const kinds[] = { [UNI_FINDING_LOST_WAKEUP] = "lost_wakeup",
		[UNI_FINDING_UNRESOLVED] = "unresolved",
		[UNI_FINDING_CIRCLE] = "deadlock",
		[UNI_FINDING_STARVED] = "starved",
		[UNI_FINDING_ABANDONED] = "never_given_back" };

	uni_json_key(j, key);
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_finding *x = &all[i];

		uni_json_object(j);
		uni_json_kv(str, j, "kind", kinds[x->kind]);
		uni_json_kv(u64, j, "who", index_of(p, x->who));
		uni_json_kv(u64, j, "other", index_of(p, x->other));
		uni_json_kv(u64, j, "by", index_of(p, x->by));
		uni_json_kv(u64, j, "time", since_begin(m, x->time));
		uni_json_kv(u64, j, "ns", x->ns);
		if (x->kind == UNI_FINDING_LOST_WAKEUP && x->other != UNI_PROMISE_NONE)
			uni_json_kv(u64, j, "signal", time_or_never(m, m->all.v[x->other].lonely));
		if (x->kind == UNI_FINDING_STARVED)
			uni_json_kv(u64, j, "silent", x->silent);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void describe_unknown(struct uni_json *j, const struct uni_promise_model *m)
{
	char unknown[UNI_PROMISE_UNKNOWNS][UNI_PROMISE_UNKNOWN];
	size_t nr = uni_promise_unknown(m, unknown);

	uni_json_key(j, "unknown");
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++)
		uni_json_str(j, unknown[i]);
	uni_json_array_end(j);
}

void uni_part_promises_describe(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_part_promises *p)
{
	char begin[24];

	uni_json_key(j, "promises");
	uni_json_object(j);
	(void)snprintf(begin, sizeof(begin), "%llu", (unsigned long long)m->begin);
	uni_json_kv(str, j, "begin", begin);
	uni_json_kv(u64, j, "duration", m->end > m->begin ? m->end - m->begin : 0);
	uni_json_kv(u64, j, "events", m->events);
	uni_json_kv(u64, j, "lost", m->lost);
	uni_json_kv(bool, j, "begin_known", !uni_promise_begin_unknown(m));
	describe_unknown(j, m);
	uni_json_kv(u64, j, "left_out", p->left_out);
	uni_json_kv(u64, j, "left_parts", p->left_parts);
	describe_names(j, m, p);
	describe_findings(j, m, p, "findings", p->findings.all.v, p->nr_findings);
	describe_findings(j, m, p, "doubts", p->findings.doubts.v, p->nr_doubts);
	uni_json_object_end(j);
}
