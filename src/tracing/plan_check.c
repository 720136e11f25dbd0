/* SPDX-License-Identifier: BSD-2-Clause */
/* Can a choice of functions be carried out in this guest, and did it find any? */
#include <string.h>

#include "base/text.h"
#include "tracing/plan.h"

int uni_trace_choice_check(const struct uni_trace_choice *c, struct uni_err *err)
{
	if (UNI_TRACE_ENTRIES_ONLY(c->mode) && (c->max_depth != 0 || c->min_ns != 0))
		return uni_err_set(err, UNI_EUSAGE,
			"%s needs the ends of calls, and --mode %s records none: graph and lite do",
			c->max_depth != 0 ? "--depth" : "--min-duration",
			c->mode == UNI_TRACE_CALLERS ? "callers" : "function");
	return 0;
}

static int check_hooks(
	const struct uni_trace_guest *g, const struct uni_trace_choice *c, struct uni_err *err)
{
	const struct uni_trace_hooks *h = &g->hooks;

	if (c == NULL || uni_trace_choice_is_threads(c))
		return 0;
	if (uni_trace_choice_check(c, err) != 0)
		return -err->code;
	if (h->entry == 0 || h->entry_any == 0 || (c->nr_args != 0 && h->entry_args == 0) ||
		(c->nr_triggers != 0 && (h->entry_start == 0 || h->entry_freeze == 0)) ||
		(!UNI_TRACE_ENTRIES_ONLY(c->mode) &&
			(h->exit == 0 || h->exit_lite == 0 || h->exit_min == 0)))
		return uni_err_set(
			err, UNI_ENOTSUP, "the tracer in this guest has no hook for what is asked");
	if (c->mode == UNI_TRACE_CALLERS && h->entry_caller == 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"the tracer in this guest tells no callers: build it with a newer one "
			"(" UNI_GUEST_README "), or use --mode graph");
	if (g->info->text_rules == 0 && uni_trace_wants_text(c->args, c->nr_args))
		return uni_err_set(err, UNI_ENOTSUP,
			"the tracer in this guest copies no text: it was not given "
			"uni_trace_copy_text() (" UNI_GUEST_README ")");
	if (g->info->conditions == 0 && uni_trace_wants_condition(c->args, c->nr_args))
		return uni_err_set(err, UNI_ENOTSUP,
			"the tracer in this guest heeds no conditions on arguments: link "
			"conditions.c (" UNI_GUEST_README "), or choose calls afterwards with "
			"`trace replay --rule`");
	if (uni_trace_wants_read(c->args, c->nr_args) && (g->info->reads == 0 || g->inside))
		return uni_err_set(err, UNI_ENOTSUP,
			g->inside ? "over its port the guest lets nobody read its variables"
				  : "the tracer in this guest reads no variables: build it with a "
				    "newer one (" UNI_GUEST_README ")");
	if (c->min_ns != 0 && g->tsc_hz == 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest does not tell the frequency of its counter, which a minimum "
			"duration needs");
	return 0;
}

/* Functions that are not patched cannot be distinguished. */
static int check_whole(
	const struct uni_trace_guest *g, const struct uni_trace_choice *c, struct uni_err *err)
{

	if (c == NULL || !g->calls_itself || g->sites->nr_functions != 0 ||
		c->nr_globs + c->nr_regexes + c->nr_not + c->nr_args + c->nr_triggers == 0)
		return 0;
	return uni_err_set(err, UNI_ENOTSUP,
		"the functions of %s call the tracer by themselves "
		"(-finstrument-functions or -pg). All of them are traced or "
		"none: leave out the options that choose functions",
		uni_image_path(g->image));
}

/* A trigger with a misspelt name would never fire, without any message. */
static int check_names(
	const struct uni_trace_guest *g, const struct uni_trace_choice *c, struct uni_err *err)
{
	const struct uni_sites *s = g->sites;

	for (size_t i = 0; c != NULL && i < c->nr_triggers + c->nr_args; i++) {
		bool is_trigger = i < c->nr_triggers, found = false;
		const char *name =
			is_trigger ? c->trigger[i].function : c->args[i - c->nr_triggers].function;

		for (size_t k = 0; !found && k < s->nr_functions; k++)
			found = is_trigger ? strcmp(name, s->function[k].name) == 0
					   : uni_glob_match(name, s->function[k].name);
		if (!found)
			return uni_err_set(err, UNI_ENOENT,
				"%s %s: no function of that name can be traced (nm %s lists names)",
				is_trigger ? "--trigger" : "--args", name,
				uni_image_path(g->image));
	}
	return 0;
}

int uni_trace_plan_check(
	const struct uni_trace_guest *g, const struct uni_trace_choice *c, struct uni_err *err)
{
	int rc = check_hooks(g, c, err);

	if (rc == 0)
		rc = check_whole(g, c, err);
	return rc == 0 ? check_names(g, c, err) : rc;
}

int uni_trace_plan_check_found(const struct uni_trace_guest *g, const struct uni_trace_choice *c,
	const struct uni_trace_plan *r, struct uni_err *err)
{
	if (c == NULL || r->nr_functions != 0 || uni_trace_choice_is_threads(c) ||
		(g->calls_itself && g->sites->nr_functions == 0))
		return 0;
	if (r->nr_no_exits != 0)
		return uni_err_set(err, UNI_ENOENT,
			"the returns of the %u functions that match are not known: link the guest "
			"with --emit-relocs, or trace entries only (--mode function)",
			r->nr_no_exits);
	if (r->nr_pieces != 0)
		return uni_err_set(err, UNI_ENOENT,
			"the %u functions that match begin with several "
			"instructions. Let `uniscope trace prepare` make one of "
			"them before the guest boots, or give --pieces if no "
			"thread can be interrupted there",
			r->nr_pieces);
	if (r->nr_unlike != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"the %u functions that match hold other code in the guest than in %s",
			r->nr_unlike, uni_image_path(g->image));
	return uni_err_set(err, UNI_ENOENT,
		"no function matches, of the %zu that can be traced (nm %s lists names)",
		g->sites->nr_functions, uni_image_path(g->image));
}
