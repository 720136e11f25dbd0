/* SPDX-License-Identifier: BSD-2-Clause */
/* A module's types behind the kernel's, as libbpf reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/kvm/bpf/btf.h"

/* The kernel has u64 and struct task; the module struct vcpu with a member of each. */
struct pair {
	struct btf *base, *split;
	const void *base_data, *split_data;
	uint32_t base_size, split_size;
};

static void make(struct pair *p)
{
	int u64, task, ptr;

	p->base = btf__new_empty();
	u64 = btf__add_int(p->base, "u64", 8, 0);
	task = btf__add_struct(p->base, "task", 8);
	assert_int_equal(btf__add_field(p->base, "pid", u64, 0, 0), 0);
	p->split = btf__new_empty_split(p->base);
	ptr = btf__add_ptr(p->split, task);
	assert_true(btf__add_struct(p->split, "vcpu", 16) > 0);
	assert_int_equal(btf__add_field(p->split, "id", u64, 0, 0), 0);
	assert_int_equal(btf__add_field(p->split, "owner", ptr, 64, 0), 0);
	p->base_data = btf__raw_data(p->base, &p->base_size);
	p->split_data = btf__raw_data(p->split, &p->split_size);
	assert_non_null(p->base_data);
	assert_non_null(p->split_data);
}

static void end(struct pair *p)
{
	btf__free(p->split);
	btf__free(p->base);
}

static void types_of_both_are_found(void **state)
{
	const struct btf_type *vcpu, *owner;
	const struct btf_member *m;
	void *joined = NULL;
	struct btf *btf;
	size_t size = 0;
	struct pair p;
	int id;

	make(&p);
	assert_int_equal(
		uni_btf_join(p.base_data, p.base_size, p.split_data, p.split_size, &joined, &size),
		0);
	btf = btf__new(joined, (uint32_t)size);
	assert_non_null(btf);
	id = btf__find_by_name_kind(btf, "vcpu", BTF_KIND_STRUCT);
	assert_true(id > 0);
	vcpu = btf__type_by_id(btf, (uint32_t)id);
	assert_int_equal(vcpu->size, 16);
	m = btf_members(vcpu);
	assert_string_equal(btf__name_by_offset(btf, m[0].name_off), "id");
	assert_string_equal(btf__name_by_offset(btf, m[1].name_off), "owner");
	owner = btf__type_by_id(btf, btf__type_by_id(btf, m[1].type)->type);
	assert_string_equal(btf__name_by_offset(btf, owner->name_off), "task");
	assert_string_equal(btf__name_by_offset(btf, btf_members(owner)[0].name_off), "pid");
	btf__free(btf);
	free(joined);
	end(&p);
}

/* Whatever the header says, nothing beyond the data is read (under the sanitizers). */
static void headers_that_lie(void **state)
{
	static const uint32_t lies[] = { 0, 1, 3, 24, 0x7fffffff, 0x80000000, 0xfffffffc,
		0xffffffff };
	size_t size, n = 0;
	uint8_t *copy;
	void *joined;
	struct pair p;

	make(&p);
	copy = malloc(p.split_size);
	assert_non_null(copy);
	for (size_t word = 0; word < sizeof(struct btf_header) / 4; word++) {
		for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
			memcpy(copy, p.split_data, p.split_size);
			memcpy(copy + 4 * word, &lies[i], 4);
			if (uni_btf_join(p.base_data, p.base_size, copy, p.split_size, &joined,
				    &size) == 0)
				free(joined);
			else
				n++;
		}
	}
	assert_true(n >= 16);
	for (uint32_t cut = 0; cut < p.split_size; cut++)
		assert_int_equal(uni_btf_join(p.base_data, p.base_size, copy, cut, &joined, &size),
			-UNI_EFORMAT);
	free(copy);
	end(&p);
}

static void this_host(void **state)
{
	struct uni_err err = { 0 };
	int fd = -1;

	assert_int_equal(uni_btf_with_kvm(&fd, &err), 0);
	if (fd >= 0)
		assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_of_both_are_found),
		cmocka_unit_test(headers_that_lie),
		cmocka_unit_test(this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
