/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cli/cmd.h"
#include "cli/term.h"
#include "config.h"

static const struct uni_cmd *find(const char *name)
{
	for (size_t i = 0; uni_cmds[i] != NULL; i++) {
		if (strcmp(uni_cmds[i]->name, name) == 0)
			return uni_cmds[i];
	}
	return NULL;
}

static int longest_name(void)
{
	size_t longest = 0;

	for (size_t i = 0; uni_cmds[i] != NULL; i++)
		longest = uni_max(longest, strlen(uni_cmds[i]->name));
	return (int)longest;
}

static void usage(FILE *out)
{
	int width = longest_name() + 2;

	(void)fputs("uniscope: see inside a unikernel from the outside\n\n"
		    "usage: uniscope COMMAND [OPTIONS] [OPERANDS]\n\ncommands:\n",
		out);
	for (size_t i = 0; uni_cmds[i] != NULL; i++)
		(void)fprintf(out, "  %-*s%s\n", width, uni_cmds[i]->name, uni_cmds[i]->summary);
	(void)fputs(
		"\nuniscope COMMAND --help tells more. A target is scheme:key=value,... such as\n"
		"kvm:pid=4121, gdb:unix=/run/q.sock or gdb:tcp=127.0.0.1:1234, or simply a pid\n"
		"or a name that `uniscope ls` shows.\n",
		out);
}

static void command_help(const struct uni_cmd *c, FILE *out)
{
	(void)fprintf(out, "uniscope %s: %s\n\nusage: uniscope %s [OPTIONS]%s%s%s\n", c->name,
		c->summary, c->name, c->operands[0] != '\0' ? " " : "", c->operands,
		c->takes_rest ? " [-- ARGS...]" : "");
	if (c->details != NULL)
		(void)fprintf(out, "\n%s\n", c->details);
	(void)fputs("\noptions:\n", out);
	uni_options_help(c->options(), out, uni_term_width(out));
	(void)fprintf(out, "  -h, --help%18sprint this\n", "");
	if (c->examples != NULL)
		(void)fprintf(out, "\nexamples:\n%s\n", c->examples);
}

/* For the completion script: every word that could stand there, one a line. */
static int complete(int argc, char **argv)
{
	const struct uni_cmd *c = argc > 2 ? find(argv[2]) : NULL;

	if (argc <= 2) {
		for (size_t i = 0; uni_cmds[i] != NULL; i++)
			(void)puts(uni_cmds[i]->name);
		return UNI_EXIT_OK;
	}
	if (c == NULL)
		return UNI_EXIT_FAILED;
	/* What follows an option whose value is optional is not its value. */
	for (const struct uni_opt *o = c->options(); o->long_name != NULL; o++)
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

static int run_command(const struct uni_cmd *c, int argc, char **argv)
{
	_cleanup_free_ const char **operands = calloc((size_t)argc + 1, sizeof(*operands));
	struct uni_cmd_ctx ctx = { .operands = operands };
	struct uni_err err = { 0 };
	int rc, status;

	if (operands == NULL)
		return UNI_EXIT_FAILED;
	if (wants_help(argc, argv)) {
		command_help(c, stdout);
		return UNI_EXIT_OK;
	}
	rc = uni_options_parse(c->options(), argc, argv, operands, &ctx.nr_operands,
		c->takes_rest ? &ctx.rest : NULL, &err);
	if (rc == 0 && (ctx.nr_operands < c->min_operands || ctx.nr_operands > c->max_operands))
		rc = uni_err_set(&err, UNI_EUSAGE, "usage: uniscope %s [OPTIONS] %s (see --help)",
			c->name, c->operands);
	status = rc != 0 ? uni_exit_of(rc) : c->run(&ctx, &err);
	if (err.code != 0)
		(void)fprintf(stderr, "uniscope: %s: %s\n", c->name, err.msg);
	return status;
}

/* A full disk or a closed pipe behind stdout is a failure like any other. */
static int finish(int status)
{
	int e;

	errno = 0;
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	/* What failed in an earlier write is still there to fail again. */
	e = errno;
	(void)fprintf(stderr, "uniscope: cannot write to standard output: %s\n",
		e != 0 ? strerror(e) : "not all of it was taken");
	return status != UNI_EXIT_OK ? status : UNI_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const struct uni_cmd *c;

	if (argc < 2) {
		usage(stderr);
		return UNI_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		(void)puts("uniscope " UNISCOPE_VERSION);
		return finish(UNI_EXIT_OK);
	}
	if (strcmp(argv[1], "__complete") == 0)
		return finish(complete(argc, argv));
	if (strcmp(argv[1], "__man-options") == 0 && argc == 3 && (c = find(argv[2])) != NULL) {
		uni_options_man(c->options(), stdout);
		return finish(UNI_EXIT_OK);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0) {
		c = argc > 2 ? find(argv[2]) : NULL;
		if (c != NULL)
			command_help(c, stdout);
		else
			usage(stdout);
		return finish(UNI_EXIT_OK);
	}
	c = find(argv[1]);
	if (c == NULL) {
		(void)fprintf(
			stderr, "uniscope: no command '%s'; uniscope --help lists them\n", argv[1]);
		return UNI_EXIT_USAGE;
	}
	return finish(run_command(c, argc - 1, argv + 1));
}
