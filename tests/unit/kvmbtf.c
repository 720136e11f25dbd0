/* SPDX-License-Identifier: BSD-2-Clause */
/* KVM as a module: its description of types joined to the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "backend/kvm/bpf/btf.h"

/* As the kernel's and a module's are: the second refers to types and strings of the first. */
static void test_join(void **state)
{
	struct btf *base = btf__new_empty(), *module, *both;
	const struct btf_type *t;
	const void *a, *b;
	uint8_t *joined = NULL;
	size_t size = 0;
	int number, task, pointer, vcpu;
	__u32 a_size, b_size;

	(void)state;
	assert_non_null(base);
	number = btf__add_int(base, "unsigned long", 8, 0);
	task = btf__add_struct(base, "task_struct", 16);
	assert_int_equal(btf__add_field(base, "pid", number, 64, 0), 0);
	module = btf__new_empty_split(base);
	assert_non_null(module);
	pointer = btf__add_ptr(module, task);
	vcpu = btf__add_struct(module, "kvm_vcpu", 24);
	assert_int_equal(btf__add_field(module, "pid", pointer, 64, 0), 0);
	assert_int_equal(btf__add_field(module, "vcpu_id", number, 128, 0), 0);
	a = btf__raw_data(base, &a_size);
	b = btf__raw_data(module, &b_size);
	assert_int_equal(uni_kvm_btf_join(a, a_size, b, b_size, &joined, &size), 0);
	both = btf__new(joined, (__u32)size);
	assert_non_null(both);
	assert_int_equal(btf__find_by_name_kind(both, "task_struct", BTF_KIND_STRUCT), task);
	assert_int_equal(btf__find_by_name_kind(both, "kvm_vcpu", BTF_KIND_STRUCT), vcpu);
	t = btf__type_by_id(both, (__u32)vcpu);
	assert_string_equal(btf__name_by_offset(both, btf_members(t)[1].name_off), "vcpu_id");
	assert_int_equal(btf_members(t)[1].type, number);
	t = btf__type_by_id(both, btf__type_by_id(both, btf_members(t)[0].type)->type);
	assert_string_equal(btf__name_by_offset(both, t->name_off), "task_struct");
	btf__free(both);
	btf__free(module);
	btf__free(base);
	free(joined);
}

/* Cut anywhere, or with lengths that lie: refused, and nothing is read beyond the end. */
static void test_damage(void **state)
{
	struct btf *base = btf__new_empty();
	uint8_t *copy, *joined = NULL;
	const void *raw;
	size_t size = 0;
	__u32 n;

	(void)state;
	assert_true(btf__add_int(base, "int", 4, 0) > 0);
	raw = btf__raw_data(base, &n);
	for (__u32 cut = 0; cut < n; cut++) {
		copy = malloc(cut + 1u);
		assert_non_null(copy);
		memcpy(copy, raw, cut);
		assert_int_equal(uni_kvm_btf_join(copy, cut, raw, n, &joined, &size), -UNI_EFORMAT);
		assert_int_equal(uni_kvm_btf_join(raw, n, copy, cut, &joined, &size), -UNI_EFORMAT);
		free(copy);
	}
	copy = malloc(n);
	assert_non_null(copy);
	for (size_t field = 0; field < 24; field++) {
		memcpy(copy, raw, n);
		copy[field] ^= 0xff;
		(void)uni_kvm_btf_join(copy, n, raw, n, &joined, &size);
		free(joined);
		joined = NULL;
	}
	free(copy);
	btf__free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
