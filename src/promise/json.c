/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "base/json.h"
#include "promise/text.h"

static void index_or_null(struct uni_json *j, uint32_t i)
{
	if (i == UNI_PROMISE_NONE)
		uni_json_null(j);
	else
		uni_json_u64(j, i);
}

static void time_or_null(struct uni_json *j, const struct uni_promise_model *m, uint64_t time)
{
	if (time == UNI_PROMISE_OPEN)
		uni_json_null(j);
	else
		uni_json_u64(j, time - m->begin);
}

static void json_promises(struct uni_json *j, const struct uni_promise_model *m)
{
	static const char *const fates[] = { "open", "resolved", "failed", "became" };

	uni_json_key(j, "promises");
	uni_json_array(j);
	for (size_t i = 0; i < m->all.nr; i++) {
		const struct uni_promise *p = &m->all.v[i];

		uni_json_object(j);
		uni_json_kv(hex, j, "id", p->id);
		uni_json_kv(str, j, "type", uni_promise_type_name(p->type));
		uni_json_kv(str, j, "fate", fates[p->fate]);
		uni_json_kv(u64, j, "begin", p->begin - m->begin);
		uni_json_key(j, "end");
		time_or_null(j, m, p->end);
		uni_json_kv(u64, j, "last", p->last - m->begin);
		uni_json_kv(u64, j, "run", p->run_ns);
		uni_json_kv(u64, j, "wait", p->wait_ns);
		uni_json_kv(u64, j, "chain", p->depth);
		uni_json_key(j, "creator");
		index_or_null(j, p->creator);
		uni_json_key(j, "resolver");
		index_or_null(j, p->resolver);
		uni_json_key(j, "became");
		index_or_null(j, p->other);
		uni_json_kv(bool, j, "created", p->created);
		uni_json_kv(bool, j, "should_resolve", p->should_resolve);
		if (p->failure != 0)
			uni_json_kv(str, j, "failure", uni_strtab_get(m->text, p->failure));
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void json_runs(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "runs");
	uni_json_array(j);
	for (size_t i = 0; i < m->runs.nr; i++) {
		const struct uni_promise_run *r = &m->runs.v[i];

		uni_json_array(j);
		uni_json_u64(j, r->promise);
		uni_json_u64(j, r->cpu);
		uni_json_u64(j, r->begin - m->begin);
		uni_json_u64(j, r->end - m->begin);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static void json_waits(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "waits");
	uni_json_array(j);
	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		uni_json_array(j);
		uni_json_u64(j, w->waiter);
		uni_json_u64(j, w->on);
		index_or_null(j, w->waker);
		time_or_null(j, m, w->begin);
		time_or_null(j, m, w->ready);
		time_or_null(j, m, w->end);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static void json_holds(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "holds");
	uni_json_array(j);
	for (size_t i = 0; i < m->holds.nr; i++) {
		const struct uni_promise_hold *h = &m->holds.v[i];

		uni_json_array(j);
		uni_json_u64(j, h->lock);
		index_or_null(j, h->owner);
		time_or_null(j, m, h->undated ? UNI_PROMISE_OPEN : h->begin);
		time_or_null(j, m, h->end);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static void json_arrows(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "arrows");
	uni_json_array(j);
	for (size_t i = 0; i < m->edges.nr; i++) {
		const struct uni_promise_edge *e = &m->edges.v[i];

		uni_json_array(j);
		uni_json_str(j, uni_promise_kind_name(e->kind));
		uni_json_u64(j, e->from);
		uni_json_u64(j, e->to);
		uni_json_u64(j, e->time - m->begin);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static void json_labels(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "labels");
	uni_json_array(j);
	for (size_t i = 0; i < m->labels.nr; i++) {
		const struct uni_promise_label *l = &m->labels.v[i];

		uni_json_array(j);
		uni_json_u64(j, l->promise);
		uni_json_u64(j, l->time - m->begin);
		uni_json_str(j, uni_strtab_get(m->text, l->text));
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
	uni_json_key(j, "counters");
	uni_json_array(j);
	for (size_t i = 0; i < m->counts.nr; i++) {
		const struct uni_promise_count *c = &m->counts.v[i];

		uni_json_array(j);
		uni_json_str(j, uni_strtab_get(m->text, c->counter));
		uni_json_u64(j, c->time - m->begin);
		uni_json_i64(j, c->value);
		index_or_null(j, c->promise);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static void json_pauses(struct uni_json *j, const struct uni_promise_model *m)
{
	uni_json_key(j, "pauses");
	uni_json_array(j);
	for (size_t i = 0; i < m->pauses.nr; i++) {
		const struct uni_promise_pause *p = &m->pauses.v[i];

		uni_json_array(j);
		uni_json_str(j, uni_promise_kind_name(p->kind));
		uni_json_u64(j, p->cpu);
		uni_json_u64(j, p->begin - m->begin);
		uni_json_u64(j, p->end - m->begin);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static void json_finding(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_finding *x)
{
	static const char *const kinds[] = { "lost_wakeup", "unresolved", "deadlock", "starved",
		"never_given_back" };

	uni_json_object(j);
	uni_json_kv(str, j, "kind", kinds[x->kind]);
	uni_json_key(j, "who");
	index_or_null(j, x->who);
	uni_json_key(j, "other");
	index_or_null(j, x->other);
	uni_json_key(j, "by");
	index_or_null(j, x->by);
	uni_json_kv(u64, j, "time", x->time - m->begin);
	uni_json_kv(u64, j, "ns", x->ns);
	if (x->kind == UNI_FINDING_STARVED) {
		uni_json_kv(u64, j, "silent", x->silent);
		uni_json_kv(u64, j, "on_cpu", x->on_cpu);
	}
	uni_json_object_end(j);
}

static void json_findings(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_findings *f)
{
	uni_json_key(j, "findings");
	uni_json_array(j);
	for (size_t i = 0; i < f->all.nr; i++)
		json_finding(j, m, &f->all.v[i]);
	uni_json_array_end(j);
	uni_json_key(j, "doubts");
	uni_json_array(j);
	for (size_t i = 0; i < f->doubts.nr; i++)
		json_finding(j, m, &f->doubts.v[i]);
	uni_json_array_end(j);
}

void uni_promise_json(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f)
{
	struct uni_json j;

	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-promises");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(u64, &j, "begin_ns", m->begin);
	uni_json_kv(u64, &j, "duration_ns", m->end - m->begin);
	uni_json_kv(u64, &j, "events", m->events);
	uni_json_kv(u64, &j, "lost", m->lost);
	uni_json_kv(bool, &j, "lost_at_most", m->lost_at_most);
	uni_json_kv(u64, &j, "gaps", m->gaps);
	uni_json_kv(bool, &j, "begin_known", !uni_promise_begin_unknown(m));
	json_promises(&j, m);
	json_runs(&j, m);
	json_waits(&j, m);
	json_holds(&j, m);
	json_arrows(&j, m);
	json_labels(&j, m);
	json_pauses(&j, m);
	json_findings(&j, m, f);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}
