/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of a lab guest. Tests judge a profiler by them.
 *
 * One object of this type lives at the global symbol lab_truth of each lab image. Guests write it,
 * host tests read it out of guest memory (both are little-endian LP64). Only `attach` is written by
 * the host.
 *
 *   +0      header: magic .. pad1
 *   +128    fn_name[64][32]            index 0 is "(root)": outside of any instrumented function
 *   +2176   cpu[4]                     one block a vCPU, written by that vCPU alone
 *
 * Time is the guest's TSC. Each event (LAB_ENTER, LAB_LEAVE) charges the time since the last event
 * of that vCPU to the function on top of its shadow stack. So, on each vCPU, sum(fn[].self_cycles)
 * == last_tsc - start_tsc, exactly. `self` is therefore the time in which a function was the
 * innermost *instrumented* one: its time in plain helpers counts as its own.
 *
 * To read a block of a running guest consistently: load seq, retry while it is odd, copy, load seq
 * again, retry if it changed.
 */
#ifndef LAB_TRUTH_H
#define LAB_TRUTH_H

#include <stddef.h>
#include <stdint.h>

#define LAB_TRUTH_MAGIC	  0x687475725462616cULL /* "labTruth" */
#define LAB_TRUTH_VERSION 1U
#ifndef LAB_MAX_CPUS /* meson.build says another one for `wide` */
#define LAB_MAX_CPUS 4
#endif
#define LAB_MAX_FNS	 64
#define LAB_FN_NAME_SIZE 32
#define LAB_SHADOW_DEPTH 256

enum lab_state {
	LAB_STATE_BOOT = 0,
	LAB_STATE_WAITING = 1, /* wait=1: until attach != 0 or a byte on the serial port */
	LAB_STATE_RUNNING = 2,
	LAB_STATE_DONE = 3,
};

struct lab_fn_truth {
	uint64_t calls;
	uint64_t self_cycles;
	uint64_t total_cycles; /* outermost activations that have ended */
	uint64_t since_tsc;    /* start of the outermost activation, if active != 0 */
	uint64_t active;       /* activations on the stack now */
};

struct lab_cpu_truth {
	uint64_t seq;	    /* odd while this block is being changed */
	uint64_t online;    /* 1 once this vCPU runs our code */
	uint64_t start_tsc; /* when accounting began */
	uint64_t last_tsc;  /* time of the last event */
	uint64_t heartbeat; /* rises while this vCPU runs */
	uint32_t current;   /* index of the function on top of the shadow stack */
	uint32_t depth;	    /* shadow stack entries; above LAB_SHADOW_DEPTH they are not kept */
	uint16_t shadow[LAB_SHADOW_DEPTH];
	struct lab_fn_truth fn[LAB_MAX_FNS];
};

struct lab_truth {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size; /* offsetof(struct lab_truth, fn_name) */
	uint32_t total_size;  /* sizeof(struct lab_truth) */
	uint32_t cpu_size;    /* sizeof(struct lab_cpu_truth) */
	uint32_t fn_size;     /* sizeof(struct lab_fn_truth) */
	uint32_t nr_cpus;     /* vCPUs that came up */
	uint32_t nr_fns;      /* names in use, with index 0 */
	uint32_t state;	      /* enum lab_state */
	uint32_t attach;      /* the host sets it to let a waiting guest go on */
	uint32_t pad0;
	uint64_t heartbeat; /* all vCPUs together */
	uint64_t tsc_hz;    /* measured against the PIT; 0 if there was none */
	uint64_t cr3;	    /* the page-table root all vCPUs run on */
	uint64_t pad1[7];
	char fn_name[LAB_MAX_FNS][LAB_FN_NAME_SIZE];
	struct lab_cpu_truth cpu[LAB_MAX_CPUS];
};

_Static_assert(sizeof(struct lab_fn_truth) == 40, "layout");
_Static_assert(offsetof(struct lab_cpu_truth, shadow) == 48, "layout");
_Static_assert(offsetof(struct lab_cpu_truth, fn) == 560, "layout");
_Static_assert(sizeof(struct lab_cpu_truth) == 3120, "layout");
_Static_assert(offsetof(struct lab_truth, state) == 36, "layout");
_Static_assert(offsetof(struct lab_truth, attach) == 40, "layout");
_Static_assert(offsetof(struct lab_truth, heartbeat) == 48, "layout");
_Static_assert(offsetof(struct lab_truth, fn_name) == 128, "layout");
_Static_assert(offsetof(struct lab_truth, cpu) == 2176, "layout");

#endif
