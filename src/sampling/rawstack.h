/* SPDX-License-Identifier: BSD-2-Clause */
/* From a sample that the kernel made with a copy of the stack (backend/stream.h) to a chain. */
#ifndef UNI_SAMPLING_RAWSTACK_H
#define UNI_SAMPLING_RAWSTACK_H

#include "backend/target.h"
#include "unwind/unwind.h"

struct uni_rawstack;

/* Borrows t, for reads outside the copies: code, and the rest of deeper stacks. */
int uni_rawstack_create(struct uni_target *t, const struct uni_unwinder *u,
	struct uni_rawstack **ret, struct uni_err *err);
void uni_rawstack_destroy(struct uni_rawstack *r); /* NULL-safe */
void uni_rawstack_unwind(
	struct uni_rawstack *r, const struct uni_stream_raw *raw, struct uni_chain *ret);

#endif
