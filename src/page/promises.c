/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "base/checked.h"
#include "page/parts.h"
#include "promise/query.h"

#define BUSY_NS 10000000 /* as `trace findings` has it */

/* 0: none. */
static uint64_t index_of(uint32_t i)
{
	return i == UNI_PROMISE_NONE ? 0 : (uint64_t)i + 1;
}

static uint64_t since(const struct uni_promise_model *m, uint64_t time)
{
	return time > m->begin ? time - m->begin : 0;
}

/* 0: never. */
static uint64_t maybe(const struct uni_promise_model *m, uint64_t time)
{
	return time == UNI_PROMISE_OPEN ? 0 : since(m, time) + 1;
}

static void put_promises(struct uni_blob *b, const struct uni_promise_model *m)
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
		const struct uni_promise *p = &m->all.v[i];
		uint64_t end = p->end != UNI_PROMISE_OPEN ? p->end : p->last;

		uni_column_put(id, p->id);
		uni_column_put(type, p->type);
		uni_column_put(fate, p->fate);
		uni_column_put(flags, (unsigned)p->created | (unsigned)p->should_resolve << 1);
		uni_column_put(begin, since(m, p->begin));
		uni_column_put(life, end > p->begin ? end - p->begin : 0);
		uni_column_put(run, p->run_ns);
		uni_column_put(wait, p->wait_ns);
		uni_column_put(creator, index_of(p->creator));
		uni_column_put(resolver, index_of(p->resolver));
		uni_column_put(other, p->fate == UNI_FATE_BECAME ? index_of(p->other) : 0);
		uni_column_put(label, p->label);
		uni_column_put(failure, p->failure);
	}
}

static void put_runs(struct uni_blob *b, const struct uni_promise_model *m)
{
	struct uni_column *who = uni_blob_column(b, "run.who");
	struct uni_column *cpu = uni_blob_column(b, "run.cpu");
	struct uni_column *begin = uni_blob_column(b, "run.begin");
	struct uni_column *dur = uni_blob_column(b, "run.dur");
	uint64_t last = m->begin;

	for (size_t i = 0; i < m->runs.nr; i++) {
		const struct uni_promise_run *r = &m->runs.v[i];

		uni_column_put(who, r->promise);
		uni_column_put(cpu, r->cpu);
		uni_column_put_signed(begin, (int64_t)(r->begin - last));
		uni_column_put(dur, r->end > r->begin ? r->end - r->begin : 0);
		last = r->begin;
	}
}

static void put_waits(struct uni_blob *b, const struct uni_promise_model *m)
{
	struct uni_column *who = uni_blob_column(b, "wait.who");
	struct uni_column *on = uni_blob_column(b, "wait.on");
	struct uni_column *waker = uni_blob_column(b, "wait.waker");
	struct uni_column *begin = uni_blob_column(b, "wait.begin");
	struct uni_column *ready = uni_blob_column(b, "wait.ready");
	struct uni_column *end = uni_blob_column(b, "wait.end");

	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		uni_column_put(who, w->waiter);
		uni_column_put(on, w->on);
		uni_column_put(waker, index_of(w->waker));
		uni_column_put(begin, since(m, w->begin));
		uni_column_put(ready, maybe(m, w->ready));
		uni_column_put(end, maybe(m, w->end));
	}
}

static void put_edges(struct uni_blob *b, const struct uni_promise_model *m)
{
	struct uni_column *kind = uni_blob_column(b, "edge.kind");
	struct uni_column *from = uni_blob_column(b, "edge.from");
	struct uni_column *to = uni_blob_column(b, "edge.to");
	struct uni_column *time = uni_blob_column(b, "edge.time");

	for (size_t i = 0; i < m->edges.nr; i++) {
		const struct uni_promise_edge *e = &m->edges.v[i];

		uni_column_put(kind, e->kind);
		uni_column_put(from, index_of(e->from));
		uni_column_put(to, index_of(e->to));
		uni_column_put(time, since(m, e->time));
	}
}

static void put_labels(struct uni_blob *b, const struct uni_promise_model *m)
{
	struct uni_column *who = uni_blob_column(b, "label.who");
	struct uni_column *time = uni_blob_column(b, "label.time");
	struct uni_column *text = uni_blob_column(b, "label.text");

	for (size_t i = 0; i < m->labels.nr; i++) {
		const struct uni_promise_label *l = &m->labels.v[i];

		uni_column_put(who, l->promise);
		uni_column_put(time, since(m, l->time));
		uni_column_put(text, l->text);
	}
}

static void put_counts(struct uni_blob *b, const struct uni_promise_model *m)
{
	struct uni_column *what = uni_blob_column(b, "count.what");
	struct uni_column *time = uni_blob_column(b, "count.time");
	struct uni_column *value = uni_blob_column(b, "count.value");

	for (size_t i = 0; i < m->counts.nr; i++) {
		const struct uni_promise_count *c = &m->counts.v[i];

		uni_column_put(what, c->counter);
		uni_column_put(time, since(m, c->time));
		uni_column_put_signed(value, c->value);
	}
}

static void put_pauses(struct uni_blob *b, const struct uni_promise_model *m)
{
	struct uni_column *kind = uni_blob_column(b, "pause.kind");
	struct uni_column *cpu = uni_blob_column(b, "pause.cpu");
	struct uni_column *begin = uni_blob_column(b, "pause.begin");
	struct uni_column *dur = uni_blob_column(b, "pause.dur");

	for (size_t i = 0; i < m->pauses.nr; i++) {
		const struct uni_promise_pause *p = &m->pauses.v[i];

		uni_column_put(kind, p->kind);
		uni_column_put(cpu, p->cpu);
		uni_column_put(begin, since(m, p->begin));
		uni_column_put(dur, p->end > p->begin ? p->end - p->begin : 0);
	}
}

void uni_part_promises(struct uni_blob *b, const struct uni_promise_model *m)
{
	put_promises(b, m);
	put_runs(b, m);
	put_waits(b, m);
	put_edges(b, m);
	put_labels(b, m);
	put_counts(b, m);
	put_pauses(b, m);
}

static void describe_names(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "strings");
	uni_json_array(j);
	for (uint32_t i = 0; i < uni_strtab_nr(m->text); i++)
		uni_json_str(j, uni_strtab_get(m->text, i));
	uni_json_array_end(j);
	uni_json_key(j, "types");
	uni_json_array(j);
	for (unsigned i = 0; i <= UNI_PROMISE_TYPE_UNKNOWN; i++)
		uni_json_str(j, uni_promise_type_name(i));
	uni_json_array_end(j);
	uni_json_key(j, "kinds");
	uni_json_array(j);
	for (unsigned i = 0; i < UNI_PE_NR; i++)
		uni_json_str(j, uni_promise_kind_name(i));
	uni_json_array_end(j);
}

static void describe_findings(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_findings *f)
{
	static const char *const kinds[] = { [UNI_FINDING_LOST_WAKEUP] = "lost_wakeup",
		[UNI_FINDING_UNRESOLVED] = "unresolved",
		[UNI_FINDING_CIRCLE] = "deadlock",
		[UNI_FINDING_STARVED] = "starved" };

	uni_json_key(j, "findings");
	uni_json_array(j);
	for (size_t i = 0; i < f->all.nr; i++) {
		const struct uni_finding *x = &f->all.v[i];

		uni_json_object(j);
		uni_json_kv(str, j, "kind", kinds[x->kind]);
		uni_json_kv(u64, j, "who", index_of(x->who));
		uni_json_kv(u64, j, "other", index_of(x->other));
		uni_json_kv(u64, j, "by", index_of(x->by));
		uni_json_kv(u64, j, "time", since(m, x->time));
		uni_json_kv(u64, j, "ns", x->ns);
		if (x->kind == UNI_FINDING_LOST_WAKEUP && x->other != UNI_PROMISE_NONE)
			uni_json_kv(u64, j, "signal", maybe(m, m->all.v[x->other].lonely));
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

int uni_part_promises_describe(struct uni_json *j, const struct uni_promise_model *m)
{
	struct uni_findings f = { 0 };
	char begin[24];
	int rc = uni_promise_findings(m, BUSY_NS, &f);

	uni_json_key(j, "promises");
	uni_json_object(j);
	(void)snprintf(begin, sizeof(begin), "%llu", (unsigned long long)m->begin);
	uni_json_kv(str, j, "begin", begin);
	uni_json_kv(u64, j, "duration", m->end > m->begin ? m->end - m->begin : 0);
	uni_json_kv(u64, j, "events", m->events);
	uni_json_kv(u64, j, "lost", m->lost);
	describe_names(j, m);
	describe_findings(j, m, &f);
	uni_json_object_end(j);
	uni_vec_free(&f.all);
	return rc;
}
