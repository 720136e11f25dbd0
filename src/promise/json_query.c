/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of text.c for programs. Times are ns since the trace began. */
#include <stdlib.h>

#include "base/json.h"
#include "promise/query_priv.h"
#include "promise/text.h"

#define NAME 96

static void begin_answer(struct uni_json *j, struct uni_sink *out,
	const struct uni_promise_model *m, const char *format)
{
	uni_json_init(j, out, true);
	uni_json_object(j);
	uni_json_kv(str, j, "format", format);
	uni_json_kv(u64, j, "version", 1);
	uni_json_kv(u64, j, "begin_ns", m->begin);
	uni_json_kv(u64, j, "duration_ns", m->end - m->begin);
	uni_json_kv(u64, j, "lost", m->lost);
	uni_json_kv(bool, j, "lost_at_most", m->lost_at_most);
	uni_json_kv(u64, j, "gaps", m->gaps);
}

static void time_or_null(
	struct uni_json *j, const char *key, const struct uni_promise_model *m, uint64_t time)
{
	uni_json_key(j, key);
	if (time == UNI_PROMISE_OPEN)
		uni_json_null(j);
	else
		uni_json_u64(j, time - m->begin);
}

static void id_and_name(struct uni_json *j, const struct uni_promise_model *m, uint32_t i)
{
	char name[NAME];

	uni_json_kv(hex, j, "id", m->all.v[i].id);
	uni_json_kv(str, j, "name", uni_promise_name(m, i, name, sizeof(name)));
}

static void json_who(
	struct uni_json *j, const char *key, const struct uni_promise_model *m, uint32_t i)
{
	uni_json_key(j, key);
	if (i >= m->all.nr) {
		uni_json_null(j);
		return;
	}
	uni_json_object(j);
	id_and_name(j, m, i);
	uni_json_object_end(j);
}

static void json_row(struct uni_json *j, const struct uni_promise_model *m, uint32_t i)
{
	static const char *const fates[] = { "open", "resolved", "failed", "became" };
	const struct uni_promise *p = &m->all.v[i];

	uni_json_object(j);
	id_and_name(j, m, i);
	uni_json_kv(str, j, "type", uni_promise_type_name(p->type));
	uni_json_kv(str, j, "fate", fates[p->fate]);
	uni_json_kv(bool, j, "should_resolve", p->should_resolve);
	uni_json_kv(u64, j, "begin", p->begin - m->begin);
	time_or_null(j, "end", m, p->end);
	uni_json_kv(u64, j, "life", uni_promise_life(m, p));
	uni_json_kv(u64, j, "run", p->run_ns);
	uni_json_kv(u64, j, "wait", p->wait_ns);
	uni_json_kv(u64, j, "runs", p->nr_runs);
	json_who(j, "creator", m, p->creator);
	json_who(j, "resolver", m, p->resolver);
	json_who(j, "became", m, p->other);
	if (p->failure != 0)
		uni_json_kv(str, j, "failure", uni_strtab_get(m->text, p->failure));
	uni_json_object_end(j);
}

int uni_promise_json_threads(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_list_opts *opts)
{
	struct uni_promise_rows rows = { 0 };
	struct uni_json j;
	int rc = uni_promise_list(m, opts, &rows);

	if (rc != 0)
		return rc;
	begin_answer(&j, out, m, "uniscope-threads");
	uni_json_key(&j, "threads");
	uni_json_array(&j);
	uni_vec_foreach (i, &rows.all)
		json_row(&j, m, *i);
	uni_json_array_end(&j);
	uni_json_kv(u64, &j, "more", rows.more);
	uni_json_kv(u64, &j, "nameless", rows.nameless);
	uni_json_kv(u64, &j, "alike", rows.alike);
	uni_json_object_end(&j);
	uni_vec_free(&rows.all);
	return 0;
}

enum { BY = 1, WAIT = 2, TIME = 4 };

static const struct {
	const char *name;
	unsigned has;
} steps_are[UNI_STEP_NR] = {
	[UNI_STEP_RESOLVED] = { "resolved", BY | TIME },
	[UNI_STEP_FAILED] = { "failed", BY | TIME },
	[UNI_STEP_BECAME] = { "became", BY | TIME },
	[UNI_STEP_WAITED] = { "waited", BY | WAIT | TIME },
	[UNI_STEP_WAITS] = { "waits", BY | WAIT },
	[UNI_STEP_READY] = { "ready", BY | WAIT },
	[UNI_STEP_CREATED] = { "created", BY | TIME },
	[UNI_STEP_APPEARS] = { "appears", TIME },
	[UNI_STEP_RAN] = { "ran", TIME },
	[UNI_STEP_NEVER_RAN] = { "never_ran", TIME },
	[UNI_STEP_UNRESOLVED] = { "unresolved", TIME },
	[UNI_STEP_SUSPECT] = { "suspect", BY },
	[UNI_STEP_SIGNALLED] = { "signalled", BY | TIME },
	[UNI_STEP_LONELY] = { "signalled_nobody", BY | TIME },
	[UNI_STEP_HELD] = { "held", BY | TIME },
	[UNI_STEP_FREE] = { "given_back", BY | TIME },
	[UNI_STEP_CIRCLE] = { "circle", 0 },
	[UNI_STEP_CUT] = { "cut", 0 },
};

static void json_step(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_promise_step *s)
{
	unsigned has = steps_are[s->kind].has;

	uni_json_object(j);
	uni_json_kv(str, j, "kind", steps_are[s->kind].name);
	json_who(j, "who", m, s->who);
	if (has & BY)
		json_who(j, "by", m, s->by);
	if (has & WAIT) {
		time_or_null(j, "begin", m, s->begin);
		time_or_null(j, "ready", m, s->ready);
	}
	if (has & TIME)
		time_or_null(j, "time", m, s->time);
	uni_json_object_end(j);
}

int uni_promise_json_why(struct uni_sink *out, const struct uni_promise_model *m, uint32_t promise)
{
	struct uni_promise_step steps[UNI_PROMISE_STEPS];
	size_t nr = uni_promise_why(m, promise, steps, UNI_PROMISE_STEPS);
	struct uni_json j;

	begin_answer(&j, out, m, "uniscope-why");
	json_who(&j, "thread", m, promise);
	uni_json_key(&j, "steps");
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++)
		json_step(&j, m, &steps[i]);
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	return 0;
}

int uni_promise_json_wakeups(struct uni_sink *out, const struct uni_promise_model *m, size_t max)
{
	const struct uni_promise_wait **w;
	struct uni_json j;
	size_t nr;

	w = calloc(max + 1, sizeof(const struct uni_promise_wait *));
	if (w == NULL)
		return -UNI_ENOMEM;
	nr = uni_promise_wakeups(m, w, max);
	begin_answer(&j, out, m, "uniscope-wakeups");
	uni_json_key(&j, "wakeups");
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++) {
		uni_json_object(&j);
		uni_json_kv(u64, &j, "latency", w[i]->end - w[i]->ready);
		time_or_null(&j, "begin", m, w[i]->begin);
		time_or_null(&j, "ready", m, w[i]->ready);
		time_or_null(&j, "end", m, w[i]->end);
		uni_json_kv(u64, &j, "cpu", w[i]->cpu);
		json_who(&j, "who", m, w[i]->waiter);
		json_who(&j, "on", m, w[i]->on);
		json_who(&j, "by", m, w[i]->waker);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	free(w);
	return 0;
}
