/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads and promises as parts, for formats that have spans, arrows and counters. */
#ifndef UNI_FORMAT_PROMISES_H
#define UNI_FORMAT_PROMISES_H

#include "promise/model.h"

enum uni_promise_part_kind {
	UNI_PART_LIFE,	/* of a promise; its parts overlap with those of others */
	UNI_PART_WAIT,	/* of a promise; `name` is what it waits for */
	UNI_PART_LABEL, /* its name changed to this */
	UNI_PART_RUN,	/* it had the CPU; no two runs of a CPU overlap */
	UNI_PART_PAUSE, /* of a CPU: garbage collection, or nothing to do */
	/* from the thread on CPU `from` at begin, to the one that ran again at `end` on `cpu` */
	UNI_PART_WAKE,
	UNI_PART_COUNT, /* the counter `name` is value from begin on */
};

struct uni_promise_part {
	uint64_t begin, end; /* ns, host CLOCK_MONOTONIC; an open part ends with the trace */
	const char *name;
	const char *fate; /* of LIFE: how it ended; "" */
	int64_t value;
	uint32_t kind;
	uint32_t nr; /* of LIFE, LABEL, RUN: the promise; WAIT, WAKE: the wait; COUNT: counter */
	uint32_t promise; /* of WAIT: the promise that waits */
	uint32_t cpu, from;
};

/* Passes the parts to fn kind by kind: a promise's life before its waits and labels; a CPU's runs,
 * and its pauses, by time. A return value of fn other than 0 ends the walk and is returned. */
int uni_promise_parts(const struct uni_promise_model *m,
	int (*fn)(void *arg, const struct uni_promise_part *part), void *arg);

#endif
