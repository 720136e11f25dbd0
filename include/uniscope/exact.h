/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that the plugin for QEMU and uniscope share: exact counts of a guest that runs under
 * TCG. The plugin writes it through a mapping, so it is complete up to the last block even if QEMU
 * is killed. The reader trusts nothing in it.
 *
 *     header | functions | nodes | blocks | lengths | cuts
 *
 * Each part begins at part[].at and holds part[].nr entries of a fixed size; the file is sparse
 * behind them. Numbers have the byte order of the host. docs/formats/exact.md is its description.
 */
#ifndef UNISCOPE_EXACT_H
#define UNISCOPE_EXACT_H

#include <stdint.h>

#define UNI_EXACT_PLUGIN     "uniscope-exact.so"	/* its file */
#define UNI_EXACT_MAGIC	     UINT64_C(0x31746361786e75) /* "unxact1" */
#define UNI_EXACT_TABLE	     UINT64_C(0x3362617478756e) /* "nuxtab3": the functions' file */
#define UNI_EXACT_DEPTH	     480 /* frames of a context; deeper ones lie beside their caller */
#define UNI_EXACT_NODES	     (1u << 22) /* at most, of each part */
#define UNI_EXACT_BLOCKS     (1u << 20)
#define UNI_EXACT_LENGTHS    (1u << 24)
#define UNI_EXACT_CUTS	     (1u << 16)
#define UNI_EXACT_FUNCTIONS  (1u << 20)
#define UNI_EXACT_FOUND	     (1u << 16)		  /* of the functions: found while the guest ran */
#define UNI_EXACT_BLOCK_INSN 4096u		  /* of one block */
#define UNI_EXACT_PIECES     64u		  /* of the image's code */
#define UNI_EXACT_CODE	     (UINT64_C(64) << 20) /* bytes of all of them */

/*
 * The file for the plugin: this, the functions (struct uni_exact_function), and a byte for each if
 * nr_hidden is their number (1: its calls are not recorded). Then come start and size of each piece
 * of code, and the bytes of all pieces. The first nr_own pieces are the image's. The others are
 * those of programs that it loads, wherever the guest has them.
 */
struct uni_exact_table {
	uint64_t magic, nr, nr_hidden, nr_pieces, nr_own;
	/* For readers. depth: no deeper calls are recorded; 0: all are. names: a hash of the
	 * image's functions. */
	uint64_t depth, names;
};

enum uni_exact_part {
	UNI_EXACT_PART_FUNCTIONS,
	UNI_EXACT_PART_NODES,
	UNI_EXACT_PART_BLOCKS,
	UNI_EXACT_PART_LENGTHS,
	UNI_EXACT_PART_CUTS,
	UNI_EXACT_PARTS
};

enum uni_exact_mode {
	UNI_EXACT_COUNTS = 1, /* blocks; nodes: one for each known function, and the rest's */
	UNI_EXACT_TREE = 2,   /* blocks, and a tree of calling contexts */
	UNI_EXACT_TRACE = 3,  /* these, and records of calls in a file of their own */
};

enum uni_exact_state {
	UNI_EXACT_RUNS = 1,
	UNI_EXACT_ENDED = 2,   /* QEMU ended by itself or was asked to */
	UNI_EXACT_REACHED = 3, /* the plugin ended QEMU at the given place */
	UNI_EXACT_KILLED = 4,  /* in a session: QEMU was gone without any of these */
};

/* Counts of the plugin's events, and of those that it could not be sure of. */
enum uni_exact_stat {
	UNI_EXACT_CALLS,      /* of the image's code, by call instructions and by tail calls */
	UNI_EXACT_TAIL_CALLS, /* of these */
	UNI_EXACT_RETURNS,    /* matched with a call */
	UNI_EXACT_DROPPED,    /* frames left without a return: longjmp, exceptions */
	UNI_EXACT_OPEN,	      /* frames at the end: calls = returns + dropped + open + tail calls */
	UNI_EXACT_UNMATCHED,  /* returns that belong to no call that was seen */
	UNI_EXACT_INTERRUPTS, /* interrupts, exceptions and system calls */
	UNI_EXACT_RESUMED,    /* of these: went back to where they came from */
	UNI_EXACT_CUT,	      /* blocks that ended before their last instruction */
	UNI_EXACT_UNKNOWN_CUTS, /* of these: nobody knows after which, all their instructions count
				 */
	UNI_EXACT_SWITCHES,	/* from one stack to another */
	UNI_EXACT_STACKS,
	UNI_EXACT_FOLDED,    /* calls whose context was beyond UNI_EXACT_DEPTH or UNI_EXACT_NODES */
	UNI_EXACT_UNCOUNTED, /* blocks that could not be kept: nothing in them was counted */
	UNI_EXACT_STATS
};

struct uni_exact_header {
	uint64_t magic;
	uint32_t mode, state, machine, nr_vcpus; /* machine: EM_* */
	uint64_t moved; /* how far the image's newest code ran from where it is linked (modulo
			   2^64); 0: it ran there. All addresses of its code are as linked */
	struct {
		uint64_t at, nr;
	} part[UNI_EXACT_PARTS];
	uint64_t stat[UNI_EXACT_STATS];
};

/* Function 0 is code of no known function. */
struct uni_exact_function {
	uint64_t start, end; /* end 0: nothing but its start is known, from a call */
};

/*
 * Node 0 is the root, of function 0: code that ran before the image's first instruction. A node's
 * parent comes before it.
 */
struct uni_exact_node {
	uint32_t parent, function;
	uint64_t insns; /* executed by this function in this context */
	uint64_t calls; /* times that it was entered here */
};

struct uni_exact_block {
	uint64_t pc, count;
	uint32_t nr_insns;
	uint32_t lengths; /* index of its first instruction's length, in bytes */
};

/* `number` of the block's executions ended before instruction `insn`. */
struct uni_exact_cut {
	uint32_t block, insn;
	uint64_t number;
};

/*
 * The file with the records of UNI_EXACT_TRACE has rings, as a tracer in the guest would have them
 * (uniscope/trace_abi.h); addresses in it are offsets. The time is the number of instructions that
 * all vCPUs have executed since the image's first one. An exit has 0 - 16 x depth + 8 in place of
 * the stack pointer; depth: recorded calls that were open on its stack, itself included.
 *
 *     uni_trace_head | taken | uni_trace_ring[] | uni_trace_cpu[] | sub-buffers
 *
 * The reader writes one thing, `taken`: for each vCPU the number of the last sub-buffer that it has
 * taken. While it lags behind, the guest waits. Each side locks a byte of the file (F_OFD_SETLK) as
 * long as it lives.
 */
#define UNI_EXACT_CALLS_CPUS	 512u
#define UNI_EXACT_CALLS_TAKEN	 4096u /* uint64_t by vCPU */
#define UNI_EXACT_CALLS_RINGS	 8192u
#define UNI_EXACT_CALLS_CPU	 (UNI_EXACT_CALLS_RINGS + UNI_EXACT_CALLS_CPUS * 32)
#define UNI_EXACT_CALLS_SUBS	 128u	     /* of each vCPU */
#define UNI_EXACT_CALLS_BEGIN	 65536u	     /* of the first sub-buffer */
#define UNI_EXACT_CALLS_HZ	 1000000000u /* of the clock: an instruction is shown as 1 ns */
#define UNI_EXACT_LOCK_OF_QEMU	 0	     /* bytes; this one in the other file, too */
#define UNI_EXACT_LOCK_OF_READER 1

#ifdef __cplusplus
static_assert(sizeof(struct uni_exact_node) == 24, "shared");
#else
_Static_assert(sizeof(struct uni_exact_node) == 24, "shared");
_Static_assert(sizeof(struct uni_exact_block) == 24, "shared");
_Static_assert(sizeof(struct uni_exact_cut) == 16, "shared");
#endif

#endif
