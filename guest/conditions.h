/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions on arguments: which calls of a function are recorded. And variables of the guest that
 * are read with them. */
#ifndef UNI_GUEST_CONDITIONS_H
#define UNI_GUEST_CONDITIONS_H

#include <stdint.h>

struct uni_trace_head;

/* Their tables, into the head. */
void uni_trace_conditions_init(struct uni_trace_head *h);

/* Is this call not to be recorded? place: where its return address lies. Then its return is known
 * by that, if one will come. Every function with arguments asks, also one without conditions. */
int uni_trace_leaves_out(const uint64_t *arg, uint32_t function, uint64_t place, int returns);

#define UNI_TRACE_READ_WORDS (2 * UNI_TRACE_READS_OF)

/* Behind that, for a call that is recorded: reads its function's variables into
 * UNI_TRACE_READ_WORDS words. Returns how many words there are. */
unsigned uni_trace_read_at_call(uint32_t function, uint64_t place, int returns, uint64_t *to);
/* For the call that returns from this place, which is forgotten. Returns -1 if the call was left
 * out. */
int uni_trace_read_at_return(uint64_t place, uint64_t *to);

#endif
