/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side's chains against the unwinder's, on this very program's code with made-up stacks
 * and page tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kvmchain_guest.h"

#define DATA_VA (STACK_VA + 0x2000000) /* may be executed */
#define DEEP_VA (STACK_VA + 0x1000000) /* another stack, for many frames */

static uint64_t leaf_rbx; /* of the chains that are compared */

static uint64_t some_call(struct fixture *f)
{
	return f->call[rnd(f) % f->nr_calls];
}

/* A stack full of what stacks are full of: return addresses, pointers into it, numbers. */
static void fill_stack(struct fixture *f)
{
	for (uint64_t va = STACK_VA; va < STACK_VA + STACK_SIZE; va += 8) {
		uint64_t kind = rnd(f) % 8, value = rnd(f) >> (rnd(f) % 64);

		if (kind < 2)
			value = some_call(f);
		else if (kind == 2)
			value = STACK_VA + rnd(f) % STACK_SIZE;
		poke(f, va, value);
	}
}

/* Frames from sp up, with the pc's own call in front, so that all is as it would be. */
static uint64_t true_frames(struct fixture *f, uint64_t fp, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		uint64_t next = fp + 16 + rnd(f) % 20 * 8;

		poke(f, fp, i + 1 == nr ? 0 : next);
		poke(f, fp + 8, some_call(f));
		fp = next;
	}
	return fp;
}

static bool expressed(const struct fixture *f, const struct uni_chain *c);

/* Frames beyond what one byte can say, of functions that set up no frame pointer: not done. */
static bool is_far(struct fixture *f, uint64_t pc)
{
	const struct uni_func_hint *h = uni_hints_find(f->hints, pc);
	uint8_t code[UNI_X86_START_MAX];
	uint32_t moved = 0;

	if (h == NULL || (h->flags & UNI_FUNC_FRAMELESS) == 0)
		return false;
	read_code(f, h->start, code, sizeof(code));
	(void)uni_x86_64_pushed(code, uni_min(sizeof(code), (size_t)(pc - h->start)), &moved);
	return moved / 8 > UNI_LEAF_SEARCH_MAX - UNI_LEAF_SEARCH;
}

static uint64_t callee_of(const struct fixture *f, uint16_t nr)
{
	return nr < 2 ? 0 : f->scratch.pc[nr - 2] - (nr != 2);
}

/* Several frames? */
static bool compare_rows(
	struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp, uint64_t *compared)
{
	struct uni_bpf_regs *b = &f->scratch.regs;
	struct uni_regs r = { 0 };
	struct uni_chain want;
	uint16_t nr;
	uint8_t stop;

	if (is_far(f, pc))
		return false;
	long_mode(f, b);
	b->pc = r.pc = pc;
	b->sp = r.sp = sp;
	b->fp = fp;
	b->saved[0] = leaf_rbx;
	r.pc_valid = r.sp_valid = true;
	uni_regs_set(&r, UNI_X86_RIP, pc);
	uni_regs_set(&r, UNI_X86_RSP, sp);
	uni_regs_set(&r, UNI_X86_RBP, fp);
	uni_regs_set(&r, UNI_X86_RBX, leaf_rbx);
	uni_regs_set_sys(&r, UNI_X86_CR0, b->cr0);
	uni_regs_set_sys(&r, UNI_X86_CR3, b->cr3);
	uni_regs_set_sys(&r, UNI_X86_CR4, b->cr4);
	uni_regs_set_sys(&r, UNI_X86_EFER, b->efer);
	uni_unwind(&f->unwinder, f->as, &r, &want);
	assert_int_equal(uni_chain(&f->guest, &f->scratch), 1);
	nr = (uint16_t)f->scratch.nr;
	stop = (uint8_t)f->scratch.stop;
	/* The loader cuts chains at entry points. */
	for (uint16_t i = 0; i < nr; i++) {
		const struct uni_func_hint *h =
			uni_hints_find(f->hints, f->scratch.pc[i] - (i != 0));

		if (h == NULL || (h->flags & UNI_FUNC_ENTRY) == 0)
			continue;
		nr = (uint16_t)(i + 1);
		stop = UNI_STOP_ROOT;
	}
	/* And judges where rbp is 0. */
	if (stop == UNI_BPF_STOP_FP_0)
		stop = uni_hints_is_end(
			       f->hints, callee_of(f, nr), f->scratch.pc[nr - 1] - (nr != 1))
			       ? UNI_STOP_ROOT
			       : UNI_STOP_BADPTR;
	if (stop == UNI_BPF_STOP_RA_0)
		stop = uni_hints_is_first(f->hints, f->scratch.pc[nr - 1] - (nr != 1))
			       ? UNI_STOP_ROOT
			       : UNI_STOP_BADPC;
	if (compared != NULL && !expressed(f, &want))
		return false;
	if (compared != NULL)
		++*compared;
	if (compared != NULL && want.stop == UNI_STOP_BADPC && nr >= want.nr) {
		nr = want.nr; /* code without rows: we go on by frame pointers */
		stop = want.stop;
	}
	if (compared != NULL && stop == UNI_STOP_BADPC && nr < want.nr) {
		want.nr = nr; /* the unwinder has followed the code, where rows are wrong */
		want.stop = stop;
	}
	if (nr != want.nr || stop != want.stop ||
		memcmp(f->scratch.pc, want.pc, nr * sizeof(want.pc[0])) != 0)
		fail_msg("pc %#llx (rule %u) sp %#llx fp %#llx: %u frames (stop %u), want %u (stop "
			 "%u)",
			(unsigned long long)pc, rule_of(f, pc), (unsigned long long)sp,
			(unsigned long long)fp, nr, stop, want.nr, want.stop);
	return nr > 2;
}

static void compare(struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
	(void)compare_rows(f, pc, sp, fp, NULL);
}

/* Every pc of the code, with the stack of a frame that is set up, or not yet, or no more. */
static void test_same_as_unwinder(void **state)
{
	struct fixture *f = *state;
	uint64_t end = f->hints->text_size;

	fill_stack(f);
	for (uint64_t off = 0; off < end; off = next_pc(f, off)) {
		uint64_t pc = f->hints->text_start + off;
		uint64_t sp = STACK_VA + rnd(f) % (STACK_SIZE / 2) / 8 * 8;
		uint64_t fp = sp + rnd(f) % 24 * 8;

		if (rnd(f) % 1500 == 0)
			fill_stack(f);
		(void)true_frames(f, fp, 1 + rnd(f) % 6);
		if (rnd(f) % 2 == 0)
			poke_call_of(f, sp + rnd(f) % 6 * 8, pc);
		compare(f, pc, sp, fp);
	}
}

/* Nonsense is the same nonsense. */
static void test_same_nonsense(void **state)
{
	struct fixture *f = *state;

	fill_stack(f);
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t pc = rnd(f) % 8 == 0 ? rnd(f)
					      : f->hints->text_start + rnd(f) % f->hints->text_size;
		uint64_t sp = STACK_VA + rnd(f) % (STACK_SIZE + 4096) / 8 * 8;
		uint64_t fp = rnd(f) % 4 == 0 ? rnd(f) : STACK_VA + rnd(f) % STACK_SIZE;

		if (i % 1000 == 0)
			fill_stack(f);
		compare(f, pc, sp, fp / (rnd(f) % 4 == 0 ? 1 : 8) * (rnd(f) % 4 == 0 ? 1 : 8));
	}
}

/* Can the rows of this chain be said in the kernel? Registers besides rsp and rbp cannot. */
static bool expressed(const struct fixture *f, const struct uni_chain *c)
{
	for (uint16_t i = 0; i < c->nr; i++) {
		const struct uni_cfi_rule *r = uni_cfi_find(f->hints->cfi, c->pc[i] - (i != 0));

		if (r != NULL && (r->cfa.how != UNI_CFI_REG ||
					 (r->cfa.reg != UNI_X86_RSP && r->cfa.reg != UNI_X86_RBP) ||
					 r->fp.how == UNI_CFI_AT_EXPR || r->flags != 0))
			return false;
	}
	return true;
}

/* Some frames as the rows of the code have them: the return address, and the caller's rbp. */
static void row_frames(struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct uni_cfi_rule *r = uni_cfi_find(f->hints->cfi, pc - (i != 0));
		uint64_t cfa;

		if (r == NULL || r->cfa.how != UNI_CFI_REG)
			return;
		cfa = (r->cfa.reg == UNI_X86_RBP ? fp : sp) + (uint64_t)(int64_t)r->cfa.arg;
		if (cfa <= sp || cfa > STACK_VA + STACK_SIZE - 32 * 8)
			return;
		if (r->fp.how == UNI_CFI_AT_CFA) {
			fp = cfa + rnd(f) % 24 * 8;
			poke(f, cfa + (uint64_t)(int64_t)r->fp.arg, fp);
		}
		pc = some_call(f);
		poke(f, cfa - 8, pc);
		sp = cfa;
	}
}

/* The same by unwind rows: each function's caller is found with a true frame of its rows. */
static void test_same_by_rows(void **state)
{
	struct fixture *f = *state;
	uint64_t end = f->hints->text_size, compared = 0, whole = 0;

	assert_non_null(f->hints->cfi);
	use_rows(f, true);
	fill_stack(f);
	for (uint64_t off = 0; off < end; off = next_pc(f, off)) {
		uint64_t pc = f->hints->text_start + off;
		uint64_t sp = STACK_VA + rnd(f) % (STACK_SIZE / 2) / 8 * 8;
		uint64_t fp = sp + rnd(f) % 24 * 8;

		if (rnd(f) % 1500 == 0)
			fill_stack(f);
		row_frames(f, pc, sp, fp);
		whole += compare_rows(f, pc, sp, fp, &compared);
	}
	use_rows(f, false);
	assert_true(compared > 1000);
	assert_true(whole > compared / 4);
}

/*
 * Rows of code that runs on another stack than its caller, as OCaml 5's. by_rbx keeps the caller's
 * stack pointer in rbx, by_link at [rsp + 8]; by_parent has a pointer to where it is at [rsp + 56].
 */
#define SWITCH_FN(name, first)                                                         \
	__asm__(".text\n.globl " name "\n.type " name ", @function\n" name             \
		":\n.cfi_startproc\n" first "nop\nnop\nret\n.cfi_endproc\n.size " name \
		", . - " name "\n")
SWITCH_FN("switch_saver", "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n");
SWITCH_FN("switch_by_rbx", "nop\n.cfi_def_cfa_register rbx\n");
SWITCH_FN("switch_by_link", "nop\n.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8\n");
SWITCH_FN("switch_by_parent", "nop\n.cfi_escape 0x0f, 8, 0x77, 56, 0x06, 0x23, 0, 0x06, 0x23, 8\n");

/* Behind the first instruction of one of them, and a nop. */
static uint64_t in_switch(struct fixture *f, const char *name)
{
	uint64_t addr, size;

	assert_int_equal(uni_image_find(f->image, name, &addr, &size), 0);
	return addr + 2;
}

/* A word that points into memory that may be executed is a caller if a call stands before it. */
static void words_of_another_stack(struct fixture *f, uint64_t sp)
{
	static const struct {
		const char *bytes;
		bool call;
	} c[] = { { "12345678", false },
		{ "123\xe8"
		  "4567",
			true },
		{ "12345\xff"
		  "67",
			false },
		{ "123456\xff\xd0", true }, { "123456\xff\xc0", false },
		{ "12345\xff\x50"
		  "7",
			true },
		{ "1234\xff\x54"
		  "67",
			true },
		{ "12\xff\x90"
		  "4567",
			true },
		{ "1\xff\x94"
		  "24567",
			true },
		{ "12345\xff\x14\x24", true },
		{ "12\xff\x15"
		  "4567",
			true },
		{ "1\xff\x14\x25"
		  "4567",
			true },
		{ "1\xff\x14\x24"
		  "4567",
			false } };
	uint64_t word, n = 0, at = DATA_VA + 0x808;

	for (size_t i = 0; i < uni_array_len(c); i++) {
		memcpy(&word, c[i].bytes, sizeof(word));
		poke(f, at - 8, word);
		poke(f, sp, at);
		leaf_rbx = sp;
		(void)compare_rows(f, in_switch(f, "switch_by_rbx"), sp - 0x100, 0, &n);
		assert_int_equal(f->scratch.nr > 1 && f->scratch.pc[1] == at, c[i].call);
	}
}

static void test_other_stacks(void **state)
{
	struct fixture *f = *state;
	const uint64_t c = STACK_VA + 0x4000, low = STACK_VA + 0x800, fiber = STACK_VA + 0x1800;

	use_rows(f, true);
	/* C on the upper stack, called by code on the lowest, which a fiber began. */
	leaf_rbx = 0xbad;
	poke(f, c, low); /* rbx of switch_by_rbx */
	poke(f, c + 8, in_switch(f, "switch_by_rbx"));
	poke(f, low, in_switch(f, "switch_by_parent")); /* CFA low + 8 */
	poke(f, low + 8 + 56, fiber - 0x100);
	poke(f, fiber - 0x100, fiber);
	poke(f, fiber, in_switch(f, "switch_by_link"));
	poke(f, fiber + 8 + 8, low + 0x200);
	poke(f, low + 0x200, 0);
	assert_true(compare_rows(f, in_switch(f, "switch_saver"), c, 0, NULL));
	assert_int_equal(f->scratch.nr, 4);
	assert_int_equal(f->scratch.stop, UNI_BPF_STOP_RA_0);
	/* In front of the push, rbx is in its register. */
	leaf_rbx = low;
	poke(f, low, in_switch(f, "switch_by_rbx"));
	compare(f, in_switch(f, "switch_by_rbx"), c, 0);
	/* It is its own caller: a circle. */
	poke(f, low + 8 + 8, low);
	poke(f, low, in_switch(f, "switch_by_link"));
	compare(f, in_switch(f, "switch_by_rbx"), c, 0);
	assert_int_equal(f->scratch.stop, UNI_STOP_LOOP);
	assert_true(f->scratch.nr < 8);
	words_of_another_stack(f, low);
	leaf_rbx = 0;
	use_rows(f, false);
}

/* In a function that has set up its frame. */
static uint64_t framed_pc(const struct fixture *f)
{
	for (size_t i = 0; i < f->hints->nr_funcs; i++) {
		const struct uni_func_hint *h = &f->hints->func[i];

		if ((h->flags & ~UNI_FUNC_CALLED) == 0 && h->size > 64)
			return h->start + 48;
	}
	fail();
	return 0;
}

static void test_ends(void **state)
{
	struct fixture *f = *state;
	uint64_t pc = framed_pc(f);

	memset(&f->scratch, 0, sizeof(f->scratch));
	for (uint64_t fp = STACK_VA; fp < STACK_VA + STACK_SIZE; fp += 16) {
		poke(f, fp, fp + 16);
		poke(f, fp + 8, f->call[0]);
	}
	compare(f, pc, STACK_VA, STACK_VA);
	assert_int_equal(f->scratch.stop, UNI_STOP_FAULT); /* the stack's end */
	assert_int_equal(f->scratch.nr, UNI_CHAIN_INNER + UNI_CHAIN_OUTER);
	assert_int_equal(f->scratch.gap, UNI_BPF_GAP);
	/* A value that can only be data is no return address, to either of us. */
	poke(f, STACK_VA + 24, STACK_VA + 64);
	compare(f, pc, STACK_VA, STACK_VA);
	assert_int_equal(f->scratch.stop, UNI_STOP_BADPC);
	assert_int_equal(f->scratch.nr, 2);
}

/* Frame i has 16 bytes, 32 if bit i % period of `large` is set, 48 if one of `odd` in the middle.
 */
static void check_deep(
	struct fixture *f, unsigned period, uint64_t large, unsigned odd, enum uni_stop stop)
{
	const unsigned depth = 4 * UNI_CHAIN_DEPTH;
	uint64_t fp = DEEP_VA, next;

	for (unsigned i = 0; i < depth; i++, fp = next) {
		next = fp + ((large >> i % period & 1) != 0 ? 32 : 16);
		if (i - depth / 2 < odd)
			next = fp + 48;
		poke(f, fp, i + 1 == depth ? 0 : next);
		poke(f, fp + 8, f->call[i % period]);
	}
	compare(f, framed_pc(f), DEEP_VA, DEEP_VA);
	assert_int_equal(f->scratch.nr, UNI_CHAIN_INNER + UNI_CHAIN_OUTER);
	assert_int_equal(f->scratch.gap, UNI_BPF_GAP);
	assert_int_equal(f->scratch.stop, stop);
	for (unsigned i = 0; i < UNI_CHAIN_OUTER && stop == UNI_BPF_STOP_FP_0; i++)
		assert_true(f->scratch.pc[UNI_CHAIN_INNER + UNI_CHAIN_OUTER - 1 - i] ==
			    f->call[(depth - 1 - i) % period]);
}

/* A recursion has its root, however deep it is, as in unit/unwind.c; others end at the limit. */
static void test_recursion(void **state)
{
	struct fixture *f = *state;

	check_deep(f, 1, 0, 0, UNI_BPF_STOP_FP_0);
	check_deep(f, 3, 2, 0, UNI_BPF_STOP_FP_0);
	check_deep(f, 31, 1ull << 30, 0, UNI_BPF_STOP_FP_0);
	check_deep(f, 1, 0, 1, UNI_BPF_STOP_FP_0);
	check_deep(f, 1, 0, 300, UNI_BPF_STOP_FP_0);
	check_deep(f, 63, 0x5a5a5a5a12345678, 0, UNI_STOP_LIMIT);
}

static uint64_t hva_of(struct fixture *f, const struct uni_bpf_regs *r, uint64_t va)
{
	uint64_t hva = uni_translate(&f->guest, r, va, false);

	return hva == 0 ? 0 : hva - (uint64_t)(uintptr_t)f->ram + RAM_GPA;
}

static void test_page_tables(void **state)
{
	struct fixture *f = *state;
	uint64_t pml5 = new_page(f), pml4 = new_page(f), pdpt = new_page(f), pd = new_page(f);
	struct uni_bpf_regs r = { 0 };

	long_mode(f, &r);
	r.cr3 = pml4 | 0x18; /* flags are no address */
	*entry(f, pml4, 1) = pdpt | 3;
	*entry(f, pdpt, 0) = pd | 3;
	*entry(f, pdpt, 1) = RAM_GPA | 0x1000 | 0x83; /* 1 GiB, bit 12 is PAT */
	*entry(f, pd, 3) = RAM_GPA | 0x200000 | 0x1000 | 0x83;
	*entry(f, pd, 4) = RAM_GPA | 0x400000 | 0x4000 | 0x83; /* a reserved bit */
	assert_int_equal(
		hva_of(f, &r, 0x8000000000ull + 3 * 0x200000 + 0x12345), RAM_GPA + 0x212345);
	assert_int_equal(hva_of(f, &r, 0x8000000000ull + 4 * 0x200000), 0);
	assert_int_equal(hva_of(f, &r, 0x8040000000ull + 0x5678), RAM_GPA + 0x5678);
	assert_int_equal(hva_of(f, &r, 0x8040000000ull + 0x1000000), 0); /* beyond RAM */
	assert_int_equal(hva_of(f, &r, 0x8080000000ull), 0);		 /* not present */
	assert_int_equal(hva_of(f, &r, 0x0000900000000000ull), 0);	 /* not canonical */
	*entry(f, pd, 3) |= UNI_PT_NX;
	assert_int_not_equal(hva_of(f, &r, 0x8000000000ull + 3 * 0x200000), 0);
	assert_int_equal(uni_translate(&f->guest, &r, 0x8000000000ull + 3 * 0x200000, true), 0);
	assert_int_not_equal(uni_translate(&f->guest, &r, 0x8040000000ull, true), 0);
	*entry(f, pml4, 1) |= UNI_PT_NX; /* of all below */
	assert_int_equal(uni_translate(&f->guest, &r, 0x8040000000ull, true), 0);
	*entry(f, pml4, 1) &= ~UNI_PT_NX;
	r.efer &= ~UNI_EFER_NXE; /* then NX is reserved */
	assert_int_equal(hva_of(f, &r, 0x8000000000ull + 3 * 0x200000), 0);
	*entry(f, pml4, 1) |= UNI_PT_LARGE; /* no 512 GiB pages */
	assert_int_equal(hva_of(f, &r, 0x8040000000ull), 0);
	*entry(f, pml4, 1) &= ~UNI_PT_LARGE;
	*entry(f, pml5, 2) = pml4 | 3;
	r.cr3 = pml5;
	r.cr4 |= UNI_CR4_LA57;
	assert_int_equal(hva_of(f, &r, 0x2008040000000ull + 0x5678), RAM_GPA + 0x5678);
	assert_int_equal(hva_of(f, &r, 0x0100000000000000ull), 0);
	r.cr4 &= ~UNI_CR4_PAE;
	assert_int_equal(hva_of(f, &r, 0x2008040000000ull), 0);
	r.cr0 = 1;
	assert_int_equal(hva_of(f, &r, RAM_GPA + 0x777), RAM_GPA + 0x777);
	assert_int_equal(uni_translate(NULL, &r, 0, false), 0);
	assert_int_equal(uni_translate(&f->guest, NULL, 0, false), 0);
}

/* No rsp: the return address of a function without a frame is found below the caller's rbp. */
static void test_without_rsp(void **state)
{
	struct fixture *f = *state;
	const uint64_t fp = STACK_VA + 0x1800;
	uint64_t word = 0, found = 0;

	for (size_t i = 0; i < f->hints->nr_funcs && found == 0; i++) {
		const struct uni_func_hint *h = &f->hints->func[i];

		if ((h->flags & UNI_FUNC_FRAMELESS) == 0 || h->size < 4)
			continue;
		for (uint64_t va = fp - 256; va < fp; va += 8)
			poke(f, va, 0x1234);
		poke_call_of(f, fp - 72, h->start);
		read_code(f, fp - 72, &word, 8);
		found = word != 0x1234 ? h->start : 0;
	}
	assert_int_not_equal(found, 0);
	poke(f, fp, 0);
	poke(f, fp + 8, f->call[7]);
	long_mode(f, &f->scratch.regs);
	f->scratch.regs.have &= ~UNI_BPF_HAVE_SP;
	f->scratch.regs.pc = found;
	f->scratch.regs.sp = 0xdead; /* is not looked at */
	f->scratch.regs.fp = fp;
	assert_int_equal(uni_chain(&f->guest, &f->scratch), 1);
	assert_int_equal(f->scratch.stop, UNI_BPF_STOP_FP_0);
	assert_int_equal(f->scratch.nr, 3);
	assert_int_equal(f->scratch.pc[1], word);
	assert_int_equal(f->scratch.pc[2], f->call[7]);
	poke(f, fp - 72, 0x1234);
	assert_int_equal(uni_chain(&f->guest, &f->scratch), 1);
	assert_int_equal(f->scratch.nr, 2);
	f->scratch.regs.have = 0;
	assert_int_equal(uni_chain(&f->guest, &f->scratch), 0);
	assert_int_equal(f->scratch.stop, UNI_STOP_NOREGS);
}

/* A sample costs reads of the VMM's memory: a window of the stack each, and the tables' entries. */
static void test_reads(void **state)
{
	struct fixture *f = *state;
	uint64_t pc = framed_pc(f), sp = STACK_VA + 0x2000;

	for (unsigned i = 0; i < 10; i++) {
		poke(f, sp + i * 48, i == 9 ? 0 : sp + (i + 1) * 48);
		poke(f, sp + i * 48 + 8, f->call[3]);
	}
	bpf_user_reads = 0;
	compare(f, pc, sp, sp);
	assert_int_equal(f->scratch.nr, 11);
	assert_true(bpf_user_reads <= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_unwinder),
		cmocka_unit_test(test_same_nonsense),
		cmocka_unit_test(test_same_by_rows),
		cmocka_unit_test(test_other_stacks),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_page_tables),
		cmocka_unit_test(test_without_rsp),
		cmocka_unit_test(test_reads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
