/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/privilege.h"
#include "app/cmd.h"
#include "app/nearest.h"
#include "app/output.h"
#include "app/serve_child.h"
#include "app/term.h"
#include "config.h"

#define FILES 65536 /* that may be open at once, if the user may have so many */

/* A command as the user called it: of a command's commands, with that one's name in front. */
struct called {
	const struct uni_cmd *cmd; /* NULL: no such command */
	const char *above;	   /* "trace", or "" */
	const char *gap;	   /* " " behind it, or "" */
	int words;
};

static const struct uni_cmd *find_in(const struct uni_cmd *const *list, const char *name)
{
	for (size_t i = 0; list[i] != NULL; i++) {
		if (strcmp(list[i]->name, name) == 0)
			return list[i];
	}
	return NULL;
}

static struct called find(int argc, char **argv)
{
	struct called c = { .above = "", .gap = "" };
	const struct uni_cmd *sub;

	if (argc < 1)
		return c;
	c.cmd = find_in(uni_cmds, argv[0]);
	c.words = 1;
	if (c.cmd == NULL || c.cmd->sub == NULL || argc < 2)
		return c;
	sub = find_in(c.cmd->sub, argv[1]);
	if (sub != NULL)
		c = (struct called){ .cmd = sub, .above = c.cmd->name, .gap = " ", .words = 2 };
	return c;
}

static void list_commands(const struct uni_cmd *const *list, FILE *out)
{
	size_t longest = 0;

	for (size_t i = 0; list[i] != NULL; i++)
		longest = uni_max(longest, strlen(list[i]->name));
	for (size_t i = 0; list[i] != NULL; i++)
		(void)fprintf(out, "  %-*s%s\n", (int)longest + 2, list[i]->name, list[i]->summary);
}

static void usage(FILE *out)
{
	(void)fputs("uniscope: see inside a unikernel from the outside\n\n"
		    "usage: uniscope COMMAND [OPTIONS] [OPERANDS]\n\ncommands:\n",
		out);
	list_commands(uni_cmds, out);
	(void)fputs(
		"\nuniscope COMMAND --help tells more. A target is scheme:key=value,... such as\n"
		"kvm:pid=4121, gdb:unix=/run/q.sock or gdb:tcp=127.0.0.1:1234, or simply a pid\n"
		"or a name that `uniscope ls` shows.\n",
		out);
}

static void command_help(const struct called *called, FILE *out)
{
	const struct uni_cmd *c = called->cmd;

	(void)fprintf(out, "uniscope %s%s%s: %s\n\nusage: uniscope %s%s%s %s%s%s%s\n",
		called->above, called->gap, c->name, c->summary, called->above, called->gap,
		c->name, c->sub != NULL ? "COMMAND" : "[OPTIONS]",
		c->operands[0] != '\0' ? " " : "", c->operands,
		c->takes_rest ? " [-- ARGS...]" : "");
	if (c->details != NULL)
		(void)fprintf(out, "\n%s\n", c->details);
	if (c->sub != NULL) {
		(void)fputs("\ncommands:\n", out);
		list_commands(c->sub, out);
	} else {
		(void)fputs("\noptions:\n", out);
		uni_options_help(c->options(), out, uni_term_width(out));
		(void)fprintf(out, "  -h, --help%18sprint this\n", "");
	}
	if (c->examples != NULL)
		(void)fprintf(out, "\nexamples:\n%s\n", c->examples);
}

static void complete_commands(const struct uni_cmd *const *list)
{
	for (size_t i = 0; list[i] != NULL; i++)
		(void)puts(list[i]->name);
}

/* For the completion script: every word that could stand there, one a line. */
static int complete(int argc, char **argv)
{
	struct called called = find(argc - 2, argv + 2);

	if (argc <= 2) {
		complete_commands(uni_cmds);
		return UNI_EXIT_OK;
	}
	if (called.cmd == NULL)
		return UNI_EXIT_FAILED;
	if (called.cmd->sub != NULL) {
		complete_commands(called.cmd->sub);
		return UNI_EXIT_OK;
	}
	/* What follows an option whose value is optional is not its value. */
	for (const struct uni_opt *o = called.cmd->options(); o->long_name != NULL; o++)
		(void)printf("--%s\t%s\t%s\n", o->long_name,
			o->arg != NULL && o->type != UNI_OPT_MAYBE ? o->arg : "",
			o->words != NULL ? o->words : "");
	return UNI_EXIT_OK;
}

int uni_exit_of(int rc)
{
	if (rc == 0)
		return UNI_EXIT_OK;
	return rc == -UNI_EUSAGE ? UNI_EXIT_USAGE : UNI_EXIT_FAILED;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

/* A word that is no command of the list: what it was perhaps meant to be. */
static int unknown_command(const struct uni_cmd *const *list, const char *word, const char *above,
	const char *gap, struct uni_err *err)
{
	struct uni_nearest n = uni_nearest_begin(word, strlen(word));

	for (size_t i = 0; list[i] != NULL; i++)
		uni_nearest_try(&n, list[i]->name);
	return uni_err_set(err, UNI_EUSAGE, "unknown command '%s'%s%s%s (see uniscope %s%s--help)",
		word, n.name != NULL ? ": did you mean '" : "", n.name != NULL ? n.name : "",
		n.name != NULL ? "'?" : "", above, gap);
}

static int parse_and_run(const struct called *called, int argc, char **argv, struct uni_err *err)
{
	_cleanup_free_ const char **operands = calloc((size_t)argc + 1, sizeof(*operands));
	struct uni_cmd_ctx ctx = { .operands = operands };
	const struct uni_cmd *c = called->cmd;
	const struct uni_opt *opts;
	int rc;

	if (operands == NULL)
		return UNI_EXIT_FAILED;
	opts = c->options();
	rc = uni_options_parse(opts, argc, argv, operands, &ctx.nr_operands,
		c->takes_rest ? &ctx.rest : NULL, err);
	if (rc == 0 && (ctx.nr_operands < c->min_operands || ctx.nr_operands > c->max_operands))
		rc = uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope %s%s%s [OPTIONS] %s (see --help)", called->above,
			called->gap, c->name, c->operands);
	if (rc == 0)
		rc = uni_output_check(opts, operands, ctx.nr_operands, err);
	if (rc == 0 && c->reads_only)
		rc = uni_privilege_drop(err);
	return rc != 0 ? uni_exit_of(rc) : c->run(&ctx, err);
}

static int run_command(const struct called *called, int argc, char **argv)
{
	const struct uni_cmd *c = called->cmd;
	struct uni_err err = { 0 };
	int status;

	if (wants_help(argc, argv)) {
		command_help(called, stdout);
		return UNI_EXIT_OK;
	}
	if (c->sub != NULL && argc > 1 && argv[1][0] != '-')
		status = uni_exit_of(unknown_command(c->sub, argv[1], c->name, " ", &err));
	else if (c->sub != NULL)
		status = uni_exit_of(uni_err_set(
			&err, UNI_EUSAGE, "usage: uniscope %s COMMAND ... (see --help)", c->name));
	else
		status = parse_and_run(called, argc, argv, &err);
	if (err.code != 0)
		(void)fprintf(stderr, "uniscope: %s%s%s: %s\n", called->above, called->gap, c->name,
			err.msg);
	return status;
}

/* A full disk or a closed pipe behind stdout is a failure like any other. */
static int finish(int status)
{
	int e;

	errno = 0;
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	/* What failed in an earlier write is mostly still there to fail again; else a line's end is
	 * tried, for its error: the output is broken anyway. */
	e = errno;
	if (e == 0 && putchar('\n') == '\n' && fflush(stdout) != 0)
		e = errno;
	(void)fprintf(stderr, "uniscope: cannot write to standard output: %s\n",
		e != 0 ? strerror(e) : "not all of it was taken");
	return status != UNI_EXIT_OK ? status : UNI_EXIT_FAILED;
}

/* `help COMMAND` and the options that stand in place of one; -1: it is none of these. */
static int other(int argc, char **argv)
{
	struct called called = find(argc - 2, argv + 2);

	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		(void)printf("uniscope " UNISCOPE_VERSION " (%s)\n", uni_commit);
		return UNI_EXIT_OK;
	}
	if (strcmp(argv[1], "__complete") == 0)
		return complete(argc, argv);
	if (strcmp(argv[1], "__man-options") == 0 && called.cmd != NULL &&
		called.cmd->sub == NULL) {
		uni_options_man(called.cmd->options(), stdout);
		return UNI_EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0) {
		if (called.cmd != NULL)
			command_help(&called, stdout);
		else
			usage(stdout);
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

int main(int argc, char **argv)
{
	struct uni_err err = { 0 };
	struct called called;
	int status;

	allow_files();
	uni_serve_child_begin();
	if (argc < 2) {
		usage(stderr);
		return UNI_EXIT_USAGE;
	}
	status = other(argc, argv);
	if (status >= 0)
		return finish(status);
	called = find(argc - 1, argv + 1);
	if (called.cmd == NULL) {
		(void)unknown_command(uni_cmds, argv[1], "", "", &err);
		(void)fprintf(stderr, "uniscope: %s\n", err.msg);
		return UNI_EXIT_USAGE;
	}
	return finish(run_command(&called, argc - called.words, argv + called.words));
}
