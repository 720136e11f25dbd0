/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/privilege.h"
#include "app/apart.h"
#include "app/cmd.h"
#include "compat/flame_graph/five_files.h"
#include "compat/uniprof/print.h"
#include "compat/run_xl.h"
#include "app/signals.h"
#include "app/symbols.h"
#include "app/term.h"
#include "app/xl.h"
#include "app/xl_config.h"

static struct {
	const char *frequency, *time, *domain, *config, *image, *target;
	struct uni_opt_list debug_dirs;
	struct uni_record_args rec; /* the numbers */
	bool destroy, quiet;
} o;

static const struct uni_opt *list_generate_flame_graph_options(void)
{
	static const struct uni_opt table[] = {
		{ 'f', "frequency", UNI_OPT_STR, &o.frequency, "HZ",
			"traces per second of each vCPU (default 1)", NULL, NULL },
		{ 't', "time", UNI_OPT_STR, &o.time, "SECONDS", "how long (default 1)", NULL,
			NULL },
		{ 'n', "domain", UNI_OPT_STR, &o.domain, "NAME", "the domain's name", NULL, NULL },
		{ 'c', "conf", UNI_OPT_STR, &o.config, "CFG", "its configuration, for xl", "FILE",
			NULL },
		{ 'x', "exec", UNI_OPT_STR, &o.image, "ELF", "the image that it runs, with symbols",
			"FILE", NULL },
		{ 0, "destroy", UNI_OPT_FLAG, &o.destroy, NULL,
			"destroy the domain in the end, also one that was there before (default: "
			"it runs on)",
			NULL, NULL },
		{ 0, "target", UNI_OPT_STR, &o.target, "TARGET",
			"how the domain is reached (default xen:dom=N with its number)", NULL,
			NULL },
		UNI_PACE_OPTIONS(o.rec.pace),
		UNI_DEBUG_DIR_OPTION(o.debug_dirs),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.quiet, NULL, "no summary on stderr", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .frequency = "1", .time = "1", .rec = { .never_exits = true } };
	return table;
}

/* One of the script's steps; a blank line ends each. */
static void print_step(const char *step)
{
	(void)printf("%s\n\n", step);
	(void)fflush(stdout);
}

static int check_arguments(const struct uni_five *five, struct uni_err *err)
{
	if (o.domain == NULL || o.config == NULL || o.image == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope compat generate-flame-graph -f FREQ -t TIME -n DOMAIN -c "
			"CONF "
			"-x EXEC (-n, -c and -x are needed)");
	if (!uni_parse_double(o.frequency, &o.rec.frequency))
		return uni_err_set(
			err, UNI_EUSAGE, "--frequency takes a number, not '%s'", o.frequency);
	if (!uni_parse_double(o.time, &o.rec.duration))
		return uni_err_set(err, UNI_EUSAGE, "--time takes a number, not '%s'", o.time);
	if (uni_five_check(five, err) != 0)
		return -UNI_EUSAGE;
	if (access(o.image, R_OK) != 0)
		return uni_err_set(err, UNI_ENOENT, "cannot read image %s", o.image);
	return uni_record_check_args(&o.rec, err);
}

/* If its name differed from the one to look for, nobody would find it, and it would run for
 * ever. */
static int create_domain(struct uni_err *err)
{
	struct uni_xl_config config;
	int rc = uni_xl_config_load(o.config, &config, err);

	if (rc == 0 && strcmp(config.name, o.domain) != 0)
		rc = uni_err_set(err, UNI_EUSAGE,
			"%s is the configuration of domain %s, and -n says %s: nothing was started",
			o.config, config.name, o.domain);
	return rc == 0 ? uni_xl_create(o.config, config.name, err) : rc;
}

/* A domain of that name that is there already is taken as it is, as the script did. */
static int start_domain(uint64_t *domid_ret, bool *created_ret, struct uni_err *err)
{
	struct uni_err none = { 0 };
	int rc = uni_xl_domid(o.domain, domid_ret, &none);

	print_step("Starting VM...");
	if (rc == 0) {
		uni_note("domain %s is there already: it is not started again", o.domain);
	} else if (rc == -UNI_ENOENT) {
		rc = create_domain(err);
		*created_ret = rc == 0;
	} else {
		rc = uni_err_set(err, (enum uni_errcode) - rc, "%s", none.msg);
	}
	if (rc != 0)
		return rc;
	(void)puts("Finding domain id...");
	rc = uni_xl_domid(o.domain, domid_ret, err);
	if (rc != 0)
		return rc;
	(void)printf("Domain id = %" PRIu64 "\n\n", *domid_ret);
	if (atomic_load(uni_signals_stop()))
		return uni_err_set(err, UNI_EAGAIN, "interrupted before anything was recorded");
	return 0;
}

/* The work of processes without rights. */
struct job {
	const struct uni_five *five;
	uint64_t domid;
};

static int trace_domain(void *ctx, struct uni_err *err)
{
	const struct job *job = ctx;
	const struct uni_five *five = job->five;
	_cleanup_free_ char *path = uni_five_stacktrace(five);
	char target[4352];
	const struct uni_attach_args args = { .target = target,
		.image = o.image,
		.search = uni_search_of(&o.debug_dirs),
		.unwind = "cfi,fp",
		.wait_ns = UNI_XL_BOOT_NS };
	struct uni_tracer_args tracer = { .frequency = o.rec.frequency,
		.duration = o.rec.duration,
		.pace = &o.rec.pace,
		.quiet = o.quiet };
	struct uni_sink *out = NULL;
	struct uni_guest g;
	int rc;

	print_step("Running uniprof...");
	uni_xl_target(o.target, job->domid, target, sizeof(target));
	if (path == NULL)
		return uni_err_nomem(err);
	uni_confine_output(path);
	rc = uni_privilege_limit(err);
	if (rc == 0)
		rc = uni_guest_open_only(&g, &args, err);
	if (rc != 0)
		return rc;
	tracer.target = g.spec.text;
	rc = uni_sink_open_file(path, &out, err);
	if (rc == 0)
		rc = uni_tracer_run(&g, &tracer, out, err);
	if (rc == 0)
		rc = uni_sink_close(out, err);
	else
		uni_sink_abort(out);
	uni_guest_close(&g);
	return rc;
}

static int write_files(void *ctx, struct uni_err *err)
{
	const struct job *job = ctx;
	int rc;

	uni_confine_output(job->five->name);
	rc = uni_privilege_drop(err);
	return rc == 0 ? uni_five_write(job->five, err) : rc;
}

/* This process starts xl with all rights, and reads nothing of the image. */
static int do_apart(
	struct job *job, int (*work)(void *ctx, struct uni_err *err), struct uni_err *err)
{
	return uni_apart_run(
		&(struct uni_apart){ .work = work, .ctx = job, .what = "trace the guest" }, err);
}

/* Destroys the domain that was made here, if it cannot be traced. */
static int start_and_trace(struct job *job, struct uni_err *err)
{
	struct uni_signals signals;
	bool created = false;
	int rc, rc2 = 0;

	/* After Ctrl-C the domain must not remain. */
	uni_signals_begin(&signals);
	rc = start_domain(&job->domid, &created, err);
	if (rc == 0)
		rc = do_apart(job, trace_domain, err);
	if (job->domid != 0 && (o.destroy || (created && rc != 0)))
		rc2 = uni_xl_destroy(job->domid, rc == 0 ? err : NULL);
	if (rc == 0 && rc2 == 0)
		rc = do_apart(job, write_files, err);
	uni_signals_end(&signals);
	return rc != 0 ? rc : rc2;
}

static int run_generate_flame_graph(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_five five = { .name = o.domain != NULL ? o.domain : "",
		.image = o.image,
		.search = uni_search_of(&o.debug_dirs),
		.say = print_step };
	struct job job = { .five = &five };
	int rc = check_arguments(&five, err);

	(void)ctx;
	if (rc != 0)
		return uni_exit_of(rc);
	(void)printf("Frequency - %s\nTime - %s\nDomain - %s\nPath to config - %s\n"
		     "Path to exec - %s\n----------------------\n\n",
		o.frequency, o.time, o.domain, o.config, o.image);
	return uni_exit_of(start_and_trace(&job, err));
}

const struct uni_cmd uni_cmd_generate_flame_graph = {
	.name = "generate-flame-graph",
	.tool = "generateFlameGraph.sh",
	.operands = "",
	.summary = "boot a domain, trace it, write the five files of the script of that name",
	.details = "Prints the output of the script. It writes five files into the current "
		   "folder.\n"
		   "NAME is the domain's: NAME-stacktrace (as uniprof), NAME.syms (as nm -n),\n"
		   "NAME-stacktrace.syms (as symbolize), NAME-stackcollapse (folded) and\n"
		   "NAME-flamegraph.svg. A step that fails ends it, and the domain if it was "
		   "booted here.",
	.examples =
		"  uniscope compat generate-flame-graph -f 100 -t 240 -n app -c app.cfg -x app.dbg",
	.min_operands = 0,
	.max_operands = 0,
	.options = list_generate_flame_graph_options,
	.starts_others = true,
	.run = run_generate_flame_graph,
};
