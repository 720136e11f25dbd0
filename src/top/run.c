/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/inside.h"
#include "app/record.h"
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
	if (a->duration < 0 || a->duration > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--duration must be between 0 and 10000000 s");
	if (a->window < 0 || a->window > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--window must be between 0 and 10000000 s");
	if (!find_sort(a->sort, &sort))
		return uni_err_set(err, UNI_EUSAGE, "--sort %s: give self, total or name", a->sort);
	if (a->memory_bytes < (1u << 20) || a->memory_bytes > 1ull << 36)
		return uni_err_set(err, UNI_EUSAGE, "--history must be between 1M and 64G");
	if (a->vcpu_given && a->vcpu >= UNI_VCPU_MAX)
		return uni_err_set(err, UNI_EUSAGE, "--vcpu: there are at most %d", UNI_VCPU_MAX);
	return uni_pace_check(&a->pace, err);
}

/* "web1 (kvm:pid=12)", or "3 guests: web1, web2, db". */
static void make_title(struct uni_top_run *r)
{
	char spec[160];
	size_t len;

	if (r->nr_guests == 1) {
		(void)uni_text_clean(
			spec, sizeof(spec), r->g[0]->spec.text, strlen(r->g[0]->spec.text));
		/* Some targets have a name only because their file has. */
		if (r->guest[0].name[0] != '\0' && strstr(spec, r->guest[0].name) == NULL)
			(void)snprintf(
				r->title, sizeof(r->title), "%s (%s)", r->guest[0].name, spec);
		else
			(void)snprintf(r->title, sizeof(r->title), "%s", spec);
		return;
	}
	(void)snprintf(r->title, sizeof(r->title), "%u guests:", r->nr_guests);
	for (uint32_t i = 0; i < r->nr_guests; i++) {
		len = strlen(r->title);
		(void)snprintf(r->title + len, sizeof(r->title) - len, "%s %s", i != 0 ? "," : "",
			r->guest[i].name);
	}
}

static int find_symbols(struct uni_top_run *r, uint32_t i, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&r->args->debug_dirs);

	return uni_guest_symbols_load(
		r->g[i], &search, &r->args->naming, &r->guest[i].symbols, err);
}

static int prepare_guest(struct uni_top_run *r, uint32_t i, struct uni_err *err)
{
	struct uni_guest *g = r->g[i];
	const struct uni_record_args as_recorded = { .frequency = r->args->frequency };
	struct uni_top_guest *tg = &r->guest[i];
	int rc = find_symbols(r, i, err);

	if (rc != 0)
		return rc;
	uni_guest_note_unplaced(g, "its frames have no names here: record finds where it runs");
	if (r->nr_guests > 1)
		uni_record_name_guest(r->g, r->nr_guests, i, tg->name);
	else
		uni_guest_name(&g->info, tg->name);
	uni_record_fill_meta(g, &as_recorded, &tg->meta);
	r->build[i] = (struct uni_build_guest){ .root = r->nr_guests > 1 ? tg->name : NULL,
		.symtab = tg->symbols.symtab,
		.bias = g->bias,
		.image_path = g->image != NULL ? uni_image_path(g->image) : "" };
	r->first_vcpu[i + 1] = r->first_vcpu[i] + uni_max(tg->meta.nr_vcpus, 1u);
	if (r->first_vcpu[i + 1] > UNI_SESSION_VCPUS_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guests have more than %d vCPUs together: name fewer of them",
			UNI_SESSION_VCPUS_MAX);
	return 0;
}

static int apply_settings(struct uni_top_run *r, struct uni_err *err)
{
	const struct uni_top_args *a = r->args;
	uint32_t most = 0;

	(void)find_sort(a->sort, &r->top.sort);
	r->top.window_ns = (uint64_t)(a->window * 1e9);
	r->top.idle = a->idle;
	r->top.callers = a->callers;
	r->top.naming = a->naming;
	if (a->filter != NULL)
		(void)uni_text_clean(
			r->top.filter, sizeof(r->top.filter), a->filter, strlen(a->filter));
	for (uint32_t i = 0; i < r->nr_guests; i++)
		most = uni_max(most, r->first_vcpu[i + 1] - r->first_vcpu[i]);
	if (a->vcpu_given && a->vcpu >= most)
		return uni_err_set(err, UNI_EUSAGE, "--vcpu %llu: there are %u",
			(unsigned long long)a->vcpu, most);
	if (a->vcpu_given)
		r->top.vcpu = (int64_t)a->vcpu;
	return a->function != NULL ? uni_top_select_name(&r->top, a->function) : 0;
}

int uni_top_run_init(struct uni_top_run *r, struct uni_guest *const *g, size_t nr,
	const struct uni_top_args *args, struct uni_err *err)
{
	struct uni_top_setup setup = { .memory_bytes = args->memory_bytes,
		.start_ns = uni_now_ns() };
	int rc = 0;

	memset(r, 0, sizeof(*r));
	r->args = args;
	r->g = g;
	r->nr_guests = (uint32_t)nr;
	r->guest = calloc(nr, sizeof(*r->guest));
	r->build = calloc(nr, sizeof(*r->build));
	r->first_vcpu = calloc(nr + 1, sizeof(*r->first_vcpu));
	if (r->guest == NULL || r->build == NULL || r->first_vcpu == NULL)
		return uni_err_nomem(err);
	for (uint32_t i = 0; rc == 0 && i < nr; i++)
		rc = prepare_guest(r, i, err);
	if (rc != 0)
		return rc;
	make_title(r);
	setup.guests = (struct uni_live_guests){
		.guest = r->build, .first_vcpu = r->first_vcpu, .nr = r->nr_guests
	};
	if (uni_top_init(&r->top, &setup) != 0)
		return uni_err_nomem(err);
	rc = apply_settings(r, err);
	return rc != 0 ? rc : uni_feed_start(g, nr, args, &r->feed, err);
}

void uni_top_run_deinit(struct uni_top_run *r)
{
	uni_feed_stop(r->feed);
	uni_top_deinit(&r->top);
	for (uint32_t i = 0; r->guest != NULL && i < r->nr_guests; i++)
		uni_guest_symbols_free(&r->guest[i].symbols);
	free(r->guest);
	free(r->build);
	free(r->first_vcpu);
	memset(r, 0, sizeof(*r));
}

void uni_top_run_drain(struct uni_top_run *r)
{
	struct uni_sample s;

	while (uni_feed_next(r->feed, &s))
		uni_top_add(&r->top, &s);
}

int uni_top_run_refresh(struct uni_top_run *r, struct uni_err *err)
{
	/* The status first: if it says that a guest has ended, all its samples are in the queue. */
	uni_feed_status(r->feed, &r->status);
	uni_top_run_drain(r);
	if (uni_top_refresh(&r->top, uni_now_ns(), &r->status) != 0)
		return uni_err_nomem(err);
	return 0;
}

void uni_top_run_suspend(struct uni_top_run *r)
{
	uni_feed_hold(r->feed);
	(void)raise(SIGSTOP);
	uni_feed_go_on(r->feed);
}
