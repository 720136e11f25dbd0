/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/run_xl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/privilege.h"
#include "base/strbuf.h"
#include "compat/flame_graph/five_files.h"
#include "app/apart.h"
#include "app/signals.h"
#include "app/source.h"
#include "app/term.h"
#include "app/xl.h"
#include "app/xl_config.h"
#include "format/export.h"

#define SUFFIX ".uniscope"

/* The domain and the user's options. */
struct run {
	const struct uni_run_xl_args *args;
	struct uni_xl_config config;
	const char *image;
	uint64_t domid;
	const char *session; /* path of the recording */
};

void uni_xl_target(const char *given, uint64_t domid, char *ret, size_t cap)
{
	if (given != NULL)
		(void)snprintf(ret, cap, "%s", given);
	else
		(void)snprintf(ret, cap, "xen:dom=%" PRIu64, domid);
}

static int record_it(void *ctx, struct uni_err *err)
{
	struct run *r = ctx;
	const char *symbols = r->args->image;
	bool is_table = symbols != NULL && uni_symbols_kind_of(symbols) != UNI_SYMBOLS_ELF;
	struct uni_record_args *rec = r->args->rec;
	char target[4352];
	struct uni_attach_args args = { .target = target,
		.method = rec->method,
		.no_pause = rec->no_pause,
		.exits = rec->exits != NULL,
		.image = r->image,
		.table = is_table ? symbols : NULL,
		.search = uni_search_of(&rec->debug_dirs),
		.sysroot = &rec->sysroot,
		.unwind = rec->unwind,
		.wait_ns = UNI_XL_BOOT_NS };
	struct uni_guest g, *const one[] = { &g };
	int rc;

	uni_xl_target(r->args->target, r->domid, target, sizeof(target));
	uni_confine_output(r->session);
	rc = uni_privilege_limit(err);
	if (rc == 0)
		rc = uni_guest_open_only(&g, &args, err);
	if (rc != 0)
		return rc;
	if (atomic_load(uni_signals_stop())) {
		uni_guest_close(&g);
		return uni_err_set(err, UNI_EAGAIN, "interrupted before anything was recorded");
	}
	rc = uni_record_guests(one, 1, rec, NULL, err);
	uni_guest_close(&g);
	return rc;
}

static int export_session(struct run *r, const char *format, const char *path, struct uni_err *err)
{
	const struct uni_exporter *e = uni_exporter_by_name(format);
	struct uni_source_args args = {
		.path = r->session, .all_time = true, .build = UNI_BUILD_DEFAULTS
	};
	struct uni_view view = { .filter = &args.build.filter };
	struct uni_sink *out = NULL;
	struct uni_source s;
	int rc;

	args.build.naming.inlined = false; /* as the older tool */
	rc = uni_source_open(&args, &s, err);
	if (rc != 0)
		return rc;
	view.profile = s.profile;
	view.samples = s.rec;
	rc = uni_sink_open_file(path, &out, err);
	if (rc == 0)
		rc = e->write(&view, NULL, 0, out, err);
	if (rc == 0)
		rc = uni_sink_close(out, err);
	else
		uni_sink_abort(out);
	uni_source_close(&s);
	return rc;
}

/* NAME.svg beside NAME.uniscope. */
static int draw_session(struct run *r, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	size_t len = strlen(r->session), end = strlen(SUFFIX);
	int rc;

	uni_strbuf_init(&b);
	if (len > end && strcmp(r->session + len - end, SUFFIX) == 0)
		len -= end;
	uni_strbuf_add(&b, r->session, len);
	uni_strbuf_adds(&b, ".svg");
	if (uni_strbuf_failed(&b))
		return uni_err_nomem(err);
	rc = export_session(r, "svg", b.s, err);
	if (rc == 0 && !r->args->rec->quiet)
		uni_note("wrote %s", b.s);
	return rc;
}

static int write_five(struct run *r, struct uni_err *err)
{
	const struct uni_five five = { .name = r->config.name,
		.image = r->image,
		.search = uni_search_of(&r->args->rec->debug_dirs) };
	_cleanup_free_ char *path = uni_five_stacktrace(&five);
	int rc = path == NULL ? uni_err_nomem(err) : export_session(r, "uniprof", path, err);

	if (rc == 0)
		rc = uni_five_write(&five, err);
	if (rc == 0 && !r->args->rec->quiet)
		uni_note("wrote %s, %s.syms, %s.syms, %s-stackcollapse, %s-flamegraph.svg", path,
			five.name, path, five.name, five.name);
	return rc;
}

/* When the domain is gone. */
static int draw_all(void *ctx, struct uni_err *err)
{
	struct run *r = ctx;
	int rc;

	uni_confine_output(r->session);
	uni_confine_output(r->config.name);
	rc = uni_privilege_drop(err);
	if (rc == 0)
		rc = draw_session(r, err);
	return rc == 0 && r->args->five_files ? write_five(r, err) : rc;
}

static int check_image(void *ctx, struct uni_err *err)
{
	const struct run *r = ctx;
	struct uni_image *image = NULL;
	int rc = uni_privilege_drop(err);

	if (rc == 0)
		rc = uni_image_load(r->image, &image, err);
	uni_image_destroy(image);
	return rc;
}

/* This process starts xl with all rights, and reads neither images nor sessions. */
static int do_apart(struct run *r, int (*work)(void *ctx, struct uni_err *err), const char *what,
	struct uni_err *err)
{
	return uni_apart_run(&(struct uni_apart){ .work = work, .ctx = r, .what = what }, err);
}

/* Before a domain is made: detects possible failures. */
static int prepare_image(struct run *r, struct uni_err *err)
{
	const char *given = r->args->image;
	bool is_elf = given != NULL && uni_symbols_kind_of(given) == UNI_SYMBOLS_ELF;
	int rc = uni_xl_config_load(r->args->config, &r->config, err);

	if (rc != 0)
		return rc;
	if (is_elf)
		r->image = given;
	else if (r->config.kernel[0] != '\0')
		r->image = r->config.kernel;
	else
		return uni_err_set(err, UNI_EUSAGE,
			"%s names no kernel: give the image that it boots with -e",
			r->args->config);
	if (access(r->image, R_OK) != 0)
		return uni_err_set(err, UNI_ENOENT, "cannot read image %s", r->image);
	/* With a table it is what xl boots, which may be packed. */
	if (given == NULL || is_elf)
		rc = do_apart(r, check_image, "read the image", err);
	if (rc != 0)
		return rc;
	if (!r->args->five_files)
		return 0;
	return uni_five_check(&(struct uni_five){ .name = r->config.name }, err);
}

/* One that is there already is not ours, and xl would refuse a second one. */
static int check_absent(struct run *r, struct uni_err *err)
{
	uint64_t domid;
	int rc = uni_xl_domid(r->config.name, &domid, err);

	if (rc == -UNI_ENOENT) {
		if (err != NULL)
			*err = (struct uni_err){ 0 };
		return 0;
	}
	return rc != 0 ? rc
		       : uni_err_set(err, UNI_EBUSY,
				 "domain %s is there already, with number %" PRIu64
				 ": `xl destroy %s` first",
				 r->config.name, domid, r->config.name);
}

static int record_and_destroy(struct run *r, struct uni_err *err)
{
	int rc = uni_xl_domid(r->config.name, &r->domid, err), rc2;

	if (rc != 0)
		return rc;
	if (!r->args->rec->quiet)
		uni_note("xl created %s, domain %" PRIu64, r->config.name, r->domid);
	rc = do_apart(r, record_it, "record the guest", err);
	rc2 = uni_xl_destroy(r->domid, rc == 0 ? err : NULL);
	/* One that ended by itself is not there to be destroyed, and that is well. */
	if (rc == 0 && rc2 != 0 && uni_xl_domid(r->config.name, &r->domid, NULL) != 0) {
		*err = (struct uni_err){ 0 };
		rc2 = 0;
	}
	return rc != 0 ? rc : rc2;
}

static int boot_and_record(struct run *r, struct uni_err *err)
{
	struct uni_xl_keeper keeper = { .sock = -1 };
	int rc = check_absent(r, err);

	if (rc == 0)
		rc = uni_xl_keeper_start(&keeper, r->config.name, err);
	if (rc == 0)
		rc = uni_xl_create(r->args->config, r->config.name, err);
	if (rc == 0)
		rc = record_and_destroy(r, err);
	uni_xl_keeper_end(&keeper);
	return rc;
}

int uni_run_xl(const struct uni_run_xl_args *args, struct uni_err *err)
{
	struct run r = { .args = args };
	_cleanup_free_ char *output = NULL;
	struct uni_signals signals;
	int rc = prepare_image(&r, err);

	if (rc == 0 && args->rec->output == NULL) {
		output = uni_session_name(r.config.name);
		args->rec->output = output;
	}
	if (rc != 0)
		return rc;
	r.session = args->rec->output;
	/* From here to its end the domain is ours: after Ctrl-C it must not remain. */
	uni_signals_begin(&signals);
	rc = boot_and_record(&r, err);
	if (rc == 0)
		rc = do_apart(&r, draw_all, "draw the session", err);
	uni_signals_end(&signals);
	return rc;
}
