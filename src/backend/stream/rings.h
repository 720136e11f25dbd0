/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples from a guest's trace rings while they are written, record by record. Each byte is fetched
 * once. We do not wait until a sub-buffer is full, because a stream is narrow and a user waits. All
 * data are hostile.
 */
#ifndef UNI_BACKEND_STREAM_RINGS_H
#define UNI_BACKEND_STREAM_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/stream/link.h"
#include "backend/target.h"
#include "uniscope/trace_abi.h"

/* The words of a sample's record, after the first one. */
struct uni_ring_sample {
	uint64_t tsc;
	const uint64_t *word;
	uint32_t nr_words; /* at least those in front of the chain or of the copies, and the last */
	uint32_t cpu;
	uint16_t class; /* UNI_TRACE_CLASS_SAMPLE, _STACK or _STACKS: it has copies, and no chain */
};

struct uni_rings {
	/* Set by the caller: */
	int (*read)(void *ctx, const struct uni_link_range *r, size_t nr);
	void (*sample)(void *ctx, const struct uni_ring_sample *s);
	void *ctx;
	/* Internal: */
	uint32_t nr_cpus;
	uint8_t kinds[16];
	struct uni_rings_cpu {
		uint64_t state, base,
			nr_subs; /* addresses of its struct uni_trace_cpu and of its ring */
		uint64_t seq;	 /* of the sub-buffer that is being read */
		uint64_t at;	 /* in it: bytes that were read */
		uint64_t now;	 /* time of the last record */
		uint64_t done;	 /* the write pointer up to which everything was delivered */
		struct uni_trace_cpu is; /* at the last look */
	} cpu[UNI_VCPU_MAX];
	uint64_t overtaken; /* sub-buffers that were overwritten before they were read */
	union {
		struct uni_trace_sub head;
		uint64_t word[UNI_TRACE_SUB_SIZE / 8];
	} copy;
};

/* Reads the head; later samples will be delivered. 0, -UNI_EFORMAT, or as read(). */
int uni_rings_open(struct uni_rings *r, uint64_t head);
/* Delivers new samples. 0; -UNI_EFORMAT: the guest's data are invalid; or as read(). */
int uni_rings_poll(struct uni_rings *r);

#endif
