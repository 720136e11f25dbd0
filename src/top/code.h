/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of one function with the samples of the window, as lines of text for the screen. */
#ifndef UNI_TOP_CODE_H
#define UNI_TOP_CODE_H

#include "annotate/annotation.h"
#include "base/strbuf.h"
#include "top/run.h"

struct uni_top_code {
	bool shown;
	struct uni_annotation a;
	struct uni_debug *debug; /* NULL: none */
	struct uni_lines *lines;
	struct uni_strbuf text;
	UNI_VEC(size_t) begin; /* of each line in it, and of its end */
	size_t first;	       /* line at the top of the screen */
};

/* Opens the code of the selected function; if it is inlined, of the function that holds most of it.
 * Close it before the next one. An error leaves it closed. */
int uni_top_code_open(struct uni_top_code *c, const struct uni_top_run *run, struct uni_err *err);
void uni_top_code_close(struct uni_top_code *c); /* also of a zeroed one */
/* With the samples of the window, as last shown. 0 or -UNI_ENOMEM. */
int uni_top_code_refresh(struct uni_top_code *c, const struct uni_top_run *run);
size_t uni_top_code_nr_lines(const struct uni_top_code *c);
/* Copies at most cap - 1 bytes of a line. Returns the percentage that it begins with, or 0. */
double uni_top_code_line(const struct uni_top_code *c, size_t line, char *ret, size_t cap);
/* The line with the largest percentage, 0: none has one. */
size_t uni_top_code_hottest(const struct uni_top_code *c);

#endif
