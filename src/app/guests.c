/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/guests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "app/resolve.h"
#include "app/term.h"
#include "recording/recording.h"
#include "backend/shared.h"

/* One guest is opened once, however often and by whatever name it was given. */
static bool is_open(const struct uni_guests *all, const struct uni_spec *spec)
{
	const char *pid = uni_spec_get(spec, "pid");

	for (size_t i = 0; i < all->open.nr; i++) {
		const struct uni_spec *other = &all->open.v[i]->spec;
		const char *other_pid = uni_spec_get(other, "pid");

		if (strcmp(other->text, spec->text) == 0 ||
			(pid != NULL && other_pid != NULL && strcmp(pid, other_pid) == 0))
			return true;
	}
	return false;
}

static int pid_of(const struct uni_spec *spec, const struct uni_guest *g)
{
	const char *pid = uni_spec_get(spec, "pid");

	return g->info.pid > 0 || pid == NULL ? g->info.pid : (int)strtol(pid, NULL, 10);
}

/* Those that were found, before one is opened. */
struct wanted {
	struct uni_spec spec;
	char name[UNI_GUEST_NAME_MAX + 32]; /* of the list; "": as the user gave it */
	const char *given;
};
struct found {
	UNI_VEC(struct wanted *) guest;
	UNI_VEC(struct uni_guest_plan) plan;
};

static void free_found(struct found *f)
{
	while (f->guest.nr != 0)
		free(f->guest.v[--f->guest.nr]);
	uni_vec_free(&f->guest);
	uni_vec_free(&f->plan);
}

static const char *name_of(const struct wanted *w)
{
	return w->name[0] != '\0' ? w->name : w->given;
}

/* One of several: if it fails, reports why, and the others go on. */
static void leave_out(struct uni_guests *all, const char *name, const struct uni_err *err)
{
	uni_note("%s: left out: %s", name, err->msg);
	all->nr_failed++;
}

static int find_one(struct uni_guests *all, struct found *f, const struct uni_guests_args *how,
	const char *target, const char *name, struct uni_err *err)
{
	_cleanup_free_ struct wanted *w = calloc(1, sizeof(*w));
	struct uni_attach_args args = how->attach;
	struct uni_guest_plan plan = { 0 };
	int rc;

	if (w == NULL)
		return uni_err_nomem(err);
	if (f->guest.nr == UNI_GUEST_MAX)
		return uni_err_set(
			err, UNI_ENOTSUP, "a session holds at most %d guests", UNI_GUEST_MAX);
	w->given = target;
	(void)snprintf(w->name, sizeof(w->name), "%s", name);
	args.shared = all->shared;
	rc = uni_guest_await(target, how->attach.wait_ns, &w->spec, err);
	if (rc == 0 && args.may_give_up)
		rc = uni_guest_plan_rights(&w->spec, &args, &plan, err);
	if (rc != 0)
		return rc;
	if (!uni_vec_push(&f->plan, plan) || !uni_vec_push(&f->guest, w))
		return uni_err_nomem(err);
	(void)uni_take(w);
	return 0;
}

static int open_one(struct uni_guests *all, const struct uni_guests_args *how,
	const struct uni_spec *spec, struct uni_err *err)
{
	_cleanup_free_ struct uni_guest *g = calloc(1, sizeof(*g));
	struct uni_attach_args args = how->attach;
	int rc;

	if (g == NULL)
		return uni_err_nomem(err);
	if (is_open(all, spec))
		return uni_err_set(err, UNI_EBUSY, "the same guest was given before");
	args.target = spec->text;
	args.shared = all->shared;
	rc = uni_guest_open(g, &args, err);
	all->last_pid = pid_of(spec, g);
	if (rc != 0)
		return rc;
	if (!uni_vec_push(&all->open, g)) {
		uni_guest_close(g);
		return uni_err_nomem(err);
	}
	(void)uni_take(g);
	return 0;
}

static void try_one(
	struct uni_guests *all, const struct uni_guests_args *how, const struct wanted *w)
{
	struct uni_err err = { 0 };

	if (open_one(all, how, &w->spec, &err) != 0)
		leave_out(all, name_of(w), &err);
	else if (all->open.v[all->open.nr - 1]->image == NULL)
		uni_note("%s: its image is not known: addresses stay without names (report "
			 "--symbols can give some)",
			name_of(w));
}

static int find_all(struct uni_guests *all, struct found *f, const struct uni_guests_args *how,
	struct uni_err *err)
{
	_cleanup_free_ struct uni_found *found = NULL;
	size_t nr = 0;
	int rc = uni_target_discover(&found, &nr, err);

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		char name[UNI_GUEST_NAME_MAX + 32], plain[UNI_GUEST_NAME_MAX];
		struct uni_err why = { 0 };

		uni_guest_name(&found[i].info, plain);
		(void)snprintf(name, sizeof(name), "%s%spid %d", plain,
			plain[0] != '\0' ? ", " : "", found[i].info.pid);
		if (found[i].spec[0] == '\0')
			uni_note("%s: left out: %s", name, found[i].why);
		else if (find_one(all, f, how, found[i].spec, name, &why) != 0)
			leave_out(all, name, &why);
	}
	return rc;
}

static int find_each(struct uni_guests *all, struct found *f, const struct uni_guests_args *how,
	struct uni_err *err)
{
	if (how->all)
		return find_all(all, f, how, err);
	if (how->nr == 1)
		return find_one(all, f, how, how->targets[0], "", err);
	for (size_t i = 0; i < how->nr; i++) {
		struct uni_err why = { 0 };

		if (find_one(all, f, how, how->targets[i], "", &why) != 0)
			leave_out(all, how->targets[i], &why);
	}
	return 0;
}

static int open_found(struct uni_guests *all, const struct found *f,
	const struct uni_guests_args *how, struct uni_err *err)
{
	int rc = uni_guests_give_up_rights(f->plan.v, f->guest.nr, err);

	if (rc != 0 || (how->nr == 1 && !how->all))
		return rc != 0 ? rc : open_one(all, how, &f->guest.v[0]->spec, err);
	for (size_t i = 0; i < f->guest.nr; i++)
		try_one(all, how, f->guest.v[i]);
	if (all->open.nr != 0)
		return 0;
	return how->all ? uni_err_set(err, UNI_ENOENT,
				  "no guest on this host can be attached; `uniscope ls` lists "
				  "them and why")
			: uni_err_set(err, UNI_ENOENT, "none of these guests can be attached");
}

int uni_guests_open(struct uni_guests *all, const struct uni_guests_args *how, struct uni_err *err)
{
	struct found f = { 0 };
	int rc;

	all->shared = uni_target_shared_create();
	if (all->shared == NULL)
		return uni_err_nomem(err);
	rc = find_each(all, &f, how, err);
	if (rc == 0)
		rc = open_found(all, &f, how, err);
	free_found(&f);
	return rc;
}

void uni_guests_close(struct uni_guests *all)
{
	while (all->open.nr != 0) {
		struct uni_guest *g = all->open.v[--all->open.nr];

		uni_guest_close(g);
		free(g);
	}
	uni_vec_free(&all->open);
	uni_target_shared_destroy(all->shared);
	all->shared = NULL;
}
