/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of a model, as text for people and as JSON for programs. */
#ifndef UNI_PROMISE_TEXT_H
#define UNI_PROMISE_TEXT_H

#include "base/sink.h"
#include "promise/query.h"

struct uni_promise_list_opts {
	const char *like; /* only those whose label or type matches this glob; NULL: all */
	bool open_only;
	size_t max; /* rows; 0: all */
};

/* A row a promise: what is open and should not be first, then what is open, then by life. */
int uni_promise_text_threads(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_list_opts *opts);
void uni_promise_text_why(struct uni_sink *out, const struct uni_promise_model *m, uint32_t who);
void uni_promise_text_wakeups(struct uni_sink *out, const struct uni_promise_model *m, size_t max);
void uni_promise_text_findings(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f);

/* All of the model: docs/formats/promises.md. */
void uni_promise_json(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f);

#endif
