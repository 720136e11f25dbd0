/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sampler that a guest links; it needs no access to the host. The guest's timer interrupt calls
 * it, and it writes the interrupted call chain into the tracer's ring (uniscope/trace.h). The host
 * reads the ring, or fetches it through a stream (uniscope/stream.h). The sampler allocates
 * nothing, waits for nothing, and is off until somebody asks for samples. While it is off, a tick
 * only reads one variable.
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

/* Bytes of the stack that go into a sample at most, see uni_sample_copy_stack(). */
#define UNI_SAMPLE_STACK_MAX 16384

/* The interrupted code. */
struct uni_sample_at {
	uint64_t pc, sp, fp;
	/* Frame pointers are followed, and the stack is read, only within these limits: the stack
	 * that `sp` is on. Both 0: not at all. */
	uint64_t stack_low, stack_high;
	uint64_t thread; /* any number that tells threads apart, as uni_trace_switch() has it */
	uint32_t idle;	 /* not 0: this CPU had nothing to do */
	/*
	 * For copies of the stack, and programs that change stacks, as OCaml 5 does (x86_64).
	 * `saved`: the interrupted rbx, r12, r13, r14 and r15; NULL: not known. With them, another
	 * stack is copied, too, on which the chain goes on: from its stack pointer to its end.
	 * Both 0: there is none.
	 */
	const uint64_t *saved;
	uint64_t other_sp, other_high;
};

/*
 * After uni_trace_init(). `samplers`: one for each CPU of its rings; they stay the library's.
 * `tick_hz`: how often uni_sample_tick() is called on each CPU; 0: as often as uni_sample_hz()
 * says, each call is a sample.
 */
void uni_sample_init(struct uni_trace_sampler *samplers, uint32_t tick_hz);

/*
 * For code without frame pointers, such as OCaml's. A sample has up to `bytes` bytes of the stack
 * then, from its stack pointer on, and no call chain. The host finds the chain in them, by the
 * unwind rows (.eh_frame) of its images. 0: chains by frame pointers again. At any time.
 */
void uni_sample_copy_stack(uint32_t bytes);

/* From the timer's interrupt, on each CPU. */
void uni_sample_tick(const struct uni_sample_at *at);

/* Samples a second that are wanted of each CPU; 0: none. */
uint32_t uni_sample_hz(void);
void uni_sample_set_hz(uint32_t hz);

/* Leaves the last `cycles` cycles of this CPU out of its next sample, if no tick came in them.
 * uni_stream_poll() calls this for its own work. */
void uni_sample_leave_out(uint64_t cycles);

#ifdef __cplusplus
}
#endif

#endif
