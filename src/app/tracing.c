/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/tracing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/inside.h"
#include "app/resolve.h"
#include "app/signals.h"
#include "app/term.h"
#include "app/unpatch.h"
#include "backend/shared.h"
#include "tracing/lock.h"

#define RETRY_NS (100 * UNI_NSEC_PER_MSEC)
#define BOOT_NS	 (60 * UNI_NSEC_PER_SEC)

static bool still_boots(const struct uni_tracing *t)
{
	return uni_ring_info(uni_tracer_ring(t->tracer))->boots;
}

/* The guest sets its ring up some time after its image is in place. */
static int wait_for_ring(struct uni_tracing *t, const struct uni_tracer_args *args,
	uint64_t until_ns, bool snapshot, struct uni_err *err)
{
	const struct timespec nap = uni_ns_timespec(RETRY_NS);
	const struct uni_target_ops *ops = t->g.t->ops;
	int rc = uni_tracer_open(args, &t->tracer, err);

	while ((rc == -UNI_ENOENT || rc == -UNI_EFAULT || rc == -UNI_EAGAIN ||
		       (rc == 0 && still_boots(t))) &&
		uni_now_ns() < until_ns && !atomic_load(uni_signals_stop()) &&
		(ops->alive == NULL || ops->alive(t->g.t))) {
		uni_progress("waiting for the guest to set up its trace ring");
		(void)nanosleep(&nap, NULL);
		*err = (struct uni_err){ 0 };
		uni_tracer_close(t->tracer);
		t->tracer = NULL;
		rc = uni_tracer_open(args, &t->tracer, err);
	}
	uni_progress_end();
	if (rc == 0 && still_boots(t) && !snapshot)
		uni_note(
			"the guest has not called uni_trace_init() so far: only the CPU that boots "
			"is seen (--wait waits for the others)");
	return rc;
}

static int claim_guest(struct uni_tracing *t, const struct uni_target_info *info,
	const char *target, const struct uni_tracing_args *args, struct uni_err *err)
{
	int rc = args->owns ? uni_trace_own(info, target, &t->owner, err) : 0;

	return rc == 0 && args->guarded ? uni_unpatch_begin(t, info->pid, target, args, err) : rc;
}

/*
 * First come the locks and the guardian, which take rights. The guardian keeps them all, and reads
 * nothing of the guest. *claimed_ret: that was done, and the rights are gone.
 */
static int give_up_rights(struct uni_tracing *t, const struct uni_spec *spec, const char *target,
	const struct uni_tracing_args *args, const struct uni_attach_args *attach,
	bool *claimed_ret, struct uni_err *err)
{
	struct uni_target_info info = { 0 };
	struct uni_guest_plan plan;
	int rc = uni_guest_plan_rights(spec, attach, &plan, err);

	*claimed_ret = rc == 0 && plan.rights != UNI_GUEST_ALL;
	if (!*claimed_ret)
		return rc;
	info.pid = plan.rights == UNI_GUEST_OWNER ? plan.pid : plan.watched.pid;
	rc = claim_guest(t, &info, target, args, err);
	return rc == 0 ? uni_guests_give_up_rights(&plan, 1, err) : rc;
}

static int open_guest(struct uni_tracing *t, const char *target,
	const struct uni_tracing_args *args, struct uni_attach_args *attach, bool *claimed_ret,
	struct uni_err *err)
{
	_cleanup_free_ struct uni_spec *spec = calloc(1, sizeof(*spec));
	int rc;

	if (args->shared == NULL)
		t->shared = uni_target_shared_create();
	attach->shared = args->shared != NULL ? args->shared : t->shared;
	if (spec == NULL || attach->shared == NULL)
		return uni_err_nomem(err);
	attach->target = target;
	if (args->may_give_up) {
		rc = uni_guest_await(target, attach->wait_ns, spec, err);
		if (rc == 0)
			rc = give_up_rights(t, spec, target, args, attach, claimed_ret, err);
		if (rc != 0)
			return rc;
		attach->target = spec->text;
	}
	return uni_guest_open(&t->g, attach, err);
}

static int open_tracer(struct uni_tracing *t, const struct uni_tracing_args *args,
	const struct uni_attach_args *attach, uint64_t begin_ns, struct uni_err *err)
{
	const struct uni_tracer_args tracer = { .head = args->head,
		.search = attach->search,
		.t = t->g.t,
		.image = t->g.image,
		.bias = t->g.bias };
	uint64_t until_ns = begin_ns + attach->wait_ns;
	int rc;

	uni_guest_note_unplaced(&t->g, "only samples tell where it runs: it is left out");
	if (t->g.awaited)
		until_ns = uni_max(until_ns, uni_now_ns() + BOOT_NS);
	rc = wait_for_ring(t, &tracer, until_ns, args->rest_ok, err);
	if (rc == 0 || attach->wait_ns == 0 || uni_now_ns() < until_ns)
		return rc;
	return uni_err_prefix(err, "waited %g s (--wait)", args->wait);
}

int uni_tracing_open(struct uni_tracing *t, const char *target, const struct uni_tracing_args *args,
	struct uni_err *err)
{
	struct uni_opt_list programs = { 0 };
	struct uni_attach_args attach = { .image = uni_images_first(&args->images),
		.sysroot = &programs,
		.qmp = args->qmp,
		/* Nothing is sampled, so nothing has to be loaded into the host's kernel. */
		.method = "pause",
		.no_samples = true,
		.writes = !args->reads_only,
		.inside_ok = true,
		.search = uni_search_of(&args->debug_dirs),
		.wait_ns = (uint64_t)(args->wait * 1e9),
		.await_run = args->await_run,
		.rest_ok = args->rest_ok,
		.no_image_ok = true };
	uint64_t begin_ns = uni_now_ns();
	bool claimed = false;
	int rc;

	*t = (struct uni_tracing){ .owner = -1, .guard = -1 };
	if (args->wait < 0 || args->wait > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--wait must be between 0 and 10000000 s");
	rc = uni_images_others(&args->images, &programs, err);
	if (rc == 0) {
		uni_trace_await_guardian(target);
		rc = open_guest(t, target, args, &attach, &claimed, err);
	}
	uni_vec_free(&programs.items);
	if (rc == 0)
		rc = open_tracer(t, args, &attach, begin_ns, err);
	if (rc == 0 && !claimed)
		rc = claim_guest(t, &t->g.info, target, args, err);
	if (rc == 0)
		uni_unpatch_arm(t);
	else
		uni_tracing_close(t);
	return rc;
}

void uni_tracing_close(struct uni_tracing *t)
{
	uni_unpatch_end(t);
	uni_tracer_close(t->tracer);
	uni_guest_close(&t->g);
	uni_target_shared_destroy(t->shared);
	if (t->owner >= 0)
		(void)close(t->owner);
}

bool uni_choice_given(const struct uni_tracing_args *a)
{
	return a->filter.items.nr + a->regex.items.nr + a->exclude.items.nr + a->args.items.nr +
			       a->trigger.items.nr !=
		       0 ||
	       a->threads || a->mode != NULL || a->min_us != 0 || a->depth != 0;
}

static int parse_mode(struct uni_choice *c, const char *mode, struct uni_err *err)
{
	static const char *const names[] = {
		[UNI_TRACE_GRAPH] = "graph",
		[UNI_TRACE_LITE] = "lite",
		[UNI_TRACE_FUNCTION] = "function",
		[UNI_TRACE_CALLERS] = "callers",
	};

	for (size_t i = 0; i < uni_array_len(names); i++) {
		if (strcmp(names[i], mode != NULL ? mode : "graph") == 0) {
			c->c.mode = (uint32_t)i;
			/* Readers need not tell them apart: a call has its caller, or not. */
			c->mode = names[uni_min(i, (size_t)UNI_TRACE_FUNCTION)];
			return 0;
		}
	}
	return uni_err_set(
		err, UNI_EUSAGE, "--mode is graph, lite, function or callers, not %s", mode);
}

static int parse_regexes(struct uni_choice *c, const struct uni_opt_list *list, struct uni_err *err)
{
	if (list->items.nr > UNI_REGEXES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --regex", UNI_REGEXES_MAX);
	for (size_t i = 0; i < list->items.nr; i++) {
		char why[128];
		int r = regcomp(&c->regex[i], list->items.v[i], REG_EXTENDED | REG_NOSUB);

		if (r != 0) {
			(void)regerror(r, &c->regex[i], why, sizeof(why));
			return uni_err_set(
				err, UNI_EUSAGE, "--regex %s: %s", list->items.v[i], why);
		}
		c->nr_regexes++;
	}
	c->c.regex = c->regex;
	c->c.nr_regexes = c->nr_regexes;
	return 0;
}

static int parse_trigger(struct uni_choice *c, const char *text, struct uni_err *err)
{
	static const char *const words[] = {
		[UNI_TRIGGER_START] = "start",
		[UNI_TRIGGER_STOP] = "stop",
		[UNI_TRIGGER_FREEZE] = "freeze",
	};
	const char *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : 0, n = c->c.nr_triggers;

	for (size_t i = UNI_TRIGGER_START; len != 0 && i < uni_array_len(words); i++) {
		if (strcmp(colon + 1, words[i]) != 0 || len >= sizeof(c->name[n]))
			continue;
		memcpy(c->name[n], text, len);
		c->name[n][len] = '\0';
		c->trigger[n] = (struct uni_trace_trigger){ c->name[n], (enum uni_trigger)i };
		c->c.nr_triggers++;
		/* A trace with a start trigger begins switched off. */
		c->c.disabled = c->c.disabled || i == UNI_TRIGGER_START;
		return 0;
	}
	return uni_err_set(
		err, UNI_EUSAGE, "--trigger %s: write FUNCTION:start, :stop or :freeze", text);
}

static int parse_triggers(
	struct uni_choice *c, const struct uni_opt_list *list, struct uni_err *err)
{
	int rc = 0;

	if (list->items.nr > UNI_TRIGGERS_MAX)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --trigger", UNI_TRIGGERS_MAX);
	for (size_t i = 0; rc == 0 && i < list->items.nr; i++)
		rc = parse_trigger(c, list->items.v[i], err);
	c->c.trigger = c->trigger;
	return rc;
}

static int parse_wants(struct uni_choice *c, const struct uni_opt_list *list, struct uni_err *err)
{
	struct uni_trace_want want;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < list->items.nr; i++) {
		rc = uni_trace_want_parse(list->items.v[i], &want, err);
		if (rc == 0 && !uni_vec_push(&c->want, want))
			rc = uni_err_nomem(err);
	}
	return rc;
}

static void add_word(char text[256], const char *before, const char *word)
{
	size_t at = strlen(text);

	(void)snprintf(text + at, 256 - at, "%s%s%s", at != 0 ? " " : "", before, word);
}

static void describe_choice(
	struct uni_choice *c, const char *before, const struct uni_opt_list *list)
{
	for (size_t i = 0; i < list->items.nr; i++)
		add_word(c->text, before, list->items.v[i]);
}

/* The guest itself leaves out other calls of the chosen functions. */
static void describe_only(struct uni_choice *c, const struct uni_tracing_args *a)
{
	char number[32];

	for (size_t i = 0; i < c->want.nr; i++) {
		if (c->want.v[i].nr_conditions != 0)
			add_word(c->only, "", a->args.items.v[i]);
	}
	(void)snprintf(number, sizeof(number), "%g", a->min_us);
	if (a->min_us != 0)
		add_word(c->only, "--min-duration ", number);
	(void)snprintf(number, sizeof(number), "%" PRIu64, a->depth);
	if (a->depth != 0)
		add_word(c->only, "--depth ", number);
}

int uni_choice_make(struct uni_choice *ret, const struct uni_tracing_args *a, struct uni_err *err)
{
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = parse_mode(ret, a->mode, err);
	if (rc == 0 && (a->min_us < 0 || a->min_us > 1e6))
		rc = uni_err_set(err, UNI_EUSAGE, "--min-duration is 0 to 1000000 microseconds");
	if (rc == 0 && a->depth > UINT32_MAX / 2)
		rc = uni_err_set(err, UNI_EUSAGE, "--depth is too large");
	if (rc == 0)
		rc = parse_regexes(ret, &a->regex, err);
	if (rc == 0)
		rc = parse_triggers(ret, &a->trigger, err);
	if (rc == 0)
		rc = parse_wants(ret, &a->args, err);
	if (rc != 0) {
		uni_choice_free(ret);
		return rc;
	}
	ret->c.glob = a->filter.items.v;
	ret->c.nr_globs = a->filter.items.nr;
	ret->c.not_glob = a->exclude.items.v;
	ret->c.nr_not = a->exclude.items.nr;
	ret->c.args = ret->want.v;
	ret->c.nr_args = ret->want.nr;
	ret->c.min_ns = (uint64_t)(a->min_us * 1e3);
	ret->c.max_depth = (uint32_t)a->depth;
	ret->c.pieces = a->pieces;
	ret->c.promises = a->threads;
	rc = uni_trace_choice_check(&ret->c, err);
	if (rc != 0) {
		uni_choice_free(ret);
		return rc;
	}
	describe_choice(ret, "", &a->filter);
	describe_choice(ret, "/", &a->regex);
	describe_choice(ret, "-", &a->exclude);
	describe_only(ret, a);
	return 0;
}

void uni_choice_free(struct uni_choice *c)
{
	for (size_t i = 0; i < c->nr_regexes; i++)
		regfree(&c->regex[i]);
	c->nr_regexes = 0;
	uni_vec_free(&c->want);
}

void uni_tracing_stood(const struct uni_trace_done *d, char ret[UNI_STOOD_MAX])
{
	ret[0] = '\0';
	if (d->pause_ns != 0 && d->nr_stops > 1)
		(void)snprintf(ret, UNI_STOOD_MAX,
			"; the guest was stopped %u times, each for at most %.0f us", d->nr_stops,
			(double)d->pause_ns / 1e3);
	else if (d->pause_ns != 0)
		(void)snprintf(ret, UNI_STOOD_MAX, "; the guest was stopped for %.0f us",
			(double)d->pause_ns / 1e3);
}

void uni_tracing_say(const struct uni_trace_done *d)
{
	char stood[UNI_STOOD_MAX];

	uni_tracing_stood(d, stood);
	if (d->threads && d->nr_functions == 0 && !d->calls_itself)
		uni_note("events of threads are recorded, and no function is traced%s", stood);
	else if (d->calls_itself && d->nr_functions == 0)
		uni_note("all functions that call the tracer by themselves are traced%s", stood);
	else
		uni_note("%u function%s at %u place%s %s traced%s", d->nr_functions,
			uni_plural(d->nr_functions), d->nr_sites, uni_plural(d->nr_sites),
			d->nr_functions == 1 ? "is" : "are", stood);
	if (d->calls_itself && d->nr_functions != 0)
		uni_note("and so are all that call the tracer by themselves");
	if (d->nr_no_exits != 0)
		uni_note("%u function%s not: their returns are not known (link with "
			 "--emit-relocs, or --mode function)",
			d->nr_no_exits,
			d->nr_no_exits == 1 ? " that matches is" : "s that match are");
	if (d->nr_pieces != 0)
		uni_note("%u function%s not: several instructions are at the begin "
			 "(uniscope trace prepare, or --pieces)",
			d->nr_pieces, d->nr_pieces == 1 ? " that matches is" : "s that match are");
	if (d->nr_unlike != 0)
		uni_note("%u function%s left alone: the guest has other code there than its image",
			d->nr_unlike, d->nr_unlike == 1 ? " is" : "s are");
}
