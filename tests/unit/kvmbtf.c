/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of the kernel that the loader library gets: those that programs name, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "backend/kvm/bpf/btf.h"

struct types {
	struct btf *base, *module, *programs;
	uint32_t regs;
};

/* As the kernel's and a module's are: the second refers to types and strings of the first. */
static int set_up(void **state)
{
	static struct types t;
	struct btf *b = t.base = btf__new_empty(), *m;
	int number = btf__add_int(b, "unsigned long", 8, 0), node, list, other, function, lists;

	other = btf__add_struct(b, "unrelated", 8);
	assert_int_equal(btf__add_field(b, "x", number, 0, 0), 0);
	t.regs = (uint32_t)btf__add_struct(b, UNI_KVM_BTF_NUMBERED, 8);
	assert_int_equal(btf__add_field(b, "si", number, 0, 0), 0);
	other = btf__add_ptr(b, other);
	node = btf__add_struct(b, "node", 8);
	assert_int_equal(btf__add_field(b, "next", other, 0, 0), 0);
	list = btf__add_typedef(b, "list", node);
	function = btf__add_func_proto(b, number);
	function = btf__add_typedef(b, "function", function);
	m = t.module = btf__new_empty_split(b);
	lists = btf__add_const(m, list);
	lists = btf__add_array(m, number, lists, 2);
	assert_true(btf__add_struct(m, "kvm_vcpu", 40) > 0);
	assert_int_equal(btf__add_field(m, "kvm", other, 0, 0), 0);
	assert_int_equal(btf__add_field(m, "lists", lists, 64, 0), 0);
	assert_int_equal(btf__add_field(m, "call", function, 192, 0), 0);
	assert_int_equal(btf__add_field(m, "vcpu_id", number, 256, 0), 0);
	t.programs = btf__new_empty();
	assert_true(btf__add_struct(t.programs, "kvm_vcpu___old", 0) > 0);
	assert_true(btf__add_fwd(t.programs, UNI_KVM_BTF_NUMBERED, BTF_FWD_STRUCT) > 0);
	assert_true(btf__add_struct(t.programs, "of_ours", 0) > 0);
	*state = &t;
	return 0;
}

static int tear_down(void **state)
{
	struct types *t = *state;

	btf__free(t->programs);
	btf__free(t->module);
	btf__free(t->base);
	return 0;
}

static const struct btf_type *behind(const struct btf *b, uint32_t number)
{
	const struct btf_type *t = btf__type_by_id(b, number);

	while (btf_is_mod(t) || btf_is_typedef(t))
		t = btf__type_by_id(b, t->type);
	return t;
}

/* As the library reads it: what a structure contains is there, and its places are the same. */
static void test_contents(void **state)
{
	struct types *all = *state;
	struct btf *made = uni_kvm_btf_cut(all->module, all->programs), *few;
	const struct btf_member *m;
	const struct btf_type *t;
	const void *raw;
	uint32_t size;
	int vcpu;

	assert_non_null(made);
	raw = btf__raw_data(made, &size);
	few = btf__new(raw, size);
	assert_non_null(few);
	vcpu = btf__find_by_name_kind(few, "kvm_vcpu", BTF_KIND_STRUCT);
	assert_true(vcpu > 0);
	t = btf__type_by_id(few, (uint32_t)vcpu);
	assert_int_equal(t->size, 40);
	assert_int_equal(btf_vlen(t), 4);
	m = btf_members(t);
	t = btf__type_by_id(few, m[0].type);
	assert_true(btf_is_ptr(t));
	assert_int_equal(t->type, 0);
	t = btf__type_by_id(few, m[1].type);
	assert_true(btf_is_array(t));
	assert_int_equal(btf_array(t)->nelems, 2);
	t = behind(few, btf_array(t)->type);
	assert_string_equal(btf__name_by_offset(few, t->name_off), "node");
	assert_int_equal(btf__resolve_size(few, m[1].type), 16);
	t = btf__type_by_id(few, m[2].type);
	assert_true(btf_is_typedef(t));
	assert_int_equal(t->type, 0);
	assert_string_equal(btf__name_by_offset(few, m[3].name_off), "vcpu_id");
	assert_int_equal(m[3].offset, 256);
	assert_int_equal(behind(few, m[3].type)->size, 8);
	btf__free(few);
	btf__free(made);
}

static void test_others(void **state)
{
	struct types *all = *state;
	struct btf *few = uni_kvm_btf_cut(all->module, all->programs);

	assert_non_null(few);
	assert_true(btf__find_by_name(few, "unrelated") < 0);
	assert_true(btf__find_by_name(few, "of_ours") < 0);
	btf__free(few);
}

/* Programs give this number to the kernel. */
static void test_number(void **state)
{
	struct types *all = *state;
	struct btf *few = uni_kvm_btf_cut(all->base, all->programs);

	assert_non_null(few);
	assert_int_equal(
		btf__find_by_name_kind(few, UNI_KVM_BTF_NUMBERED, BTF_KIND_STRUCT), (int)all->regs);
	assert_true(btf__find_by_name(few, "kvm_vcpu") < 0);
	btf__free(few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
