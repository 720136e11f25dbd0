/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace ring in guest memory, as guest and host both see it.
 *
 * A guest has one struct uni_trace_head (symbol `uni_trace_head`, or found by its magic). It names
 * one struct uni_trace_cpu for each CPU, and each of these has a ring of sub-buffers. A sub-buffer
 * is a packet of the Common Trace Format 1.8 as it lies there: header, then 8-byte records, so that
 * saving one is a copy. Everything is little-endian; addresses are guest virtual.
 *
 * The guest writes all of it. The host writes only struct uni_trace_control, 0 to head.frozen, ~0
 * to each uni_trace_cpu.hi (if UNI_TRACE_TELLS_GAPS), and the places that it patches. The host
 * trusts nothing in here: it captures the geometry once, checks it, and copies before it looks. */
#ifndef UNISCOPE_TRACE_ABI_H
#define UNISCOPE_TRACE_ABI_H

#define UNI_TRACE_MAGIC "uniscope trace\x01" /* 16 bytes with the NUL that ends it */
/* Version 1 ends behind head.control, and has no sessions. Readers take both. */
#define UNI_TRACE_VERSION     2
#define UNI_TRACE_VERSION_OLD 1
#define UNI_TRACE_HEAD_OLD    192 /* bytes that every version's head has */

#define UNI_TRACE_SUB_SHIFT 16
#define UNI_TRACE_SUB_SIZE  (1 << UNI_TRACE_SUB_SHIFT) /* bytes, also its alignment */
#define UNI_TRACE_SUB_HEAD  128
#define UNI_TRACE_SUB_MIN   4 /* sub-buffers of a ring, at least */
#define UNI_TRACE_CTF_MAGIC 0xc1fc1fc1u

/* Offsets of the fields that assembly uses; checked below. */
#define UNI_TRACE_SUB_OPEN  76
#define UNI_TRACE_SUB_EXTRA 112
#define UNI_TRACE_CPU_WPTR  0
#define UNI_TRACE_CPU_HI    8
#define UNI_TRACE_CPU_DEPTH 12
#define UNI_TRACE_CPU_RUN   16
#define UNI_TRACE_CONTROL   128 /* in the head; behind it, in the control: */
#define UNI_TRACE_ENABLE    128
#define UNI_TRACE_MODE	    132
#define UNI_TRACE_MIN_TIME  136
#define UNI_TRACE_MAX_DEPTH 140
#define UNI_TRACE_RUN	    144

/* head.features: extra words of records are counted, so that of what was overwritten the number of
 * events is known. */
#define UNI_TRACE_COUNTS_EXTRA 1
#define UNI_TRACE_EXTRA_GONE   (1ull << 63) /* the next sub-buffer has begun with it */
/* sub.gaps and each SYNC say UNI_TRACE_GAPS_TOLD(control.gaps), so that a reader can tell records
 * before and after a change of control.gaps apart. To make every CPU write a SYNC before its next
 * record, write ~0 to its `hi` after the change, while it stands. */
#define UNI_TRACE_TELLS_GAPS	  2
#define UNI_TRACE_GAPS_TOLD(gaps) ((uint32_t)(gaps) << 1 | 1)
/* Each start by a host has a number, control.session. sub.gaps and each SYNC say its low 16 bits,
 * so that a reader takes what belongs to one start. */
#define UNI_TRACE_TELLS_SESSIONS	4
#define UNI_TRACE_SESSION_OF_SUB(gaps)	((uint16_t)((gaps) >> 48))
#define UNI_TRACE_SESSION_OF_SYNC(word) ((uint16_t)((word) >> 16))
#define UNI_TRACE_SUB_GAPS(gaps, session) \
	(UNI_TRACE_GAPS_TOLD(gaps) | (uint64_t)(uint16_t)(session) << 48)
#define UNI_TRACE_SYNC_WORD(gaps, session, epoch)                                                \
	((uint64_t)(UNI_TRACE_GAPS_TOLD(gaps) - 1) << 32 | (uint32_t)(uint16_t)(session) << 16 | \
		(uint16_t)(epoch))
/* The guest copies text behind arguments: head.text_rules, hooks.entry_text. */
#define UNI_TRACE_COPIES_TEXT 8
/* The guest tells of spans: UNI_TRACE_CLASS_SPAN_BEGIN and _END. */
#define UNI_TRACE_TELLS_SPANS 16
/* The guest keeps what is open of threads and promises in a table, head.promises, with which a
 * recording is to begin. */
#define UNI_TRACE_KEEPS_PROMISES 32
/* The guest records since its first call, and has not called uni_trace_init() yet: it may get more
 * CPUs. */
#define UNI_TRACE_BOOTS 64

/* control.mode */
#define UNI_TRACE_GRAPH	   0 /* entry and exit of each call */
#define UNI_TRACE_LITE	   1 /* as GRAPH, but a call that made none has no end time */
#define UNI_TRACE_FUNCTION 2 /* entries only */
#define UNI_TRACE_CALLERS  3 /* as FUNCTION, with each call's caller (hooks.entry_caller) */

#define UNI_TRACE_ENTRIES_ONLY(mode) ((mode) >= UNI_TRACE_FUNCTION)

#define UNI_TRACE_LEAF_FLIP 7 /* entry id ^ this = leaf id */

/* x86_64's, for assembly, too */
#define UNI_TRACE_ID_ENTRY	  5
#define UNI_TRACE_ID_ENTRY_BRANCH 9
#define UNI_TRACE_ID_CALL	  10

/* The upper half of the last word of a CLASS_CALL: with it a trigger stopped the tracer. Until one
 * starts it again nothing is known of any CPU. */
#define UNI_TRACE_STOPS 4

/* Otherwise the upper half of a CLASS_CALL's or CLASS_CALL_ARGS' last word is the caller. It is the
 * low half of an address within its call instruction, of which bit 0 is 0. Or it is 0: not known,
 * or not in the text window. */
#define UNI_TRACE_CALLER(word) \
	((uint32_t)((word) >> 32) != UNI_TRACE_STOPS ? (uint32_t)((word) >> 32) : 0)
/* The upper half of a call's first word that has its caller. */
#define UNI_TRACE_CALL_FIRST 0x50014

/* The upper half of a switch's last word: the previous thread does not go on where it was. Its open
 * calls are over. */
#define UNI_TRACE_OVER 2

/* The upper half of the last word of an entry whose function is not aligned. No other record has
 * it: exit_min sees by it which record it may take back. The second is the upper half of the
 * entry's first word: id, words, class. */
#define UNI_TRACE_ODD_ENTRY 2
#define UNI_TRACE_ODD_FIRST 0x10014

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

/* A record is one aligned word: low half of the time stamp, id, payload (28 bits). Ids of entries
 * are odd and all others even. So bit 32 of the newest word tells whether it is the entry of the
 * call that returns now. Every record of several words therefore ends in a word whose bit 32 is 0.
 * The architecture decides which ids mean entry and exit (head.kinds). The payload's low nibble is
 * that of the patched call's return address, or of the stack pointer. */
enum uni_trace_id {
	UNI_TRACE_EXIT_UNALIGNED =
		0, /* x86_64: as EXIT, the stack was 8-byte aligned at the call */
	UNI_TRACE_ENTRY = UNI_TRACE_ID_ENTRY, /* x86_64: payload is the function's address >> 4 */
	UNI_TRACE_LEAF = 2, /* ENTRY ^ 7: a call that made none; its end has no time */
	UNI_TRACE_ENTRY_BRANCH = UNI_TRACE_ID_ENTRY_BRANCH, /* x86_64: as ENTRY, after an ENDBR */
	UNI_TRACE_LEAF_BRANCH = 14,
	UNI_TRACE_CALL = UNI_TRACE_ID_CALL, /* function mode: as ENTRY, but no exit will come */
	UNI_TRACE_EXIT = 8,		    /* x86_64: payload is the stack pointer >> 4 */
	/* payload: words that follow (2): the whole time stamp; u16 epoch, u16 session, u32
	 * UNI_TRACE_GAPS_TOLD less 1. Version 1: u32 epoch, no session */
	UNI_TRACE_SYNC = 6,
	UNI_TRACE_EXT = 4, /* payload: class << 12 | words that follow */
};

/* Classes of extended records, with their words. */
enum uni_trace_class {
	/* u32 function address, u32 UNI_TRACE_ODD_ENTRY: a function that is not aligned. If a word
	 * follows, it is the whole address, which need not be in the text window */
	UNI_TRACE_CLASS_ENTRY = 1,
	/* u64 previous thread, u64 next thread, u32 reason, u32 0 or UNI_TRACE_OVER */
	UNI_TRACE_CLASS_SWITCH = 2,
	/* As an ENTRY, with what the argument registers held: x86_64: rdi, rsi, rdx, rcx, r8, r9.
	 * Then texts (UNI_TRACE_TEXT_*), variables (UNI_TRACE_READ), and u32 function address,
	 * u32 0 */
	UNI_TRACE_CLASS_ENTRY_ARGS = 3,
	/* As an EXIT, with the value: x86_64: rax, rdx, then variables (UNI_TRACE_READ), then u32
	 * stack pointer's low half, u32 0 */
	UNI_TRACE_CLASS_EXIT_VALUE = 4,
	/* As ENTRY and ENTRY_ARGS, in function mode: no exit will come */
	UNI_TRACE_CLASS_CALL = 5, /* its last u32 is UNI_TRACE_CALLER's, or UNI_TRACE_STOPS */
	UNI_TRACE_CLASS_CALL_ARGS = 6,
	/* A sample of the guest's own sampler (uniscope/sample.h): u64 thread, stack pointer, frame
	 * pointer. The two words at the stack pointer. The call chain, leaf first, as far as there
	 * is room. Then u32 UNI_TRACE_SAMPLE_*, u32 0 */
	UNI_TRACE_CLASS_SAMPLE = 7,
	/* 8 is not used */
	/* A span begins, or ends, on the running thread. u64 number, u64 address of its name in the
	 * image (0: none), u32 kind, u32 0; an end has no name */
	UNI_TRACE_CLASS_SPAN_BEGIN = 9,
	UNI_TRACE_CLASS_SPAN_END = 10,
	/* u64 CLOCK_MONOTONIC of the host, ns, or 0: not kept; u64 0. When a sub-buffer was begun,
	 * and at the end. Only of QEMU's plugin, whose times are instructions (uniscope/exact.h) */
	UNI_TRACE_CLASS_HOST_TIME = 11,
	/* A sample whose call chain the host has to find: u64 thread, stack pointer, frame pointer,
	 * interrupted instruction. The stack from the stack pointer on, as far as there is room.
	 * Then u32 UNI_TRACE_SAMPLE_*, u32 0 */
	UNI_TRACE_CLASS_SAMPLE_STACK = 12,
	/* As that, for programs that change stacks: u64 thread, stack pointer, frame pointer,
	 * interrupted instruction. u64 rbx, r12, r13, r14, r15 (x86_64). u64 stack pointer of the
	 * other stack, bytes of the first copy. Both copies, and the last word */
	UNI_TRACE_CLASS_SAMPLE_STACKS = 13,
	UNI_TRACE_CLASS_USER = 64, /* from here on: events of the thread and promise API */
};

/* A text within an ENTRY_ARGS or CALL_ARGS: an argument pointed to it when the call was made. One
 * word (u8 argument, u8 flags, u16 bytes, u32 0), then the bytes, NUL-padded to whole words. */
#define UNI_TRACE_TEXT_CUT	   1 /* flag: there is more of it */
#define UNI_TRACE_TEXT_BAD	   2 /* flag: it could not be read, or not all of it */
#define UNI_TRACE_TEXT_ARG(word)   ((unsigned)(word)&0xff)
#define UNI_TRACE_TEXT_FLAGS(word) ((unsigned)(word) >> 8 & 0xff)
#define UNI_TRACE_TEXT_BYTES(word) ((unsigned)(word) >> 16 & 0xffff)
#define UNI_TRACE_TEXT_MAX	   256 /* bytes that a guest copies of one */
#define UNI_TRACE_ARGS		   6   /* registers of arguments in front of them */

/* A variable of the guest, as it was then. One word as that of a text: u8 UNI_TRACE_READ, u8 flags,
 * u16 8, u32 low half of its address. Then its value, extended to 64 bits. */
#define UNI_TRACE_READ	      0x80
#define UNI_TRACE_READ_SIGNED 1 /* flag */
#define UNI_TRACE_READ_WORD(address, is_signed)                                                \
	(UNI_TRACE_READ | ((is_signed) ? UNI_TRACE_READ_SIGNED << 8 : 0) | (uint64_t)8 << 16 | \
		(uint64_t)(uint32_t)(address) << 32)

/* The last word of a sample. */
#define UNI_TRACE_SAMPLE_HEAD	      5		/* words before the call chain */
#define UNI_TRACE_SAMPLE_STACK	      4		/* words before the stack */
#define UNI_TRACE_SAMPLE_STACKS	      11	/* words before the first of two stacks */
#define UNI_TRACE_SAMPLE_IDLE	      (1u << 8) /* the CPU had nothing to do */
#define UNI_TRACE_SAMPLE_END	      0xffu /* mask: enum uni_trace_sample_end, why the chain ends */
#define UNI_TRACE_SAMPLE_WEIGHT(word) ((uint32_t)(word) >> 16) /* periods that it stands for */
enum uni_trace_sample_end {
	UNI_TRACE_SAMPLE_OUTERMOST, /* the outermost frame: a frame pointer of 0 */
	UNI_TRACE_SAMPLE_DEPTH,	    /* no room for more */
	UNI_TRACE_SAMPLE_BAD,	    /* a frame pointer that cannot be one */
};

/* The meaning of an id on this architecture. */
enum uni_trace_kind {
	UNI_TRACE_KIND_NONE,
	UNI_TRACE_KIND_ENTRY,
	UNI_TRACE_KIND_EXIT,
	UNI_TRACE_KIND_LEAF,
	UNI_TRACE_KIND_SYNC,
	UNI_TRACE_KIND_EXT,
	UNI_TRACE_KIND_CALL, /* an entry of which no exit will come; guests that have no such id
				write ENTRY in function mode, too */
};

enum uni_trace_ring_mode {
	UNI_TRACE_OVERWRITE, /* the oldest sub-buffer goes: flight recorder, and streams */
	UNI_TRACE_STOP,	     /* the newest event goes, and is counted */
};

/* A sub-buffer's first bytes: packet header and packet context of CTF. Written by its CPU alone, or
 * by a thread that began a record on it. */
struct uni_trace_sub {
	uint32_t ctf_magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t ts_begin; /* cycles of the CPU's time-stamp counter, all 64 bits */
	uint64_t ts_end;
	uint64_t content_size; /* bits, as CTF counts; valid once closed */
	uint64_t packet_size;  /* bits */
	uint64_t packet_seq;   /* = begin_seq */
	uint64_t lost;	       /* events of this CPU that found no room so far, 64 bits */
	uint32_t cpu;
	int32_t open_bytes;    /* minus the bytes that are not written yet; 0: closed */
	uint64_t begin_seq;    /* N, from 1 on: valid; 0: being made ready */
	uint64_t end_seq;      /* N as well once it is closed: whole and final */
	uint64_t words_before; /* 8-byte words of records that this CPU wrote before it */
	/* These are no events: all but one of each event, and all of a SYNC and a host's time. */
	uint64_t extra_before;
	/* The same of its own words, and UNI_TRACE_EXTRA_GONE. Readers put extra_before of the next
	 * sub-buffer in its place. */
	uint64_t extra_after;
	/* UNI_TRACE_SUB_GAPS at the first record; 0: not known. Bit 32 is 0, so that the word
	 * before the first record is no entry. */
	uint64_t gaps;
};

/* One CPU's part that each event touches. Written by that CPU alone. */
struct uni_trace_cpu {
	uint64_t wptr;	/* address of the next record; in the last word of a sub-buffer: full */
	uint32_t hi;	/* upper half of the newest time stamp */
	uint32_t depth; /* calls that are open, of the depth limit's run `run` */
	uint32_t run;
	uint32_t reserved;
	uint64_t self;	 /* address of this struct */
	uint64_t next;	 /* address of the sub-buffer that is made ready, or 0 */
	uint64_t lost;	 /* events that found no room */
	uint64_t frozen; /* wptr as it was when a trigger stopped the ring, or 0: it runs */
	uint32_t cpu;
	uint32_t held; /* it is not to be frozen or thawed right now */
};

/* A ring's place and size: constant after init, but for after_freeze. */
struct uni_trace_ring {
	uint64_t cpu;  /* address of its struct uni_trace_cpu */
	uint64_t base; /* of the first sub-buffer, UNI_TRACE_SUB_SIZE-aligned */
	uint64_t nr_subs;
	/* Events since the ring was frozen, written by its CPU; they count as lost once it is
	 * thawed. Version 1: 0, and they count at once. */
	uint64_t after_freeze;
};

/* Written by the host, or by what the guest calls in trace.h; the hooks read it with each call.
 * Words of their own: each may change at any time, also while other CPUs trace. */
struct uni_trace_control {
	uint32_t enable;   /* 0: nothing is recorded, whatever is patched; after init: 1 */
	uint32_t mode;	   /* UNI_TRACE_GRAPH, ...: the hook exit_any obeys it */
	uint32_t min_time; /* cycles: exit_min and exit_any drop shorter calls; 0: none */
	uint32_t
		max_depth; /* the hooks *_any and those with arguments drop deeper calls; 0: none */
	uint32_t run;	   /* another number: the depths that CPUs counted are void */
	/* For uniscope/promise.h, whose calls do nothing if it is 0. UNI_TRACE_PROMISES_TELL:
	 * events are recorded. _KEEP is the guest's own. */
	uint32_t promises;
	uint32_t sample_hz; /* samples a second of each CPU (uniscope/sample.h); 0: none */
	uint32_t sets;	    /* changes when a host chooses functions: another one sees that by it */
	uint32_t gaps;	    /* changes when functions are switched, or `enable` set: what was open
				before has no end in the trace */
	uint32_t session;   /* of the newest start by a host; changes together with gaps */
	uint32_t enable_asked; /* `enable` as the choice of functions set it, before any trigger */
	uint32_t reserved[5];
};

#define UNI_TRACE_PROMISES_TELL 1
#define UNI_TRACE_PROMISES_KEEP 2 /* the table head.promises is kept up to date */

/* One function whose text is copied. */
struct uni_trace_text_rule {
	uint32_t function; /* low half of its address */
	uint16_t bytes;	   /* of each text, at most */
	uint8_t arguments; /* bit n: argument n is the address of a text */
	uint8_t buffers;   /* bit n: that of bytes, whose number is argument n + 1 */
};
#define UNI_TRACE_TEXT_RULES 4096 /* at most */

/* Which functions copy text: behind it lie `room` struct uni_trace_text_rule, of which the first
 * `nr` count, by rising function. The host writes these and nr while every CPU stands. */
struct uni_trace_text_rules {
	uint32_t room; /* constant */
	uint32_t nr;
};

/* Calls of a function with arguments are recorded if they hold all its conditions. */
struct uni_trace_condition {
	uint32_t function; /* low half of its address */
	uint8_t argument;  /* register, from 0 on */
	uint8_t order;	   /* UNI_TRACE_IF_*: how the argument may compare with value */
	uint8_t bits;	   /* of it that count: 1 to 64 */
	uint8_t is_signed;
	uint64_t value;
};
#define UNI_TRACE_IF_LESS    1
#define UNI_TRACE_IF_EQUAL   2
#define UNI_TRACE_IF_GREATER 4
#define UNI_TRACE_CONDITIONS 64 /* at most */

/* Behind it lie `room` struct uni_trace_condition, as with uni_trace_text_rules. */
struct uni_trace_conditions {
	uint32_t room; /* constant */
	uint32_t nr;
};

/* A variable that is read with each call of a function with arguments, and when that returns. */
struct uni_trace_read {
	uint32_t function; /* low half of its address */
	uint8_t bytes;	   /* of the variable: 1, 2, 4 or 8 */
	uint8_t is_signed;
	uint16_t reserved;
	uint64_t address;
};
#define UNI_TRACE_READS	   64 /* at most */
#define UNI_TRACE_READS_OF 4  /* of one function; others are not read */

/* Behind it lie `room` struct uni_trace_read, as with uni_trace_text_rules. */
struct uni_trace_reads {
	uint32_t room; /* constant */
	uint32_t nr;
};

/* A thread or promise that has not ended, as the guest knows it. */
struct uni_trace_promise {
	uint64_t id; /* UNI_PROMISE_NOBODY: this place is free */
	/* UNI_PROMISE_NOBODY: none. A lock waits for its owner. */
	uint64_t creator, waits_for;
	uint64_t since; /* when it began to wait, or else was made: counter */
	uint32_t type;	/* enum uni_promise_kind_of */
	uint32_t flags; /* UNI_TRACE_PROMISE_* */
	char name[24];	/* NUL-padded */
};
#define UNI_TRACE_PROMISE_MUST_END 1  /* its program said that it ends */
#define UNI_TRACE_PROMISE_MORE	   2  /* it waits for others, too */
#define UNI_TRACE_PROMISE_AWAITED  4  /* somebody has waited for it */
#define UNI_TRACE_PROMISE_LONELY   8  /* it was signalled when nobody waited for it */
#define UNI_TRACE_PROMISE_OWNS	   16 /* it has taken a lock */
#define UNI_TRACE_PROMISE_ORPHAN   32 /* a lock: its owner has ended, and has not given it back */
#define UNI_TRACE_PROMISE_UNTOLD   99 /* a type */

/* Behind it lie `room` struct uni_trace_promise. While `busy` is not 0 somebody changes one. */
struct uni_trace_promises {
	uint32_t room; /* places, a power of two; constant */
	uint32_t busy;
	uint64_t
		missed; /* changes that found no room, or the table busy: what it says may be old */
	uint64_t used;	/* places */
	uint64_t running; /* the last one to get a CPU. UNI_PROMISE_NOBODY: none; 0: not known */
};

struct uni_trace_head {
	uint8_t magic[16];
	uint32_t version;
	uint32_t size;	  /* of this struct */
	uint32_t machine; /* ELF e_machine */
	uint32_t nr_cpus;
	uint32_t sub_size;
	uint32_t ring_mode; /* enum uni_trace_ring_mode */
	uint8_t uuid[16];
	uint64_t text_window; /* upper 32 bits of the traced functions' addresses, << 32 */
	uint64_t tsc_hz;      /* 0: not known */
	uint64_t rings;	      /* address of struct uni_trace_ring[nr_cpus] */
	uint32_t epoch;	      /* changes when the counter may have jumped: resume, migration */
	uint32_t frozen;      /* every ring is to stop, or has */
	uint64_t hooks;	      /* address of the table of hooks, struct uni_trace_hooks */
	uint8_t kinds[16];    /* enum uni_trace_kind of each record id */
	uint64_t samplers;    /* address of struct uni_trace_sampler[nr_cpus]; 0: it has none */
	uint64_t features;    /* UNI_TRACE_COUNTS_EXTRA, ...; older guests: 0 */
	struct uni_trace_control control;
	/* Version 2 from here on. */
	uint64_t text_rules; /* address of struct uni_trace_text_rules; 0: it copies none */
	uint64_t promises;   /* address of struct uni_trace_promises; 0: it keeps none */
	uint64_t conditions; /* address of struct uni_trace_conditions; 0: it heeds none */
	uint64_t reads;	     /* address of struct uni_trace_reads; 0: it reads no variables */
	uint64_t reserved[4];
};

/* Statistics of a CPU's sampler. Written by that CPU alone. */
struct uni_trace_sampler {
	uint64_t ticks; /* timer interrupts while it was on */
	uint64_t samples;
	uint64_t lost;	     /* of these, the ring had no room for */
	uint64_t cycles;     /* that it took for them, from being called to the end, in all */
	uint64_t max_cycles; /* and for one at most */
	uint32_t tick_hz;    /* of the timer: no more samples a second; 0: it goes by sample_hz */
	uint32_t wait, rest; /* its own: ticks until the next sample, and behind that */
	uint32_t random;
	uint64_t last; /* when the last tick came; 0: none since it was off */
};

/* The functions that a patched site may call: addresses in the guest; 0: this guest has none. Each
 * does nothing while control.enable is 0. */
struct uni_trace_hooks {
	uint64_t entry; /* aligned functions: the return address's low nibble is an entry's id */
	uint64_t entry_any; /* any function; max_depth */
	uint64_t exit;
	uint64_t exit_lite;
	uint64_t exit_min;   /* min_time */
	uint64_t exit_any;   /* mode, min_time, max_depth: with a depth limit every traced function
				needs this one and entry_any, or those with arguments */
	uint64_t entry_args; /* UNI_TRACE_CLASS_ENTRY_ARGS; max_depth */
	uint64_t exit_value; /* UNI_TRACE_CLASS_EXIT_VALUE; max_depth */
	/* Triggers, otherwise as entry_any: */
	uint64_t entry_start;  /* enables, then records */
	uint64_t entry_stop;   /* records, then disables */
	uint64_t entry_freeze; /* records, then freezes the rings */
	uint64_t plain_exit;   /* __x86_return_thunk: as the compiler made it */
	uint64_t entry_return; /* for code of -pg alone: hooks the return address (guest/README) */
	uint64_t entry_only;   /* aligned functions, function mode: UNI_TRACE_CALL */
	uint64_t entry_text;   /* as entry_args, behind the text of its arguments */
	uint64_t entry_caller; /* any function, function mode: a call with its caller */
};

#ifdef __cplusplus
#define UNI_TRACE_ASSERT(what) static_assert(what, #what)
#else
#define UNI_TRACE_ASSERT(what) _Static_assert(what, #what)
#endif
UNI_TRACE_ASSERT(UNI_TRACE_ODD_FIRST == (UNI_TRACE_EXT | 1 << 4 | UNI_TRACE_CLASS_ENTRY << 16));
UNI_TRACE_ASSERT(UNI_TRACE_CALL_FIRST == (UNI_TRACE_EXT | 1 << 4 | UNI_TRACE_CLASS_CALL << 16));
UNI_TRACE_ASSERT(sizeof(struct uni_trace_sub) == UNI_TRACE_SUB_HEAD);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_sub, open_bytes) == UNI_TRACE_SUB_OPEN);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_sub, begin_seq) == 80);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_sub, extra_after) == UNI_TRACE_SUB_EXTRA);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_cpu, wptr) == UNI_TRACE_CPU_WPTR);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_cpu, hi) == UNI_TRACE_CPU_HI);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_cpu, depth) == UNI_TRACE_CPU_DEPTH);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_cpu, run) == UNI_TRACE_CPU_RUN);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_cpu, self) == 24);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_head, control) == UNI_TRACE_CONTROL);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_head, control.enable) == UNI_TRACE_ENABLE);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_head, control.mode) == UNI_TRACE_MODE);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_head, control.min_time) == UNI_TRACE_MIN_TIME);
UNI_TRACE_ASSERT(
	__builtin_offsetof(struct uni_trace_head, control.max_depth) == UNI_TRACE_MAX_DEPTH);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_head, control.run) == UNI_TRACE_RUN);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_control) == 64);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_sampler) == 64);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_head) == 256);
UNI_TRACE_ASSERT(__builtin_offsetof(struct uni_trace_head, text_rules) == UNI_TRACE_HEAD_OLD);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_condition) == 16);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_read) == 16);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_promise) == 64);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_promises) == 32);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_hooks) == 128);
UNI_TRACE_ASSERT(sizeof(struct uni_trace_cpu) == 64 && sizeof(struct uni_trace_ring) == 32);
#endif
#endif
