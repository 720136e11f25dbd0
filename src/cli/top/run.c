/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/top/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/record.h"
#include "obj/usym.h"

static bool find_sort(const char *name, enum uni_live_sort *ret)
{
	for (unsigned i = 0; i < UNI_LIVE_SORT_NR; i++) {
		if (strcmp(uni_live_sort_name(i), name) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

int uni_top_check_args(const struct uni_top_args *a, struct uni_err *err)
{
	enum uni_live_sort sort;

	if (!(a->frequency > 0) || a->frequency > 100000)
		return uni_err_set(
			err, UNI_EUSAGE, "--frequency must be above 0 and at most 100000 Hz");
	if (!(a->interval >= 0.1) || a->interval > 3600)
		return uni_err_set(err, UNI_EUSAGE, "--interval must be between 0.1 and 3600 s");
	if (a->window < 0 || a->window > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--window must be between 0 and 10000000 s");
	if (!find_sort(a->sort, &sort))
		return uni_err_set(err, UNI_EUSAGE, "--sort %s: give self, total or name", a->sort);
	if (a->memory_bytes < (1u << 20) || a->memory_bytes > 1ull << 36)
		return uni_err_set(err, UNI_EUSAGE, "--history must be between 1M and 64G");
	if (a->vcpu_given && a->vcpu >= UNI_VCPU_MAX)
		return uni_err_set(err, UNI_EUSAGE, "--vcpu: there are at most %d", UNI_VCPU_MAX);
	return 0;
}

static void name_guest(struct uni_top_run *r)
{
	char name[UNI_GUEST_NAME_MAX], spec[160];

	uni_guest_name(&r->g->info, name);
	(void)uni_text_clean(spec, sizeof(spec), r->g->spec.text, strlen(r->g->spec.text));
	/* Some targets have a name only because their file has. */
	if (name[0] != '\0' && strstr(spec, name) == NULL)
		(void)snprintf(r->guest, sizeof(r->guest), "%s (%s)", name, spec);
	else
		(void)snprintf(r->guest, sizeof(r->guest), "%s", spec);
}

static int find_symbols(struct uni_top_run *r, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&r->args->debug_dirs);
	int rc = 0;

	r->symtab = r->g->symtab;
	if (r->symtab != NULL || r->g->image == NULL)
		return 0;
	rc = uni_symtab_of_image(r->g->image, &r->own_symtab, err);
	r->symtab = r->own_symtab;
	if (rc == 0 && (r->args->naming.inlined || r->args->naming.lines))
		uni_symbols_add_debug(r->g->image, &search, r->own_symtab);
	return rc;
}

static int settings(struct uni_top_run *r, struct uni_err *err)
{
	const struct uni_top_args *a = r->args;

	(void)find_sort(a->sort, &r->top.sort);
	r->top.window_ns = (uint64_t)(a->window * 1e9);
	r->top.idle = a->idle;
	r->top.callers = a->callers;
	r->top.naming = a->naming;
	if (a->filter != NULL)
		(void)uni_text_clean(
			r->top.filter, sizeof(r->top.filter), a->filter, strlen(a->filter));
	if (a->vcpu_given && a->vcpu >= r->nr_vcpus)
		return uni_err_set(err, UNI_EUSAGE, "--vcpu %llu: the guest has %u",
			(unsigned long long)a->vcpu, r->nr_vcpus);
	if (a->vcpu_given)
		r->top.vcpu = (int64_t)a->vcpu;
	return a->function != NULL ? uni_top_select_name(&r->top, a->function) : 0;
}

int uni_top_run_init(struct uni_top_run *r, struct uni_guest *g, const struct uni_top_args *args,
	struct uni_err *err)
{
	struct uni_top_setup setup = { .memory_bytes = args->memory_bytes,
		.start_ns = uni_now_ns(),
		.guest = { .bias = g->bias, .image_path = "" } };
	int rc = 0;

	memset(r, 0, sizeof(*r));
	r->args = args;
	r->g = g;
	r->nr_vcpus = (uint32_t)uni_max(g->t->ops->nr_vcpus(g->t), 1);
	name_guest(r);
	r->meta = calloc(1, sizeof(*r->meta));
	if (r->meta == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	uni_record_fill_meta(g, args->frequency, r->meta);
	rc = find_symbols(r, err);
	if (rc != 0)
		return rc;
	if (g->image != NULL)
		setup.guest.image_path = uni_image_path(g->image);
	setup.guest.symtab = r->symtab;
	setup.nr_vcpus = r->nr_vcpus;
	if (uni_top_init(&r->top, &setup) != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = settings(r, err);
	return rc != 0 ? rc : uni_feed_start(g, args->frequency, &r->feed, err);
}

void uni_top_run_deinit(struct uni_top_run *r)
{
	uni_feed_stop(r->feed);
	uni_top_deinit(&r->top);
	uni_symtab_destroy(r->own_symtab);
	free(r->meta);
	r->feed = NULL;
	r->own_symtab = NULL;
	r->meta = NULL;
}

void uni_top_run_drain(struct uni_top_run *r)
{
	struct uni_sample s;

	while (uni_feed_next(r->feed, &s))
		uni_top_add(&r->top, &s);
}

int uni_top_run_refresh(struct uni_top_run *r, struct uni_err *err)
{
	struct uni_feed_status status;

	/* Status first: what it says has ended, has ended with all samples in the queue. */
	uni_feed_status(r->feed, &status);
	uni_top_run_drain(r);
	if (uni_top_refresh(&r->top, uni_now_ns(), &status) != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	return 0;
}

void uni_top_run_suspend(struct uni_top_run *r)
{
	uni_feed_hold(r->feed);
	(void)raise(SIGSTOP);
	uni_feed_go_on(r->feed);
}
