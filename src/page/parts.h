/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a page's data: each makes its columns, then describes itself in the header. */
#ifndef UNI_PAGE_PARTS_H
#define UNI_PAGE_PARTS_H

#include "page/blob.h"
#include "page/page.h"

/* A call tree as columns PREFIX.parent and PREFIX.frame, without the root. */
void uni_part_tree(struct uni_blob *b, const char *prefix, const struct uni_profile *p);
/* "frames": [[name, kind, image, file, line]], "unit": ... of it. */
void uni_part_frames(struct uni_json *j, const struct uni_profile *p);

/* Samples and exits. */
struct uni_part_samples {
	struct uni_profile *samples, *exits; /* owned; NULL: there are none */
	uint64_t first_sample, first_exit;   /* ns */
	uint64_t torn;
};
int uni_part_samples(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err);
void uni_part_samples_deinit(struct uni_part_samples *s);

/* Single calls. */
struct uni_part_thread {
	char name[64];
	uint64_t number;
};
struct uni_part_calls {
	struct uni_profile *tree; /* owned */
	UNI_VEC(struct uni_part_thread) threads;
	uint64_t first_ns, nr, lost, left_out;
};
int uni_part_calls(struct uni_blob *b, const struct uni_timeline *tl, struct uni_part_calls *ret,
	struct uni_err *err);
void uni_part_calls_deinit(struct uni_part_calls *c);

/* Threads and promises. */
void uni_part_promises(struct uni_blob *b, const struct uni_promise_model *m);
int uni_part_promises_describe(struct uni_json *j, const struct uni_promise_model *m);

#endif
