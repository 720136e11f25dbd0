/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "cli/cmd.h"
#include "cli/record.h"
#include "cli/term.h"

static struct {
	struct uni_record_args rec;
	const char *image, *qmp;
	double wait;
	bool all;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 'e', "image", UNI_OPT_STR, &o.image, "ELF",
			"the image that the guest runs, with symbols, or only these as nm prints "
			"them (default: from the VMM's command line, and its .dbg sibling)",
			"FILE", NULL },
		{ 'a', "all", UNI_OPT_FLAG, &o.all, NULL,
			"every guest on this host that can be attached, in one session", NULL,
			NULL },
		UNI_RECORD_OPTIONS(o.rec),
		{ 0, "wait", UNI_OPT_DOUBLE, &o.wait, "SECONDS",
			"keep trying for so long while the guest still boots (default 0)", NULL,
			NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .rec = UNI_RECORD_DEFAULTS };
	return table;
}

struct guests {
	UNI_VEC(struct uni_guest *) open;
	size_t nr_failed;
	struct uni_target_shared *shared;
};

static struct uni_attach_args attach_args(const struct guests *all, const char *target)
{
	return (struct uni_attach_args){ .target = target,
		.image = o.image,
		.qmp = o.qmp,
		.method = o.rec.method,
		.shared = all->shared,
		.search = uni_search_of(&o.rec.debug_dirs),
		.sysroot = &o.rec.sysroot,
		.wait_ns = (uint64_t)(o.wait * 1e9),
		.no_image_ok = o.all,
		.unwind = o.rec.unwind };
}

/* One guest is recorded once, however often and by whatever name it was given. */
static bool is_open(const struct guests *all, const struct uni_spec *spec)
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

static int open_one(struct guests *all, const char *target, struct uni_err *err)
{
	_cleanup_free_ struct uni_spec *spec = calloc(1, sizeof(*spec));
	_cleanup_free_ struct uni_guest *g = calloc(1, sizeof(*g));
	struct uni_attach_args args = attach_args(all, target);
	int rc;

	if (spec == NULL || g == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	if (all->open.nr == UNI_GUEST_MAX)
		return uni_err_set(
			err, UNI_ENOTSUP, "a session holds at most %d guests", UNI_GUEST_MAX);
	rc = uni_guest_resolve(target, spec, err);
	if (rc != 0)
		return rc;
	if (is_open(all, spec))
		return uni_err_set(err, UNI_EBUSY, "the same guest was given before");
	args.target = spec->text;
	rc = uni_guest_open(g, &args, err);
	if (rc != 0)
		return rc;
	if (!uni_vec_push(&all->open, g)) {
		uni_guest_close(g);
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	}
	(void)uni_take(g);
	return 0;
}

/* One of several: what keeps it out is said, and the others go on. */
static void try_one(struct guests *all, const char *target, const char *name)
{
	struct uni_err err = { 0 };

	if (open_one(all, target, &err) != 0) {
		uni_note("%s: left out: %s", name, err.msg);
		all->nr_failed++;
		return;
	}
	if (all->open.v[all->open.nr - 1]->image == NULL)
		uni_note("%s: its image is not known: addresses stay without names (report "
			 "--symbols can give some)",
			name);
}

static int open_all(struct guests *all, struct uni_err *err)
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
			try_one(all, found[i].spec, name);
		else
			uni_note("%s: left out: %s", name, found[i].why);
	}
	if (rc == 0 && all->open.nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"no guest on this host can be recorded; `uniscope ls` lists them and why");
	return rc;
}

static int open_guests(const struct uni_cmd_ctx *ctx, struct guests *all, struct uni_err *err)
{
	if (o.all)
		return open_all(all, err);
	if (ctx->nr_operands == 1)
		return open_one(all, ctx->operands[0], err);
	for (size_t i = 0; i < ctx->nr_operands; i++)
		try_one(all, ctx->operands[i], ctx->operands[i]);
	if (all->open.nr == 0)
		return uni_err_set(err, UNI_ENOENT, "none of these guests can be recorded");
	return 0;
}

static void close_guests(struct guests *all)
{
	while (all->open.nr != 0) {
		struct uni_guest *g = all->open.v[--all->open.nr];

		uni_guest_close(g);
		free(g);
	}
	uni_vec_free(&all->open);
}

static int check(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	if (o.all ? ctx->nr_operands != 0 : ctx->nr_operands == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope record [OPTIONS] TARGET... (or --all, without one)");
	if (o.rec.save_replay != NULL && (o.all || ctx->nr_operands > 1))
		return uni_err_set(err, UNI_EUSAGE, "--save-replay is for one guest");
	return uni_record_check_args(&o.rec, err);
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct guests all = { 0 };
	int rc = check(ctx, err);

	if (rc == 0)
		rc = open_guests(ctx, &all, err);
	if (rc == 0)
		rc = uni_record_guests(all.open.v, all.open.nr, &o.rec, NULL, err);
	close_guests(&all);
	/* What was named and could not be had is a failure; of --all nothing was named. */
	if (rc == 0 && all.nr_failed != 0 && !o.all)
		return UNI_EXIT_FAILED;
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_record = {
	.name = "record",
	.operands = "TARGET...",
	.summary = "sample the call chains of a running guest into a session",
	.details = "Attaches to the guest, takes the call chain of each vCPU so many times a "
		   "second, and\n"
		   "writes a session folder. The guest runs on whatever happens to uniscope. "
		   "Ctrl-C ends\n"
		   "the recording cleanly; a guest that ends, too. Several guests are recorded at "
		   "once into\n"
		   "one session, kept apart; one that cannot be attached is said, and the others "
		   "go on.",
	.examples = "  uniscope record kvm:pid=4121 -d 30\n"
		    "  uniscope record gdb:unix=/run/q.sock -e app.elf -F 499\n"
		    "  uniscope record web1 -o web1.uniscope\n"
		    "  uniscope record --all -F 99 -d 60",
	.min_operands = 0,
	.max_operands = SIZE_MAX,
	.options = options,
	.run = run,
};
