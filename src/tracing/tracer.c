/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/tracer.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tracing/slices.h"

struct uni_tracer {
	struct uni_tracer_args args;
	struct uni_tmem *mem;
	struct uni_ring_source source;
	struct uni_ring *ring;
	struct uni_sites *sites;
	struct uni_debug *debug; /* once a choice names parameters */
	uint64_t head;
	uint32_t sets; /* control.sets as we left it, once is_set */
	bool is_set;
};

static int find_head(struct uni_tracer *t, struct uni_err *err)
{
	struct uni_target_info info;
	uint64_t size;
	int rc;

	if (t->args.head != NULL && uni_parse_u64(t->args.head, &t->head))
		return 0;
	if (t->args.head != NULL)
		return uni_err_set(
			err, UNI_EUSAGE, "%s is no address of a trace ring's head", t->args.head);
	t->args.t->ops->info(t->args.t, &info);
	t->head = info.trace_head;
	if (t->head != 0)
		return 0;
	if (t->args.image != NULL &&
		uni_image_find(t->args.image, "uni_trace_head", &t->head, &size) == 0) {
		t->head += t->args.bias;
		return 0;
	}
	rc = uni_tmem_find_head(t->mem, &t->head, err);
	if (rc != -UNI_ENOTSUP || t->args.image == NULL)
		return rc;
	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_ENOENT,
		"%s has no symbol uni_trace_head: it does not link the tracer, or its symbols were "
		"taken out",
		uni_image_path(t->args.image));
}

int uni_tracer_open(
	const struct uni_tracer_args *args, struct uni_tracer **ret, struct uni_err *err)
{
	struct uni_tracer *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return uni_err_nomem(err);
	t->args = *args;
	rc = uni_tmem_open(args->t, &t->mem, err);
	if (rc == 0) {
		t->source = uni_tmem_source(t->mem);
		rc = find_head(t, err);
	}
	if (rc == 0)
		rc = uni_ring_open(&t->source, t->head, &t->ring, err);
	if (rc != 0) {
		uni_tracer_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void uni_tracer_close(struct uni_tracer *t)
{
	if (t == NULL)
		return;
	uni_ring_close(t->ring);
	uni_tmem_close(t->mem);
	uni_sites_destroy(t->sites);
	uni_debug_destroy(t->debug);
	free(t);
}

struct uni_ring *uni_tracer_ring(struct uni_tracer *t)
{
	return t->ring;
}

const struct uni_ring_source *uni_tracer_source(const struct uni_tracer *t, uint64_t *head_ret)
{
	*head_ret = t->head;
	return &t->source;
}

int uni_tracer_control(struct uni_tracer *t, struct uni_trace_control *ret)
{
	return uni_tmem_read(
		t->mem, t->head + offsetof(struct uni_trace_head, control), ret, sizeof(*ret));
}

bool uni_tracer_tells_callers(struct uni_tracer *t)
{
	struct uni_trace_hooks hooks;

	return uni_tmem_read(t->mem, uni_ring_info(t->ring)->hooks, &hooks, sizeof(hooks)) == 0 &&
	       hooks.entry_caller != 0;
}

/* Has it code for which the compiler wrote the calls of the tracer (guest/README.md)? */
static bool calls_itself(const struct uni_image *img)
{
	uint64_t addr, size;

	return uni_image_find(img, "__cyg_profile_func_enter", &addr, &size) == 0 ||
	       uni_image_find(img, "uni_trace_entry_return", &addr, &size) == 0;
}

/* For events of threads alone, the image needs no functions to patch, nor calls to the tracer, nor
 * a choice. */
static int find_sites(
	struct uni_tracer *t, const struct uni_trace_choice *choice, struct uni_err *err)
{
	struct uni_err none = { 0 };
	int rc = uni_sites_read(t->args.image, &t->sites, &none);

	if (rc == -UNI_ENOENT && (choice == NULL || uni_trace_choice_is_threads(choice) ||
					 calls_itself(t->args.image))) {
		t->sites = calloc(1, sizeof(*t->sites));
		return t->sites != NULL ? 0 : uni_err_nomem(err);
	}
	if (rc == -UNI_ENOENT)
		return uni_err_set(err, UNI_ENOENT,
			"%s; `uniscope trace record --as-is` gets the events "
			"that it records by itself",
			none.msg);
	if (rc != 0)
		*err = none;
	return rc;
}

/* Names of parameters cannot do without; variables have their symbols. */
static int open_debug(struct uni_tracer *t, const struct uni_trace_choice *c, struct uni_err *err)
{
	struct uni_err none = { 0 };
	bool must = uni_trace_wants_name(c->args, c->nr_args);
	int rc = 0;

	if (must || uni_trace_wants_read(c->args, c->nr_args))
		rc = uni_debug_of_image(
			t->args.image, &t->args.search, &t->debug, must ? err : &none);
	return must ? rc : 0;
}

static int describe_guest(struct uni_tracer *t, const struct uni_trace_choice *choice,
	struct uni_trace_guest *ret, struct uni_err *err)
{
	const struct uni_ring_info *info = uni_ring_info(t->ring);
	int rc = 0;

	if (t->args.image == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"the guest's image is needed to know what can be traced: --image ELF");
	if (t->sites == NULL)
		rc = find_sites(t, choice, err);
	if (rc == 0 && choice != NULL && t->debug == NULL)
		rc = open_debug(t, choice, err);
	*ret = (struct uni_trace_guest){ .mem = t->mem,
		.image = t->args.image,
		.bias = t->args.bias,
		.sites = t->sites,
		.calls_itself = calls_itself(t->args.image),
		.info = info,
		.head = t->head,
		.ring = t->ring,
		.inside = (t->args.t->ops->caps(t->args.t) & UNI_CAP_INSIDE) != 0,
		.tsc_hz = info->tsc_hz,
		.debug = t->debug };
	if (rc == 0 && uni_tmem_read(t->mem, info->hooks, &ret->hooks, sizeof(ret->hooks)) != 0)
		rc = uni_err_set(err, UNI_EFAULT, "the guest's table of hooks cannot be read");
	return rc;
}

/* Refused by uni_patch_run(): some vCPUs would run meanwhile. */
static int holds_some_only(struct uni_target *t, struct uni_err *err)
{
	unsigned held = (unsigned)t->ops->nr_vcpus(t);

	return uni_err_set(err, UNI_ENOTSUP,
		"nothing was written: %u of the guest's %u vCPUs cannot be held, and would run "
		"through code that changes (%s)",
		(unsigned)t->nr_left_off, held + (unsigned)t->nr_left_off,
		held < UNI_VCPU_MAX ? "plugged in since? then try again" : UNI_VCPU_MOST);
}

static const char nothing_done[] = "nothing was patched";

/* done: what is patched now. */
static int patch_failed(
	const struct uni_tracer *t, uint64_t va, int rc, const char *done, struct uni_err *err)
{
	unsigned long long at = va;

	if (rc == -UNI_ENOTSUP && (t->args.t->ops->caps(t->args.t) & UNI_CAP_INSIDE))
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest cannot patch its own code: it gave uni_stream_init() no way to "
			"(" UNI_GUEST_README ")");
	if (rc == -UNI_ENOTSUP && t->args.t->nr_left_off != 0)
		return holds_some_only(t->args.t, err);
	if (rc == -UNI_ENOTSUP)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: targets cannot be traced: nothing is written to such guests",
			t->args.t->ops->scheme);
	if (rc == -UNI_EMISMATCH)
		return uni_err_set(err, UNI_EMISMATCH,
			"the code at 0x%llx changed in the meantime: %s; is somebody else "
			"tracing this guest?",
			at, done);
	if (rc == -UNI_EFAULT)
		return uni_err_set(
			err, UNI_EFAULT, "the code at 0x%llx cannot be written: %s", at, done);
	if (rc == -UNI_EAGAIN)
		return uni_err_set(err, UNI_EAGAIN,
			"the vCPUs could not all be stopped at places where the code may be "
			"changed: %s; try again",
			done);
	return uni_err_set(
		err, (enum uni_errcode) - rc, "the guest cannot be patched: %s", uni_strerror(rc));
}

static int make_plan(struct uni_tracer *t, const struct uni_trace_choice *choice,
	struct uni_trace_plan *ret, struct uni_err *err)
{
	struct uni_trace_guest g;
	int rc;

	/* No image would help. */
	if (!uni_patch_allowed(t->args.t))
		return patch_failed(t, 0, -UNI_ENOTSUP, nothing_done, err);
	rc = describe_guest(t, choice, &g, err);
	return rc == 0 ? uni_trace_plan(&g, choice, ret, err) : rc;
}

int uni_tracer_check(
	struct uni_tracer *t, const struct uni_trace_choice *choice, struct uni_err *err)
{
	struct uni_trace_plan plan = { 0 };
	int rc = make_plan(t, choice, &plan, err);

	uni_trace_plan_deinit(&plan);
	return rc;
}

/* Takes away what a plan of several stops has left when it failed. */
static int take_back(struct uni_tracer *t)
{
	struct uni_trace_plan plan = { 0 };
	struct uni_trace_stops stops = { 0 };
	struct uni_err none = { 0 };
	int rc = make_plan(t, NULL, &plan, &none);

	if (rc == 0)
		rc = uni_trace_write(t->args.t, &plan, false, &stops);
	uni_trace_plan_deinit(&plan);
	return rc;
}

static int carry_out(struct uni_tracer *t, const struct uni_trace_choice *choice,
	const struct uni_trace_plan *plan, struct uni_trace_stops *stops, struct uni_err *err)
{
	const uint32_t before = stops->nr;
	int rc = uni_trace_write(t->args.t, plan, choice != NULL, stops);
	bool some = rc != 0 && stops->nr != before;

	if (rc == 0)
		return 0;
	if (some && choice != NULL)
		some = take_back(t) != 0;
	return patch_failed(t, stops->bad_va, rc,
		some ? "some of it is patched, and records nothing (uniscope trace stop)"
		     : nothing_done,
		err);
}

/* While it stops the guest again and again, nothing may be recorded: the older choice ends before.
 */
static int end_older(struct uni_tracer *t, const struct uni_trace_choice *choice,
	struct uni_trace_plan *plan, struct uni_trace_stops *stops, struct uni_err *err)
{
	int rc;

	if (choice == NULL || !plan->is_live || uni_trace_fits_one(t->args.t, plan))
		return 0;
	uni_trace_plan_deinit(plan);
	rc = make_plan(t, NULL, plan, err);
	if (rc == 0)
		rc = carry_out(t, NULL, plan, stops, err);
	uni_trace_plan_deinit(plan);
	return rc == 0 ? make_plan(t, choice, plan, err) : rc;
}

int uni_tracer_set(struct uni_tracer *t, const struct uni_trace_choice *choice,
	struct uni_trace_done *ret, struct uni_err *err)
{
	struct uni_trace_plan plan = { 0 };
	struct uni_trace_stops stops = { 0 };
	int rc = make_plan(t, choice, &plan, err);

	if (rc == 0)
		rc = end_older(t, choice, &plan, &stops, err);
	if (rc == 0)
		rc = carry_out(t, choice, &plan, &stops, err);
	if (rc == 0)
		*ret = (struct uni_trace_done){ .nr_functions = plan.nr_functions,
			.nr_sites = plan.nr_sites,
			.nr_changed = plan.nr_changed,
			.pause_ns = stops.longest_ns,
			.nr_stops = stops.nr,
			.threads = choice != NULL && choice->promises,
			.calls_itself = plan.calls_itself,
			.nr_no_exits = plan.nr_no_exits,
			.nr_pieces = plan.nr_pieces,
			.nr_unlike = plan.nr_unlike };
	t->is_set = t->is_set || rc == 0;
	t->sets = rc == 0 ? plan.sets : t->sets;
	if (rc == 0 && choice != NULL)
		uni_ring_only(t->ring, plan.session);
	uni_trace_plan_deinit(&plan);
	return rc;
}

int uni_tracer_newest(struct uni_tracer *t, struct uni_err *err)
{
	struct uni_trace_control now;

	if (!uni_ring_info(t->ring)->tells_sessions)
		return 0;
	if (uni_tracer_control(t, &now) != 0)
		return uni_err_set(err, UNI_EFAULT, "the guest's trace control cannot be read");
	uni_ring_only(t->ring, now.session);
	return 0;
}

bool uni_tracer_is_ours(struct uni_tracer *t)
{
	struct uni_trace_control now;

	return !t->is_set || uni_tracer_control(t, &now) != 0 || now.sets == t->sets;
}

/* The word `enable`, and where it is set what tells that it was not. */
static int plan_enable(struct uni_tracer *t, bool on, struct uni_patch_job *job)
{
	const struct uni_trace_guest g = { .mem = t->mem,
		.info = uni_ring_info(t->ring),
		.head = t->head,
		.ring = t->ring,
		.inside = (t->args.t->ops->caps(t->args.t) & UNI_CAP_INSIDE) != 0 };
	uint64_t va = t->head + offsetof(struct uni_trace_head, control.enable), room;
	size_t nr = 0, cap = 1 + UNI_TRACE_GAP_PATCHES(g.info->nr_cpus);
	struct uni_patch *one = calloc(cap, sizeof(*one));
	struct uni_trace_control now;
	int rc;

	job->patch = one;
	job->nr = 1;
	if (one == NULL)
		return -UNI_ENOMEM;
	*one = (struct uni_patch){ .va = va, .len = 4 };
	one->new_bytes[0] = on;
	one->old_bytes[0] = !on;
	rc = uni_tmem_where(t->mem, va, &one->gpa, &room);
	if (rc == 0)
		rc = uni_tracer_control(t, &now);
	if (rc == 0 && on && now.enable == 0)
		rc = uni_trace_plan_gap(&g, now.gaps, one + 1, &nr);
	job->nr += nr;
	qsort(one, job->nr, sizeof(*one), uni_trace_by_gpa);
	return rc;
}

int uni_tracer_enable(struct uni_tracer *t, bool on, struct uni_err *err)
{
	struct uni_patch_job job = { 0 };
	int rc = plan_enable(t, on, &job);

	if (rc == 0)
		rc = uni_trace_write_job(t->args.t, &job);
	if (rc != 0)
		rc = patch_failed(
			t, job.bad < job.nr ? job.patch[job.bad].va : 0, rc, nothing_done, err);
	free((void *)(uintptr_t)job.patch);
	return rc;
}

int uni_tracer_describe(struct uni_tracer *t, struct uni_record_trace *ret, struct uni_err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->info = *uni_ring_info(t->ring);
	if (!uni_record_trace_room(ret, ret->info.nr_cpus))
		return uni_err_nomem(err);
	for (uint32_t i = 0; i < ret->nr_cpus; i++)
		ret->cpu[i].nr_subs = uni_ring_nr_subs(t->ring, i);
	return 0;
}
