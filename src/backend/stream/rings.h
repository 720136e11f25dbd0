/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples out of a guest's trace rings as they are written, record by record: each byte is fetched
 * once, and not only when its sub-buffer is full, because a stream is narrow and a user waits. What
 * comes is hostile.
 */
#ifndef UNI_BACKEND_STREAM_RINGS_H
#define UNI_BACKEND_STREAM_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/stream/link.h"
#include "backend/target.h"
#include "uniscope/trace_abi.h"

/* Words of a sample's record, behind the first. */
struct uni_ring_sample {
	uint64_t tsc;
	const uint64_t *word;
	uint32_t nr_words; /* at least UNI_TRACE_SAMPLE_HEAD + 2 */
	uint32_t cpu;
};

struct uni_rings {
	/* Set by the caller: */
	int (*read)(void *ctx, const struct uni_link_range *r, size_t nr);
	void (*sample)(void *ctx, const struct uni_ring_sample *s);
	void *ctx;
	/* Its own: */
	uint32_t nr_cpus;
	uint8_t kinds[16];
	struct uni_rings_cpu {
		uint64_t state, base, nr_subs; /* where its struct uni_trace_cpu and its ring are */
		uint64_t seq;		       /* of the sub-buffer that is read */
		uint64_t at;		       /* in it: bytes that were */
		uint64_t now;		       /* of the last record */
		uint64_t done; /* the write pointer up to which everything was handed over */
		struct uni_trace_cpu is; /* as it was seen last */
	} cpu[UNI_VCPU_MAX];
	uint64_t overtaken; /* sub-buffers that were overwritten first */
	union {
		struct uni_trace_sub head;
		uint64_t word[UNI_TRACE_SUB_SIZE / 8];
	} copy;
};

/* What the head says; from now on samples are those that come. 0, -UNI_EFORMAT, or as read(). */
int uni_rings_open(struct uni_rings *r, uint64_t head);
/* Hands over what has come. 0, -UNI_EFORMAT: the guest tells nonsense; or as read(). */
int uni_rings_poll(struct uni_rings *r);

#endif
