/* SPDX-License-Identifier: BSD-2-Clause */
/* What perf events leave in a ring: records, of which samples and the number of lost ones count. */
#ifndef UNI_BACKEND_PROC_RECORD_H
#define UNI_BACKEND_PROC_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "backend/stream.h"

#define UNI_PROC_RECORD_MAX 65536u /* its size is a number of 16 bits */

/*
 * Copies the record at tail out of a ring, which the kernel writes on: nr_bytes of data, a power of
 * two; head is where the written part ends. Returns the record's size; 0: there is none that could
 * be believed.
 */
size_t uni_proc_ring_take(const uint8_t *data, size_t nr_bytes, uint64_t tail, uint64_t head,
	uint8_t out[UNI_PROC_RECORD_MAX]);

enum uni_proc_record {
	UNI_PROC_RECORD_OTHER,
	UNI_PROC_RECORD_SAMPLE, /* in *ret; its stack points into the record */
	UNI_PROC_RECORD_LOST,	/* *lost_ret of them */
	UNI_PROC_RECORD_EXEC,	/* it executed a program: what follows is of that */
	UNI_PROC_RECORD_BROKEN, /* a sample without registers, or one that is not whole */
};

enum uni_proc_record uni_proc_record_parse(
	const uint8_t *record, size_t size, struct uni_stream_raw *ret, uint64_t *lost_ret);

#endif
