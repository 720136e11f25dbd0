/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots for scripts: plain text, or one JSON object a line. */
#ifndef UNI_TOP_BATCH_H
#define UNI_TOP_BATCH_H

#include "base/sink.h"
#include "top/run.h"

struct uni_batch_opts {
	const char *guest;		   /* cleaned */
	const struct uni_top_guest *names; /* of the guests, if there are several */
	size_t max_rows;		   /* 0: all */
	bool tree;			   /* also the calls of the selected function */
};

/* `number` counts from 1. Text is followed by an empty line. */
void uni_batch_text(const struct uni_top *top, const struct uni_batch_opts *opts, uint64_t number,
	struct uni_sink *out);
void uni_batch_json(const struct uni_top *top, const struct uni_batch_opts *opts, uint64_t number,
	struct uni_sink *out);

#endif
