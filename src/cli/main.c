/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/privilege.h"
#include "base/text.h"
#include "cli/called.h"
#include "cli/memory.h"
#include "app/nearest.h"
#include "app/output.h"
#include "app/serve_child.h"
#include "config.h"

#define FILES 65536 /* files open at once, if the user may have so many */

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

/* A word that is no command of the list: suggests similar commands. */
static int unknown_command(
	const struct uni_cmd *const *list, const char *word, const char *above, struct uni_err *err)
{
	struct uni_nearest n = uni_nearest_begin(word, strlen(word));

	for (size_t i = 0; list[i] != NULL; i++)
		uni_nearest_try(&n, list[i]->name);
	for (size_t i = 0; list == uni_cmds && uni_compat_cmds[i] != NULL; i++)
		uni_nearest_try(&n, uni_compat_cmds[i]->name);
	return uni_err_set(err, UNI_EUSAGE, "unknown command '%s'%s%s%s (see uniscope %s--help)",
		word, n.name != NULL ? ": did you mean '" : "", n.name != NULL ? n.name : "",
		n.name != NULL ? "'?" : "", above);
}

/* A command that gives up its rights may still write these. */
static void note_outputs(const struct uni_opt *opts)
{
	for (const struct uni_opt *p = opts; p->long_name != NULL; p++) {
		if (p->type == UNI_OPT_OUTPUT)
			uni_confine_output(*(const char **)p->value);
	}
}

static int check_operands(const struct uni_called *called, size_t nr, struct uni_err *err)
{
	const struct uni_cmd *c = called->cmd;
	char most[48] = "";

	if (nr >= c->min_operands && nr <= c->max_operands)
		return 0;
	if (nr > c->max_operands)
		(void)snprintf(most, sizeof(most), "%zu operand%s, %zu at most: ", nr,
			uni_plural(nr), c->max_operands);
	return uni_err_set(err, UNI_EUSAGE, "%susage: uniscope %s%s%s [OPTIONS] %s (see --help)",
		most, called->old ? "compat " : "", called->above, c->name, c->operands);
}

static int parse_and_run(
	const struct uni_called *called, int argc, char **argv, struct uni_err *err)
{
	_cleanup_free_ const char **operands = calloc((size_t)argc + 1, sizeof(*operands));
	struct uni_cmd_ctx ctx = { .operands = operands };
	const struct uni_cmd *c = called->cmd;
	const struct uni_opt *opts;
	int rc;

	if (operands == NULL)
		return uni_exit_of(uni_err_nomem(err));
	opts = c->options();
	rc = uni_options_parse(opts, argc, argv, operands, &ctx.nr_operands,
		c->takes_rest ? &ctx.rest : NULL, err);
	if (rc == 0)
		rc = check_operands(called, ctx.nr_operands, err);
	if (rc == 0)
		rc = uni_output_check(opts, operands, ctx.nr_operands, err);
	note_outputs(opts);
	if (rc == 0 && c->prepare != NULL)
		c->prepare();
	if (rc == 0 && c->reads_only)
		rc = uni_privilege_drop(err);
	else if (rc == 0 && !c->starts_others)
		rc = uni_privilege_limit(err);
	return rc != 0 ? uni_exit_of(rc) : c->run(&ctx, err);
}

/* Whatever the command made of it, a lack of memory is told, and no success. */
static int check_memory(const char *above, const char *name, const struct uni_err *err, int status)
{
	if (!uni_memory_lacked())
		return status;
	if (err->code != UNI_ENOMEM)
		(void)fprintf(stderr,
			"uniscope: %s%s: out of memory: parts of the output may be missing or "
			"wrong\n",
			above, name);
	return status != UNI_EXIT_USAGE ? UNI_EXIT_FAILED : status;
}

static int run_command(const struct uni_called *called, int argc, char **argv)
{
	const struct uni_cmd *c = called->cmd;
	struct uni_err err = { 0 };
	int status;

	if (wants_help(argc, argv)) {
		uni_help_command(called, stdout);
		return UNI_EXIT_OK;
	}
	if (c->sub != NULL && argc > 1 && argv[1][0] != '-') {
		char above[80];

		(void)snprintf(above, sizeof(above), "%s%s ", called->above, c->name);
		status = uni_exit_of(unknown_command(c->sub, argv[1], above, &err));
	} else if (c->sub != NULL) {
		status = uni_exit_of(uni_err_set(&err, UNI_EUSAGE,
			"usage: uniscope %s%s COMMAND ... (see --help)", called->above, c->name));
	} else {
		status = parse_and_run(called, argc, argv, &err);
	}
	if (err.code != 0)
		(void)fprintf(stderr, "uniscope: %s%s: %s\n", called->above, c->name, err.msg);
	return check_memory(called->above, c->name, &err, status);
}

/* A full disk or a closed pipe at stdout is a failure like any other. */
static int flush_output(int status)
{
	int e;

	errno = 0;
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	/* The cause of an earlier failed write usually persists. Otherwise writes a line's end to
	 * get its error: the output is broken anyway. */
	e = errno;
	if (e == 0 && putchar('\n') == '\n' && fflush(stdout) != 0)
		e = errno;
	(void)fprintf(stderr, "uniscope: cannot write to standard output: %s\n",
		e != 0 ? strerror(e) : "not all of it was taken");
	return status != UNI_EXIT_OK ? status : UNI_EXIT_FAILED;
}

/* `help COMMAND` and options in place of a command; -1: it is none of these. */
static int run_other(int argc, char **argv)
{
	struct uni_called called = uni_called_find(uni_cmds, argc - 2, argv + 2);

	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		(void)printf("uniscope " UNISCOPE_VERSION " (%s)\n", uni_commit);
		return UNI_EXIT_OK;
	}
	if (strcmp(argv[1], "__complete") == 0)
		return uni_complete(uni_cmds, argc - 2, argv + 2);
	if (strcmp(argv[1], "__man-commands") == 0) {
		uni_help_man(stdout);
		return UNI_EXIT_OK;
	}
	if (strcmp(argv[1], "__man-options") == 0 && called.cmd != NULL &&
		called.cmd->sub == NULL) {
		uni_options_man(called.cmd->options(), stdout);
		return UNI_EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0) {
		if (called.cmd != NULL)
			uni_help_command(&called, stdout);
		else
			uni_help_print(stdout, argc > 2 && strcmp(argv[2], "--all") == 0);
		return UNI_EXIT_OK;
	}
	return -1;
}

/* Each vCPU takes some: its events, its files in /proc, its stream of a session. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = uni_max(files.rlim_cur, uni_min(files.rlim_max, (rlim_t)FILES));
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

/* The program has an older tool's name: a link that means `uniscope compat NAME`. */
static bool is_older_tool(char **argv)
{
	char *slash = strrchr(argv[0], '/');

	if (slash != NULL)
		argv[0] = slash + 1;
	return uni_called_find_in(uni_compat_cmds, argv[0]) != NULL;
}

int main(int argc, char **argv)
{
	struct uni_err err = { 0 };
	struct uni_called called;
	bool link;
	int status, skip;

	allow_files();
	uni_serve_child_begin();
	link = argc > 0 && is_older_tool(argv);
	if (!link && argc < 2) {
		uni_help_print(stderr, false);
		return check_memory("", "help", &err, UNI_EXIT_USAGE);
	}
	status = link ? -1 : run_other(argc, argv);
	if (status >= 0)
		return flush_output(status);
	skip = link ? 0 : 1;
	if (link && argc > 1 && strcmp(argv[1], "__complete") == 0) {
		/* "__complete WORD..." as "TOOL WORD..." */
		argv[1] = argv[0];
		return flush_output(uni_complete(uni_compat_cmds, argc - 1, argv + 1));
	}
	called = uni_called_find(link ? uni_compat_cmds : uni_cmds, argc - skip, argv + skip);
	if (called.cmd == NULL) {
		(void)unknown_command(uni_cmds, argv[1], "", &err);
		(void)fprintf(stderr, "uniscope: %s\n", err.msg);
		return UNI_EXIT_USAGE;
	}
	called.old = called.old || link;
	skip += called.words - 1;
	return flush_output(run_command(&called, argc - skip, argv + skip));
}
