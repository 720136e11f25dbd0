/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "trace/funcs.h"
#include "trace/text.h"

#define DEPTH_MAX   4096 /* calls of a thread that are open at once */
#define THREADS_MAX 1024

struct open_call {
	uint64_t begin, child;
	uint32_t func;
};

struct thread {
	uint64_t id;
	const char *name; /* of the strtab; NULL: none */
	UNI_VEC(struct open_call) calls;
};

struct uni_ukt_timeline {
	const struct uni_ukt_trace *trace;
	struct uni_ukt_part *part;
	struct uni_funcs *funcs;
	struct uni_strtab *names;
	uint32_t *func; /* of each definition; of calls and instants */
	uint32_t unknown;
	UNI_VEC(struct thread) threads; /* [0]: not known yet */
	uint32_t now;
	UNI_VEC(struct uni_call_event) events;
	bool given;
};

/* --- which tracepoints belong together -------------------------------------------------------- */

/* The call that `name` ends: the definition that is called the same but for the last five bytes. */
static bool find_call(
	struct uni_strtab *names, const uint32_t *of_name, const char *name, uint32_t *ret)
{
	size_t len = strlen(name);
	uint32_t id;

	if (len <= 4 ||
		(strcmp(name + len - 4, "_ret") != 0 && strcmp(name + len - 4, "_err") != 0))
		return false;
	id = uni_strtab_find(names, name, len - 4);
	if (id == UNI_STR_NONE)
		return false;
	*ret = of_name[id];
	return true;
}

/* The tracepoint that vfscore's writev records at its end. */
static uint32_t find_other(struct uni_strtab *names, const uint32_t *of_name, const char *name)
{
	static const char begin[] = "trace_vfs_writev";
	uint32_t id;

	if (strcmp(name, "trace_vfs_pwritev_ret") != 0 &&
		strcmp(name, "trace_vfs_pwritev_err") != 0)
		return UINT32_MAX;
	id = uni_strtab_find(names, begin, sizeof(begin) - 1);
	return id != UNI_STR_NONE ? of_name[id] : UINT32_MAX;
}

/* Names to definitions; of several with one name, the first. */
static uint32_t *by_name(const struct uni_ukt_defs *d, struct uni_strtab *names)
{
	uint32_t *of = calloc(d->all.nr + 1, sizeof(*of));

	for (size_t i = 0; of != NULL && i < d->all.nr; i++) {
		uint32_t before = uni_strtab_nr(names);
		uint32_t id = uni_strtab_add(names, d->all.v[i].name, strlen(d->all.v[i].name));

		if (id == UNI_STR_NONE) {
			free(of);
			return NULL;
		}
		if (id == before)
			of[id] = (uint32_t)i;
	}
	return of;
}

static bool is_switch(const struct uni_ukt_def *def)
{
	return strstr(def->name, "switch") != NULL && def->readable && def->nr_args != 0;
}

struct uni_ukt_part *uni_ukt_parts(const struct uni_ukt_defs *d)
{
	struct uni_ukt_part *part = calloc(d->all.nr + 1, sizeof(*part));
	struct uni_strtab *names = uni_strtab_create();
	uint32_t *of_name = names != NULL ? by_name(d, names) : NULL;

	if (part == NULL || of_name == NULL) {
		free(part);
		part = NULL;
	}
	for (size_t i = 0; part != NULL && i < d->all.nr; i++) {
		const char *name = d->all.v[i].name;
		uint32_t call;

		part[i].other = UINT32_MAX;
		if (is_switch(&d->all.v[i])) {
			part[i].role = UNI_UKT_SWITCH;
		} else if (find_call(names, of_name, name, &call) && call != i) {
			part[i].role = UNI_UKT_RETURN;
			part[i].failed = strcmp(name + strlen(name) - 4, "_err") == 0;
			part[i].call = call;
			part[i].other = find_other(names, of_name, name);
			if (part[call].role == UNI_UKT_INSTANT)
				part[call].role = UNI_UKT_CALL;
		}
	}
	free(of_name);
	uni_strtab_destroy(names);
	return part;
}

/* --- records to events ------------------------------------------------------------------------ */

static bool push_event(struct uni_ukt_timeline *tl, enum uni_call_type type, uint32_t func,
	uint64_t ns, const struct open_call *call)
{
	struct thread *t = &tl->threads.v[tl->now];
	struct uni_call_event e = { .type = (uint8_t)type,
		.thread = tl->now,
		.func = func,
		.depth = (uint32_t)t->calls.nr,
		.tsc = ns,
		.ns = ns };

	if (call != NULL) {
		e.duration = ns - call->begin;
		e.self = e.duration - uni_min(call->child, e.duration);
	}
	return uni_vec_push(&tl->events, e);
}

static bool enter_call(struct uni_ukt_timeline *tl, uint32_t func, uint64_t ns)
{
	struct thread *t = &tl->threads.v[tl->now];

	if (t->calls.nr == DEPTH_MAX)
		return true;
	return push_event(tl, UNI_CALL_ENTER, func, ns, NULL) &&
	       uni_vec_push(&t->calls, ((struct open_call){ .begin = ns, .func = func }));
}

/* The newest call ends. */
static bool leave_newest(struct uni_ukt_timeline *tl, uint64_t ns, unsigned flags)
{
	struct thread *t = &tl->threads.v[tl->now];
	struct open_call call = t->calls.v[--t->calls.nr];

	if (!push_event(tl, UNI_CALL_LEAVE, call.func, ns, &call))
		return false;
	tl->events.v[tl->events.nr - 1].flags = (uint8_t)flags;
	if (t->calls.nr != 0)
		t->calls.v[t->calls.nr - 1].child += ns - call.begin;
	return true;
}

/* The newest call of that function, + 1; 0: none is open. */
static size_t newest_call(const struct thread *t, uint32_t func)
{
	size_t i = t->calls.nr;

	while (i != 0 && t->calls.v[i - 1].func != func)
		i--;
	return i;
}

/* Calls above the one that returns were left in another way. */
static bool return_call(struct uni_ukt_timeline *tl, const struct uni_ukt_part *part, uint64_t ns)
{
	struct thread *t = &tl->threads.v[tl->now];
	size_t i = newest_call(t, tl->func[part->call]);

	if (i == 0 && part->other != UINT32_MAX)
		i = newest_call(t, tl->func[part->other]);
	if (i == 0) /* it began before the buffer, or on an unknown thread */
		return push_event(tl, UNI_CALL_RETURN, UNI_FUNC_NONE, ns, NULL);
	while (t->calls.nr > i) {
		if (!leave_newest(tl, ns, UNI_CALL_CUT))
			return false;
	}
	return leave_newest(tl, ns, 0);
}

static uint32_t thread_of(struct uni_ukt_timeline *tl, uint64_t id, const char *name)
{
	for (uint32_t i = 1; i < tl->threads.nr; i++) {
		if (tl->threads.v[i].id == id)
			return i;
	}
	if (tl->threads.nr == THREADS_MAX ||
		!uni_vec_push(&tl->threads, ((struct thread){ .id = id, .name = name })))
		return 0;
	return (uint32_t)tl->threads.nr - 1;
}

void uni_ukt_who(const struct uni_ukt_record *r, struct uni_ukt_who *ret)
{
	*ret = (struct uni_ukt_who){ 0 };
	for (unsigned i = 0; i < r->def->nr_args; i++) {
		if (r->def->arg[i].type == UNI_UKT_STRING) {
			(void)uni_text_clean(
				ret->name, sizeof(ret->name), r->arg[i].s, r->arg[i].s_len);
		} else {
			ret->id = r->arg[i].v;
			ret->has_id = true;
		}
	}
}

static bool switch_to(struct uni_ukt_timeline *tl, const struct uni_ukt_record *r)
{
	struct uni_ukt_who who;
	const char *name = NULL;
	uint32_t at, next;
	uint64_t id;

	uni_ukt_who(r, &who);
	id = who.id;
	if (who.name[0] != '\0') {
		at = uni_strtab_add(tl->names, who.name, strlen(who.name));
		if (at == UNI_STR_NONE)
			return false;
		name = uni_strtab_get(tl->names, at);
		id = who.has_id ? id : at;
	}
	next = thread_of(tl, id, name);
	if (next != tl->now) {
		if (!push_event(tl, UNI_CALL_SWITCH, UNI_FUNC_NONE, r->ns, NULL))
			return false;
		tl->events.v[tl->events.nr - 1].next = next;
		tl->now = next;
	}
	return true;
}

static bool add_record(struct uni_ukt_timeline *tl, const struct uni_ukt_record *r)
{
	size_t i;

	if (r->def == NULL)
		return push_event(tl, UNI_CALL_ENTRY, tl->unknown, r->ns, NULL);
	i = (size_t)(r->def - tl->trace->defs.all.v);
	switch (tl->part[i].role) {
	case UNI_UKT_CALL:
		return enter_call(tl, tl->func[i], r->ns);
	case UNI_UKT_RETURN:
		return return_call(tl, &tl->part[i], r->ns);
	case UNI_UKT_SWITCH:
		return switch_to(tl, r);
	default:
		return push_event(tl, UNI_CALL_ENTRY, tl->func[i], r->ns, NULL);
	}
}

static bool make_events(struct uni_ukt_timeline *tl)
{
	const struct uni_ukt_trace *t = tl->trace;
	struct uni_ukt_record r = { 0 };

	for (size_t i = 0; i < t->records.nr; i++) {
		uni_ukt_trace_record(t, i, &r);
		if (!add_record(tl, &r))
			return false;
	}
	for (tl->now = 0; tl->now < tl->threads.nr; tl->now++) {
		while (tl->threads.v[tl->now].calls.nr != 0) {
			if (!leave_newest(tl, r.ns, UNI_CALL_CUT | UNI_CALL_OPEN))
				return false;
		}
	}
	return true;
}

static bool name_all(struct uni_ukt_timeline *tl)
{
	const struct uni_ukt_defs *d = &tl->trace->defs;
	static const char unknown[] = "unknown tracepoint";

	tl->part = uni_ukt_parts(d);
	tl->funcs = uni_funcs_create(NULL);
	tl->names = uni_strtab_create();
	tl->func = calloc(d->all.nr + 1, sizeof(*tl->func));
	if (tl->part == NULL || tl->funcs == NULL || tl->names == NULL || tl->func == NULL ||
		!uni_vec_push(&tl->threads, ((struct thread){ 0 })))
		return false;
	for (size_t i = 0; i < d->all.nr; i++)
		tl->func[i] =
			uni_funcs_named(tl->funcs, d->all.v[i].name, strlen(d->all.v[i].name));
	tl->unknown = uni_funcs_named(tl->funcs, unknown, sizeof(unknown) - 1);
	return true;
}

struct uni_ukt_timeline *uni_ukt_timeline_open(const struct uni_ukt_trace *t)
{
	struct uni_ukt_timeline *tl = calloc(1, sizeof(*tl));

	if (tl == NULL)
		return NULL;
	tl->trace = t;
	if (!name_all(tl) || !make_events(tl)) {
		uni_ukt_timeline_close(tl);
		return NULL;
	}
	return tl;
}

void uni_ukt_timeline_close(struct uni_ukt_timeline *tl)
{
	if (tl == NULL)
		return;
	uni_vec_foreach (t, &tl->threads)
		uni_vec_free(&t->calls);
	uni_vec_free(&tl->threads);
	uni_vec_free(&tl->events);
	uni_funcs_destroy(tl->funcs);
	uni_strtab_destroy(tl->names);
	free(tl->part);
	free(tl->func);
	free(tl);
}

static int read_events(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_ukt_timeline *tl = ctx;

	if (tl->given || tl->events.nr == 0)
		return 0;
	tl->given = true;
	*ret = tl->events.v;
	*nr_ret = tl->events.nr;
	return 1;
}

static const char *func_name(void *ctx, uint32_t func)
{
	struct uni_ukt_timeline *tl = ctx;

	return uni_funcs_name(tl->funcs, func);
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	struct uni_ukt_timeline *tl = ctx;
	const struct thread *t = &tl->threads.v[thread];

	*number_ret = t->id;
	return thread == 0 ? "tracepoints" : t->name != NULL ? t->name : "tid";
}

static const char *text_thread(const void *ctx, uint32_t thread, uint64_t *number_ret)
{
	return thread_name((void *)(uintptr_t)ctx, thread, number_ret);
}

static int write_text(void *ctx, bool function, struct uni_sink *out, struct uni_err *err)
{
	struct uni_ukt_timeline *tl = ctx;
	const struct uni_trace_text_opts opts = {
		.kind = function ? UNI_TRACE_TEXT_FUNCTION : UNI_TRACE_TEXT_GRAPH,
		.thread_name = text_thread,
		.ctx = tl,
	};
	struct uni_trace_text *t = uni_trace_text_open(out, tl->funcs, &opts);
	int rc = t != NULL ? uni_trace_text_put(t, tl->events.v, tl->events.nr) : -UNI_ENOMEM;

	uni_trace_text_close(t);
	return rc == 0 ? 0 : uni_err_nomem(err);
}

struct uni_timeline uni_ukt_timeline_get(struct uni_ukt_timeline *tl)
{
	return (struct uni_timeline){ .ctx = tl,
		.read = read_events,
		.func = func_name,
		.thread = thread_name,
		.text = write_text };
}
