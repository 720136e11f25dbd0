/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by both ways in which samples and exits become columns: all at once, or growing. */
#ifndef UNI_PAGE_SAMPLES_PRIV_H
#define UNI_PAGE_SAMPLES_PRIV_H

#include "page/near.h"
#include "page/parts.h"

/*
 * Meaning of uni_near_one.kind: the state of a sample; of an exit, whether the VMM had to handle
 * it.
 */
struct uni_sample_adder {
	uint64_t last_ns, nr, max;
	uint64_t *left_out;
	struct uni_part_tree_info *info;
	struct uni_near near;
	struct uni_column *time, *node, *guest, *vcpu, *weight, *kind;
	struct uni_column *thread, *pause;	   /* for samples */
	struct uni_column *host, *asleep, *stolen; /* for exits */
};

/* Makes the columns. */
void uni_samples_columns(struct uni_sample_adder *a, struct uni_blob *b, enum uni_build_what what);
void uni_samples_put(struct uni_sample_adder *a, const struct uni_near_one *o);
struct uni_near_one uni_near_of_sample(const struct uni_sample *s, uint32_t node);
struct uni_near_one uni_near_of_exit(const struct uni_stream_exit *e, uint32_t node);
#endif
