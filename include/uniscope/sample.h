/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampler that a guest links, for who sees no more than the guest: from the guest's own timer
 * interrupt it writes the interrupted call chain into the tracer's ring (uniscope/trace.h), from
 * where the host reads it, or fetches it through a stream (uniscope/stream.h). It allocates
 * nothing, waits for nothing, and is off until somebody asks for samples: then a tick costs the
 * reading of one variable.
 */
#ifndef UNISCOPE_SAMPLE_H
#define UNISCOPE_SAMPLE_H

#include <stdint.h>
#include "uniscope/trace_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Frames of a chain, at most; the words are kept on the interrupt's stack meanwhile. */
#ifndef UNI_SAMPLE_DEPTH
#define UNI_SAMPLE_DEPTH 120
#endif

/* What the timer interrupted. */
struct uni_sample_at {
	uint64_t pc, sp, fp;
	/* Frame pointers are followed, and the stack is read, only within these limits: the stack
	 * that `sp` is on. Both 0: not at all. */
	uint64_t stack_low, stack_high;
	uint64_t thread; /* any number that tells threads apart, as uni_trace_switch() has it */
	uint32_t idle;	 /* not 0: this CPU had nothing to do */
};

/*
 * After uni_trace_init(). `samplers`: one for each CPU of its rings; they stay the library's.
 * `tick_hz`: how often uni_sample_tick() is called on each CPU; 0: as often as uni_sample_hz()
 * says, each call is a sample.
 */
void uni_sample_init(struct uni_trace_sampler *samplers, uint32_t tick_hz);

/* From the timer's interrupt, on each CPU. */
void uni_sample_tick(const struct uni_sample_at *at);

/* Samples a second that are wanted of each CPU; 0: none. */
uint32_t uni_sample_hz(void);
void uni_sample_set_hz(uint32_t hz);

/* So much of this CPU's time until now is not that of what the next tick interrupts, as far as it
 * had no ticks of its own: uni_stream_poll() says so of its own work. */
void uni_sample_leave_out(uint64_t cycles);

#ifdef __cplusplus
}
#endif

#endif
