/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes to and from a guest: a socket, a terminal device, or a page of its own. */
#ifndef UNI_BACKEND_STREAM_LINE_H
#define UNI_BACKEND_STREAM_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/spec.h"

struct uni_line_ops {
	/* All of it: 0, -UNI_EGONE, -UNI_ETIMEDOUT. */
	int (*send)(void *ctx, const void *data, size_t size, uint64_t deadline_ns);
	/* What is there, at least one byte: how many, -UNI_EGONE, -UNI_ETIMEDOUT. */
	int (*receive)(void *ctx, void *buf, size_t size, uint64_t deadline_ns);
	void (*close)(void *ctx); /* may be NULL */
};

struct uni_line {
	const struct uni_line_ops *ops;
	void *ctx;
	char text[300]; /* where it goes, cleaned */
};

/* By unix=, tcp=, tty= or grant= of the spec. */
int uni_line_open(const struct uni_spec *spec, struct uni_line *ret, struct uni_err *err);
void uni_line_close(struct uni_line *l);

#endif
