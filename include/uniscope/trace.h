/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracer that a guest links: what the guest calls. Freestanding: no libc, no allocation, no
 * floating point. guest/README.md says which compiler flags the traced code needs. */
#ifndef UNISCOPE_TRACE_H
#define UNISCOPE_TRACE_H

#include <stdint.h>
#include "uniscope/trace_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each CPU finds its own struct uni_trace_cpu at %gs:UNI_TRACE_GS, which the guest reserves (64
 * bytes, 64-byte aligned). Without UNI_TRACE_GS there is one CPU, and the struct is a variable. */

/* %gs:UNI_TRACE_GS has to be this area while a CPU has none of its own yet: hooks record nothing
 * there. A CPU that starts (SMP trampoline) first sets its %gs base to this address - UNI_TRACE_GS,
 * or to its own. Until then it runs no traced code: a hook cannot detect a base that was never
 * set. */
extern struct uni_trace_cpu uni_trace_early;

/* How the area of the CPU that boots begins, if it is to record before uni_trace_init() (boot.c):
 * as uni_trace_early, but its own. */
#define UNI_TRACE_AREA(area)                                             \
	{                                                                \
		.wptr = UNI_TRACE_SUB_SIZE - 8, .self = (uint64_t)(area) \
	}

/* Rings from memory that the guest gives: it stays the library's. Rounds down to whole sub-buffers
 * for each CPU; needs UNI_TRACE_SUB_MIN of them each. `cpus` holds the addresses of the CPUs'
 * areas; it is NULL for the single one. `tsc_hz` 0: not known. Returns 0, or -1 with nothing done:
 * too little memory, too many CPUs. Call it once, on any CPU, before tracing. A CPU that records
 * since its boot (boot.c) keeps its ring, and has to be the first of `cpus`. */
int uni_trace_init(void *mem, uint64_t size, unsigned nr_cpus, struct uni_trace_cpu *const *cpus,
	enum uni_trace_ring_mode mode, uint64_t tsc_hz);

/* The bytes of each CPU's ring, if init() is given `size` bytes. */
uint64_t uni_trace_ring_size(uint64_t size, unsigned nr_cpus);

/* These set what the host otherwise writes (struct uni_trace_control). They may be called at any
 * time, on any CPU. Functions record only where they are patched, or if they call the tracer
 * themselves. */
void uni_trace_enable(int on);
void uni_trace_set_mode(unsigned mode); /* UNI_TRACE_GRAPH, _LITE, _FUNCTION, _CALLERS */
void uni_trace_set_min_time(uint32_t cycles);
void uni_trace_set_max_depth(uint32_t calls);

/* For the depth limit, in a context switch: sets this CPU's depth to that of the next thread.
 * Returns the depth of the previous thread, which the caller keeps. 0 for a new thread, and for a
 * thread whose open calls are over. */
uint64_t uni_trace_swap_depth(uint64_t next);

/* Only for code of -pg alone (x86_64/returns.c): memory for the return addresses of the calls that
 * are open. Each takes 16 bytes; give more than twice as many as calls are open at a time. Returns
 * 0, or -1: too little. */
int uni_trace_return_table(void *mem, uint64_t size);

/* The counter may have jumped (resume, migration). Begins a new epoch, which each ring records
 * before its next event.
 */
void uni_trace_new_epoch(void);

/* Thread `next` runs on this CPU from now on, after `prev`. Both are any numbers that tell threads
 * apart; the host can name the address of a control block. Call it in the switch, on the stack of
 * either. Before uni_trace_init() it does nothing. */
void uni_trace_switch(uint64_t prev, uint64_t next, uint32_t reason);

/* The same, but `prev` does not go on where it was: its open calls are over, though none of them
 * returns. For a thread that ends, and for an event loop that begins again at the top of its stack.
 * `next` may equal `prev`. */
void uni_trace_switch_over(uint64_t prev, uint64_t next, uint32_t reason);

/* Stops the rings: this CPU's at once, the others' with their next event. They keep their events
 * until uni_trace_thaw(); events in between count as lost. */
void uni_trace_freeze(void);
void uni_trace_thaw(void);

/* How addresses of text are checked before they are read (x86_64/text.c). */
struct uni_trace_memory {
	/* Physical memory from 0 to `size` is RAM, and is mapped from address `linear` on, page
	 * tables included. A text is copied only from there, and only as far as the page tables of
	 * the CPU map it. */
	uint64_t linear, size;
	/* If not NULL, it decides instead: can these bytes, which lie in one page, be read now? It
	 * may be called anywhere, interrupts included. For code that runs outside of ring 0. */
	int (*readable)(uint64_t at, uint64_t bytes);
};

/* Lets hosts ask for the text behind arguments (`uniscope trace --args 'open(path:s)'`). `mem`: 8
 * bytes and 8 for each function that copies text, aligned to 8; it stays the library's. Call it
 * once, after uni_trace_init(). Returns 0, or -1 with nothing done: too little memory, or no ring.
 */
int uni_trace_copy_text(void *mem, uint64_t size, const struct uni_trace_memory *memory);

/* An event of `nr` words (at most UNI_TRACE_MAX_WORDS) of extended class `class`; the last word's
 * bit 32 must be 0. Safe anywhere, interrupts included. Returns 0, or -1 if it was lost, or if this
 * CPU's ring is not set up yet. */
int uni_trace_event(unsigned cls, const uint64_t *words, unsigned nr);
#define UNI_TRACE_MAX_WORDS 64

extern struct uni_trace_head uni_trace_head;

#ifdef __cplusplus
}
#endif

#endif
