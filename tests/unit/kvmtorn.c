/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's chains of samples that hit a KVM between an instruction's registers and its pc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kvmchain_guest.h"

/*
 * A stack on which nothing but a call of pc's function, at slot, and the caller's frame lead
 * anywhere. Zero if this program has no such call (or the caller's is one), else where it returns
 * to.
 */
static uint64_t lone_call(struct fixture *f, uint64_t slot, uint64_t caller_fp, uint64_t pc)
{
	const struct uni_func_hint *h = uni_hints_find(f->hints, pc);
	uint64_t word = 0;

	if (h == NULL || f->target[7] == h->start)
		return 0;
	for (uint64_t va = STACK_VA; va < STACK_VA + 0x1000; va += 8)
		poke(f, va, 0x1234);
	poke_call_of(f, slot, pc);
	poke(f, caller_fp, 0);
	poke(f, caller_fp + 8, f->call[7]);
	read_code(f, slot, &word, 8);
	return word == 0x1234 ? 0 : word;
}

/* Is the chain of these registers the call's and the caller's, the second by frame pointers only?
 */
static bool found(struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp, uint64_t call)
{
	const struct uni_bpf_scratch *s = &f->scratch;

	long_mode(f, &f->scratch.regs);
	f->scratch.regs.pc = pc;
	f->scratch.regs.sp = sp;
	f->scratch.regs.fp = fp;
	assert_int_equal(uni_chain(&f->guest, &f->scratch), 1);
	return s->nr >= 2 && s->pc[1] == call &&
	       ((f->guest.flags & UNI_BPF_CFI) != 0 ||
		       (s->nr == 3 && s->pc[2] == f->call[7] && s->stop == UNI_BPF_STOP_FP_0));
}

/* As found(), with rsp a word off: mended, but not where a KVM says that this cannot be. */
static void expect_mended(struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp, uint64_t call)
{
	assert_true(found(f, pc, sp, fp, call));
	assert_true(found(f, pc, sp + 8, fp, call));
	assert_true(found(f, pc, sp - 8, fp, call));
	f->guest.flags |= UNI_BPF_SPLIT;
	assert_true(found(f, pc, sp, fp, call));
	assert_false(found(f, pc, sp + 8, fp, call));
	assert_false(found(f, pc, sp - 8, fp, call));
	f->guest.flags &= ~UNI_BPF_SPLIT;
}

/* The pc of one instruction, and what the one at it did to rsp and rbp. */
static void test_torn(void **state)
{
	struct fixture *f = *state;
	const uint64_t slot = STACK_VA + 0x600, fp = STACK_VA + 0x800, end = f->hints->text_size;
	unsigned words_off = 0, set = 0, left = 0;

	f->guest.flags &= ~UNI_BPF_SPLIT;
	for (uint64_t off = 0; off < end; off = next_pc(f, off)) {
		uint64_t pc = f->hints->text_start + off, call, code = 0;
		unsigned rule = rule_of(f, pc);

		if (rule != UNI_LEAF_FRAME && rule < UNI_LEAF_AT)
			continue;
		call = lone_call(f, slot, fp, pc);
		if (call == 0)
			continue;
		read_code(f, pc, &code, 8);
		if (rule >= UNI_LEAF_AT && ++words_off != 0)
			expect_mended(f, pc, slot - (rule - UNI_LEAF_AT) * 8, fp, call);
		if (rule == UNI_LEAF_AT + 1 && (code & 0xffffff) == 0xe58948 && ++set != 0) {
			poke(f, slot - 8, fp);
			assert_true(found(f, pc, slot - 8, slot - 8, call));
		}
		if (rule == UNI_LEAF_FRAME && (code & 0xff) == UNI_X86_LEAVE && ++left != 0) {
			assert_true(found(f, pc, slot, fp, call));
			poke(f, slot - 8, fp);
			assert_true(found(f, pc, slot, slot - 8, call));
		}
	}
	assert_true(words_off > 50 && set > 10 && (left > 10 || CLANG));
	use_rows(f, false);
}

/* The same by unwind rows. */
static void test_torn_rows(void **state)
{
	struct fixture *f = *state;
	const uint64_t slot = STACK_VA + 0x600, fp = STACK_VA + 0x800, end = f->hints->text_size;
	unsigned words_off = 0;

	use_rows(f, true);
	f->guest.flags &= ~UNI_BPF_SPLIT;
	for (uint64_t off = 0; off < end; off = next_pc(f, off)) {
		uint64_t pc = f->hints->text_start + off, call;
		const struct uni_cfi_rule *r = uni_cfi_find(f->hints->cfi, pc);

		if (r == NULL || r->cfa.how != UNI_CFI_REG || r->cfa.reg != UNI_X86_RSP ||
			r->cfa.arg > 0x200 || r->ra.how != UNI_CFI_AT_CFA || r->ra.arg != -8)
			continue;
		call = lone_call(f, slot, fp, pc);
		if (call != 0 && ++words_off != 0)
			expect_mended(f, pc, slot + 8 - (uint64_t)r->cfa.arg, fp, call);
	}
	assert_true(words_off > 50);
	use_rows(f, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_torn_rows),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
