/* SPDX-License-Identifier: BSD-2-Clause */
/* The records that perf events leave in a ring; samples and the number of lost ones are used. */
#ifndef UNI_BACKEND_PROC_RECORD_H
#define UNI_BACKEND_PROC_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "backend/stream.h"

#define UNI_PROC_RECORD_MAX 65536u /* its size is a 16-bit number */

/*
 * Copies the record at tail out of a ring, to which the kernel keeps writing. The ring has nr_bytes
 * of data, a power of two; head is the end of the written part. Returns the record's size; 0: there
 * is no valid record.
 */
size_t uni_proc_ring_take(const uint8_t *data, size_t nr_bytes, uint64_t tail, uint64_t head,
	uint8_t out[UNI_PROC_RECORD_MAX]);

enum uni_proc_record {
	UNI_PROC_RECORD_OTHER,
	UNI_PROC_RECORD_SAMPLE, /* in *ret; its stack and kernel frames point into the record */
	UNI_PROC_RECORD_LOST,	/* *lost_ret: how many */
	UNI_PROC_RECORD_EXEC,	/* it executed a program: later records belong to that */
	UNI_PROC_RECORD_BROKEN, /* a sample without registers, or a truncated one */
};

/* The record is aligned to 8 bytes, as the kernel's are. */
enum uni_proc_record uni_proc_record_parse(
	const uint8_t *record, size_t size, struct uni_stream_raw *ret, uint64_t *lost_ret);

#endif
