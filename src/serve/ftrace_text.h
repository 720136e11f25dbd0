/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace that becomes text while it is fetched. */
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

/* copy becomes its own in any case. What cfg points to must outlive it. */
int uni_ftrace_text_create(const struct uni_ftrace_text_cfg *cfg, struct uni_tstore_copy *copy,
	struct uni_ftrace_text **ret, struct uni_err *err);
void uni_ftrace_text_destroy(struct uni_ftrace_text *p); /* NULL-safe */
/* Of a live one that was read to its end: what follows. copy becomes its own. */
void uni_ftrace_text_more(struct uni_ftrace_text *p, struct uni_tstore_copy *copy);
/* Is there something that was not read yet? */
bool uni_ftrace_text_busy(const struct uni_ftrace_text *p);
/* Up to len bytes; 0 at the end (of what is there); -UNI_ENOMEM. */
long uni_ftrace_text_read(struct uni_ftrace_text *p, char *buf, size_t len);

#endif
