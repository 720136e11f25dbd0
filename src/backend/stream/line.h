/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection to a guest as bytes: a socket, a terminal device, or a shared page. */
#ifndef UNI_BACKEND_STREAM_LINE_H
#define UNI_BACKEND_STREAM_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/spec.h"

struct uni_line_ops {
	/* Sends all bytes: 0, -UNI_EGONE, -UNI_ETIMEDOUT. */
	int (*send)(void *ctx, const void *data, size_t size, uint64_t deadline_ns);
	/* Receives at least one byte: returns how many, or -UNI_EGONE, -UNI_ETIMEDOUT. */
	int (*receive)(void *ctx, void *buf, size_t size, uint64_t deadline_ns);
	void (*close)(void *ctx); /* may be NULL */
};

struct uni_line {
	const struct uni_line_ops *ops;
	void *ctx;
	char text[300]; /* its address, cleaned */
};

/* Opens the connection that unix=, tcp=, tty= or grant= of the spec names. */
int uni_line_open(const struct uni_spec *spec, struct uni_line *ret, struct uni_err *err);
/*
 * Connects, or opens the device, or maps the page now, for as long as this process lives. Later
 * uni_line_open() of that spec needs no rights.
 */
int uni_line_keep(const struct uni_spec *spec, struct uni_err *err);
void uni_line_close(struct uni_line *l);

#endif
