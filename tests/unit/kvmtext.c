/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows for the host's kernel, where a function has taken another stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/cfiguest.h"
#include "backend/kvm/bpf/text.h"

static const uint8_t takes[] = {
	0x49, 0x89, 0xe5,	/* 0: mov %rsp,%r13 */
	0x49, 0x8b, 0x66, 0x40, /* 3: mov 0x40(%r14),%rsp */
	0xe8, 0, 0, 0, 0,	/* 7: call */
	0x4c, 0x89, 0xe0,	/* 12: mov %r12,%rax */
	0x49, 0x8b, 0x66, 0x30, /* 15: mov 0x30(%r14),%rsp */
	0xc3,			/* 19: ret */
};

static void read_code(void *ctx, uint64_t gva, void *buf, size_t len)
{
	memcpy(buf, ((struct guest *)ctx)->ram + (gva - BASE), len);
}

/* The rule of the byte at `at`. */
static const struct uni_bpf_cfi *rule_at(const struct uni_kvm_text *t, unsigned at)
{
	unsigned off = 0x100 * TAKES + at;

	assert_true(t->text[off / 8].cfi[off % 8] < t->nr_cfi);
	return &t->cfi[t->text[off / 8].cfi[off % 8]];
}

/* The function with one piece of code more, at `at`: from..to count from r13, others from rsp. */
static void check(unsigned at, const char *code, size_t n, unsigned from, unsigned to)
{
	struct uni_kvm_text t;
	struct uni_err err = { 0 };
	struct fixture f;

	open_fixture(&f);
	for (size_t i = 0; i < sizeof(takes); i++)
		guest_put(&f.g, FN(TAKES) + i, takes[i], 1);
	for (size_t i = 0; i < n; i++)
		guest_put(&f.g, FN(TAKES) + at + i, (uint8_t)code[i], 1);
	assert_int_equal(uni_kvm_text_make(&uni_arch_x86_64, &f.hints,
				 &(struct uni_kvm_code){ read_code, &f.g }, &t, &err),
		0);
	for (unsigned i = 0; i < 0x100; i++) {
		const struct uni_bpf_cfi *c = rule_at(&t, i);
		bool kept = i >= from && i < to;

		assert_int_equal(c->cfa_of, kept ? UNI_BPF_CFI_SAVED + 2 : UNI_BPF_CFI_SP);
		assert_int_equal(c->cfa, 8);
		assert_int_equal(c->ra, -8);
	}
	assert_int_equal(t.nr_cfi, table.nr_rules + (from != to));
	uni_kvm_text_free(&t);
	close_fixture(&f);
}
#define CHECK(at, code, from, to) check((at), (code), sizeof(code) - 1, (from), (to))

/* As OCaml 5's caml_raise_exn calls caml_stash_backtrace. */
static void register_keeps_the_old_stack(void **state)
{
	CHECK(0, "", 7, 20);
}

static void stack_is_taken_back(void **state)
{
	CHECK(15, "\x4c\x89\xec\x90", 7, 18);		/* mov %r13,%rsp */
	CHECK(15, "\x49\x8b\xe5\x90", 7, 18);		/* the same, 8b */
	CHECK(15, "\x4c\x89\xe4\x90", 7, 19);		/* another one; nop is not known */
	CHECK(12, "\x4d\x89\xe5", 7, 15);		/* mov %r12,%r13: it is lost */
	CHECK(0, "\x4c\x89\x6c\x24\x08\x90\x90", 0, 0); /* no stack is taken */
}

/* The register is not the same on the other way to that place. */
static void another_way_leads_there(void **state)
{
	CHECK(0x40, "\xeb\xca", 7, 12); /* jmp to 12 */
	CHECK(0x40, "\x74\xbe", 7, 20); /* je to 0: before it */
}

/* A caller that did not call the function is a guess: an exception left it out, or a handler. */
static void callers_that_did_not_call(void **state)
{
	struct uni_kvm_text t;
	struct uni_err err = { 0 };
	struct fixture f;
	uint64_t by_name, other, on = FN(TAKES) + 11, by_pointer = FN(OUTER) + 0xf2;

	open_fixture(&f);
	for (size_t i = 0; i < sizeof(takes); i++)
		guest_put(&f.g, FN(TAKES) + i, takes[i], 1);
	by_name = ret_into(&f, OUTER, TAKES);
	other = ret_into(&f, OUTER, PLAIN);
	guest_put(&f.g, by_pointer - 2, 0xd0ff, 2);
	assert_int_equal(uni_kvm_text_make(&uni_arch_x86_64, &f.hints,
				 &(struct uni_kvm_code){ read_code, &f.g }, &t, &err),
		0);
	assert_false(uni_kvm_taken_is_guess(&t.taken, on, by_name));
	assert_false(uni_kvm_taken_is_guess(&t.taken, on, by_pointer));
	assert_true(uni_kvm_taken_is_guess(&t.taken, on, other));
	assert_true(uni_kvm_taken_is_guess(&t.taken, on, FN(OUTER) + 1));
	assert_true(uni_kvm_taken_is_guess(&t.taken, FN(TAKES) + 19, other));
	/* It has its caller's stack, or is another function. */
	assert_false(uni_kvm_taken_is_guess(&t.taken, FN(TAKES) + 3, other));
	assert_false(uni_kvm_taken_is_guess(&t.taken, FN(BY_SP) + 11, other));
	uni_kvm_text_free(&t);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(register_keeps_the_old_stack),
		cmocka_unit_test(stack_is_taken_back),
		cmocka_unit_test(another_way_leads_there),
		cmocka_unit_test(callers_that_did_not_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
