/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/counting.h"
#include "app/images.h"
#include "app/pace.h"
#include "app/symbols.h"
#include "app/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "obj/demangle.h"
#include "obj/usym.h"
#include "trace/stats.h"

static struct {
	const char *qmp;
	struct uni_opt_list images, sysroot, debug_dirs;
	struct uni_pace pace;
	double duration;
	uint64_t callers;
	bool json, mangled, accept_image;
} o;

static const struct uni_opt *list_count_options(void)
{
	static const struct uni_opt table[] = {
		UNI_IMAGE_OPTION(o.images, UNI_IMAGE_RUNNING),
		UNI_SYSROOT_OPTION(o.sysroot),
		{ 'd', "duration", UNI_OPT_DOUBLE, &o.duration, "SECONDS",
			"how long; 0: until Ctrl-C (default 10)", NULL, NULL },
		{ 0, "max-pause", UNI_OPT_STR, &o.pace.max_pause, "PERCENT|off",
			"stop the guest for at most this share of the time; then the function that "
			"is called most is given up (default 10)",
			"off", NULL },
		{ 'n', "max", UNI_OPT_U64, &o.callers, "N",
			"callers to list at most; 0 lists all (default 10)", NULL, NULL },
		UNI_DEBUG_DIR_OPTION(o.debug_dirs),
		{ 0, "no-demangle", UNI_OPT_FLAG, &o.mangled, NULL,
			"C++, Rust and OCaml names as the linker has them", NULL, NULL },
		UNI_ACCEPT_IMAGE_OPTION(o.accept_image),
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .duration = 10, .callers = 10 };
	return table;
}

struct counted {
	struct uni_guest g;
	struct uni_guest_symbols symbols;
	struct uni_count c;
	double max_pause;
};

struct caller_name {
	const char *name; /* NULL: unknown */
	uint64_t off;
	char text[UNI_TEXT_MAX];
};

/* A return address is looked up one byte back: the call may be the last instruction. */
static void name_caller(const struct counted *x, uint64_t pc, struct caller_name *ret)
{
	uint64_t svma = pc - x->g.bias - 1;

	ret->name = NULL;
	if (pc == 0 || x->symbols.symtab == NULL ||
		!uni_symtab_lookup(x->symbols.symtab, svma, &ret->name, &ret->off)) {
		ret->name = NULL;
		return;
	}
	ret->off++;
	if (!o.mangled && uni_demangle(ret->name, ret->text, sizeof(ret->text)))
		ret->name = ret->text;
}

static size_t shown_callers(const struct uni_count_function *f)
{
	return o.callers == 0 ? f->nr_callers : uni_min(f->nr_callers, (size_t)o.callers);
}

/* Without the blanks that put such times below each other. */
static const char *trim_span(char ret[UNI_SPAN_MAX], uint64_t ns)
{
	size_t n;

	uni_trace_span(ret, ns);
	n = strlen(ret);
	while (n != 0 && ret[n - 1] == ' ')
		ret[--n] = '\0';
	return ret + strspn(ret, " ");
}

static void print_callers(const struct counted *x, const struct uni_count_function *f)
{
	uint64_t rest = f->other_callers;

	for (size_t i = shown_callers(f); i < f->nr_callers; i++)
		rest += f->caller[i].calls;
	for (size_t i = 0; i < shown_callers(f); i++) {
		const struct uni_count_caller *caller = &f->caller[i];
		struct caller_name n;

		name_caller(x, caller->pc, &n);
		(void)printf("%10" PRIu64 "  %5.1f %%  ", caller->calls,
			100.0 * (double)caller->calls / (double)f->calls);
		if (n.name != NULL)
			(void)printf(
				"%s+0x%" PRIx64 "%s\n", n.name, n.off, caller->guess ? " ?" : "");
		else if (caller->pc != 0)
			(void)printf("0x%" PRIx64 "%s\n", caller->pc, caller->guess ? " ?" : "");
		else
			(void)printf("[unknown]\n");
	}
	if (rest != 0)
		(void)printf("%10" PRIu64 "  %5.1f %%  [others]\n", rest,
			100.0 * (double)rest / (double)f->calls);
}

static void print_function(const struct counted *x, struct uni_count_function *f)
{
	bool colour = uni_term_colour(stdout);
	uint64_t ran_ns = f->refused ? f->until_ns : x->c.ran_ns;
	char a[UNI_SPAN_MAX], b[UNI_SPAN_MAX], c[UNI_SPAN_MAX], d[UNI_SPAN_MAX];

	(void)printf("\n%s%s%s (0x%" PRIx64 "): ", colour ? "\033[1m" : "", f->name,
		colour ? "\033[0m" : "", f->addr);
	if (f->calls == 0) {
		(void)puts("no calls");
		return;
	}
	(void)printf("%" PRIu64 " call%s, %.3g a second%s\n", f->calls, uni_plural(f->calls),
		ran_ns != 0 ? (double)f->calls * 1e9 / (double)ran_ns : 0,
		f->refused ? "; then given up, as it is called too often" : "");
	if (f->nr_intervals != 0)
		(void)printf("interval: median %s, mean %s, from %s to %s\n",
			trim_span(a, uni_count_median(f)),
			trim_span(b, f->sum_ns / f->nr_intervals), trim_span(c, f->shortest_ns),
			trim_span(d, f->longest_ns));
	(void)puts("     CALLS    SHARE  CALLER");
	print_callers(x, f);
}

static void print_counts(struct counted *x)
{
	const struct uni_count *c = &x->c;
	double wall_ns = (double)(c->ran_ns + c->stopped_ns);

	(void)printf("counted for %.3g s; the guest stood %.2g %% of it: %" PRIu64
		     " stops, %.0f us each, %.0f us at most\n",
		wall_ns / 1e9, wall_ns > 0 ? 100.0 * (double)c->stopped_ns / wall_ns : 0, c->stops,
		c->stops != 0 ? (double)c->stopped_ns / 1e3 / (double)c->stops : 0,
		(double)c->longest_ns / 1e3);
	if (uni_guest_is_tcg(&x->g))
		(void)puts(
			"TCG runs the page (4 KiB) of such a function one instruction at a time. "
			"Calls are exact; rates\nand intervals are those of a slower guest");
	if (c->gaps != 0)
		(void)printf("not counted: %.3g s, in %" PRIu64 " gap%s\n", (double)c->gap_ns / 1e9,
			c->gaps, uni_plural(c->gaps));
	if (c->ended)
		(void)puts("the guest has ended");
	for (size_t i = 0; i < c->nr; i++)
		print_function(x, &x->c.f[i]);
}

static void put_callers(
	struct uni_json *j, const struct counted *x, const struct uni_count_function *f)
{
	uni_json_key(j, "callers");
	uni_json_array(j);
	for (size_t i = 0; i < shown_callers(f); i++) {
		const struct uni_count_caller *caller = &f->caller[i];
		struct caller_name n;

		name_caller(x, caller->pc, &n);
		uni_json_object(j);
		uni_json_kv(hex, j, "pc", caller->pc);
		uni_json_kv(u64, j, "calls", caller->calls);
		if (n.name != NULL) {
			uni_json_kv(str, j, "name", n.name);
			uni_json_kv(u64, j, "offset", n.off);
		}
		if (caller->guess)
			uni_json_kv(bool, j, "guess", true);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void put_interval(struct uni_json *j, struct uni_count_function *f)
{
	if (f->nr_intervals == 0)
		return;
	uni_json_key(j, "interval_ns");
	uni_json_object(j);
	uni_json_kv(u64, j, "number", f->nr_intervals);
	uni_json_kv(u64, j, "median", uni_count_median(f));
	uni_json_kv(u64, j, "mean", f->sum_ns / f->nr_intervals);
	uni_json_kv(u64, j, "min", f->shortest_ns);
	uni_json_kv(u64, j, "max", f->longest_ns);
	uni_json_object_end(j);
}

static void put_function(struct uni_json *j, const struct counted *x, struct uni_count_function *f)
{
	uni_json_object(j);
	uni_json_kv(str, j, "name", f->name);
	uni_json_kv(hex, j, "address", f->addr);
	uni_json_kv(u64, j, "calls", f->calls);
	uni_json_kv(u64, j, "counted_ns", f->refused ? f->until_ns : x->c.ran_ns);
	if (f->refused) {
		uni_json_key(j, "given_up");
		uni_json_object(j);
		uni_json_kv(double, j, "calls_a_second", f->rate);
		uni_json_kv(double, j, "stopped_share", f->share);
		uni_json_object_end(j);
	}
	if (f->calls != 0) {
		uni_json_kv(u64, j, "first_ns", f->first_ns);
		uni_json_kv(u64, j, "last_ns", f->last_ns);
	}
	put_interval(j, f);
	put_callers(j, x, f);
	uni_json_object_end(j);
}

static int put_counts(struct counted *x, struct uni_err *err)
{
	const struct uni_count *c = &x->c;
	struct uni_sink *out;
	struct uni_json j;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-count");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(str, &j, "target", x->g.spec.text);
	uni_json_kv(u64, &j, "ran_ns", c->ran_ns);
	uni_json_kv(u64, &j, "stops", c->stops);
	uni_json_kv(u64, &j, "stopped_ns", c->stopped_ns);
	uni_json_kv(u64, &j, "longest_stop_ns", c->longest_ns);
	uni_json_kv(u64, &j, "gaps", c->gaps);
	uni_json_kv(u64, &j, "gap_ns", c->gap_ns);
	uni_json_kv(bool, &j, "guest_ended", c->ended);
	uni_json_kv(bool, &j, "slowed", uni_guest_is_tcg(&x->g));
	uni_json_key(&j, "functions");
	uni_json_array(&j);
	for (size_t i = 0; i < c->nr; i++)
		put_function(&j, x, &x->c.f[i]);
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
	return uni_sink_close(out, err);
}

static int count_functions(
	struct counted *x, const struct uni_count_args *args, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.debug_dirs);
	int rc = uni_count_find(&x->g, args, &x->c, err);

	if (rc == 0)
		rc = uni_guest_symbols_load(&x->g, &search, false, &x->symbols, err);
	if (rc == 0)
		rc = uni_count_run(&x->g, args, &x->c, err);
	for (size_t i = 0; rc == 0 && i < x->c.nr; i++)
		uni_count_sort_callers(&x->c.f[i]);
	if (rc == 0 && o.json)
		return put_counts(x, err);
	if (rc == 0)
		print_counts(x);
	return rc;
}

static int check_count_options(struct uni_count_args *ret, struct uni_err *err)
{
	struct uni_sampler_cfg cfg = { 0 };
	int rc = uni_pace_check(&o.pace, err);

	if (rc == 0 && (o.duration < 0 || o.duration > 1e7))
		rc = uni_err_set(err, UNI_EUSAGE, "--duration must be between 0 and 10000000 s");
	if (rc == 0)
		uni_pace_apply(&o.pace, &cfg);
	ret->max_pause = cfg.max_duty;
	ret->duration = o.duration;
	return rc;
}

static int run_count(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_count_args args = { .function = ctx->operands + 1, .nr = ctx->nr_operands - 1 };
	struct uni_attach_args attach = { .image = uni_images_first(&o.images),
		.qmp = o.qmp,
		.no_image_ok = true,
		.no_samples = true,
		.search = uni_search_of(&o.debug_dirs),
		.sysroot = &o.sysroot,
		.accept_image = o.accept_image };
	_cleanup_free_ char *target = NULL;
	struct counted *x = NULL;
	bool refused = false;
	int rc = check_count_options(&args, err);

	if (rc == 0)
		rc = uni_images_others(&o.images, &o.sysroot, err);
	if (rc == 0)
		rc = uni_count_target(ctx->operands[0], &target, err);
	if (rc == 0) {
		x = calloc(1, sizeof(*x));
		attach.target = target;
		rc = x != NULL ? uni_guest_open_only(&x->g, &attach, err) : uni_err_nomem(err);
	}
	if (rc == 0) {
		rc = count_functions(x, &args, err);
		for (size_t i = 0; i < x->c.nr; i++)
			refused = refused || x->c.f[i].refused;
		uni_count_deinit(&x->c);
		uni_guest_symbols_free(&x->symbols);
		uni_guest_close(&x->g);
	}
	free(x);
	return rc == 0 && refused ? UNI_EXIT_FAILED : uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_count = {
	.name = "count",
	.operands = "TARGET FUNCTION...",
	.summary = "count calls of up to four functions, by breakpoints",
	.details = "For functions that are called rarely, in a guest without a tracer. Each call "
		   "stops the\n"
		   "whole guest for a moment, through QEMU's gdb stub. A function that is called "
		   "too often is\n"
		   "given up: then the exit status is 1.",
	.examples = "  uniscope count web1 tcp_reset\n"
		    "  uniscope count -d 60 --json gdb:unix=/run/q.gdb -e app.elf oom panic",
	.min_operands = 2,
	.max_operands = 1 + UNI_BREAKS_MAX,
	.options = list_count_options,
	.run = run_count,
};
