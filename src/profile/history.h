/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a live view, of fixed size. It holds the newest samples one by one, as many as fit,
 * and each distinct chain once with its total weight since the start. If there is no more room, the
 * oldest samples go first, then the chains that no remembered sample has. For one thread only.
 */
#ifndef UNI_PROFILE_HISTORY_H
#define UNI_PROFILE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

struct uni_history;

/* The place of a sample: a chain of one vCPU of one guest in one state. */
struct uni_history_chain {
	uint64_t weight; /* of all its samples since the start */
	uint32_t guest, vcpu;
	uint8_t stop, state;
	uint16_t nr;
	const uint64_t *pc;   /* borrowed until the next change of the history */
	const uint8_t *flags; /* likewise */
};

struct uni_history_info {
	uint64_t seen;	    /* samples added since the start */
	uint64_t kept;	    /* of them: remembered one by one */
	uint64_t forgotten; /* weight that is in no chain any more */
	uint64_t oldest_ns; /* of those kept; 0: none */
	uint64_t newest_ns;
};

/* NULL: out of memory. About half of the memory goes to samples, half to chains. */
struct uni_history *uni_history_create(size_t memory_bytes);
void uni_history_destroy(struct uni_history *h); /* NULL-safe */

/* -UNI_ENOMEM: not even one sample of it can be had. Frames beyond UNI_CHAIN_MAX: -UNI_EINVAL. */
int uni_history_add(struct uni_history *h, const struct uni_sample *s);
void uni_history_clear(struct uni_history *h); /* a new start */
void uni_history_info(const struct uni_history *h, struct uni_history_info *ret);

/* Chains have numbers below this; not each is in use. */
size_t uni_history_nr_chains(const struct uni_history *h);
bool uni_history_chain(const struct uni_history *h, size_t i, struct uni_history_chain *ret);
/* The weight of each chain in samples with since_ns < t <= until_ns, into ret[nr_chains]. since_ns
 * 0 is everything since the start, including forgotten samples. */
void uni_history_weigh(
	const struct uni_history *h, uint64_t since_ns, uint64_t until_ns, uint64_t *ret);
/* The remembered samples in the order in which they came; fn's non-zero result ends it. */
int uni_history_each(
	const struct uni_history *h, int (*fn)(void *ctx, const struct uni_sample *s), void *ctx);

#endif
