/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin for QEMU: what its files share. A block of translated code calls block_enter(), which
 * counts it and follows calls, returns, interrupts and changes of the stack.
 */
#ifndef UNI_PLUGIN_PLUGIN_H
#define UNI_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/qemu.h"
#include "uniscope/exact.h"
#include "uniscope/trace_abi.h"

#define NOWHERE	   UINT64_MAX /* no address */
#define VCPU_MAX   512
#define CUTS	   8			/* places at which a block was cut short */
#define STACK_STEP (UINT64_C(64) << 10) /* a frame that is larger may be on another stack */

#define CUT_DONE UINT8_MAX /* as .from of an entry: it has been counted */

#define NO_FUNCTION UINT32_MAX
#define NO_STEP	    (UINT32_MAX - 1) /* as a function: is none, and not the same as NO_FUNCTION */
#define CHILDREN    4		     /* of a node, that are found without the tree's hash */

#define ODD UINT64_MAX

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- area.c: the shared file ---- */

struct area {
	struct uni_exact_header *header;
	uint8_t *base;
	int fd;
	uint64_t kept[UNI_EXACT_PARTS]; /* bytes of each part that the file system has promised */
	bool full[UNI_EXACT_PARTS];	/* the disk: it is not asked again */
	uint64_t nr[UNI_EXACT_PARTS];	/* our own count: the shared one is only written */
};

int area_open(struct area *a, const char *path, const char **why_ret);
void *area_entries(const struct area *a, enum uni_exact_part part); /* all that were added */
/* n new entries, one behind the other, zeroed; NULL: full, or the disk is. Index in *index_ret. */
void *area_add(struct area *a, enum uni_exact_part part, uint64_t n, uint64_t *index_ret);

/* ---- functions.c: which function an address belongs to ---- */

struct functions {
	struct uni_exact_function *known; /* [1] to [nr_known]: sorted, from the file */
	uint32_t nr_known;
	uint32_t *found; /* hash of those that were only called: index into the shared part */
	uint64_t *found_start;
	uint32_t nr_found;
};

int functions_load(struct functions *f, struct area *a, const char *path, const char **why_ret);
uint32_t functions_find(const struct functions *f, uint64_t pc); /* 0: of none */
/* The function that is called at pc, which may be new. */
uint32_t functions_called(struct functions *f, struct area *a, uint64_t pc);
static inline bool function_is_known(const struct functions *f, uint32_t function)
{
	return function != 0 && function <= f->nr_known;
}

/* ---- places.c: code of the image that runs elsewhere than it is linked for ---- */

struct code_piece {
	uint64_t start, size, at; /* at: of its bytes, behind those of the pieces before it */
};

/* Pieces and their bytes are kept. The first nr_own are the image's, the others are of programs. */
void places_init(struct code_piece *piece, uint64_t nr, uint64_t nr_own, uint8_t *bytes);
/* How far that block is from where it is linked, for places_linked(). */
uint64_t places_moved(const struct qemu_plugin_tb *tb);
/* An address in code that is so far away, as it is linked. */
uint64_t places_linked(uint64_t pc, uint64_t moved);

/* ---- x86_64.c, aarch64.c: what an instruction does to the flow of control ---- */

enum flow {
	FLOW_ON,      /* goes on behind it, or at its target */
	FLOW_CALL,    /* pushes where to return */
	FLOW_RETURN,  /* ret */
	FLOW_JUMP,    /* to anywhere */
	FLOW_IRET,    /* back from an interrupt or system call */
	FLOW_SYSCALL, /* to the kernel, which returns behind it */
};

struct flow_insn {
	enum flow flow;
	bool ends;	 /* does not go on behind it */
	uint64_t target; /* NOWHERE: none, or not known */
};

/* Facts about an instruction that may stop. */
enum {
	INSN_TRAP = 1,	 /* faults by itself, without an access to memory: a division */
	INSN_NEVER = 2,	 /* never ends: it is not defined */
	INSN_DEVICE = 4, /* may reach a device */
};

/* An access to memory through the stack pointer. */
struct sp_access {
	int64_t offset;	 /* from the stack pointer before it to the accessed address */
	int64_t moved;	 /* the stack pointer, by it */
	int64_t link;	 /* as `offset`, of the return address that it stores */
	bool saves_link; /* it does */
};

struct arch {
	const char *target; /* QEMU's name for it */
	uint32_t machine;
	uint8_t call_bytes;   /* before a place that tell whether a call ends there */
	uint8_t vector_bytes; /* of the code of an interrupt in a table; 0: there is no such table
			       */
	bool links; /* a call leaves where it returns to in a register, and pushes nothing */
	struct flow_insn (*flow)(uint64_t pc, const uint8_t *bytes, size_t size);
	bool (*switches_stack)(const uint8_t *bytes, size_t size); /* loads the stack pointer */
	bool (*may_stop)(const uint8_t *bytes, size_t size);	   /* fault, or reach a device */
	unsigned (*traits)(const uint8_t *bytes, size_t size);	   /* INSN_* */
	bool (*is_output)(const uint8_t *bytes, size_t size); /* to a port; NULL: there are none */
	bool (*is_behind_call)(const uint8_t *end);	      /* a call may end there */
	bool (*sp_access)(const uint8_t *bytes, size_t size, struct sp_access *ret);
	int64_t (*sp_moved)(const uint8_t *bytes, size_t size); /* by a constant; if .links */
};

extern const struct arch arch_x86_64, arch_aarch64;

/* ---- tree.c: calling contexts ---- */

/* One line of a cache: a call that was seen before reads nothing else of its caller's. */
struct node {
	struct uni_exact_node *out;
	struct node *parent;
	uint32_t function;
	uint16_t depth, next;	   /* next: of .callee, which is replaced next */
	uint32_t callee[CHILDREN]; /* functions called from here; NO_FUNCTION: none yet */
	uint32_t child[CHILDREN];  /* index of its node */
} __attribute__((aligned(64)));

struct tree {
	struct area *area;
	struct node *node; /* our own copy of what leads through the tree; never moves */
	uint32_t nr, hash_mask;
	uint32_t *hash;	  /* of (parent, function): index, 0 empty */
	uint32_t *beyond; /* by function: its node when there is no room for more; 0 none */
	struct node *beyond_parent;
};

int tree_init(struct tree *t, struct area *a, uint32_t nr_known);
struct node *tree_find_child(struct tree *t, struct node *parent, uint32_t function);
static inline struct node *tree_child(struct tree *t, struct node *parent, uint32_t function)
{
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (parent->callee[i] == function)
			return &t->node[parent->child[i]];
	}
	return tree_find_child(t, parent, function);
}

/* ---- stacks.c: shadow stacks ---- */

struct block;

struct entry {
	uint64_t ret;	   /* where it returns to; NOWHERE: it is an interrupt */
	uint64_t sp;	   /* address of the return address, or behind it; 0: not known */
	struct node *node; /* the caller's */
	struct block *prev, *handler; /* of an interrupt; prev: the block that ran last */
	bool is_interrupt, cut, pushed;
	bool passed;	       /* of an interrupt: quiet blocks ran behind prev */
	bool shown;	       /* the caller's frame is in the trace */
	bool switched, unsure; /* of an interrupt: as the vCPU was, with .sp for .new_sp */
	uint8_t from;	       /* of an interrupt that cut prev: it was not before that one */
};

struct stack {
	struct entry *entry, *top,
		*end;	    /* the newest is below top; one that is none is below entry */
	struct node *node;  /* where it was left */
	uint64_t low, high; /* of the stack pointers seen */
	uint64_t id;	    /* in the trace: from 1 on, as they were seen */
	uint32_t open;	    /* calls in the trace that have not returned */
	bool shown;	    /* the newest frame is one of them */
};

static inline uint32_t stack_nr(const struct stack *st)
{
	return (uint32_t)(st->top - st->entry);
}

struct stacks {
	struct stack **v; /* by .high */
	uint32_t nr, cap;
};

/* The one that this stack pointer lies in, or at most `slack` bytes below; NULL: none. */
struct stack *stacks_find(const struct stacks *s, uint64_t sp, uint64_t slack);
struct stack *stacks_add(struct stacks *s, uint64_t sp); /* NULL: out of memory */
void stack_init(struct stack *st);
void stacks_saw(struct stacks *s, struct stack *st, uint64_t sp);
struct entry *stack_push(struct stack *st);
/* From the top on, the entry that returns there; UINT32_MAX: none. */
uint32_t stack_find_return(const struct stack *st, uint64_t pc);

/* ---- the whole ---- */

/*
 * A function begins there; a call may return there. With .links: a function begins there that
 * stores its return address at once, and another one.
 */
enum { BLOCK_STEP, BLOCK_START, BLOCK_SITE, BLOCK_SAVE, BLOCK_LINK, BLOCK_KINDS };

/* Each execution needs the first line of a cache alone, until .last. */
struct block {
	uint64_t pc, end;
	uint64_t callee; /* of FLOW_CALL; NOWHERE: not known */
	struct uni_exact_block *out;
	/* The block before it, if nothing is to be done when it comes from there. */
	const struct block *from;
	uint32_t nr_insns, function;
	/*
	 * The function, if the block goes on in itself (leads), and if branches of the same
	 * function lead to it (takes). Nothing is to be done if one leads where the next takes.
	 */
	uint32_t leads, takes;
	uint8_t flow, kind;
	bool is_handler;	/* interrupts have come here */
	bool is_start;		/* begins where a function does */
	bool switches;		/* loads the stack pointer */
	bool is_mark;		/* counting begins or ends here */
	uint64_t last;		/* address of the last instruction */
	uint64_t next, target;	/* of FLOW_ON: where it may go on; NOWHERE: nowhere */
	struct block *twin;	/* another one that begins there */
	uint64_t taken;		/* executions of it that went on where another block had stopped */
	const uint8_t *lengths; /* of its instructions */
	struct uni_exact_cut *cut[CUTS];
	uint64_t stops; /* instructions that may stop, by bit; the last bit is of all from there on
			 */
	uint64_t traps, devices; /* of these: INSN_TRAP, INSN_DEVICE */
	uint64_t outputs;	 /* of these: QEMU may end there */
	uint32_t index;
	int32_t saved; /* of .saves: from the address it is stored at to the caller's stack pointer
			*/
	uint8_t nr_cuts;
	bool ours;	/* code of the image */
	bool is_step;	/* a branch of the same function leads here */
	bool is_quiet;	/* counted without a callback */
	bool may_stop;	/* an instruction before the last may */
	bool is_split;	/* the last one may lie in two pages */
	uint8_t traits; /* INSN_*, of the last one */
	bool saves;	/* stores the return address */
	bool is_entry;	/* interrupts may come here: the begin of a function, or a vector */
} __attribute__((aligned(64)));

/* A vCPU's records of calls; they are its own thread's. */
struct ring {
	uint64_t *at, *end;   /* where the next one goes; where the sub-buffer ends */
	uint64_t last;	      /* time of the newest one */
	uint64_t *taken;      /* by the reader: the number of its last sub-buffer */
	uint64_t floor;	      /* sub-buffers up to that one were for no reader */
	uint8_t *base, *file; /* of it, and of the whole file */
	struct uni_trace_cpu *cpu;
	struct uni_trace_sub *sub;
	uint32_t hi;
	bool behind; /* the reader is: the guest waits */
	bool full;   /* the disk */
};

struct vcpu {
	uint64_t *ended; /* blocks that have reached their last instruction */
	uint64_t own_ended;
	uint64_t begun; /* as *ended will be, if the last block reaches its end */
	uint64_t go;	/* the same, or ODD: the next block is to be looked at */
	struct block *prev;
	/* Its call of prev is not followed yet: prev shows the stack pointer first. NULL: none. */
	const struct block *caller;
	struct stack *stack;
	struct node *node;
	bool live;     /* has reached the image */
	bool passed;   /* quiet blocks have run behind prev */
	bool odd;      /* one of the next three: off the fast path */
	bool cut;      /* the block that ran last was cut short */
	bool switched; /* the stack pointer was loaded; new_sp if it is known, else 0 */
	bool unsure;   /* the next call's push decides which stack this is */
	bool pushed;   /* the call that ended the last block has pushed, at push_sp */
	uint64_t push_sp, new_sp;
	struct ring ring;
};

struct plugin {
	struct area area;
	struct functions functions;
	struct tree tree;
	struct stacks stacks;
	const struct arch *arch;
	struct qemu_plugin_scoreboard *score;
	uint64_t *handlers; /* sorted */
	uint32_t nr_handlers;
	uint64_t *stat; /* in the shared file */
	enum uni_exact_mode mode;
	bool one_thread;
	bool restarts;	    /* QEMU stops at an access to a device, and goes on behind it */
	uint64_t quiet;	    /* instructions of quiet blocks, which .clock does not have yet */
	uint64_t clock;	    /* instructions: the time of the trace */
	uint64_t *entry;    /* by known function: its record; 0: it takes several words */
	uint8_t *hidden;    /* by known function: it is not in the trace; NULL: all are */
	uint32_t max_depth; /* recorded calls on a stack */
	uint64_t begin_at, end_at; /* addresses of functions; NOWHERE: none */
	bool begun;
	struct vcpu vcpu[VCPU_MAX];
};

extern struct plugin plugin;
void plugin_lock(void);
void plugin_unlock(void);

/* calls.c: calls and returns as records, with UNI_EXACT_TRACE */
int calls_open(const char *path, uint32_t machine, uint32_t nr_vcpus, bool host_times,
	const char **why_ret);
void calls_switch(struct vcpu *v, const struct stack *from, const struct stack *to);
void calls_wait(struct ring *r);
void ring_put_slowly(struct ring *r, uint64_t word, uint64_t now);
void ring_entry_slowly(struct vcpu *v, uint64_t start);
void calls_end(void);

/* An interrupted block is counted whole at first: no time is before the last one. */
static inline uint64_t ring_now(const struct vcpu *v)
{
	uint64_t now = plugin.clock;

	return likely((int64_t)(now - v->ring.last) >= 0) ? now : v->ring.last;
}

static inline void ring_publish(struct ring *r)
{
	r->sub->open_bytes = (int32_t)((uint8_t *)r->at - (uint8_t *)r->sub) - UNI_TRACE_SUB_SIZE;
	__atomic_store_n(&r->cpu->wptr, (uint64_t)((uint8_t *)r->at - r->file), __ATOMIC_RELEASE);
}

static inline void ring_put(struct vcpu *v, uint64_t word)
{
	struct ring *r = &v->ring;
	uint64_t now = ring_now(v);

	if (unlikely(r->at == r->end || now >> 32 != r->hi)) {
		ring_put_slowly(r, word, now);
		return;
	}
	*r->at++ = word | (uint32_t)now;
	r->last = now;
	ring_publish(r);
}

/* A call begins on the vCPU's stack. pc: the function's, if it is not a known one. */
static inline void frame_show(struct vcpu *v, uint32_t function, uint64_t pc)
{
	struct stack *st = v->stack;
	bool known = function_is_known(&plugin.functions, function);

	st->shown = st->open < plugin.max_depth &&
		    (plugin.hidden == NULL || (known && !plugin.hidden[function]));
	if (!st->shown)
		return;
	st->open++;
	if (likely(known && plugin.entry[function] != 0))
		ring_put(v, plugin.entry[function]);
	else
		ring_entry_slowly(v, known ? plugin.functions.known[function].start : pc);
}

/* The newest call on that stack of the vCPU ends; its caller goes on. */
static inline void frame_close(struct vcpu *v, struct stack *st, bool shown)
{
	if (st->shown) {
		ring_put(v, (uint64_t)(uint32_t)(UNI_TRACE_EXIT - 16 * st->open) << 32);
		st->open--;
	}
	st->shown = shown;
}

/* Adds the instructions of quiet blocks to the current node. */
static inline void quiet_flush(struct vcpu *v)
{
	v->node->out->insns += plugin.quiet;
	plugin.clock += plugin.quiet;
	plugin.quiet = 0;
}

/* Branches of one function lead from p to b, perhaps through quiet blocks. */
static inline bool is_step(const struct block *p, const struct block *b)
{
	return b->is_step && b->function == p->function;
}

/* block.c */
int blocks_init(void);
void block_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
bool block_may_stop_at(const struct block *b, uint32_t insn);
bool block_may_trap_at(const struct block *b, uint32_t insn);
bool block_is_point(const struct block *b, uint32_t insn);   /* behind or at such an instruction */
bool block_may_end_at(const struct block *b, uint32_t insn); /* QEMU */
bool block_may_reach_device(const struct block *b, uint32_t insn);
struct block *block_starting_at(uint64_t pc); /* the last one of .twin; NULL: none */
void block_add_steps(const struct block *b);
bool is_branched_to(uint64_t pc); /* by a block of the same function of which steps were added */
/* The first of its later instructions that begins a quiet block, UINT32_MAX: none. */
uint32_t block_insn_quiet(const struct block *b);
void block_became_handler(struct block *b);

/* count.c */
int counts_init(void);
void count_block(struct qemu_plugin_tb *tb, struct block *b);
void counts_end(void);

/* enter.c */
qemu_vcpu_udata_fn block_callback(const struct block *b);
qemu_mem_fn save_callback(void);

/* follow.c */
void follow_init(void); /* behind all others */
void block_slow(struct vcpu *v, struct block *p, struct block *b, uint64_t ended);
void block_ended(unsigned vcpu, void *udata);  /* its last instruction begins */
void call_follow(struct vcpu *v, uint64_t sp); /* that of v->caller; sp 0: not known */
void frame_saw(struct vcpu *v, uint64_t sp);   /* the newest frame's */
void port_written(unsigned vcpu, void *udata); /* by instruction udata of the present block */
void trap_passed(unsigned vcpu, void *udata);  /* all before instruction udata of it are done */
uint8_t cut_from(unsigned vcpu, const struct block *b); /* instructions before have not cut it */
void call_pushed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata);
void stack_read(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata);
void follow_end(void);
void frame_enter(struct vcpu *v, const struct block *b);
void go_on(struct vcpu *v, struct block *p, struct block *b, bool resumed);
void plugin_end(enum uni_exact_state state);

/* interrupt.c */
void interrupt_push(struct vcpu *v, struct block *p, struct block *b, bool cut);
void interrupt(struct vcpu *v, struct block *p, struct block *b, bool cut);
bool interrupt_again(struct vcpu *v, struct block *b);
bool go_back_unseen(struct vcpu *v, struct block *b);
void go_back(struct vcpu *v, struct block *b);

/* change.c: which stack, which frame, when it is not the next one. */
void stack_settle(struct vcpu *v, const struct block *p, uint64_t sp);
void stack_change(struct vcpu *v);
void stack_enter(struct vcpu *v, struct stack *to);
void frame_move(struct vcpu *v, const struct block *b);
void frame_jump(struct vcpu *v, const struct block *b);
void frame_jump_out(struct vcpu *v, const struct block *b);
void frames_drop(struct vcpu *v, uint32_t nr);

/* That execution of b, in that context, ended before instruction `insn`. */
void cut_count(struct node *node, struct block *b, uint32_t insn);
/* The block that e interrupted, and cut short, goes on at instruction `insn`, or elsewhere. */
void cut_end(const struct entry *e, uint32_t insn);
bool cut_now(struct vcpu *v, struct block *p); /* if it does not matter where p goes on */
void block_left(struct vcpu *v);	       /* by QEMU's end */
/* Index of the instruction at pc in the block, UINT32_MAX if there is none. */
uint32_t block_insn_at(const struct block *b, uint64_t pc);

#endif
