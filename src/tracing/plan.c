/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define CONTROL_WORDS 8
#define HEAD_WORDS    (CONTROL_WORDS + 6) /* that are written: these, and six others */
#define PAGE	      4096u

struct plan {
	const struct uni_trace_guest *g;
	const struct uni_trace_choice *choice; /* NULL: off */
	struct uni_trace_plan *ret;
	struct uni_err *err;
	struct uni_trace_rules rules; /* for arguments */
	bool has_text;		      /* the function that is planned has such a rule */
	/* The page that was read last: sites come in order. */
	uint64_t page_va;
	bool have_page;
	uint8_t page[PAGE];
};

bool uni_trace_choice_is_threads(const struct uni_trace_choice *c)
{
	return c->promises && c->nr_globs + c->nr_regexes + c->nr_args + c->nr_triggers == 0;
}

static bool name_matches(const char *const *glob, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++) {
		if (uni_glob_match(glob[i], name))
			return true;
	}
	return false;
}

static enum uni_trigger trigger_of(const struct uni_trace_choice *c, const char *name)
{
	for (size_t i = 0; i < c->nr_triggers; i++) {
		if (strcmp(c->trigger[i].function, name) == 0)
			return c->trigger[i].what;
	}
	return UNI_TRIGGER_NONE;
}

static bool is_chosen(const struct uni_trace_choice *c, const char *name)
{
	bool any = c->nr_globs == 0 && c->nr_regexes == 0 && !c->promises;

	if (trigger_of(c, name) != UNI_TRIGGER_NONE)
		return true;
	if (name_matches(c->not_glob, c->nr_not, name))
		return false;
	any = any || name_matches(c->glob, c->nr_globs, name) ||
	      uni_trace_wants_match(c->args, c->nr_args, name);
	for (size_t i = 0; !any && i < c->nr_regexes; i++)
		any = regexec(&c->regex[i], name, 0, NULL, 0) == 0;
	return any;
}

/* The hook that its entry calls. */
static uint64_t entry_hook(const struct plan *p, const struct uni_site_function *f)
{
	const struct uni_trace_hooks *h = &p->g->hooks;
	const struct uni_trace_choice *c = p->choice;

	switch (trigger_of(c, f->name)) {
	case UNI_TRIGGER_START:
		return h->entry_start;
	case UNI_TRIGGER_STOP:
		return h->entry_stop;
	case UNI_TRIGGER_FREEZE:
		return h->entry_freeze;
	case UNI_TRIGGER_NONE:
		break;
	}
	if (uni_trace_wants_match(c->args, c->nr_args, f->name) &&
		!uni_trace_wants_value_alone(c->args, c->nr_args, f->name))
		return p->has_text ? h->entry_text : h->entry_args;
	if (c->mode == UNI_TRACE_CALLERS)
		return h->entry_caller;
	if (c->max_depth == 0 && p->g->info->kinds[f->low & 15] == UNI_TRACE_KIND_ENTRY)
		return c->mode == UNI_TRACE_FUNCTION && h->entry_only != 0 ? h->entry_only
									   : h->entry;
	return h->entry_any;
}

/* The hook that its returns jump to; 0: none, they stay as they are. */
static uint64_t exit_hook(const struct plan *p, const struct uni_site_function *f)
{
	const struct uni_trace_hooks *h = &p->g->hooks;
	const struct uni_trace_choice *c = p->choice;

	if (UNI_TRACE_ENTRIES_ONLY(c->mode))
		return 0;
	if (uni_trace_wants_match(c->args, c->nr_args, f->name))
		return h->exit_value;
	if (c->max_depth != 0)
		return h->exit_any;
	if (c->min_ns != 0) /* also for lite: short calls need the time */
		return h->exit_min;
	return c->mode == UNI_TRACE_LITE ? h->exit_lite : h->exit;
}

static bool is_hook(const struct uni_trace_hooks *h, uint64_t to)
{
	const uint64_t *all = (const uint64_t *)h;

	for (size_t i = 0; to != 0 && i < sizeof(*h) / sizeof(*all); i++) {
		if (all[i] == to)
			return true;
	}
	return false;
}

static int read_code(struct plan *p, uint64_t va, uint8_t *buf, size_t len)
{
	uint64_t page = va - va % PAGE;

	if (va % PAGE > PAGE - len)
		return uni_tmem_read(p->g->mem, va, buf, len);
	if (!p->have_page || p->page_va != page) {
		int rc = uni_tmem_read(p->g->mem, page, p->page, PAGE);

		p->have_page = rc == 0;
		p->page_va = page;
		if (rc != 0)
			return rc;
	}
	memcpy(buf, p->page + va % PAGE, len);
	return 0;
}

/* Reads the bytes there. True if they are known: off, made cheap, or one of the tracer's hooks. */
static bool read_site(struct plan *p, const struct uni_site *s, uint8_t now[UNI_SITE_BYTES])
{
	uint8_t cheap[UNI_SITE_BYTES];

	if (uni_tmem_check_exec(p->g->mem, s->addr + p->g->bias) != 0 ||
		read_code(p, s->addr + p->g->bias, now, UNI_SITE_BYTES) != 0)
		return false;
	uni_site_free_bytes(s, cheap);
	return memcmp(now, s->off, UNI_SITE_BYTES) == 0 ||
	       memcmp(now, cheap, UNI_SITE_BYTES) == 0 ||
	       is_hook(&p->g->hooks, uni_site_hook(s, p->g->bias, now));
}

static int add_patch(struct plan *p, struct uni_trace_patches *to, uint64_t va, const void *now,
	const void *want, uint8_t len, bool pieces)
{
	struct uni_patch *one;
	uint64_t gpa, room;

	if (memcmp(now, want, len) == 0)
		return 0;
	if (uni_tmem_where(p->g->mem, va, &gpa, &room) != 0)
		return -UNI_EFAULT;
	if (room < len) /* its end is mapped elsewhere: it could not be written in one go */
		return -UNI_ENOTSUP;
	if (to->nr == to->cap)
		return -UNI_ERANGE;
	one = &to->v[to->nr++];
	*one = (struct uni_patch){ .va = va, .gpa = gpa, .len = len, .pieces = pieces };
	memcpy(one->old_bytes, now, len);
	memcpy(one->new_bytes, want, len);
	return 0;
}

/* A word of 4 bytes that decides what is recorded. */
static int add_word(struct plan *p, uint64_t va, const void *now, const void *want)
{
	return add_patch(p, &p->ret->keys, va, now, want, sizeof(uint32_t), false);
}

/* Its sites as they are; false if one holds something else, which is left alone with all others. */
static bool read_function(
	struct plan *p, const struct uni_site_function *f, uint8_t (*now)[UNI_SITE_BYTES])
{
	for (uint32_t i = 0; i < f->nr; i++) {
		if (!read_site(p, &p->g->sites->site[f->first + i], now[i]))
			return false;
	}
	return true;
}

/* Can it be traced as is asked? Counts why not. */
static bool can_trace(struct plan *p, const struct uni_site_function *f)
{
	if (exit_hook(p, f) != 0 && !f->exits_known) {
		p->ret->nr_no_exits++;
		return false;
	}
	if (f->pieces && !p->choice->pieces) {
		p->ret->nr_pieces++;
		return false;
	}
	return true;
}

static bool is_trigger(const struct uni_trace_hooks *h, uint64_t to)
{
	return to != 0 && (to == h->entry_start || to == h->entry_stop || to == h->entry_freeze);
}

static int plan_site(struct plan *p, const struct uni_site *s, const uint8_t *now, uint64_t hook)
{
	const uint64_t was = uni_site_hook(s, p->g->bias, now);
	const bool key = is_trigger(&p->g->hooks, was) || is_trigger(&p->g->hooks, hook);
	bool pieces = s->state == UNI_SITE_PIECES && memcmp(now, s->off, UNI_SITE_BYTES) == 0;
	uint8_t want[UNI_SITE_BYTES];

	memcpy(want, s->off, sizeof(want));
	if (hook != 0 && !uni_site_on(s, p->g->bias, hook, want))
		return -UNI_ERANGE;
	p->ret->nr_sites += hook != 0;
	p->ret->nr_changed += memcmp(now, want, sizeof(want)) != 0;
	p->ret->is_live = p->ret->is_live || is_hook(&p->g->hooks, was);
	return add_patch(p, key ? &p->ret->keys : &p->ret->code, s->addr + p->g->bias, now, want,
		sizeof(want), pieces);
}

/* Which text of its arguments its entry has to copy, and which calls it has to leave out. */
static int plan_arguments(struct plan *p, const struct uni_site_function *f)
{
	const struct uni_trace_choice *c = p->choice;
	const struct uni_site *s = &p->g->sites->site[f->first], *end = s + f->nr;
	size_t before = p->rules.text.nr;
	int rc;

	while (s != end - 1 && s->kind != UNI_SITE_ENTRY)
		s++;
	rc = uni_trace_rules_add(&p->rules, c->args, c->nr_args,
		&(struct uni_traced_function){
			f->name, s->addr, p->g->bias, p->g->image, p->g->debug },
		p->err);
	p->has_text = p->rules.text.nr != before;
	return rc;
}

static int plan_function(struct plan *p, const struct uni_site_function *f)
{
	bool on = p->choice != NULL && is_chosen(p->choice, f->name) && can_trace(p, f);
	uint8_t(*now)[UNI_SITE_BYTES] = calloc(f->nr, sizeof(*now));
	int rc = now != NULL ? 0 : -UNI_ENOMEM;

	if (rc == 0 && on)
		rc = plan_arguments(p, f);

	if (rc == 0 && !read_function(p, f, now)) {
		p->ret->nr_unlike++;
		free(now);
		return 0;
	}
	for (uint32_t i = 0; rc == 0 && i < f->nr; i++) {
		const struct uni_site *s = &p->g->sites->site[f->first + i];
		uint64_t hook = 0;

		if (on)
			hook = s->kind == UNI_SITE_ENTRY ? entry_hook(p, f) : exit_hook(p, f);
		rc = plan_site(p, s, now[i], hook);
	}
	p->ret->nr_functions += rc == 0 && on;
	free(now);
	return rc;
}

static uint32_t cycles_of(const struct plan *p)
{
	unsigned __int128 n = (unsigned __int128)p->choice->min_ns * p->g->tsc_hz / 1000000000u;

	return n > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)n;
}

static int word_patch(const struct uni_trace_guest *g, uint64_t va, uint32_t was, uint32_t want,
	struct uni_patch *ret)
{
	uint64_t room;

	*ret = (struct uni_patch){ .va = va, .len = sizeof(want), .any = true };
	memcpy(ret->old_bytes, &was, sizeof(was));
	memcpy(ret->new_bytes, &want, sizeof(want));
	if (uni_tmem_where(g->mem, va, &ret->gpa, &room) != 0)
		return -UNI_EFAULT;
	return room < sizeof(want) ? -UNI_ENOTSUP : 0;
}

int uni_trace_plan_gap(
	const struct uni_trace_guest *g, uint32_t gaps, struct uni_patch *to, size_t *nr_ret)
{
	uint64_t control = g->head + offsetof(struct uni_trace_head, control);
	int rc;

	*nr_ret = 0;
	if (!g->info->tells_gaps)
		return 0;
	rc = word_patch(g, control + offsetof(struct uni_trace_control, gaps), gaps, gaps + 1, to);
	*nr_ret = 1;
	for (unsigned i = 0; rc == 0 && !g->inside && i < g->info->nr_cpus; i++)
		rc = word_patch(
			g, uni_ring_area(g->ring, i) + UNI_TRACE_CPU_HI, 0, ~0u, &to[(*nr_ret)++]);
	return rc;
}

/* Each start has a number: older records in the rings keep theirs. A trigger of an older choice
 * that a vCPU is in finds there what is asked for now. */
static int plan_session(
	struct plan *p, const struct uni_trace_control *now, const struct uni_trace_control *want)
{
	uint64_t va = p->g->head + offsetof(struct uni_trace_head, control);
	int rc;

	p->ret->session = now->session;
	if (!p->g->info->tells_sessions)
		return 0;
	rc = add_word(p, va + offsetof(struct uni_trace_control, enable_asked), &now->enable_asked,
		&want->enable);
	if (rc != 0 || p->choice == NULL)
		return rc;
	p->ret->session++;
	return add_word(p, va + offsetof(struct uni_trace_control, session), &now->session,
		&p->ret->session);
}

/* The words that control the hooks; the guest obeys them with its next call. */
static int plan_control(struct plan *p)
{
	const struct uni_trace_choice *c = p->choice;
	struct uni_trace_control now, want;
	uint64_t va = p->g->head + offsetof(struct uni_trace_head, control);
	const uint8_t *from = (const uint8_t *)&now, *to = (const uint8_t *)&want;
	struct uni_trace_patches *keys = &p->ret->keys;
	size_t nr = 0;
	int rc = uni_tmem_read(p->g->mem, va, &now, sizeof(now));

	want = now;
	/* Code that calls the tracer by itself has no other switch. */
	want.enable = c != NULL && !c->disabled && !uni_trace_choice_is_threads(c);
	want.mode = c != NULL ? c->mode : UNI_TRACE_GRAPH;
	want.min_time = c != NULL ? cycles_of(p) : 0;
	want.max_depth = c != NULL ? c->max_depth : 0;
	want.promises &= ~(uint32_t)UNI_TRACE_PROMISES_TELL;
	want.promises |= c != NULL && c->promises ? UNI_TRACE_PROMISES_TELL : 0;
	if (want.max_depth != now.max_depth)
		want.run++; /* calls open at that time were counted by others, or not at all */
	want.sets++;
	p->ret->is_live = p->ret->is_live || now.enable != 0;
	p->ret->calls_itself = p->g->calls_itself && c != NULL && !uni_trace_choice_is_threads(c);
	p->ret->sets = want.sets;
	for (size_t at = 0; rc == 0 && at < CONTROL_WORDS * sizeof(uint32_t); at += 4)
		rc = add_word(p, va + at, from + at, to + at);
	if (rc == 0)
		rc = plan_session(p, &now, &want);
	if (rc == 0)
		rc = uni_trace_plan_gap(p->g, now.gaps, keys->v + keys->nr, &nr);
	keys->nr += nr;
	return rc;
}

/* A table at `to` in the guest: its room and number, then entries of `size` bytes. Written by words
 * of 4 bytes. */
static int plan_table(
	struct plan *p, uint64_t to, const void *all, size_t nr, size_t size, const char *what)
{
	const uint32_t want = (uint32_t)nr;
	uint32_t now[2];
	uint8_t was[sizeof(struct uni_trace_condition)];
	int rc;

	if (uni_tmem_read(p->g->mem, to, now, sizeof(now)) != 0)
		return -UNI_EFAULT;
	if (nr > uni_min(now[0], (uint32_t)UNI_TRACE_TEXT_RULES))
		return uni_err_set(p->err, UNI_ERANGE,
			"%s: %zu, and the guest has room for %u; --args with fewer functions", what,
			nr, now[0]);
	rc = add_word(p, to + sizeof(now[0]), &now[1], &want);
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		const uint64_t va = to + sizeof(now) + i * size;
		const uint8_t *one = (const uint8_t *)all + i * size;

		rc = uni_tmem_read(p->g->mem, va, was, size);
		for (unsigned k = 0; rc == 0 && k < size; k += 4)
			rc = add_word(p, va + k, was + k, one + k);
	}
	return rc;
}

/* A fault in a hook would end the guest. */
static int check_reads(const struct plan *p)
{
	uint64_t v;

	for (size_t i = 0; i < p->rules.read.nr; i++) {
		const struct uni_trace_read *r = &p->rules.read.v[i];

		if (uni_tmem_read(p->g->mem, r->address, &v, r->bytes) != 0)
			return uni_err_set(p->err, UNI_EFAULT,
				"--args: a variable at %#llx is not mapped in the guest",
				(unsigned long long)r->address);
	}
	return 0;
}

/* The guest heeds its last conditions and variables until there are others. */
static int plan_rules(struct plan *p)
{
	const struct uni_ring_info *info = p->g->info;
	const struct uni_trace_rules *r = &p->rules;
	int rc = 0;

	uni_trace_rules_sort(&p->rules);
	if (r->text.nr != 0)
		rc = plan_table(p, info->text_rules, r->text.v, r->text.nr, sizeof(*r->text.v),
			"functions with text behind arguments");
	if (rc == 0 && p->choice != NULL && info->conditions != 0)
		rc = plan_table(p, info->conditions, r->condition.v, r->condition.nr,
			sizeof(*r->condition.v), "conditions on arguments");
	if (rc == 0)
		rc = check_reads(p);
	if (rc == 0 && p->choice != NULL && info->reads != 0)
		rc = plan_table(p, info->reads, r->read.v, r->read.nr, sizeof(*r->read.v),
			"variables with each call");
	return rc;
}

/* Rings that a trigger stopped go on with a new start. `stop` leaves them, because they hold the
 * events before the trigger. */
static int plan_thaw(struct plan *p)
{
	static const uint8_t zero[sizeof(uint32_t)];
	uint64_t va = p->g->head + offsetof(struct uni_trace_head, frozen);
	uint8_t now[sizeof(zero)];
	int rc = p->choice != NULL ? uni_tmem_read(p->g->mem, va, now, sizeof(now)) : 0;

	return rc != 0 || p->choice == NULL ? rc : add_word(p, va, now, zero);
}

int uni_trace_by_gpa(const void *a, const void *b)
{
	const struct uni_patch *p = a, *q = b;

	return p->gpa < q->gpa ? -1 : p->gpa > q->gpa;
}

static int make_patches(struct uni_trace_patches *p, size_t cap)
{
	p->v = calloc(cap + 1, sizeof(*p->v));
	p->cap = cap;
	return p->v != NULL ? 0 : -UNI_ENOMEM;
}

/* A rule for text is two words, and none is of a function that has no site. Each place may be a
 * trigger's. */
static int make_room(struct plan *p)
{
	const struct uni_trace_choice *c = p->choice;
	const struct uni_sites *sites = p->g->sites;
	size_t words = HEAD_WORDS + UNI_TRACE_GAP_PATCHES(p->g->info->nr_cpus);
	int rc;

	if (c != NULL && uni_trace_wants_text(c->args, c->nr_args))
		words += 2 * sites->nr_functions;
	if (c != NULL && uni_trace_wants_condition(c->args, c->nr_args))
		words += sizeof(struct uni_trace_condition) / 4 * UNI_TRACE_CONDITIONS;
	if (c != NULL && uni_trace_wants_read(c->args, c->nr_args))
		words += sizeof(struct uni_trace_read) / 4 * UNI_TRACE_READS;
	rc = make_patches(&p->ret->code, sites->nr_sites);
	return rc == 0 ? make_patches(&p->ret->keys, sites->nr_sites + words) : rc;
}

int uni_trace_plan(const struct uni_trace_guest *g, const struct uni_trace_choice *choice,
	struct uni_trace_plan *ret, struct uni_err *err)
{
	struct plan p = { .g = g, .choice = choice, .ret = ret, .err = err };
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = uni_trace_plan_check(g, choice, err);
	if (rc != 0)
		return rc;
	rc = make_room(&p);
	for (size_t i = 0; rc == 0 && i < g->sites->nr_functions; i++)
		rc = plan_function(&p, &g->sites->function[i]);
	if (rc == 0)
		rc = plan_rules(&p);
	if (rc == 0)
		rc = plan_control(&p);
	if (rc == 0)
		rc = plan_thaw(&p);
	uni_trace_rules_deinit(&p.rules);
	if (rc != 0 && err->code == 0)
		rc = uni_err_set(err, (enum uni_errcode) - rc,
			"the guest's code cannot be patched: %s",
			rc == -UNI_ERANGE ? "the tracer's hooks are too far from it"
					  : uni_strerror(rc));
	else if (rc == 0)
		rc = uni_trace_plan_check_found(g, choice, ret, err);
	if (rc != 0) {
		uni_trace_plan_deinit(ret);
		return rc;
	}
	qsort(ret->code.v, ret->code.nr, sizeof(*ret->code.v), uni_trace_by_gpa);
	qsort(ret->keys.v, ret->keys.nr, sizeof(*ret->keys.v), uni_trace_by_gpa);
	return 0;
}

void uni_trace_plan_deinit(struct uni_trace_plan *p)
{
	free(p->code.v);
	free(p->keys.v);
	p->code = p->keys = (struct uni_trace_patches){ 0 };
}
