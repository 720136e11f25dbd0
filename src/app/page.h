/* SPDX-License-Identifier: BSD-2-Clause */
/* `report --html`: whatever FILE is, as one page. */
#ifndef UNI_APP_PAGE_H
#define UNI_APP_PAGE_H

#include "base/strbuf.h"
#include "app/source.h"
#include "page/page.h"

struct uni_page_args {
	const char *output;	    /* "-": standard output */
	const char *before;	    /* a file to compare with, without times; or NULL */
	struct uni_opt_list hide;   /* globs of functions whose own time is left out at first */
	bool code;		    /* of the hottest functions, too */
	struct uni_opt_list source; /* folders with source files for it */
	/* a trace whose threads and promises are added to the others; or NULL */
	const char *beside;
};

/* Losses in FILE are reported on stderr. */
int uni_page_report(
	struct uni_source_args *args, const struct uni_page_args *page, struct uni_err *err);
/* A comparison, as one page. */
int uni_page_compared(const struct uni_profile *tree, const struct uni_page_diff *diff,
	const char *title, const char *output, struct uni_err *err);
/* The same as data for a page that is served; FILE may be open already (args->in). *store_ret: the
 * calls, if there are more than whole->calls, else NULL; the caller owns it. */
struct uni_page_store;
int uni_page_build(struct uni_source_args *args, const char *title,
	const struct uni_page_whole *whole, struct uni_strbuf *ret,
	struct uni_page_store **store_ret, struct uni_err *err);

#endif
