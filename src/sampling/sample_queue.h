/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples on their way from the sampling thread to the display thread. A ring of fixed size without
 * locks, for one producer and one consumer. A full ring drops the new sample and counts it, so that
 * a slow terminal never keeps the sampler waiting.
 */
#ifndef UNI_SAMPLING_SAMPLE_QUEUE_H
#define UNI_SAMPLING_SAMPLE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

struct uni_sampleq;

/* At least one sample of the longest chain fits, however small `bytes` is. NULL: out of memory. */
struct uni_sampleq *uni_sampleq_create(size_t bytes);
void uni_sampleq_destroy(struct uni_sampleq *q); /* NULL-safe */

/* Producer. Copies; false: no room, counted. Chains beyond UNI_CHAIN_MAX frames are refused too. */
bool uni_sampleq_push(struct uni_sampleq *q, const struct uni_sample *s);
/* Consumer. The sample's pc and flags are valid until the next call. False: empty. */
bool uni_sampleq_pop(struct uni_sampleq *q, struct uni_sample *ret);
/* Any thread: the weight of all samples that were dropped. */
uint64_t uni_sampleq_lost(const struct uni_sampleq *q);

#endif
