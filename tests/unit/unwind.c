/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../support/guest.h"
#include "base/checked.h"
#include "base/clock.h"
#include "unwind/unwind.h"

#define BASE  0x100000ull
#define SIZE  (1u << 20)
#define TEXT  BASE
#define STACK (BASE + 0x80000)

/* Functions of 0x100 bytes at TEXT; calls between them are written where a test needs them. */
enum { ENTRY, CALLER, FRAMED, FRAMELESS, MOVED, SHRINK, NR };

static uint64_t fn(unsigned i)
{
	return TEXT + i * 0x100;
}

struct fixture {
	struct guest g;
	struct uni_as *as;
	struct uni_unwinder u;
	struct uni_func_hint func[NR];
	struct uni_unwind_hints hints;
	struct uni_regs regs;
	struct uni_chain chain;
};

static void open_with(struct fixture *f, const struct uni_as_budget *budget)
{
	memset(f, 0, sizeof(*f));
	assert_true(guest_init(&f->g, BASE, SIZE, UNI_GMEM_VIRTUAL));
	memset(f->g.ram, 0x90, 0x1000);
	for (unsigned i = 0; i < NR; i++)
		f->func[i] = (struct uni_func_hint){ .start = fn(i), .size = 0x100 };
	f->func[ENTRY].flags = UNI_FUNC_ENTRY;
	for (unsigned i = FRAMELESS; i < NR; i++)
		f->func[i].flags = UNI_FUNC_FRAMELESS;
	for (unsigned i = ENTRY; i <= FRAMED; i++)
		guest_copy(&f->g, fn(i), "\x55\x48\x89\xe5", 4);
	f->hints = (struct uni_unwind_hints){ f->func, NR, TEXT, NR * 0x100 };
	assert_int_equal(uni_as_create(f->g.m, budget, &f->as, NULL), 0);
	uni_unwinder_init(&f->u, &uni_arch_x86_64, &f->hints);
}

static void open_fixture(struct fixture *f)
{
	struct uni_as_budget budget = uni_as_budget_default;

	budget.wall_ns = 0; /* a busy host must not cut chains short here */
	open_with(f, &budget);
}

static void close_fixture(struct fixture *f)
{
	uni_as_destroy(f->as);
	guest_deinit(&f->g);
}

/* call rel32 that returns to ret. */
static void put_call(struct fixture *f, uint64_t ret, uint64_t callee)
{
	guest_put(&f->g, ret - 5, 0xe8, 1);
	guest_put(&f->g, ret - 4, callee - ret, 4);
}

static void put_frame(struct fixture *f, uint64_t fp, uint64_t next, uint64_t ret)
{
	guest_put64(&f->g, fp, next);
	guest_put64(&f->g, fp + 8, ret);
}

static void unwind(struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
	f->regs = (struct uni_regs){ .pc = pc, .sp = sp, .pc_valid = true, .sp_valid = true };
	uni_regs_set(&f->regs, UNI_X86_RBP, fp);
	uni_unwind(&f->u, f->as, &f->regs, &f->chain);
}

static void expect(const struct fixture *f, enum uni_stop stop, unsigned nr, ...)
{
	va_list ap;

	assert_string_equal(uni_stop_name(f->chain.stop), uni_stop_name(stop));
	assert_int_equal(f->chain.nr, nr);
	va_start(ap, nr);
	for (unsigned i = 0; i < nr; i++)
		assert_true(f->chain.pc[i] == va_arg(ap, uint64_t));
	va_end(ap);
	assert_int_equal(f->chain.flags[0], UNI_FRAME_EXACT);
	for (unsigned i = 1; i < nr; i++)
		assert_int_equal(f->chain.flags[i], 0);
}

/* entry -> caller -> (function at pc): caller's frame at STACK + 0x100, entry's at + 0x200. */
static const uint64_t in_caller = TEXT + CALLER * 0x100 + 0x80;
static const uint64_t in_entry = TEXT + ENTRY * 0x100 + 0x80;

static void put_callers(struct fixture *f, unsigned callee)
{
	put_call(f, in_caller, fn(callee));
	put_call(f, in_entry, fn(CALLER));
	put_frame(f, STACK + 0x100, STACK + 0x200, in_entry);
}

static void plain_chain(void **state)
{
	struct fixture f;

	open_fixture(&f);
	put_callers(&f, FRAMED);
	put_frame(&f, STACK + 0x40, STACK + 0x100, in_caller);
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 3, fn(FRAMED) + 0x50, in_caller, in_entry);
	assert_int_equal(f.chain.sp[0], STACK);
	assert_int_equal(f.chain.sp[1], STACK + 0x50);
	assert_int_equal(f.chain.sp[2], STACK + 0x110);
	f.u.hints = NULL; /* then the entry is not known, and what saved its rbp is 0 */
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 3, fn(FRAMED) + 0x50, in_caller, in_entry);
	unwind(&f, in_entry, STACK, 0); /* nobody saved this 0: it may be any number */
	expect(&f, UNI_STOP_BADPTR, 1, in_entry);
	close_fixture(&f);
}

/* A frame pointer of 0 is the end only where something says so. */
static void zero_is_no_root_without_evidence(void **state)
{
	struct fixture f;

	open_fixture(&f);
	put_callers(&f, FRAMELESS);
	guest_put64(&f.g, STACK, in_caller);
	/* Called by a function that keeps a number in rbp, from one that saves none of its own. */
	f.func[CALLER].flags = UNI_FUNC_FRAMELESS;
	uni_unwinder_use(&f.u, "cfi,fp", NULL);
	unwind(&f, fn(FRAMELESS), STACK, 0);
	expect(&f, UNI_STOP_BADPTR, 2, fn(FRAMELESS), in_caller);
	/* But if it made rbp 0 itself, this is how threads begin. */
	f.func[CALLER].flags |= UNI_FUNC_CLEARS_FP;
	unwind(&f, fn(FRAMELESS), STACK, 0);
	expect(&f, UNI_STOP_ROOT, 2, fn(FRAMELESS), in_caller);
	/* Or if who was called keeps frame pointers, and so has saved a caller's. */
	f.func[CALLER].flags = UNI_FUNC_FRAMELESS;
	put_frame(&f, STACK + 0x40, 0, in_caller);
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 2, fn(FRAMED) + 0x50, in_caller);
	/* A return address of 0 that a number in rbp happens to point at is none. */
	put_frame(&f, STACK + 0x200, 0, 0);
	unwind(&f, fn(FRAMELESS), STACK, STACK + 0x200);
	expect(&f, UNI_STOP_BADPTR, 2, fn(FRAMELESS), in_caller);
	/* A scan goes on where there is no evidence; what it finds is a guess. */
	uni_unwinder_use(&f.u, "cfi,fp,scan", NULL);
	guest_put64(&f.g, STACK + 0x28, in_entry);
	unwind(&f, fn(FRAMELESS), STACK, 0);
	assert_int_equal(f.chain.nr, 3);
	assert_true(f.chain.pc[2] == in_entry && f.chain.stop == UNI_STOP_ROOT);
	assert_int_equal(f.chain.flags[1], 0);
	assert_int_equal(f.chain.flags[2], UNI_FRAME_GUESS);
	close_fixture(&f);
}

/* Code marks the end by a frame pointer that is set to 0 and was not saved before. */
static void code_that_marks_the_end(void **state)
{
	bool (*x86)(const uint8_t *, size_t) = uni_arch_x86_64.clears_fp;
	bool (*a64)(const uint8_t *, size_t) = uni_arch_aarch64.clears_fp;
	assert_true(x86((const uint8_t *)"\x31\xed\x4c\x89\xef\x41\xff\xd4", 8));
	assert_true(x86((const uint8_t *)"\xf3\x0f\x1e\xfa\x48\x31\xed", 7));
	assert_true(x86((const uint8_t *)"\x33\xed", 2));
	assert_false(x86((const uint8_t *)"\x55\x31\xed", 3));
	assert_false(x86((const uint8_t *)"\x31\xc0\xc3\x31", 4));
	assert_false(x86(NULL, 0));
	assert_true(a64((const uint8_t *)"\x00\x00\x80\xd2\xfd\x03\x1f\xaa", 8));
	assert_true(a64((const uint8_t *)"\x1d\x00\x80\xd2", 4));
	assert_false(a64((const uint8_t *)"\xfd\x7b\xbe\xa9\xfd\x03\x1f\xaa", 8));
	assert_false(a64((const uint8_t *)"\xfc\x77\xbe\xa9\xfd\x03\x1f\xaa", 8));
	assert_true(a64((const uint8_t *)"\xf3\x53\xbe\xa9\xfd\x03\x1f\xaa", 8));
	assert_false(a64((const uint8_t *)"\xfd\x03\x1f", 3));
}

/* The return address is kept when the next saved rbp is 0; a zero one is the end as well. */
static void outermost_caller_is_kept(void **state)
{
	struct fixture f;

	open_fixture(&f);
	put_frame(&f, STACK + 0x40, 0, in_caller);
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 2, fn(FRAMED) + 0x50, in_caller);
	put_frame(&f, STACK + 0x40, STACK + 0x80, 0);
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 1, fn(FRAMED) + 0x50);
	close_fixture(&f);
}

/* A call that never returns may be the last instruction: its return address is the next function.
 */
static void callers_are_found_before_the_return_address(void **state)
{
	struct fixture f;

	open_fixture(&f);
	f.func[ENTRY].flags = 0;
	f.func[FRAMED].flags = UNI_FUNC_ENTRY; /* comes right behind CALLER */
	put_frame(&f, STACK + 0x40, STACK + 0x80, fn(FRAMED));
	put_frame(&f, STACK + 0x80, 0, in_entry);
	unwind(&f, in_entry, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 3, in_entry, fn(FRAMED), in_entry);
	close_fixture(&f);
}

/* Only what a frame says is known of the caller. */
static void registers_of_the_caller(void **state)
{
	enum uni_stop stop;
	struct fixture f;

	open_fixture(&f);
	put_frame(&f, STACK + 0x40, STACK + 0x80, in_caller);
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	uni_regs_set(&f.regs, UNI_X86_RBX, 7);
	assert_int_equal(uni_arch_x86_64.fp_step(f.as, &f.hints, true, &f.regs, &stop), 0);
	assert_true(f.regs.pc == in_caller && f.regs.r[UNI_X86_RIP] == in_caller);
	assert_true(f.regs.sp == STACK + 0x50 && f.regs.r[UNI_X86_RSP] == STACK + 0x50);
	assert_true(f.regs.r[UNI_X86_RBP] == STACK + 0x80);
	assert_true(f.regs.valid == (1u << UNI_X86_RIP | 1u << UNI_X86_RSP | 1u << UNI_X86_RBP));
	close_fixture(&f);
}

/* Each position of a framed function, from its first instruction to its ret. */
static void prologue_and_epilogue(void **state)
{
	static const uint64_t slot = STACK + 0x60; /* of the return address */
	struct fixture f;
	uint64_t start = fn(FRAMED);

	open_fixture(&f);
	put_callers(&f, FRAMED);
	guest_copy(&f.g, start, "\xf3\x0f\x1e\xfa\x55\x31\xc0\x48\x89\xe5", 10);
	guest_copy(&f.g, start + 0x90, "\x5d\xc3", 2);
	guest_copy(&f.g, start + 0xa0, "\x5d\xe9", 2); /* pop rbp; jmp somewhere */
	put_frame(&f, slot - 8, STACK + 0x100, in_caller);
	for (unsigned pass = 0; pass < 2; pass++) {
		unwind(&f, start, slot, STACK + 0x100); /* endbr64 */
		expect(&f, UNI_STOP_ROOT, 3, start, in_caller, in_entry);
		unwind(&f, start + 4, slot, STACK + 0x100); /* push rbp */
		expect(&f, UNI_STOP_ROOT, 3, start + 4, in_caller, in_entry);
		if (pass == 0) { /* xor eax, eax: only who knows the start can tell */
			unwind(&f, start + 5, slot - 8, STACK + 0x100);
			expect(&f, UNI_STOP_ROOT, 3, start + 5, in_caller, in_entry);
		}
		guest_copy(&f.g, start + 4, "\x90\x90\x55", 3);
		unwind(&f, start + 7, slot - 8, STACK + 0x100); /* mov rbp, rsp */
		expect(&f, UNI_STOP_ROOT, 3, start + 7, in_caller, in_entry);
		guest_copy(&f.g, start + 4, "\x55\x31\xc0", 3);
		unwind(&f, start + 10, slot - 8, slot - 8);
		expect(&f, UNI_STOP_ROOT, 3, start + 10, in_caller, in_entry);
		unwind(&f, start + 0x90, slot - 8, slot - 8); /* pop rbp */
		expect(&f, UNI_STOP_ROOT, 3, start + 0x90, in_caller, in_entry);
		unwind(&f, start + 0x91, slot, STACK + 0x100); /* ret */
		expect(&f, UNI_STOP_ROOT, 3, start + 0x91, in_caller, in_entry);
		unwind(&f, start + 0xa1, slot, STACK + 0x100); /* jmp */
		expect(&f, UNI_STOP_ROOT, 3, start + 0xa1, in_caller, in_entry);
		f.u.hints = NULL;
	}
	close_fixture(&f);
}

static void frameless_functions(void **state)
{
	static const uint64_t slot = STACK + 0x60;
	struct fixture f;

	open_fixture(&f);
	/* rsp never moved */
	put_callers(&f, FRAMELESS);
	guest_put64(&f.g, slot, in_caller);
	guest_put(&f.g, fn(FRAMELESS), 0x75, 1); /* jne: cannot be decoded through */
	unwind(&f, fn(FRAMELESS) + 0x20, slot, STACK + 0x100);
	expect(&f, UNI_STOP_ROOT, 3, fn(FRAMELESS) + 0x20, in_caller, in_entry);
	/* called through a pointer: call rax */
	guest_copy(&f.g, in_caller - 7, "\x90\x90\x90\x90\x90\xff\xd0", 7);
	unwind(&f, fn(FRAMELESS) + 0x20, slot, STACK + 0x100);
	expect(&f, UNI_STOP_ROOT, 3, fn(FRAMELESS) + 0x20, in_caller, in_entry);
	/* nobody's return address: the chain of rbp is all there is */
	guest_copy(&f.g, in_caller - 7, "\x90\x90\x90\x90\x90\x90\x90", 7);
	unwind(&f, fn(FRAMELESS) + 0x20, slot, STACK + 0x100);
	expect(&f, UNI_STOP_ROOT, 2, fn(FRAMELESS) + 0x20, in_entry);
	/* rsp moved by pushes behind a branch: found by the call of this very function */
	put_callers(&f, MOVED);
	guest_put(&f.g, fn(MOVED), 0x75, 1);
	for (unsigned words = 0; words < 12; words++) {
		guest_put64(&f.g, slot - words * 8, words == 0 ? in_caller : fn(FRAMED) + 0x33);
		unwind(&f, fn(MOVED) + 0x20, slot - words * 8, STACK + 0x100);
		expect(&f, UNI_STOP_ROOT, 3, fn(MOVED) + 0x20, in_caller, in_entry);
	}
	/* nothing but pushes before pc: counted, whatever was called */
	guest_copy(&f.g, in_caller - 7, "\x90\x90\x90\x90\x90\xff\xd0", 7);
	guest_copy(&f.g, fn(MOVED), "\x53\x41\x54\x48\x83\xec\x10\x90", 8);
	unwind(&f, fn(MOVED) + 7, slot - 32, STACK + 0x100);
	expect(&f, UNI_STOP_ROOT, 3, fn(MOVED) + 7, in_caller, in_entry);
	/* a push that is too far from the start to be seen */
	put_callers(&f, MOVED);
	memset(f.g.ram + MOVED * 0x100, 0x90, 0x100);
	guest_put64(&f.g, slot - 8, 0);
	unwind(&f, fn(MOVED) + 0x60, slot - 8, STACK + 0x100);
	expect(&f, UNI_STOP_ROOT, 3, fn(MOVED) + 0x60, in_caller, in_entry);
	close_fixture(&f);
}

/* A frame set up late must not be counted twice. */
static void shrink_wrapped_function(void **state)
{
	static const uint64_t fp = STACK + 0x60;
	struct fixture f;

	open_fixture(&f);
	put_callers(&f, SHRINK);
	guest_copy(&f.g, fn(SHRINK), "\x75\x10", 2);
	put_frame(&f, fp, STACK + 0x100, in_caller);
	unwind(&f, fn(SHRINK) + 0x40, fp - 0x20, fp); /* the frame is there */
	expect(&f, UNI_STOP_ROOT, 3, fn(SHRINK) + 0x40, in_caller, in_entry);
	unwind(&f, fn(SHRINK) + 0x40, fp - 0x1000, fp); /* far below, with its locals */
	expect(&f, UNI_STOP_ROOT, 3, fn(SHRINK) + 0x40, in_caller, in_entry);
	guest_put64(&f.g, fp - 0x1000, in_entry); /* a word that an earlier call left there */
	unwind(&f, fn(SHRINK) + 0x40, fp - 0x1000, fp);
	expect(&f, UNI_STOP_ROOT, 3, fn(SHRINK) + 0x40, in_caller, in_entry);
	unwind(&f, fn(SHRINK) + 0x10, fp + 8, STACK + 0x100); /* the way without a frame */
	expect(&f, UNI_STOP_ROOT, 3, fn(SHRINK) + 0x10, in_caller, in_entry);
	close_fixture(&f);
}

static void hostile_chains_end(void **state)
{
	const uint64_t pc = fn(FRAMED) + 0x50, fp = STACK + 0x40;
	struct fixture f;

	open_fixture(&f);
	put_frame(&f, fp, fp, in_caller); /* cyclic */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_LOOP, 2, pc, in_caller);
	put_frame(&f, fp, fp - 0x20, in_caller); /* descending */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_LOOP, 2, pc, in_caller);
	put_frame(&f, fp, fp + 8, in_caller); /* overlapping */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_LOOP, 2, pc, in_caller);
	put_frame(&f, fp, fp + 0x21, in_caller); /* misaligned */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_BADPTR, 2, pc, in_caller);
	put_frame(&f, fp, UINT64_MAX - 15, in_caller); /* wraps */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_BADPTR, 2, pc, in_caller);
	put_frame(&f, fp, BASE + SIZE, in_caller); /* not mapped */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_FAULT, 2, pc, in_caller);
	put_frame(&f, fp, BASE + SIZE - 8, in_caller); /* half of it mapped */
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_FAULT, 2, pc, in_caller);
	unwind(&f, pc, STACK + 0x80, fp); /* below rsp */
	expect(&f, UNI_STOP_LOOP, 1, pc);
	f.g.gone_at = 1;
	unwind(&f, pc, STACK, fp);
	expect(&f, UNI_STOP_GONE, 1, pc);
	close_fixture(&f);
}

/* A chain with too many frames has the same number of inner and outer ones at every depth. */
static void expect_ends(const struct fixture *f, unsigned depth)
{
	const struct uni_chain *c = &f->chain;
	bool deep = depth + 1 > UNI_CHAIN_MAX;
	unsigned nr = deep ? UNI_CHAIN_INNER + UNI_CHAIN_OUTER : depth + 1;

	assert_int_equal(c->nr, nr);
	assert_int_equal(c->stop, UNI_STOP_ROOT);
	for (unsigned i = 1; i < nr; i++) {
		bool outer = deep && i >= UNI_CHAIN_INNER;
		uint64_t at = outer ? depth + 1 - nr + i : i;

		assert_int_equal(c->flags[i], outer && i == UNI_CHAIN_INNER ? UNI_FRAME_GAP : 0);
		assert_true(c->pc[i] == in_caller && c->sp[i] == STACK + (at - 1) * 32 + 16);
	}
}

static void deep_chains_stop(void **state)
{
	static const struct uni_as_budget small = { .bytes = 8192, .table_loads = 16 };
	struct fixture f;

	for (unsigned depth = UNI_CHAIN_MAX - 2; depth < UNI_CHAIN_DEPTH;
		depth += depth < 650 ? 1 : UNI_CHAIN_DEPTH - 651) {
		open_fixture(&f);
		for (unsigned i = 0; i < depth; i++)
			put_frame(&f, STACK + i * 32, i + 1 < depth ? STACK + (i + 1) * 32 : 0,
				in_caller);
		unwind(&f, fn(FRAMED) + 0x50, STACK, STACK);
		expect_ends(&f, depth);
		f.u.max_frames = 3;
		unwind(&f, fn(FRAMED) + 0x50, STACK, STACK);
		assert_int_equal(f.chain.nr, 3);
		assert_int_equal(f.chain.stop, UNI_STOP_LIMIT);
		close_fixture(&f);
	}
	open_with(&f, &small);
	for (unsigned i = 0; i < 100; i++)
		put_frame(&f, STACK + i * 0x1000, STACK + (i + 1) * 0x1000, in_caller);
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK);
	assert_int_equal(f.chain.stop, UNI_STOP_BUDGET);
	assert_in_range(f.chain.nr, 2, 3);
	close_fixture(&f);
}

/* Frame i has 16 bytes, 32 if bit i % period of `large` is set, 48 if one of `odd` in the middle.
 */
static uint8_t deep_stop(unsigned depth, unsigned period, uint64_t large, unsigned odd)
{
	uint64_t fp = STACK, next;
	struct fixture f;
	const struct uni_chain *c = &f.chain;

	open_fixture(&f);
	for (unsigned i = 0; i < depth; i++, fp = next) {
		next = fp + ((large >> i % period & 1) != 0 ? 32 : 16);
		if (i - depth / 2 < odd)
			next = fp + 48;
		put_frame(&f, fp, i + 1 < depth ? next : 0, in_caller);
	}
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK);
	assert_int_equal(c->nr, UNI_CHAIN_INNER + UNI_CHAIN_OUTER);
	for (unsigned i = 1; i < c->nr; i++) {
		uint64_t rose = c->sp[i] - c->sp[i - 1];

		assert_true(c->pc[i] == in_caller);
		assert_true(c->flags[i] == UNI_FRAME_GAP ? i == UNI_CHAIN_INNER : rose <= 48);
	}
	assert_true(c->stop != UNI_STOP_ROOT || fp - c->sp[c->nr - 1] < 48);
	close_fixture(&f);
	return f.chain.stop;
}

/* A recursion has its root, however deep it is. Other chains end after so many frames. */
static void recursion_has_its_root(void **state)
{
	assert_int_equal(deep_stop(4 * UNI_CHAIN_DEPTH, 1, 0, 0), UNI_STOP_ROOT);
	assert_int_equal(deep_stop(4 * UNI_CHAIN_DEPTH, 3, 2, 0), UNI_STOP_ROOT);
	assert_int_equal(deep_stop(4 * UNI_CHAIN_DEPTH, 31, 1ull << 30, 0), UNI_STOP_ROOT);
	assert_int_equal(deep_stop(4 * UNI_CHAIN_DEPTH, 1, 0, 1), UNI_STOP_ROOT);
	assert_int_equal(deep_stop(4 * UNI_CHAIN_DEPTH, 1, 0, 300), UNI_STOP_ROOT);
	assert_int_equal(deep_stop(4 * UNI_CHAIN_DEPTH, 63, 0x5a5a5a5a12345678, 0), UNI_STOP_LIMIT);
}

static void missing_registers(void **state)
{
	struct fixture f;

	open_fixture(&f);
	f.regs = (struct uni_regs){ 0 };
	uni_unwind(&f.u, f.as, &f.regs, &f.chain);
	assert_int_equal(f.chain.nr, 0);
	assert_int_equal(f.chain.stop, UNI_STOP_NOREGS);
	f.regs.pc = fn(FRAMED);
	f.regs.pc_valid = true;
	uni_unwind(&f.u, f.as, &f.regs, &f.chain);
	expect(&f, UNI_STOP_NOREGS, 1, fn(FRAMED));
	close_fixture(&f);
}

/* Under paging: a return address that is not canonical, not mapped, or outside of the image. */
static void return_addresses_are_code(void **state)
{
	struct uni_regs sys = { 0 };
	struct fixture f;
	const uint64_t fp = BASE + 0x40, other = BASE + 0x1000;

	memset(&f, 0, sizeof(f));
	assert_true(guest_init(&f.g, 0, 2 * SIZE, UNI_GMEM_PHYSICAL));
	assert_int_equal(uni_as_create(f.g.m, &uni_as_budget_once, &f.as, NULL), 0);
	for (unsigned i = 0; i < 3; i++) /* 4-level, the first 2 MiB are one leaf */
		guest_put64(&f.g, 0x1000 * (i + 1), i == 2 ? 0x81 : 0x1000 * (i + 2) | 1);
	uni_regs_set_sys(&sys, UNI_X86_CR0, 0x80000001);
	uni_regs_set_sys(&sys, UNI_X86_CR3, 0x1000);
	uni_regs_set_sys(&sys, UNI_X86_CR4, 0x20);
	uni_regs_set_sys(&sys, UNI_X86_EFER, 0xd00);
	f.hints = (struct uni_unwind_hints){ .text_start = TEXT, .text_size = 0x100 };
	for (unsigned pass = 0; pass < 2; pass++) {
		uni_unwinder_init(&f.u, &uni_arch_x86_64, pass == 0 ? &f.hints : NULL);
		f.regs = sys;
		f.regs.pc = TEXT + 0x50;
		f.regs.sp = BASE;
		f.regs.pc_valid = f.regs.sp_valid = true;
		uni_regs_set(&f.regs, UNI_X86_RBP, fp);
		put_frame(&f, fp, 0, 0x0000800000000000ull);
		uni_unwind(&f.u, f.as, &f.regs, &f.chain);
		expect(&f, UNI_STOP_BADPC, 1, TEXT + 0x50);
		put_frame(&f, fp, 0, 0x200001); /* the next 2 MiB */
		uni_unwind(&f.u, f.as, &f.regs, &f.chain);
		expect(&f, UNI_STOP_BADPC, 1, TEXT + 0x50);
		put_frame(&f, fp, 0, other); /* another image */
		uni_unwind(&f.u, f.as, &f.regs, &f.chain);
		expect(&f, UNI_STOP_ROOT, 2, TEXT + 0x50, other);
	}
	f.regs.sys_valid = 0; /* no way to read anything */
	uni_unwind(&f.u, f.as, &f.regs, &f.chain);
	expect(&f, UNI_STOP_NOREGS, 1, TEXT + 0x50);
	close_fixture(&f);
}

static int knows_nothing(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	++*(unsigned *)ctx;
	return -UNI_ENOTSUP;
}

static int stays(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	++*(unsigned *)ctx;
	return 0;
}

static void steppers_are_tried_in_order(void **state)
{
	static const struct uni_unwinder_ops none = { "none", knows_nothing };
	static const struct uni_unwinder_ops stay = { "stay", stays };
	unsigned calls = 0;
	struct fixture f;

	open_fixture(&f);
	put_frame(&f, STACK + 0x40, 0, in_caller);
	assert_int_equal(uni_unwinder_use(&f.u, "cfi,fp", NULL), 0);
	f.u.stepper[0].ops = &none;
	f.u.stepper[0].ctx = &calls;
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_ROOT, 2, fn(FRAMED) + 0x50, in_caller);
	assert_int_equal(calls, 2);
	f.u.stepper[1].ops = NULL;
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	expect(&f, UNI_STOP_BADPC, 1, fn(FRAMED) + 0x50);
	f.u.stepper[0].ops = &stay; /* the leaf may leave rsp alone, nobody else */
	calls = 0;
	unwind(&f, fn(FRAMED) + 0x50, STACK, STACK + 0x40);
	assert_int_equal(f.chain.stop, UNI_STOP_LOOP);
	assert_int_equal(calls, 2);
	close_fixture(&f);
}

/* Says what a chain costs; only an absurd price fails. */
static void price_of_a_frame(void **state)
{
	const unsigned depth = 100, rounds = 20000;
	struct fixture f;
	uint64_t t, ns;

	open_fixture(&f);
	for (unsigned i = 0; i < depth; i++)
		put_frame(&f, STACK + i * 64, STACK + (i + 1) * 64, in_caller);
	guest_put64(&f.g, STACK + (depth - 1) * 64, 0);
	t = uni_now_ns();
	for (unsigned i = 0; i < rounds; i++)
		unwind(&f, fn(FRAMED) + 0x50, STACK, STACK);
	ns = uni_now_ns() - t;
	assert_int_equal(f.chain.nr, depth + 1);
	print_message("%u ns a chain of %u frames, %u ns a frame\n", (unsigned)(ns / rounds), depth,
		(unsigned)(ns / rounds / depth));
	assert_true(ns / rounds / depth < 100000);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_chain),
		cmocka_unit_test(zero_is_no_root_without_evidence),
		cmocka_unit_test(code_that_marks_the_end),
		cmocka_unit_test(outermost_caller_is_kept),
		cmocka_unit_test(callers_are_found_before_the_return_address),
		cmocka_unit_test(registers_of_the_caller),
		cmocka_unit_test(prologue_and_epilogue),
		cmocka_unit_test(frameless_functions),
		cmocka_unit_test(shrink_wrapped_function),
		cmocka_unit_test(hostile_chains_end),
		cmocka_unit_test(deep_chains_stop),
		cmocka_unit_test(recursion_has_its_root),
		cmocka_unit_test(missing_registers),
		cmocka_unit_test(return_addresses_are_code),
		cmocka_unit_test(steppers_are_tried_in_order),
		cmocka_unit_test(price_of_a_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
