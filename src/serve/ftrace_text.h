/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace that is converted to text while it is fetched. */
#ifndef UNI_SERVE_FTRACE_TEXT_H
#define UNI_SERVE_FTRACE_TEXT_H

#include "base/err.h"
#include "serve/store.h"
#include "trace/funcs.h"
#include "trace/text.h"

struct uni_ftrace_text_cfg {
	const struct uni_ring_info *info;
	const struct uni_trace_clock *clock;
	const struct uni_funcs_naming *naming;
	enum uni_trace_text_kind kind;
	bool live; /* more will come, without a header */
};

struct uni_ftrace_text; /* opaque */

/* Takes over copy, also on failure. All that cfg points to must outlive the text. */
int uni_ftrace_text_create(const struct uni_ftrace_text_cfg *cfg, struct uni_tstore_copy *copy,
	struct uni_ftrace_text **ret, struct uni_err *err);
void uni_ftrace_text_destroy(struct uni_ftrace_text *p); /* NULL-safe */
/* For a live text that was read to its end: adds what follows. Takes over copy. */
void uni_ftrace_text_more(struct uni_ftrace_text *p, struct uni_tstore_copy *copy);
/* Is there text that was not read yet? */
bool uni_ftrace_text_busy(const struct uni_ftrace_text *p);
/* Reads up to len bytes. Returns 0 at the end of the current text, or -UNI_ENOMEM. */
long uni_ftrace_text_read(struct uni_ftrace_text *p, char *buf, size_t len);

#endif
