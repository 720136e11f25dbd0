/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that a user's words name, and output about the table of commands. */
#ifndef UNI_CLI_CALLED_H
#define UNI_CLI_CALLED_H

#include <stdio.h>

#include "app/cmd.h"

struct uni_called {
	const struct uni_cmd *cmd; /* NULL: no such command */
	char above[48];		   /* the commands that it is one of: "compat uk-trace ", or "" */
	bool old;		   /* a front end of an older tool, without `compat` in front */
	int words;
};

const struct uni_cmd *uni_called_find_in(const struct uni_cmd *const *list, const char *name);
/* As many words as name commands of the list, of their commands, and so on. */
struct uni_called uni_called_find(const struct uni_cmd *const *list, int argc, char **argv);

/* The groups of commands; all: also the commands of commands, with a line each. */
void uni_help_print(FILE *out, bool all);
void uni_help_command(const struct uni_called *called, FILE *out);
/* The list of all commands as roff. */
void uni_help_man(FILE *out);

/* For the shells' completion: the typed words, the last one up to the cursor. Prints a candidate a
 * line, with a tab and a description; a line ":files" means names of files. */
int uni_complete(const struct uni_cmd *const *list, int argc, char **argv);

#endif
