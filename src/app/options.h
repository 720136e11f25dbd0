/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command-line options bound to variables by a table, so that parsing, --help, the man page and
 * completion cannot drift apart.
 */
#ifndef UNI_APP_OPTIONS_H
#define UNI_APP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/owner.h"
#include "base/vec.h"

enum uni_opt_type {
	UNI_OPT_FLAG,	/* bool: set to true */
	UNI_OPT_OFF,	/* bool: set to false */
	UNI_OPT_COUNT,	/* unsigned: one more each time: -tt */
	UNI_OPT_U64,	/* uint64_t */
	UNI_OPT_DOUBLE, /* double */
	UNI_OPT_SIZE,	/* uint64_t with K, M, G */
	UNI_OPT_STR,	/* const char * */
	UNI_OPT_ONCE,	/* the same, but a second one is refused */
	UNI_OPT_MAYBE,	/* const char *: "" for --name, VALUE for --name=VALUE; no short name */
	UNI_OPT_LIST,	/* struct uni_opt_list: may be repeated */
	UNI_OPT_OUTPUT, /* const char *: a file to write, which no input may be (app/output.h) */
};

struct uni_opt_list {
	UNI_VEC(const char *) items;
};

#define UNI_WORDS_FILE	    "FILE" /* names of files */
#define UNI_WORDS_EXPORTERS "EXPORTERS"
#define UNI_WORDS_IMPORTERS "IMPORTERS"

struct uni_opt {
	char short_name; /* 0: none */
	const char *long_name;
	enum uni_opt_type type;
	void *value;	 /* of the type above */
	const char *arg; /* name of the argument in help, NULL for flags; of MAYBE "[=N]" */
	const char
		*help; /* one sentence, no full stop at the end; NULL: an old option, not shown */
	const char
		*words; /* space-separated values that completion offers, one of these, or NULL */
	bool *given;	/* set when the option was there; may be NULL */
	/* The former spelling: accepted, with a hint. Each letter and name means one thing in all
	 * commands. A command that used it for another thing has lost it. */
	char old_letter;
	const char *old_name;
};

/* For commands that read files. */
#define UNI_OPT_FORCE                                                                              \
	{                                                                                          \
		0, "force", UNI_OPT_FLAG, &uni_owner_force, NULL,                                  \
			"read files that belong to another user than you or root, too", NULL, NULL \
	}

/* Ends an option table. */
#define UNI_OPT_END                                                 \
	{                                                           \
		0, NULL, UNI_OPT_FLAG, NULL, NULL, NULL, NULL, NULL \
	}

/*
 * Parses argv[1..argc), options and operands in any order; "--" ends the options. Collects operands
 * into operands (argc entries suffice). With rest_ret, everything after "--" goes there instead.
 * -UNI_EUSAGE with one line that names the option.
 */
int uni_options_parse(const struct uni_opt *opts, int argc, char **argv, const char **operands,
	size_t *nr_operands, char ***rest_ret, struct uni_err *err);

/* Prints text wrapped between column `indent` and `width`; the cursor is at `column`. */
void uni_text_wrap(FILE *out, const char *text, unsigned column, unsigned indent, unsigned width);
/* "  -F, --frequency HZ   help...", wrapped at `width` columns. */
void uni_options_help(const struct uni_opt *opts, FILE *out, unsigned width);
/* The same as roff .TP items for the man page. */
void uni_options_man(const struct uni_opt *opts, FILE *out);

#endif
