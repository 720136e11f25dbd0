/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes data for a page that is served, in a thread of its own: the server goes on meanwhile. One
 * at a time; only the thread that created it may call this. */
#ifndef UNI_APP_SERVE_BUILD_H
#define UNI_APP_SERVE_BUILD_H

#include "base/strbuf.h"
#include "app/source.h"
#include "page/page.h"

struct uni_page_store;

struct uni_built {
	struct uni_strbuf data;
	struct uni_page_store *store; /* NULL: all is in the data */
	uint64_t took_ns;
};
void uni_built_free(void *built); /* a struct uni_built; NULL-safe */

struct uni_builder_job {
	struct uni_source_args args;
	const char *title; /* NULL: by the path; borrowed, as what args holds */
	struct uni_page_whole whole;
	bool hush;  /* do not report damage and losses */
	bool grows; /* a session that is being recorded: args.path is all that may differ from the
		       last one that grew */
};

struct uni_page_builder; /* opaque */

int uni_page_builder_start(struct uni_page_builder **ret, struct uni_err *err);
/* Waits for the current job. NULL-safe. */
void uni_page_builder_stop(struct uni_page_builder *b);
/* Readable when something was made; borrowed. */
int uni_page_builder_fd(const struct uni_page_builder *b);
bool uni_page_builder_is_busy(struct uni_page_builder *b);
/* Not while it is busy. */
void uni_page_builder_begin(struct uni_page_builder *b, const struct uni_builder_job *job);
/* 1: *ret was made, the caller's; 0: nothing yet; or why it failed. */
int uni_page_builder_take(struct uni_page_builder *b, struct uni_built **ret, struct uni_err *err);

#endif
