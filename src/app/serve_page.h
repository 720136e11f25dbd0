/* SPDX-License-Identifier: BSD-2-Clause */
/* `serve`: the page of `report --html`, live. */
#ifndef UNI_APP_SERVE_PAGE_H
#define UNI_APP_SERVE_PAGE_H

#include "base/err.h"
#include "app/source.h"
#include "page/page.h"

struct uni_serve_page_args {
	uint16_t port; /* 0: any that is free */
	struct uni_page_whole whole;
	struct uni_source_args source;
	/* For a target: command lines of this program that record it, without the output; NULL ends
	 * each. */
	const char *target; /* NULL: source.path is served as it is */
	const char *const *record, *const *trace;
	const char *output; /* session to write; NULL: one that is removed in the end */
	bool idle;	    /* record only when the page asks for it */
};

/* Until Ctrl-C. */
int uni_serve_page(const struct uni_serve_page_args *args, struct uni_err *err);

#endif
