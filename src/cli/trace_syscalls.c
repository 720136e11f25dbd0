/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "app/cmd.h"
#include "app/images.h"
#include "app/symbols.h"
#include "app/syscalls.h"
#include "app/syscalls_exact.h"
#include "app/syscalls_options.h"
#include "app/term.h"

#define COLUMN	   40 /* strace's own */
#define STRING_MAX 32

static struct {
	struct uni_syscalls_args a;
	struct uni_opt_list expressions;
	struct uni_sysc_filter filter;
	const char *output, *sort;
	unsigned stamp;
	uint64_t column;
	bool relative, duration, summary, both, json, successful, failed;
} o;

static const struct uni_opt *list_trace_syscalls_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "expr", UNI_OPT_LIST, &o.expressions, "EXPRESSION",
			"trace=LIST or just LIST: names of system calls, classes (%file, %desc, "
			"%memory, %process, %signal, %network, %ipc, %creds, %clock, %stat), "
			"/REGEX, all, none; ! in front for all others; "
			"status=successful,failed,unfinished: only calls that ended so",
			NULL, NULL, 'e' },
		{ 'z', "successful-only", UNI_OPT_FLAG, &o.successful, NULL,
			"only calls that succeeded", NULL, NULL },
		{ 'Z', "failed-only", UNI_OPT_FLAG, &o.failed, NULL, "only calls that failed", NULL,
			NULL },
		{ 0, "time", UNI_OPT_COUNT, &o.stamp, NULL,
			"the time of day in front; -tt with microseconds; -ttt as seconds since "
			"1970",
			NULL, NULL, 't' },
		{ 0, "relative", UNI_OPT_FLAG, &o.relative, NULL,
			"print the time since the last call began", NULL, NULL, 'r' },
		{ 'T', "syscall-times", UNI_OPT_FLAG, &o.duration, NULL,
			"the time that each call took, at its end", NULL, NULL },
		{ 'c', "summary-only", UNI_OPT_FLAG, &o.summary, NULL,
			"print a table of calls, errors and time of each system "
			"call, instead",
			NULL, NULL },
		{ 'C', "summary", UNI_OPT_FLAG, &o.both, NULL, "print that table as well", NULL,
			NULL },
		{ 'S', "sort", UNI_OPT_STR, &o.sort, "ORDER",
			"the table's order: time, calls, errors or name (default time)",
			"time calls errors name", NULL },
		{ 0, "columns", UNI_OPT_U64, &o.column, "N",
			"column at which results stand (default 40)", NULL, NULL, 'a' },
		{ 0, "string-limit", UNI_OPT_U64, &o.a.string_max, "N",
			"TARGET, SESSION: bytes of a text that are shown (default 32)", NULL,
			&o.a.string_max_given, 's' },
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE", "write it here, not to stdout",
			"FILE", NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "the calls as JSON", NULL, NULL },
		{ 'd', "duration", UNI_OPT_DOUBLE, &o.a.duration, "SECONDS",
			"TARGET: time to record; 0 records until Ctrl-C (default "
			"10)",
			NULL, &o.a.duration_given },
		{ 0, "image", UNI_OPT_LIST, &o.a.images, "ELF", UNI_IMAGE_RUNNING UNI_IMAGE_AGAIN,
			"FILE", NULL },
		{ 0, "save", UNI_OPT_STR, &o.a.save, "NAME",
			"TARGET: keep the recording as this session", "FILE", NULL },
		{ 0, "prefix", UNI_OPT_LIST, &o.a.prefixes, "PREFIX",
			"names of the functions that answer system calls begin "
			"so, before the call's name; may be given several times "
			"(default: Unikraft's, else sys_)",
			NULL, NULL },
		{ 0, "pieces", UNI_OPT_FLAG, &o.a.pieces, NULL,
			"TARGET: also patch functions that begin with several "
			"instructions. Use it only if no thread can be "
			"interrupted among them",
			NULL, NULL },
		{ 0, "stops", UNI_OPT_FLAG, &o.a.stops, NULL,
			"TARGET: a Nanos as it is (x86_64) is stopped at each call, by the gdb "
			"stub "
			"of QEMU; results are not known",
			NULL, NULL },
		{ 0, "arch", UNI_OPT_STR, &o.a.arch, "ARCH",
			"FILE: the architecture of the numbers in syscall_N, "
			"x86_64 or aarch64 (default x86_64)",
			"x86_64 aarch64", NULL },
		{ 0, "guest", UNI_OPT_STR, &o.a.guest, "N|NAME",
			"SESSION: show this guest of several", NULL, NULL },
		UNI_PART_OPTIONS(o.a.part),
		{ 0, "thread", UNI_OPT_LIST, &o.a.threads, "NAME|NUMBER",
			"SESSION: only threads whose name matches, or with this "
			"number; may be given several times",
			NULL, NULL },
		{ 0, "symbols", UNI_OPT_STR, &o.a.symbols, "FILE",
			"SESSION: take names from this file", "FILE", NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.a.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		{ 0, "wait", UNI_OPT_DOUBLE, &o.a.wait, "SECONDS",
			"keep trying for this time while the guest still boots "
			"(default 0)",
			NULL, NULL },
		UNI_DEBUG_DIR_OPTION(o.a.debug_dirs),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.a.quiet, NULL, "no progress", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "-",
		.sort = "time",
		.column = COLUMN,
		.a = { .string_max = STRING_MAX, .duration = 10 } };
	return table;
}

static int order_of(const char *name, enum uni_sysc_order *ret, struct uni_err *err)
{
	static const char *const names[] = {
		[UNI_SYSC_BY_TIME] = "time",
		[UNI_SYSC_BY_CALLS] = "calls",
		[UNI_SYSC_BY_ERRORS] = "errors",
		[UNI_SYSC_BY_NAME] = "name",
	};

	for (size_t i = 0; i < uni_array_len(names); i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum uni_sysc_order)i;
			return 0;
		}
	}
	return uni_err_set(err, UNI_EUSAGE, "--sort is time, calls, errors or name, not %s", name);
}

static int check_syscall_options(enum uni_sysc_order *order_ret, struct uni_err *err)
{
	int rc = order_of(o.sort, order_ret, err);

	if (rc == 0 && (o.a.duration < 0 || o.a.duration > 1e7))
		rc = uni_err_set(err, UNI_EUSAGE, "--duration must be between 0 and 10000000 s");
	if (rc == 0 && o.json && (o.summary || o.both))
		rc = uni_err_set(err, UNI_EUSAGE, "--json prints calls: leave out -c and -C");
	for (size_t i = 0; rc == 0 && i < o.expressions.items.nr; i++)
		rc = uni_sysc_filter_add(&o.filter, o.expressions.items.v[i], err);
	if (o.successful)
		o.filter.ends = 1 << UNI_SYSC_OK;
	if (o.failed)
		o.filter.ends = (o.successful ? o.filter.ends : 0) | 1 << UNI_SYSC_FAILED;
	return rc;
}

static struct uni_sysc_print line_format(void)
{
	return (struct uni_sysc_print){ .stamp = uni_min(o.stamp, UNI_SYSC_EPOCH),
		.relative = o.relative,
		.duration = o.duration,
		.column = (unsigned)uni_min(o.column, (uint64_t)1000) };
}

/* Options for times that are not there. */
static void note_times(const char *what, const struct uni_sysc_log *log)
{
	bool begins = false, durations = false;

	for (size_t i = 0; i < log->all.nr && !(begins && durations); i++) {
		begins = begins || log->all.v[i].timed;
		durations = durations || log->all.v[i].has_duration;
	}
	if (log->all.nr == 0 || o.json || o.summary)
		return;
	if (!begins && (o.stamp != 0 || o.relative))
		uni_note("%s does not say when its calls began (of strace, only -ttt does): -t and "
			 "-r show nothing",
			what);
	if (!durations && o.duration)
		uni_note("%s does not say how long its calls took: -T shows nothing", what);
}

static int put_log(const struct uni_sysc_log *log, enum uni_sysc_order order, bool told,
	struct uni_sysc_print *how, struct uni_sink *out)
{
	int rc = 0;

	if (o.json)
		uni_sysc_json(log, out);
	else if (!o.summary && !told)
		rc = uni_sysc_print(log, how, out);
	if (rc == 0 && (o.summary || o.both))
		rc = uni_sysc_summary(log, order, out);
	return rc;
}

/* Numbers of calls are all that exact counts have. */
static int put_counts(const char *session, struct uni_sink *out, struct uni_err *err)
{
	int rc;

	if (o.json)
		return uni_err_set(err, UNI_EUSAGE,
			"exact counts have no single calls: `uniscope export -f counts %s` writes "
			"the calls of each function as JSON",
			session);
	if (o.stamp != 0 || o.relative || o.duration || o.both || strcmp(o.sort, "time") != 0 ||
		o.column != COLUMN)
		return uni_err_set(err, UNI_EUSAGE,
			"exact counts are a table without times: leave out --time, --relative, -T, "
			"-C, -S and --columns");
	rc = uni_syscalls_check(&o.a, session, UNI_SYSCALLS_COUNTS, err);
	if (rc == 0)
		rc = uni_syscalls_put_counts(session, &o.a, out, err);
	if (rc == 0 && !o.a.quiet)
		uni_note("exact counts: no arguments, results and times. Those need a guest with "
			 "our tracer, Unikraft's tracepoints, or Nanos' own listing. "
			 "`trace syscalls --stops` shows arguments of a running Nanos");
	return rc;
}

static int read_and_put(const char *what, struct uni_sysc_log *log, enum uni_sysc_order order,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_sysc_print how = line_format();
	struct uni_syscalls_args a = o.a;
	bool told;
	int rc;

	if (uni_syscalls_are_counts(what))
		return put_counts(what, out, err);
	if (!o.json && !o.summary)
		a.lines = &how;
	a.log = o.both;
	a.out = out;
	a.parts = strcmp(o.output, "-") == 0 && isatty(STDOUT_FILENO);
	rc = uni_syscalls_read(what, &a, log, &told, &how.realtime_offset_ns, err);
	if (rc == 0 && !told)
		note_times(what, log);
	if (rc == 0 && put_log(log, order, told, &how, out) != 0)
		rc = uni_err_nomem(err);
	return rc;
}

static int read_and_write(
	const char *what, struct uni_sysc_log *log, enum uni_sysc_order order, struct uni_err *err)
{
	struct uni_sink *out;
	int rc = uni_sink_open_file(o.output, &out, err);

	if (rc != 0)
		return rc;
	rc = read_and_put(what, log, order, out, err);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

static int run_trace_syscalls(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	enum uni_sysc_order order = UNI_SYSC_BY_TIME;
	struct uni_sysc_log log = { 0 };
	int rc = check_syscall_options(&order, err);

	o.a.filter = &o.filter;
	if (rc == 0 && uni_sysc_log_init(&log, &o.filter) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = read_and_write(ctx->operands[0], &log, order, err);
	if (log.unknown != 0)
		uni_note("%" PRIu64 " results are of calls whose beginning is not there",
			log.unknown);
	if (log.dropped != 0)
		uni_note("%" PRIu64 " more calls are not shown: there are too many", log.dropped);
	uni_sysc_log_deinit(&log);
	uni_sysc_filter_deinit(&o.filter);
	return uni_exit_of(rc);
}

/* Here strace's letters are no longer old ones. */
static const struct uni_opt *strace_options(void)
{
	static struct uni_opt table[64];
	const struct uni_opt *from = list_trace_syscalls_options();

	for (size_t i = 0; i + 1 < uni_array_len(table) && from[i].long_name != NULL; i++) {
		table[i] = from[i];
		if (from[i].old_letter == '\0')
			continue;
		table[i].short_name = from[i].old_letter;
		table[i].old_letter = '\0';
	}
	return table;
}

const struct uni_cmd uni_trace_syscalls = {
	.name = "syscalls",
	.operands = "TARGET|SESSION|FILE",
	.summary = "the system calls that a guest makes, as strace shows them",
	.details = "For a TARGET with our tracer, the functions that answer system calls "
		   "(such as Unikraft's\n"
		   "uk_syscall_r_*) are traced with arguments and results. A TARGET may "
		   "also have only Unikraft's\n"
		   "tracepoints, which show calls on files and sockets. A SESSION is one of "
		   "`trace record --args` of\n"
		   "such functions, or of `run --exact`, which has their numbers of calls. A "
		   "FILE is one of\n"
		   "`uk-trace fetch`, or the output of a guest or of strace. A guest's has "
		   "lines and the summary of\n"
		   "Nanos' strace klib, lines of Nanos before it (trace), or lines of Unikraft's "
		   "strace\n"
		   "option. - is standard input.",
	.examples = "  uniscope trace syscalls web1 -d 5 -T\n"
		    "  uniscope trace syscalls web1 -c\n"
		    "  uniscope trace syscalls kvm:pid=4121 --image app.dbg --expr trace=%file -Z\n"
		    "  uniscope trace syscalls console.log -c",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_syscalls_options,
	.run = run_trace_syscalls,
};

const struct uni_cmd uni_cmd_strace = {
	.name = "strace",
	.operands = "TARGET|SESSION|FILE",
	.summary = "the system calls that a guest makes, with strace's letters",
	.details =
		"As uniscope trace syscalls, with letters for all options that strace has letters "
		"for.",
	.examples = "  uniscope compat strace -tt -T -e trace=%file web1",
	.min_operands = 1,
	.max_operands = 1,
	.options = strace_options,
	.run = run_trace_syscalls,
};
