/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaves out the calls that rules forbid (rules.h). */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "base/vec.h"
#include "trace/rules.h"
#include "trace/values.h"

#define ALL UINT32_MAX

/* An open call, or the thread itself. */
struct frame {
	uint32_t levels; /* of calls below it that may be shown */
	uint32_t within; /* rules that name it, or a caller of it, in below= */
	bool hidden;
	uint64_t number;    /* among the thread's calls of functions whose ends count */
	uint64_t self, off; /* ns, of calls left out that it made: they count as its own */
};

struct thread {
	UNI_VEC(struct frame) frame; /* frame 0 is below the first call */
	UNI_VEC(uint8_t) ended_well; /* a bit for each such call: its end is as rules want it */
	uint64_t nr_looked, nr_picked;
};

/* A function; bit i: rule i. */
struct known {
	bool asked;
	uint32_t own, below;
	uint64_t min_ns; /* the longest of its rules */
	bool by_end;	 /* that, or a condition on what it returns */
};

struct uni_call_picker {
	struct uni_calls_rules *rules;
	const struct uni_call_rule *rule;
	size_t nr;
	struct uni_funcs *funcs;
	UNI_VEC(struct thread) thread;
	UNI_VEC(struct known) known;
	UNI_VEC(struct uni_call_event) event;
};

struct uni_call_picker *uni_call_picker_create(
	struct uni_calls_rules *rules, struct uni_funcs *funcs)
{
	struct uni_call_picker *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->rules = rules;
	p->rule = rules->rule;
	p->nr = uni_min(rules->nr, (size_t)UNI_CALL_RULES_MAX);
	p->funcs = funcs;
	rules->unknown = 0;
	return p;
}

static void forget_threads(struct uni_call_picker *p)
{
	uni_vec_foreach (t, &p->thread) {
		uni_vec_free(&t->frame);
		uni_vec_free(&t->ended_well);
	}
	uni_vec_free(&p->thread);
}

void uni_call_picker_destroy(struct uni_call_picker *p)
{
	if (p == NULL)
		return;
	forget_threads(p);
	uni_vec_free(&p->known);
	uni_vec_free(&p->event);
	free(p);
}

static bool is_on_value(const struct uni_call_condition *c)
{
	return strcmp(c->param, "return") == 0;
}

static bool is_by_end(const struct uni_call_rule *r)
{
	for (unsigned i = 0; i < r->nr; i++) {
		if (is_on_value(&r->condition[i]))
			return true;
	}
	return r->min_ns != 0;
}

bool uni_call_picker_looks_first(const struct uni_call_picker *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		if (is_by_end(&p->rule[i]))
			return true;
	}
	return false;
}

/* NULL: out of memory. */
static const struct known *known_of(struct uni_call_picker *p, uint32_t func)
{
	const char *name = uni_funcs_name(p->funcs, func);
	struct known *k;

	while (p->known.nr <= func) {
		if (!uni_vec_push(&p->known, (struct known){ 0 }))
			return NULL;
	}
	k = &p->known.v[func];
	for (size_t i = 0; !k->asked && i < p->nr; i++) {
		const struct uni_call_rule *r = &p->rule[i];

		if (uni_glob_match(r->function, name)) {
			k->own |= 1u << i;
			k->min_ns = uni_max(k->min_ns, r->min_ns);
			k->by_end = k->by_end || is_by_end(r);
		}
		if (r->below[0] != '\0' && uni_glob_match(r->below, name))
			k->below |= 1u << i;
	}
	k->asked = true;
	return k;
}

/* The thread's frames, with room for one at this depth and its caller. NULL: out of memory. */
static struct frame *frames_to(struct uni_call_picker *p, uint32_t thread, uint32_t depth)
{
	const struct frame none = { .levels = ALL };
	struct thread *t;

	while (p->thread.nr <= thread) {
		if (!uni_vec_push(&p->thread, (struct thread){ 0 }))
			return NULL;
	}
	t = &p->thread.v[thread];
	while (t->frame.nr < (size_t)depth + 2) {
		if (!uni_vec_push(&t->frame, none))
			return NULL;
	}
	return t->frame.v;
}

/* --- conditions ------------------------------------------------------------------------------- */

static const struct uni_param *find_param(
	const struct uni_params *params, const struct uni_call_condition *c)
{
	for (size_t i = 0; params != NULL && i < params->nr; i++) {
		const struct uni_param *one = &params->param[i];

		if (c->param[0] != '\0' ? strcmp(one->name, c->param) == 0 : one->reg == c->arg)
			return one;
	}
	return NULL;
}

static bool compare_value(const struct uni_call_condition *c, __int128 v)
{
	switch (c->op) {
	case UNI_CALL_OP_EQ:
		return v == c->value;
	case UNI_CALL_OP_NE:
		return v != c->value;
	case UNI_CALL_OP_LT:
		return v < c->value;
	case UNI_CALL_OP_LE:
		return v <= c->value;
	case UNI_CALL_OP_GT:
		return v > c->value;
	default:
		return v >= c->value;
	}
}

/* 1: it holds, 0: it does not, -1: the argument is not known. */
static int test_condition(const struct uni_call_condition *c, const struct uni_params *params,
	const uint64_t *words, size_t nr)
{
	const struct uni_param *param = find_param(params, c);
	int reg = param != NULL ? param->reg : c->param[0] == '\0' ? c->arg : -1;
	struct uni_trace_copied copied[UNI_TRACE_ARGS];
	char text[UNI_TRACE_TEXT_MAX + 1];
	size_t len;

	if (reg < 0 || reg >= UNI_TRACE_ARGS || (size_t)reg + 1 >= nr)
		return -1;
	if (c->op < UNI_CALL_OP_LIKE)
		return compare_value(c, uni_trace_value(param, words[reg]));
	uni_trace_copied(words, nr, copied);
	if (copied[reg].text == NULL || (copied[reg].flags & UNI_TRACE_TEXT_BAD) != 0)
		return -1;
	len = uni_min((size_t)copied[reg].len, (size_t)UNI_TRACE_TEXT_MAX);
	memcpy(text, copied[reg].text, len);
	text[len] = '\0';
	return uni_glob_match(c->text, text) == (c->op == UNI_CALL_OP_LIKE);
}

/* The same of a variable. */
static int test_variable(const struct uni_call_picker *p, const struct uni_call_condition *c,
	const uint64_t *words, size_t nr)
{
	struct uni_trace_got got[UNI_TRACE_READS_OF];
	size_t n = words != NULL && c->op < UNI_CALL_OP_LIKE && p->rules->variable != NULL
			   ? uni_trace_reads(words, nr, false, got)
			   : 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = p->rules->variable(p->rules->ctx, got[i].address);

		if (name != NULL && strcmp(name, c->param + 1) == 0)
			return compare_value(c, uni_trace_got_number(&got[i]));
	}
	return -1;
}

/* The same of the value that is returned. */
static int test_value(const struct uni_call_condition *c, const struct uni_params *params,
	const uint64_t *words, size_t nr)
{
	if (words == NULL || nr == 0 || c->op >= UNI_CALL_OP_LIKE ||
		(params != NULL && (!params->returns || params->value.reg == UNI_PARAM_NO_REG)))
		return -1;
	return compare_value(c, uni_trace_value(params != NULL ? &params->value : NULL, words[0]));
}

/* Those on what it returns, or all others. */
static bool test_conditions(struct uni_call_picker *p, const struct uni_call_rule *r, uint32_t func,
	bool on_value, const uint64_t *words, size_t nr)
{
	const struct uni_params *params =
		r->nr != 0 && words != NULL && p->rules->params != NULL
			? p->rules->params(p->rules->ctx, func, uni_funcs_address(p->funcs, func))
			: NULL;

	for (unsigned i = 0; i < r->nr; i++) {
		const struct uni_call_condition *c = &r->condition[i];
		int holds;

		if (is_on_value(c) != on_value)
			continue;
		holds = on_value	     ? test_value(c, params, words, nr)
			: c->param[0] == '@' ? test_variable(p, c, words, nr)
					     : test_condition(c, params, words, nr);
		p->rules->unknown += holds < 0;
		if (holds <= 0)
			return false;
	}
	return true;
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool ended_well(const struct thread *t, uint64_t number)
{
	return number / 8 < t->ended_well.nr &&
	       (t->ended_well.v[number / 8] >> number % 8 & 1) != 0;
}

/* args: the event with its arguments, or NULL. within: rules that name a caller of it in below=. */
static bool rules_allow(struct uni_call_picker *p, const struct known *k, uint32_t within,
	const struct uni_call_event *e, const struct uni_calls *calls,
	const struct uni_call_event *args)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct uni_call_rule *r = &p->rule[i];

		if ((k->own >> i & 1) == 0)
			continue;
		if (r->skip || (r->below[0] != '\0' && (within >> i & 1) == 0) ||
			!test_conditions(p, r, e->func, false,
				args != NULL ? uni_calls_words(calls, args) : NULL,
				args != NULL ? args->nr : 0))
			return false;
	}
	return !k->by_end ||
	       (e->type == UNI_CALL_ENTER &&
		       ended_well(&p->thread.v[e->thread], p->thread.v[e->thread].nr_picked));
}

/* Rules that name a caller of this call: one that is open, or the one that its record has. */
static int names_of_callers(struct uni_call_picker *p, const struct frame *caller,
	const struct uni_call_event *e, uint32_t *ret)
{
	const struct known *k;

	*ret = caller->within;
	if (e->type != UNI_CALL_ENTRY || e->caller == UNI_FUNC_NONE)
		return 0;
	k = known_of(p, e->caller);
	if (k == NULL)
		return -UNI_ENOMEM;
	*ret |= k->below;
	return 0;
}

/* The call that begins with e, in *ret. */
static int begin_call(struct uni_call_picker *p, const struct uni_call_event *e,
	const struct uni_calls *calls, const struct uni_call_event *args, struct frame *ret)
{
	const struct frame *caller = frames_to(p, e->thread, e->depth);
	const struct known *k;
	uint32_t within;

	if (caller == NULL)
		return -UNI_ENOMEM;
	caller += e->depth;
	if (names_of_callers(p, caller, e, &within) != 0)
		return -UNI_ENOMEM;
	k = known_of(p, e->func);
	if (k == NULL)
		return -UNI_ENOMEM;
	*ret = (struct frame){
		.levels = caller->levels == ALL ? ALL : caller->levels - (caller->levels != 0),
		.within = within | k->below,
		.hidden = caller->hidden || caller->levels == 0 ||
			  !rules_allow(p, k, within, e, calls, args)
	};
	for (size_t i = 0; i < p->nr; i++) {
		if ((k->own >> i & 1) != 0 && p->rule[i].depth != 0)
			ret->levels = uni_min(ret->levels, p->rule[i].depth - 1);
	}
	p->thread.v[e->thread].nr_picked += k->by_end && e->type == UNI_CALL_ENTER;
	return 0;
}

static int put_event(
	struct uni_call_picker *p, const struct uni_call_event *ext, const struct uni_call_event *e)
{
	if (ext != NULL && !uni_vec_push(&p->event, *ext))
		return -UNI_ENOMEM;
	return uni_vec_push(&p->event, *e) ? 0 : -UNI_ENOMEM;
}

static int end_call(struct uni_call_picker *p, struct frame *caller, const struct uni_call_event *e,
	const struct uni_call_event *ext)
{
	struct uni_call_event leave = *e;

	leave.self += caller[1].self;
	leave.off += caller[1].off;
	if (caller[1].hidden) {
		caller->self += leave.self;
		caller->off += leave.off;
		return 0;
	}
	return put_event(p, ext, &leave);
}

/* ext: the event with arguments or a value that belongs to it, or NULL. */
static int pick_event(struct uni_call_picker *p, const struct uni_calls *calls,
	const struct uni_call_event *e, const struct uni_call_event *ext)
{
	struct frame *frames, one;
	int rc;

	if (e->type != UNI_CALL_ENTER && e->type != UNI_CALL_LEAF && e->type != UNI_CALL_ENTRY &&
		e->type != UNI_CALL_LEAVE)
		return put_event(p, NULL, e);
	frames = frames_to(p, e->thread, e->depth);
	if (frames == NULL)
		return -UNI_ENOMEM;
	if (e->type == UNI_CALL_LEAVE)
		return end_call(p, frames + e->depth, e, ext);
	rc = begin_call(p, e, calls, ext, &one);
	if (rc != 0)
		return rc;
	if (e->type == UNI_CALL_ENTER)
		frames[e->depth + 1] = one;
	return one.hidden ? 0 : put_event(p, ext, e);
}

/* Does it belong to the call or return that comes next? */
static bool is_ahead(const struct uni_call_event *e)
{
	return e->type == UNI_CALL_EXT &&
	       (e->cls == UNI_TRACE_CLASS_ENTRY_ARGS || e->cls == UNI_TRACE_CLASS_EXIT_VALUE);
}

int uni_call_picker_pick(struct uni_call_picker *p, const struct uni_calls *calls,
	const struct uni_call_event *e, size_t nr, const struct uni_call_event **ret,
	size_t *nr_ret)
{
	int rc = 0;

	p->event.nr = 0;
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		bool ahead = is_ahead(&e[i]) && i + 1 < nr && e[i + 1].thread == e[i].thread;

		if (!is_ahead(&e[i]) || ahead)
			rc = pick_event(p, calls, &e[i + ahead], ahead ? &e[i] : NULL);
		i += ahead;
	}
	*ret = p->event.v;
	*nr_ret = p->event.nr;
	return rc;
}

/* --- how calls end ---------------------------------------------------------------------------- */

/* value: the event with what it returns, or NULL. */
static bool ends_well(struct uni_call_picker *p, const struct known *k,
	const struct uni_call_event *e, const struct uni_calls *calls,
	const struct uni_call_event *value)
{
	bool well = e->duration >= k->min_ns;

	for (size_t i = 0; well && i < p->nr; i++) {
		if ((k->own >> i & 1) != 0)
			well = test_conditions(p, &p->rule[i], e->func, true,
				value != NULL ? uni_calls_words(calls, value) : NULL,
				value != NULL ? value->nr : 0);
	}
	return well;
}

static int look_at(struct uni_call_picker *p, const struct uni_calls *calls,
	const struct uni_call_event *e, const struct uni_call_event *value)
{
	const struct known *k = known_of(p, e->func);
	struct thread *t;
	struct frame *f;

	if (k == NULL)
		return -UNI_ENOMEM;
	if (!k->by_end)
		return 0;
	f = frames_to(p, e->thread, e->depth);
	if (f == NULL)
		return -UNI_ENOMEM;
	f += e->depth + 1;
	t = &p->thread.v[e->thread];
	if (e->type == UNI_CALL_ENTER) {
		f->number = t->nr_looked++;
		return f->number % 8 != 0 || uni_vec_push(&t->ended_well, 0) ? 0 : -UNI_ENOMEM;
	}
	if (f->number / 8 < t->ended_well.nr && ends_well(p, k, e, calls, value))
		t->ended_well.v[f->number / 8] |= (uint8_t)(1u << f->number % 8);
	return 0;
}

int uni_call_picker_look(struct uni_call_picker *p, const struct uni_calls *calls,
	const struct uni_call_event *e, size_t nr)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		bool ahead = i != 0 && is_ahead(&e[i - 1]) && e[i - 1].thread == e[i].thread;

		if (e[i].type == UNI_CALL_ENTER || e[i].type == UNI_CALL_LEAVE)
			rc = look_at(p, calls, &e[i], ahead ? &e[i - 1] : NULL);
	}
	return rc;
}
