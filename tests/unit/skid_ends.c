/* SPDX-License-Identifier: BSD-2-Clause */
/* Stops of TCG at the first byte of a function that others jump or fall into; code without names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "skid_code.h"

#define MOVED  (UNI_FRAME_EXACT | UNI_FRAME_MOVED)
#define UNSURE (UNI_FRAME_EXACT | UNI_FRAME_UNSURE)

static const struct spec_sym end_syms[] = {
	FUNC("calls", 0x00, 0x24),
	FUNC("one", 0x30, 5),
	FUNC("both", 0x38, 4),
	FUNC("chain", 0x40, 2),
	FUNC("thunk", 0x50, 1),
	FUNC("loops", 0x58, 5),
	FUNC("to_loops", 0x60, 2),
	FUNC("falls", 0x64, 4),
	FUNC("behind", 0x68, 2),
	FUNC("drops", 0x78, 0x0f),
	FUNC("to_drops", 0x88, 2),
	FUNC("calls_too", 0x90, 8),
	FUNC("traps", 0xa0, 7),
	FUNC("handler", 0xa8, 3),
	FUNC("stub", 0xb0, 2),
	FUNC("by_pointer", 0xb4, 2),
	FUNC("works", 0xb8, 2),
	FUNC("tail", 0xba, 4),
	FUNC("calls_away", 0xc0, 6),
	FUNC("away", 0xc8, 2),
	FUNC("dispatch", 0xd0, 8),
	FUNC("calls_dispatch", 0xd8, 6),
	FUNC("calls_skipped", 0xf0, 0x15),
	FUNC("skipped", 0x108, 5),
	FUNC("skips", 0x110, 5),
	FUNC("pops", 0x118, 2),
	FUNC("calls_pops", 0x11c, 5),
	FUNC("tidy", 0x124, 9),
	FUNC("calls_tidy", 0x130, 5),
};

/* Functions that end in others, by jumps or by falling through. */
static const struct piece end_code[] = {
	/* call one, both, chain, to_loops, falls, thunk, thunk; ret */
	PIECE(0x00, 0xe8, 0x2b, 0, 0, 0, 0xe8, 0x2e, 0, 0, 0, 0xe8, 0x31, 0, 0, 0, 0xe8, 0x4c, 0, 0,
		0, 0xe8, 0x4b, 0, 0, 0, 0xe8, 0x32, 0, 0, 0, 0xe8, 0x2d, 0, 0, 0, 0xc3),
	/* A fix-up without a name: jmp behind the last call. */
	PIECE(0x28, 0xeb, 0xf9), PIECE(0x30, 0xe9, 0x1b, 0, 0, 0), /* jmp thunk */
	PIECE(0x38, 0x74, 0x16, 0xeb, 0xf4),			   /* je thunk; jmp one */
	PIECE(0x40, 0xeb, 0xee),				   /* jmp one */
	PIECE(0x50, 0xc3),					   /* ret */
	PIECE(0x58, 0xff, 0xc9, 0x75, 0xfc, 0xc3),		   /* dec %ecx; jne loops; ret */
	PIECE(0x60, 0xeb, 0xf6),				   /* jmp loops */
	PIECE(0x64, 0x89, 0xc0, 0x74, 0x01), /* mov %eax,%eax; je behind + 1 */
	PIECE(0x68, 0x90, 0xc3),	     /* nop; ret */
	/* Another one: jmp behind the first call of thunk. */
	PIECE(0x70, 0x89, 0xc0, 0xeb, 0xaa),
	/* GCC's thunk of returns: call 1f; 0: pause; jmp 0b; 1: lea 8(%rsp),%rsp; ret */
	PIECE(0x78, 0xe8, 4, 0, 0, 0, 0xf3, 0x90, 0xeb, 0xfc, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3),
	PIECE(0x88, 0xeb, 0xee), /* jmp drops */
	/* call to_drops; call *%rax; ret */
	PIECE(0x90, 0xe8, 0xf3, 0xff, 0xff, 0xff, 0xff, 0xd0, 0xc3),
	/* int $0x70; syscall; je back behind the latter; ret */
	PIECE(0xa0, 0xcd, 0x70, 0x0f, 0x05, 0x74, 0xfe, 0xc3),
	PIECE(0xa8, 0x90, 0x48, 0xcf), /* nop; iretq */
	PIECE(0xb0, 0xeb, 0xa6),       /* jmp loops: of a table of handlers */
	PIECE(0xb4, 0xff, 0xe0),       /* jmp *%rax */
	/* mov %eax,%eax, and on into tail: je behind the nop; nop; ret */
	PIECE(0xb8, 0x89, 0xc0, 0x74, 0x01, 0x90, 0xc3),
	PIECE(0xc0, 0xe8, 3, 0, 0, 0, 0xc3),			  /* call away; ret */
	PIECE(0xc8, 0x48, 0xcf),				  /* iretq */
	PIECE(0xd0, 0xff, 0x24, 0xc5, 0xe0, 0, 0x10, 0, 0xc3),	  /* jmp *table(,%rax,8); ret */
	PIECE(0xd8, 0xe8, 0xf3, 0xff, 0xff, 0xff, 0xc3),	  /* call dispatch; ret */
	PIECE(0xe0, 0xd7, 0, 0x10, 0, 0, 0, 0, 0, 0x50, 0, 0x10), /* table: its ret; thunk */
	/* call skipped, calls_pops, calls_tidy; nop; ret */
	PIECE(0xf0, 0xe8, 0x13, 0, 0, 0, 0xe8, 0x22, 0, 0, 0, 0xe8, 0x31, 0, 0, 0, 0x90, 0xc3),
	PIECE(0x108, 0xe8, 3, 0, 0, 0),		    /* call skips, which returns past it */
	PIECE(0x110, 0x48, 0x83, 0xc4, 8, 0xc3),    /* add $8,%rsp; ret */
	PIECE(0x118, 0x59, 0xc3),		    /* pop %rcx; ret */
	PIECE(0x11c, 0xe8, 0xf7, 0xff, 0xff, 0xff), /* call pops */
	PIECE(0x124, 0x48, 0x83, 0xec, 8, 0x90, 0x41, 0x5c, 0xc3), /* sub $8,%rsp; nop; pop; ret */
	PIECE(0x130, 0xe8, 0xef, 0xff, 0xff, 0xff, 0xc3),	   /* call tidy; ret */
};

static struct uni_skid read_ends(void)
{
	return read_pieces(
		end_code, uni_array_len(end_code), end_syms, uni_array_len(end_syms), NULL);
}

/* At a first byte, below a call of another function: which one jumped? */
static void jumper_is_named(void **state)
{
	static const struct {
		uint64_t pc, call, jumper; /* 0: not known */
		uint8_t flags;
	} row[] = {
		{ 0x50, 0x05, 0x30, MOVED },	       /* one left for thunk */
		{ 0x50, 0x0a, 0, MOVED },	       /* both, or one */
		{ 0x50, 0x0f, 0x30, MOVED },	       /* chain left for one, and that for thunk */
		{ 0x30, 0x0f, 0x30, UNSURE },	       /* one leaves, and may come back */
		{ 0x58, 0x14, 0x58, UNSURE },	       /* or loops itself */
		{ 0x68, 0x19, 0x64, MOVED },	       /* falls went on, or into it */
		{ 0x50, 0x19, 0x50, UNSURE },	       /* falls does not lead there */
		{ 0x78, 0x95, 0x88, MOVED },	       /* it drops an address, and returns */
		{ 0x78, 0x97, 0, MOVED | UNSURE },     /* a pointer led there, or to a jump */
		{ 0x81, 0x97, 0x81, UNI_FRAME_EXACT }, /* behind the call within */
	};
	struct uni_skid s = read_ends();

	for (size_t i = 0; i < uni_array_len(row); i++) {
		struct uni_chain c = unskid_by(&s, TEXT + BIAS + row[i].pc,
			TEXT + BIAS + row[i].call, 0, UNI_VCPU_RUNNING);

		assert_int_equal(c.nr, 2);
		assert_int_equal(c.pc[0], row[i].jumper != 0 ? TEXT + BIAS + row[i].jumper : 0);
		assert_int_equal(c.flags[0], row[i].flags);
		assert_int_equal(c.pc[1], TEXT + BIAS + row[i].call);
	}
	uni_skid_deinit(&s);
}

/* Behind a trap, its handler ran; at a handler's first byte, what was interrupted. */
static void handlers(void **state)
{
	static const struct {
		uint64_t pc, caller, leaf; /* 0: not known */
		uint32_t nr;
		uint8_t flags;
	} row[] = {
		{ 0xa2, 0x90, 0, 3, MOVED },		  /* behind int */
		{ 0xa4, 0x90, 0xa4, 2, UNI_FRAME_EXACT }, /* behind syscall, or the jump */
		{ 0xa8, 0xa2, 0xa1, 1, MOVED },		  /* int led to the handler */
		{ 0xa8, 0x36, 0x36, 1, MOVED },		  /* an interrupt did */
		{ 0xa8, 0x0a, 0x0a, 1, MOVED | UNSURE },  /* or one ran as soon as it returned */
		{ 0xa8, 0x58, 0x58, 1, MOVED | UNSURE },  /* or before a first byte */
		{ 0x58, 0x36, 0x58, 2, UNSURE },	  /* stub jumped to loops, or it itself */
	};
	struct uni_skid s = read_ends();

	caller_flags = UNI_FRAME_EXACT;
	for (size_t i = 0; i < uni_array_len(row); i++) {
		struct uni_chain c = unskid_by(&s, TEXT + BIAS + row[i].pc,
			TEXT + BIAS + row[i].caller, 0, UNI_VCPU_RUNNING);

		assert_int_equal(c.nr, row[i].nr);
		assert_int_equal(c.pc[0], row[i].leaf != 0 ? TEXT + BIAS + row[i].leaf : 0);
		assert_int_equal(c.flags[0], row[i].flags);
	}
	caller_flags = 0;
	uni_skid_deinit(&s);
}

/* Within a function, another one's block may have run: it jumped there, or went on. */
static void shared_places(void **state)
{
	static const uint64_t at[] = { 0x1e, 0x23, 0x69, 0xbc, 0xbd };
	struct uni_skid s = read_ends();
	struct uni_chain c;

	assert_int_equal(s.nr_shared, uni_array_len(at));
	for (size_t i = 0; i < uni_array_len(at); i++) {
		assert_int_equal(s.shared[i], TEXT + at[i]);
		c = unskid_by(&s, TEXT + BIAS + at[i], TEXT + BIAS + 0x1e, 0, UNI_VCPU_RUNNING);
		assert_int_equal(c.nr, 2);
		assert_int_equal(c.flags[0], UNSURE);
	}
	assert_int_equal(
		flags_behind(&s, TEXT + 0xc5), UNI_SKID_BEHIND | UNI_SKID_ENTERS); /* iretq */
	/* A switch whose table leads to another function, too. */
	assert_int_equal(flags_behind(&s, TEXT + 0xdd), UNI_SKID_BEHIND | UNI_SKID_ENTERS);
	uni_skid_deinit(&s);
}

/* A pointer leads to a function; or to one that jumped there by a pointer, where there is any. */
static void tail_pointers(void **state)
{
	const uint64_t called = TEXT + BIAS + 0x97, by_pointer = TEXT + BIAS + 0x64;
	struct uni_skid s = read_ends();
	struct uni_chain c;

	assert_true(s.has_tail_pointers);
	s.has_tail_pointers = false;
	c = unskid_by(&s, by_pointer, called, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.flags[0], MOVED);
	s.has_tail_pointers = true;
	c = unskid_by(&s, by_pointer, called, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.flags[0], MOVED | UNSURE);
	uni_skid_deinit(&s);
}

static void jumps_without_a_name(void **state)
{
	const uint32_t entered = UNI_SKID_RETURNS | UNI_SKID_ENTERS;
	struct uni_skid s = read_ends();

	assert_int_equal(flags_behind(&s, TEXT + 0x05), UNI_SKID_BEHIND);
	assert_int_equal(flags_behind(&s, TEXT + 0x1e), entered);
	assert_int_equal(flags_behind(&s, TEXT + 0x23), entered);
	uni_skid_deinit(&s);
}

/* A callee dropped its own return address: the word below the stack tells of its caller's. */
static void returns_past_callers(void **state)
{
	struct uni_skid s = read_ends();

	assert_int_equal(flags_behind(&s, TEXT + 0xf5), UNI_SKID_BEHIND | UNI_SKID_ENTERS);
	assert_int_equal(flags_behind(&s, TEXT + 0xfa), UNI_SKID_BEHIND | UNI_SKID_ENTERS);
	assert_int_equal(flags_behind(&s, TEXT + 0xff),
		UNI_SKID_BEHIND | UNI_SKID_RETURNS | UNI_SKID_ENTERS);
	uni_skid_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jumper_is_named),
		cmocka_unit_test(handlers),
		cmocka_unit_test(shared_places),
		cmocka_unit_test(tail_pointers),
		cmocka_unit_test(jumps_without_a_name),
		cmocka_unit_test(returns_past_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
