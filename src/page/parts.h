/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a page's data: each part makes its columns, then describes itself in the header. */
#ifndef UNI_PAGE_PARTS_H
#define UNI_PAGE_PARTS_H

#include "page/blob.h"
#include "page/page.h"
#include "promise/query.h"

/* A call tree as columns PREFIX.parent and PREFIX.frame, without the root. */
void uni_part_tree(struct uni_blob *b, const char *prefix, const struct uni_profile *p);
/* Writes "frames": [[name, kind, image, file, line, unsure]], "unit": ... for it. */
void uni_part_frames(struct uni_json *j, const struct uni_profile *p);

/* Samples and exits. */
struct uni_part_tree_info {
	struct uni_profile *tree; /* owned; NULL: there are none */
	bool borrowed;		  /* it is not owned */
	uint64_t first_ns;
	uint64_t near_ns; /* page/near.h; 0: samples are not summed */
	uint32_t flat;	  /* nodes that are represented by others: page/prune.h */
};
struct uni_part_samples {
	struct uni_part_tree_info samples, exits;
	uint64_t torn, left_out;
	uint64_t missing; /* samples and exits that a recording mentions, but does not have */
};
int uni_part_samples(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err);
void uni_part_samples_deinit(struct uni_part_samples *s);
bool uni_part_has_exits(const struct uni_recording *rec);
/* Makes the columns of all that was read so far. 0 or -UNI_ENOMEM. */
int uni_part_growing(struct uni_blob *b, struct uni_page_growing *g, struct uni_part_samples *ret);
/* As uni_part_tree(), for nodes from *from_ret on; sets *from_ret to the number of nodes. */
void uni_part_nodes(struct uni_column *parent, struct uni_column *frame,
	const struct uni_profile *p, uint32_t *from_ret);

/* Single calls. */
struct uni_part_thread {
	char name[64];
	uint64_t number;
};
struct uni_part_calls {
	struct uni_profile *tree; /* owned */
	UNI_VEC(struct uni_part_thread) threads;
	uint64_t first_ns, nr, lost, left_out;
	uint64_t damaged; /* malformed bytes of the trace */
	uint32_t flat;	  /* nodes of the tree that are represented by others: page/prune.h */
	struct uni_page_store *store; /* owned; NULL: the columns have all calls */
	bool borrowed;		      /* all of it belongs to somebody else */
};
/* With more calls than whole->calls, makes a store, and an outline in the columns. */
int uni_part_calls(struct uni_blob *b, const struct uni_timeline *tl,
	const struct uni_page_whole *whole, struct uni_part_calls *ret, struct uni_err *err);
/* Makes the columns of all that was read so far. */
int uni_part_calls_growing(
	struct uni_blob *b, struct uni_page_calls *g, struct uni_part_calls *ret);
void uni_part_calls_deinit(struct uni_part_calls *c);

/* Threads and promises. */
struct uni_part_promises {
	uint32_t
		*number; /* by the model's number: the number in the page, from 1 on; 0: left out */
	bool *used;	 /* of texts */
	struct uni_findings findings;
	size_t nr_findings, nr_doubts; /* in the page */
	uint64_t max_parts;	       /* of each kind of thing */
	uint64_t left_out;	       /* promises that were left out */
	uint64_t left_parts;	       /* things other than promises that were left out */
};
/* max: 0 means UNI_PAGE_PROMISES_MAX. 0 or -UNI_ENOMEM. */
int uni_part_promises(struct uni_blob *b, const struct uni_promise_model *m, uint64_t max,
	struct uni_part_promises *p);
void uni_part_promises_describe(
	struct uni_json *j, const struct uni_promise_model *m, const struct uni_part_promises *p);
void uni_part_promises_deinit(struct uni_part_promises *p);

#endif
