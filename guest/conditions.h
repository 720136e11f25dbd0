/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions on arguments: which calls of a function are recorded. */
#ifndef UNI_GUEST_CONDITIONS_H
#define UNI_GUEST_CONDITIONS_H

#include <stdint.h>

/* The table, for the head. */
uint64_t uni_trace_conditions(void);

/* Is this call not to be recorded? place: where its return address lies. Then its return is known
 * by that, if one will come. Every function with arguments asks, also one without conditions. */
int uni_trace_leaves_out(const uint64_t *arg, uint32_t function, uint64_t place, int returns);
/* Is the call that returns from this place one of these? It is forgotten. */
int uni_trace_was_left_out(uint64_t place);

#endif
