/* SPDX-License-Identifier: BSD-2-Clause */
/* Cores of aarch64, and registers as text; core.c has the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../support/core_case.h"
#include "mem/as.h"

static void make_a64(struct made *m, const struct made_load *load, uint16_t nr)
{
	struct uni_strbuf notes;
	Elf64_Ehdr h;

	uni_strbuf_init(&notes);
	made_a64_prstatus(&notes, 0x1000);
	made_a64_prstatus(&notes, 0x2000);
	made_core(&m->file, &notes, load, nr, m->memory, sizeof(m->memory));
	uni_strbuf_deinit(&notes);
	memcpy(&h, m->file.s, sizeof(h));
	h.e_machine = EM_AARCH64;
	memcpy(m->file.s, &h, sizeof(h));
}

static void check_a64(const struct uni_regs *r, uint64_t first)
{
	uint64_t v;

	assert_true(r->pc_valid && r->sp_valid);
	assert_int_equal(r->pc, first + 32);
	assert_int_equal(r->sp, first + 31);
	assert_true(uni_regs_get(r, UNI_A64_LR, &v) && v == first + 30);
	assert_true(uni_regs_get(r, UNI_A64_X0, &v) && v == first);
}

/* QEMU writes the notes of threads, and blocks with physical addresses. */
static void test_qemu_a64(void **state)
{
	static const struct made_load ram[] = {
		{ .vaddr = 0x40000000,
			.paddr = 0x40000000,
			.at = 0,
			.file_size = 0xa000,
			.mem_size = 0xa000 },
		{ .paddr = 0x80000000, .at = 0xa000, .file_size = 0x6000, .mem_size = 0x6000 },
	};
	struct made *m = *state;
	struct uni_pt_root root;

	make_a64(m, ram, 2);
	parse(m);
	assert_ptr_equal(m->core.arch, &uni_arch_aarch64);
	assert_int_equal(m->core.vcpu.nr, 2);
	check_a64(&m->core.vcpu.v[0], 0x1000);
	check_a64(&m->core.vcpu.v[1], 0x2000);
	assert_int_equal(m->core.space, UNI_GMEM_PHYSICAL);
	assert_int_equal(byte_at(m, 0x40009fff), m->memory[0x9fff]);
	assert_int_equal(byte_at(m, 0x80000005), m->memory[0xa005]);
	assert_int_equal(byte_at(m, 0), -1);

	/* It has no system registers. */
	assert_int_equal(uni_core_file_complete(&m->core, "", &m->err), -UNI_ENOTSUP);
	assert_non_null(strstr(m->err.msg, ",ttbr0=ADDRESS,ttbr1=ADDRESS"));
	assert_int_equal(uni_core_file_complete(&m->core, "tcr=580100010", NULL), -UNI_ENOTSUP);
	assert_int_equal(uni_core_file_complete(&m->core, "ttbr1=40003000\n", NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uni_arch_aarch64.paging(&m->core.vcpu.v[i], &root), 0);
		assert_int_equal(root.root_high.v, 0x40003000);
		assert_int_equal(root.va_bits_high, 48);
		assert_int_equal(root.geometry_high->nr_levels, 4);
		assert_int_equal(root.va_bits, 0); /* the other half has none */
	}
	parse(m);
	assert_int_equal(uni_core_file_complete(&m->core, "sctlr=0", NULL), 0);
	assert_int_equal(uni_arch_aarch64.paging(&m->core.vcpu.v[0], &root), 0);
	assert_int_equal(root.geometry->nr_levels, 0);
	for (size_t size = 0; size < m->file.len; size += 61)
		assert_true(parse_cut(m, size) == 0 || m->err.msg[0] != '\0');
}

static void test_process_a64(void **state)
{
	static const struct made_load mapping[] = {
		{ .vaddr = 0x400000, .at = 0, .file_size = 0x1000, .mem_size = 0x1000 },
	};
	struct made *m = *state;

	make_a64(m, mapping, 1);
	parse(m);
	check_a64(&m->core.vcpu.v[0], 0x1000);
	assert_int_equal(m->core.space, UNI_GMEM_VIRTUAL);
	assert_int_equal(byte_at(m, 0x400005), m->memory[5]);
	assert_int_equal(uni_core_file_complete(&m->core, "", NULL), 0); /* nothing is paged */
}

static int parse_raw(struct made *m, const char *text)
{
	uni_core_file_deinit(&m->core);
	memset(&m->core, 0, sizeof(m->core));
	m->err = (struct uni_err){ 0 };
	m->src = uni_core_src_memory(m->memory, sizeof(m->memory));
	return uni_core_file_raw(&m->core, &m->src, m->arch, 0x100000, text, &m->err);
}

static void test_registers_a64(void **state)
{
	struct made *m = *state;
	struct uni_pt_root root;
	uint64_t v;

	m->arch = &uni_arch_aarch64;
	/* QEMU's, with what gdb prints of the system registers. */
	assert_int_equal(
		parse_raw(m, "\r\nCPU#0\r\n PC=0000000000001020 X00=0000000000001000 "
			     "X05=0000000000000055\r\nX29=0000000000000029 "
			     "X30=000000000000101e  SP=000000000000101f\r\nPSTATE=800000c5 "
			     "N--- EL1h\r\nTTBR1_EL1 0x40003000 1073754112\n"
			     "ttbr0_el1 = 0x40004000\n"),
		0);
	assert_int_equal(m->core.vcpu.nr, 1);
	check_a64(&m->core.vcpu.v[0], 0x1000);
	assert_true(uni_regs_get(&m->core.vcpu.v[0], 5, &v) && v == 0x55);
	assert_true(uni_regs_get(&m->core.vcpu.v[0], UNI_A64_FP, &v) && v == 0x29);
	assert_int_equal(uni_arch_aarch64.paging(&m->core.vcpu.v[0], &root), 0);
	assert_int_equal(root.root.v, 0x40004000);
	assert_int_equal(root.root_high.v, 0x40003000);
	assert_int_equal(parse_raw(m, "pc=1234"), 0); /* no paging */
	assert_int_equal(uni_arch_aarch64.paging(&m->core.vcpu.v[0], &root), 0);
	assert_int_equal(root.geometry->nr_levels, 0);
	assert_int_equal(parse_raw(m, "x30=1234"), -UNI_EFORMAT);
	assert_non_null(strstr(m->err.msg, "lack pc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_qemu_a64, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_process_a64, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_registers_a64, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
