/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meaning of a stop of QEMU's TCG. A vCPU that is asked to stop does so at the start of the
 * next translated block, before that block runs. So the time was spent in the block before. Within
 * a function that makes no difference. Behind a call, the block before was the callee's last one;
 * at a function's first byte, it was the caller's. A chain is corrected if the code leaves no other
 * way to get there. This table says where that is so.
 */
#ifndef UNI_ARCH_SKID_H
#define UNI_ARCH_SKID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum uni_branch {
	UNI_BRANCH_NONE,
	UNI_BRANCH_CALL,
	UNI_BRANCH_JUMP, /* or it goes on behind it */
	UNI_BRANCH_GOTO,
	/* By a register or memory: to a case of a switch, or a tail call. Its "target" is the table
	 * of addresses that it leads to, or 0. */
	UNI_BRANCH_INDIRECT,
	UNI_BRANCH_POINTER, /* a call by a register or memory; its "target" is where it returns */
	UNI_BRANCH_RETURN,
	UNI_BRANCH_END,	 /* nothing goes on behind it, nor elsewhere: a trap, or a halt */
	UNI_BRANCH_AWAY, /* a return from an interrupt, or to a program */
	UNI_BRANCH_PAD,	 /* nothing, between functions */
	UNI_BRANCH_TOP,	 /* no branch: it writes the word that a return would take */
	UNI_BRANCH_DROP, /* the same: it takes that word off the stack */
	UNI_BRANCH_ROOM, /* the same: it makes room on the stack */
	UNI_BRANCH_TRAP, /* a system call, to a handler; its "target" is where that returns */
};

enum uni_skid_flags {
	UNI_SKID_BEHIND = 1u << 0,  /* no jump leads behind the call: only a return does */
	UNI_SKID_RETURNS = 1u << 1, /* the callee returns by itself; it does not go elsewhere */
	UNI_SKID_ENTERS = 1u << 2,  /* the callee does not begin again by a jump */
	UNI_SKID_TRAP = 1u << 3,    /* no call, but a trap: its handler is not known */
};

struct uni_skid_call {
	uint64_t ret;	 /* SVMA behind it */
	uint64_t callee; /* SVMA of the function's first byte; 0: it is called by a pointer */
	uint32_t flags;	 /* enum uni_skid_flags */
};

#define UNI_SKID_ANYWHERE UINT64_MAX

/* The first byte of a function. */
struct uni_skid_entry {
	uint64_t svma;
	uint64_t end;	  /* the only function that it leaves for, by a jump or by falling through;
			     0: none, UNI_SKID_ANYWHERE: several, or unknown ones */
	bool is_jumped;	  /* a jump leads there: of the function itself, or of one that ends so */
	bool is_repeated; /* one of the function itself does */
};

struct uni_skid {
	struct uni_skid_call *call; /* sorted by ret, which are all different */
	size_t nr;
	struct uni_skid_entry *entry; /* sorted by svma */
	size_t nr_entries;
	bool has_tail_pointers; /* some functions end in a jump by a pointer */
	/* Places within functions before which another function's block may have run, sorted. */
	uint64_t *shared;
	size_t nr_shared;
};

#endif
