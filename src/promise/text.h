/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers from a model, as text for people and as JSON for programs. */
#ifndef UNI_PROMISE_TEXT_H
#define UNI_PROMISE_TEXT_H

#include "base/sink.h"
#include "promise/query.h"

/* A row a promise. */
int uni_promise_text_threads(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_list_opts *opts);
void uni_promise_text_why(struct uni_sink *out, const struct uni_promise_model *m, uint32_t who);
int uni_promise_text_wakeups(struct uni_sink *out, const struct uni_promise_model *m, size_t max);
/* Returns 0 or -UNI_ENOMEM. */
int uni_promise_text_findings(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f);

/* All of the model: docs/formats/promises.md. */
void uni_promise_json(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f);

/* The same questions for programs: docs/formats/promises.md. */
int uni_promise_json_threads(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_list_opts *opts);
int uni_promise_json_why(struct uni_sink *out, const struct uni_promise_model *m, uint32_t who);
int uni_promise_json_wakeups(struct uni_sink *out, const struct uni_promise_model *m, size_t max);

#endif
