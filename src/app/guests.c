/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/guests.h"

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

static int open_one(struct uni_guests *all, const struct uni_guests_args *how, const char *target,
	struct uni_err *err)
{
	_cleanup_free_ struct uni_spec *spec = calloc(1, sizeof(*spec));
	_cleanup_free_ struct uni_guest *g = calloc(1, sizeof(*g));
	struct uni_attach_args args = how->attach;
	int rc;

	if (spec == NULL || g == NULL)
		return uni_err_nomem(err);
	if (all->open.nr == UNI_GUEST_MAX)
		return uni_err_set(
			err, UNI_ENOTSUP, "a session holds at most %d guests", UNI_GUEST_MAX);
	rc = uni_guest_await(target, how->attach.wait_ns, spec, err);
	if (rc != 0)
		return rc;
	if (is_open(all, spec))
		return uni_err_set(err, UNI_EBUSY, "the same guest was given before");
	args.target = spec->text;
	args.shared = all->shared;
	rc = args.may_give_up && !how->all && how->nr == 1
		     ? uni_guest_give_up_rights(spec, &args, err)
		     : 0;
	if (rc != 0)
		return rc;
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

/* One of several: if it fails, reports why, and the others go on. */
static void try_one(struct uni_guests *all, const struct uni_guests_args *how, const char *target,
	const char *name)
{
	struct uni_err err = { 0 };

	if (open_one(all, how, target, &err) != 0) {
		uni_note("%s: left out: %s", name, err.msg);
		all->nr_failed++;
		return;
	}
	if (all->open.v[all->open.nr - 1]->image == NULL)
		uni_note("%s: its image is not known: addresses stay without names (report "
			 "--symbols can give some)",
			name);
}

static int open_all(struct uni_guests *all, const struct uni_guests_args *how, struct uni_err *err)
{
	_cleanup_free_ struct uni_found *found = NULL;
	size_t nr = 0;
	int rc = uni_target_discover(&found, &nr, err);

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		char name[UNI_GUEST_NAME_MAX + 32], plain[UNI_GUEST_NAME_MAX];

		uni_guest_name(&found[i].info, plain);
		(void)snprintf(name, sizeof(name), "%s%spid %d", plain,
			plain[0] != '\0' ? ", " : "", found[i].info.pid);
		if (found[i].spec[0] != '\0')
			try_one(all, how, found[i].spec, name);
		else
			uni_note("%s: left out: %s", name, found[i].why);
	}
	if (rc == 0 && all->open.nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"no guest on this host can be attached; `uniscope ls` lists them and why");
	return rc;
}

int uni_guests_open(struct uni_guests *all, const struct uni_guests_args *how, struct uni_err *err)
{
	all->shared = uni_target_shared_create();
	if (all->shared == NULL)
		return uni_err_nomem(err);
	if (how->all)
		return open_all(all, how, err);
	if (how->nr == 1)
		return open_one(all, how, how->targets[0], err);
	for (size_t i = 0; i < how->nr; i++)
		try_one(all, how, how->targets[i], how->targets[i]);
	if (all->open.nr == 0)
		return uni_err_set(err, UNI_ENOENT, "none of these guests can be attached");
	return 0;
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
