/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Images of a guest that is known only by what it records of itself (stream:). Its tracer tells
 * where its kernel is. A program with fixed addresses is there, and others are found by the return
 * addresses in the samples.
 */
#ifndef UNI_APP_INSIDE_H
#define UNI_APP_INSIDE_H

#include "app/attach.h"
#include "recording/recording.h"

/* Places g->image and the files of args->sysroot. Compares what the guest says of its build. */
int uni_guest_place_inside(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);

/*
 * A chain that was sampled. on_image: a program was found by it, and becomes g's by
 * uni_guest_add_image(). On the sampling thread. Does nothing without g->inside.
 */
void uni_guest_saw(struct uni_guest *g, const struct uni_sample *s,
	void (*on_image)(void *ctx, const struct uni_located *image), void *ctx);
/* On stderr: programs that were not found, or that do not fit the samples. */
void uni_guest_judge_inside(const struct uni_guest *g);
/* On stderr, for commands that do not look for them: programs without a place. */
void uni_guest_note_unplaced(const struct uni_guest *g, const char *why);

void uni_guest_drop_inside(struct uni_guest *g);

#endif
