/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/vec.h"
#include "app/cmd.h"
#include "app/pace.h"
#include "app/resolve.h"
#include "app/serve_ftrace.h"
#include "app/serve_page.h"

#define PORT   9090 /* Nanos' */
#define BUFFER (64u << 20)
#define WHOLE  1000000
#define NODES  65536

static struct {
	struct uni_tracing_args a;
	struct uni_source_args source;
	struct uni_pace pace;
	uint64_t port, buffer, whole, nodes;
	const char *frequency, *method, *exits, *output;
	bool ftrace, on, keep, idle, port_given;
} o;

static const struct uni_opt *list_serve_options(void)
{
	static const struct uni_opt table[] = {
		{ 'p', "port", UNI_OPT_U64, &o.port, "N",
			"TCP port on the loopback interface; 0: any (default 9090)", NULL,
			&o.port_given },
		{ 'o', "output", UNI_OPT_STR, &o.output, "NAME",
			"session folder to write for a TARGET; later recordings "
			"get a number (default: no session is kept)",
			"FILE", NULL },
		{ 0, "idle", UNI_OPT_FLAG, &o.idle, NULL,
			"do not record a TARGET until the page asks for it", NULL, NULL },
		{ 'F', "frequency", UNI_OPT_STR, &o.frequency, "HZ",
			"samples per second of each vCPU (default 99)", NULL, NULL },
		{ 0, "method", UNI_OPT_STR, &o.method, "auto|bpf|pause",
			"how a kvm: guest is sampled, as in `record`", "auto bpf pause", NULL },
		UNI_PACE_OPTIONS(o.pace),
		{ 0, "exits", UNI_OPT_MAYBE, &o.exits, "[=N]",
			"also record VM exits, as `record` does", NULL, NULL },
		{ 0, "whole", UNI_OPT_U64, &o.whole, "N",
			"if there are more traced calls, the page requests only "
			"the visible ones (default 1000000). From a quarter as "
			"many samples on, close samples of one stack become one",
			NULL, NULL },
		{ 0, "nodes", UNI_OPT_U64, &o.nodes, "N",
			"in a larger call tree, the smallest nodes are shown "
			"flat (default 65536)",
			NULL, NULL },
		UNI_INPUT_FORMAT_OPTION(o.source.format, .old_name = "from"),
		{ 's', "symbols", UNI_OPT_STR, &o.source.symbols, "FILE",
			"names from this ELF, .usym or table in text instead of the session's own",
			"FILE", NULL },
		{ 0, "ftrace", UNI_OPT_FLAG, &o.ftrace, NULL,
			"serve the files that Nanos serves below /ftrace/: "
			"tracers, switches, traces as text",
			NULL, NULL },
		{ 0, "on", UNI_OPT_FLAG, &o.on, NULL,
			"with --ftrace: record from the start on (default: from tracing_enable/on "
			"on)",
			NULL, NULL },
		{ 0, "keep", UNI_OPT_FLAG, &o.keep, NULL,
			"with --ftrace: leave the functions switched on at the "
			"end",
			NULL, NULL },
		{ 0, "buffer", UNI_OPT_SIZE, &o.buffer, "SIZE",
			"with --ftrace: how much of the trace is kept (default 64M)", NULL, NULL },
		UNI_CHOICE_OPTIONS(o.a),
		UNI_TRACING_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .port = PORT,
		.buffer = BUFFER,
		.whole = WHOLE,
		.nodes = NODES,
		.source.build = UNI_BUILD_DEFAULTS };
	return table;
}

/* Words of a command line; strings are borrowed. */
struct words {
	UNI_VEC(const char *) v;
	bool failed;
};

static void add_word(struct words *w, const char *s)
{
	w->failed = !uni_vec_push(&w->v, s) || w->failed;
}

static void add_option(struct words *w, const char *name, const char *value)
{
	if (value == NULL)
		return;
	add_word(w, name);
	add_word(w, value);
}

static void options_of_list(struct words *w, const char *name, const struct uni_opt_list *l)
{
	for (size_t i = 0; i < l->items.nr; i++)
		add_option(w, name, l->items.v[i]);
}

static void add_common_options(struct words *w, const char *wait)
{
	add_option(w, "-d", "0");
	options_of_list(w, "-e", &o.a.images);
	add_option(w, "--qmp", o.a.qmp);
	add_option(w, "--wait", wait);
	options_of_list(w, "--debug-dir", &o.a.debug_dirs);
}

static void record_words(struct words *w, const char *target, const char *exits, const char *wait)
{
	add_word(w, "uniscope");
	add_word(w, "record");
	add_word(w, "-q");
	add_common_options(w, wait);
	add_option(w, "-F", o.frequency);
	add_option(w, "--method", o.method);
	add_option(w, "--max-pause", o.pace.max_pause);
	add_option(w, "--sched", o.pace.sched);
	if (o.pace.skip_late)
		add_word(w, "--skip-late");
	if (o.exits != NULL)
		add_word(w, exits);
	add_word(w, target);
	add_word(w, NULL);
}

static void trace_words(
	struct words *w, const char *target, const char *min, const char *depth, const char *wait)
{
	add_word(w, "uniscope");
	add_word(w, "trace");
	add_word(w, "record");
	add_word(w, "-q");
	add_option(w, "--names", "5");
	add_common_options(w, wait);
	add_option(w, "--head", o.a.head);
	options_of_list(w, "--filter", &o.a.filter);
	options_of_list(w, "--regex", &o.a.regex);
	options_of_list(w, "--exclude", &o.a.exclude);
	options_of_list(w, "--args", &o.a.args);
	options_of_list(w, "--trigger", &o.a.trigger);
	add_option(w, "--mode", o.a.mode);
	add_option(w, "--min-duration", o.a.min_us > 0 ? min : NULL);
	add_option(w, "--depth", o.a.depth != 0 ? depth : NULL);
	if (o.a.pieces)
		add_word(w, "--pieces");
	if (o.a.threads)
		add_word(w, "--threads");
	add_word(w, target);
	add_word(w, NULL);
}

static int serve_target(struct uni_serve_page_args *args, const char *target, struct uni_err *err)
{
	char exits[64], wait[32], min[32], depth[32];
	struct words rec = { 0 }, trace = { 0 };
	struct uni_spec spec;
	int rc = uni_guest_resolve(target, &spec, err);

	if (rc == -UNI_ENOENT)
		return uni_err_prefix(err, "%s is no file", target);
	if (rc != 0)
		return rc;
	(void)snprintf(exits, sizeof(exits), "--exits%s%.40s",
		o.exits != NULL && o.exits[0] != '\0' ? "=" : "", o.exits != NULL ? o.exits : "");
	(void)snprintf(wait, sizeof(wait), "%.3f", o.a.wait);
	(void)snprintf(min, sizeof(min), "%.3f", o.a.min_us);
	(void)snprintf(depth, sizeof(depth), "%llu", (unsigned long long)o.a.depth);
	record_words(&rec, target, exits, wait);
	trace_words(&trace, target, min, depth, wait);
	args->target = target;
	args->record = rec.v.v;
	args->trace = trace.v.v;
	rc = rec.failed || trace.failed ? uni_err_nomem(err) : uni_serve_page(args, err);
	uni_vec_free(&rec.v);
	uni_vec_free(&trace.v);
	return rc;
}

/* A file that is there is meant, and not a guest of that name. */
static int serve_page(const char *what, struct uni_err *err)
{
	struct uni_serve_page_args args = { .port = (uint16_t)o.port,
		.whole = { o.whole, uni_max(o.whole / 4, (uint64_t)1), (uint32_t)o.nodes },
		.source = o.source,
		.output = o.output,
		.idle = o.idle };

	args.source.path = what;
	args.source.debug_dirs = o.a.debug_dirs;
	if (strcmp(what, "-") != 0 && access(what, F_OK) != 0)
		return serve_target(&args, what, err);
	if (o.output != NULL || o.idle)
		return uni_err_set(
			err, UNI_EUSAGE, "%s is a file: there is nothing to record", what);
	return uni_serve_page(&args, err);
}

static int run_serve(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_serve_ftrace_args ftrace = { .tracing = &o.a,
		.port = (uint16_t)o.port,
		.buffer = (size_t)o.buffer,
		.on = o.on,
		.keep = o.keep };

	if (o.port > UINT16_MAX)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--port is at most 65535"));
	if (o.whole == 0)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--whole is at least 1"));
	if (o.nodes == 0 || o.nodes > UINT32_MAX)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--nodes is at least 1"));
	if (!o.ftrace && (o.on || o.keep))
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--on and --keep need --ftrace"));
	o.a.owns = o.a.may_give_up = true;
	o.a.guarded = !o.keep;
	return uni_exit_of(o.ftrace ? uni_serve_ftrace(ctx->operands[0], &ftrace, err)
				    : serve_page(ctx->operands[0], err));
}

const struct uni_cmd uni_cmd_serve = {
	.name = "serve",
	.operands = "TARGET|FILE",
	.summary = "show a guest live, or a recording, in a web browser",
	.details = "Prints an address to open. For a TARGET the page shows the "
		   "growing recording. Its buttons end and\n"
		   "begin recordings of samples and of function calls. FILE is any "
		   "input of `report`; - is standard\n"
		   "input. Only users of this machine who know the address can open "
		   "it. With --ftrace it serves the\n"
		   "files that Nanos serves instead, below "
		   "http://127.0.0.1:9090/ftrace/: available_tracers,\n"
		   "current_tracer, trace_clock, tracing_on, tracing_enable/on, "
		   "tracing_enable/off, trace and\n"
		   "trace_pipe. The first recording switches the functions on; they "
		   "are switched off at the end.",
	.examples = "  uniscope serve web1\n"
		    "  uniscope serve kvm:pid=4121 -F 499 -o web1.uniscope\n"
		    "  uniscope serve web1.uniscope\n"
		    "  uniscope serve --ftrace kvm:pid=4121 &\n"
		    "  wget -qO- http://127.0.0.1:9090/ftrace/tracing_enable/on\n"
		    "  wget -qO trace http://127.0.0.1:9090/ftrace/trace",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_serve_options,
	.run = run_serve,
};
