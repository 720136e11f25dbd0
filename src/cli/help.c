/* SPDX-License-Identifier: BSD-2-Clause */
/* Which command is meant, and the lists of commands for --help and for uniscope(1). */
#include "cli/called.h"

#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "app/term.h"

static const char *const group_titles[UNI_CMDS_GROUPS] = {
	[UNI_CMDS_DAILY] = "daily",
	[UNI_CMDS_TRACE] = "trace",
	[UNI_CMDS_EXCHANGE] = "exchange",
	[UNI_CMDS_COMPAT] = "front ends of older tools",
};

int uni_exit_of(int rc)
{
	if (rc == 0)
		return UNI_EXIT_OK;
	return rc == -UNI_EUSAGE ? UNI_EXIT_USAGE : UNI_EXIT_FAILED;
}

const struct uni_cmd *uni_called_find_in(const struct uni_cmd *const *list, const char *name)
{
	for (size_t i = 0; list[i] != NULL; i++) {
		const char *tool = list[i]->tool;

		if (strcmp(list[i]->name, name) == 0 || (tool != NULL && strcmp(tool, name) == 0))
			return list[i];
	}
	return NULL;
}

struct uni_called uni_called_find(const struct uni_cmd *const *list, int argc, char **argv)
{
	struct uni_called c = { 0 };

	while (list != NULL && c.words < argc) {
		const struct uni_cmd *next = uni_called_find_in(list, argv[c.words]);
		size_t len = strlen(c.above);

		if (next == NULL && c.cmd == NULL) {
			next = uni_called_find_in(uni_compat_cmds, argv[c.words]);
			c.old = next != NULL;
		}
		if (next == NULL)
			break;
		if (c.cmd != NULL)
			(void)snprintf(c.above + len, sizeof(c.above) - len, "%s ", c.cmd->name);
		c.cmd = next;
		c.words++;
		list = next->sub;
	}
	return c;
}

static size_t longest_name(const struct uni_cmd *const *list)
{
	size_t longest = 0;

	for (size_t i = 0; list[i] != NULL; i++)
		longest = uni_max(longest, strlen(list[i]->name));
	return longest;
}

static void print_summaries(
	const struct uni_cmd *const *list, const char *above, size_t width, FILE *out)
{
	for (size_t i = 0; list[i] != NULL; i++)
		(void)fprintf(out, "  %s%-*s%s\n", above, (int)(width - strlen(above)),
			list[i]->name, list[i]->summary);
}

/* In lines of 80 characters below a command's summary. */
static void print_names(const struct uni_cmd *const *list, size_t width, FILE *out)
{
	_cleanup_strbuf_ struct uni_strbuf names;

	uni_strbuf_init(&names);
	for (size_t i = 0; list[i] != NULL; i++)
		uni_strbuf_addf(&names, "%s%s", i != 0 ? " " : "", list[i]->name);
	(void)fprintf(out, "  %*s", (int)width, "");
	uni_text_wrap(out, names.s, (unsigned)width + 2, (unsigned)width + 2, 80);
}

static void print_group(enum uni_cmd_group group, bool all, FILE *out)
{
	size_t width = longest_name(uni_cmds) + 2;

	(void)fprintf(out, "\n%s:\n", group_titles[group]);
	for (size_t i = 0; uni_cmds[i] != NULL; i++) {
		const struct uni_cmd *c = uni_cmds[i];
		char above[32];

		if (c->group != group)
			continue;
		(void)fprintf(out, "  %-*s%s\n", (int)width, c->name, c->summary);
		(void)snprintf(above, sizeof(above), "%s ", c->name);
		if (c->sub != NULL && all)
			print_summaries(
				c->sub, above, strlen(above) + longest_name(c->sub) + 2, out);
		else if (c->sub != NULL)
			print_names(c->sub, width, out);
	}
}

void uni_help_print(FILE *out, bool all)
{
	(void)fputs("uniscope: see inside a unikernel from the outside\n\n"
		    "usage: uniscope COMMAND [OPTIONS] [OPERANDS]\n",
		out);
	for (enum uni_cmd_group g = 0; g < UNI_CMDS_GROUPS; g++)
		print_group(g, all, out);
	(void)fputs(
		"\nuniscope help --all lists every command; uniscope COMMAND --help tells more of "
		"one.\n"
		"A target is scheme:key=value,... such as kvm:pid=4121, gdb:unix=/run/q.sock or\n"
		"gdb:tcp=127.0.0.1:1234, or simply a pid or a name that `uniscope ls` shows.\n",
		out);
}

void uni_help_command(const struct uni_called *called, FILE *out)
{
	const struct uni_cmd *c = called->cmd;
	char name[80];

	(void)snprintf(
		name, sizeof(name), "%s%s%s", called->old ? "compat " : "", called->above, c->name);
	(void)fprintf(out, "uniscope %s: %s\n\nusage: uniscope %s %s%s%s%s\n", name, c->summary,
		name, c->sub != NULL ? "COMMAND" : "[OPTIONS]", c->operands[0] != '\0' ? " " : "",
		c->operands,
		c->takes_rest && strstr(c->operands, "-- ") == NULL ? " [-- ARGS...]" : "");
	if (c->details != NULL)
		(void)fprintf(out, "\n%s\n", c->details);
	if (c->sub != NULL) {
		(void)fputs("\ncommands:\n", out);
		print_summaries(c->sub, "", longest_name(c->sub) + 2, out);
	} else {
		(void)fputs("\noptions:\n", out);
		uni_options_help(c->options(), out, uni_term_width(out));
		(void)fprintf(out, "  -h, --help%18sprint this\n", "");
	}
	if (c->examples != NULL)
		(void)fprintf(out, "\nexamples:\n%s\n", c->examples);
}

static void print_roff(const struct uni_cmd *const *list, const char *above, FILE *out)
{
	for (size_t i = 0; list[i] != NULL; i++) {
		(void)fprintf(out, ".TP\n.B %s", above);
		for (const char *p = list[i]->name; *p != '\0'; p++)
			(void)fputs(*p == '-' ? "\\-" : (char[]){ *p, '\0' }, out);
		(void)fprintf(out, "\n%s\n", list[i]->summary);
	}
}

void uni_help_man(FILE *out)
{
	for (enum uni_cmd_group g = 0; g < UNI_CMDS_GROUPS; g++) {
		(void)fprintf(out, ".SS %s\n", group_titles[g]);
		for (size_t i = 0; uni_cmds[i] != NULL; i++) {
			const struct uni_cmd *const one[] = { uni_cmds[i], NULL };
			char above[32];

			if (uni_cmds[i]->group != g)
				continue;
			print_roff(one, "", out);
			(void)snprintf(above, sizeof(above), "%s ", uni_cmds[i]->name);
			if (uni_cmds[i]->sub != NULL)
				print_roff(uni_cmds[i]->sub, above, out);
		}
	}
}
