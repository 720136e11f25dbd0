/* SPDX-License-Identifier: BSD-2-Clause */
/* A sub-command is one file cmd_NAME.c, one const entry and one word in cli/meson.build. A command
 * of `trace` is a file trace_NAME.c and a word in the list there. */
#ifndef UNI_APP_CMD_H
#define UNI_APP_CMD_H

#include "base/err.h"
#include "app/options.h"

enum uni_exit {
	UNI_EXIT_OK = 0,
	UNI_EXIT_FAILED = 1,
	UNI_EXIT_USAGE = 2,
};

/* In which `uniscope --help` shows them. */
enum uni_cmd_group {
	UNI_CMDS_DAILY,
	UNI_CMDS_TRACE,
	UNI_CMDS_EXCHANGE,
	UNI_CMDS_COMPAT,
	UNI_CMDS_GROUPS,
};

struct uni_cmd_ctx {
	const char **operands;
	size_t nr_operands;
	char **rest; /* words after "--", NULL-terminated; NULL if there are none */
};

struct uni_cmd {
	const char *name;
	const char *tool; /* of `compat`: the older tool's file, if it is not `name` */
	enum uni_cmd_group group;
	const char *operands; /* "TARGET" */
	const char *summary;  /* one line for the list of commands */
	const char *details;  /* paragraphs for --help, may be NULL */
	const char *examples; /* lines for --help and the man page, may be NULL */
	bool reads_only;      /* files: no rights are needed beyond the user's (base/privilege.h) */
	bool starts_others;   /* programs of others, which have its rights: it limits them later */
	bool takes_rest;      /* "-- ARGS..." is handed over in ctx->rest */
	size_t min_operands, max_operands;
	/* A command of commands has these, ended by NULL, and neither options nor run. */
	const struct uni_cmd *const *sub;
	/* Loads libraries, which reads_only forbids later; NULL: none. */
	void (*prepare)(void);
	/* The option table. It points into a struct of the command that defaults() resets, so that
	 * a command may run more than once in a process. */
	const struct uni_opt *(*options)(void);
	/* Exit status; err is printed by the caller when it is set. */
	int (*run)(const struct uni_cmd_ctx *ctx, struct uni_err *err);
};

extern const struct uni_cmd *const uni_cmds[]; /* ends with NULL */
extern const char uni_commit[];		       /* that was built, "unknown" outside of git */
extern const struct uni_cmd *const uni_compat_cmds[];
extern const struct uni_cmd *const uni_trace_cmds[];
extern const struct uni_cmd *const uni_uk_trace_cmds[];

/* The exit status for an error code. */
int uni_exit_of(int rc);

#endif
