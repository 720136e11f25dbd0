/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The five files of the script that made flame graphs of unikernels on Xen, in the current folder:
 * NAME-stacktrace, NAME.syms, NAME-stacktrace.syms, NAME-stackcollapse, NAME-flamegraph.svg.
 */
#ifndef UNI_COMPAT_FLAME_GRAPH_FIVE_FILES_H
#define UNI_COMPAT_FLAME_GRAPH_FIVE_FILES_H

#include "base/err.h"
#include "obj/image.h"

struct uni_five {
	const char *name;  /* of the domain */
	const char *image; /* ELF with symbols */
	struct uni_image_search search;
	/* Called before each step with its name; may be NULL. */
	void (*say)(const char *step);
};

/* "" if the name can begin the names of files; else why not. */
int uni_five_check(const struct uni_five *five, struct uni_err *err);
/* Path of NAME-stacktrace, which is the caller's to write; free() it. NULL: no memory. */
char *uni_five_stacktrace(const struct uni_five *five);
/* Makes the other four from that one. */
int uni_five_write(const struct uni_five *five, struct uni_err *err);

#endif
