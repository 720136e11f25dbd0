/* SPDX-License-Identifier: BSD-2-Clause */
/* Cores, whole and cut off, and registers as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../support/vcpus.h"
#include "../support/core_case.h"
#include "base/checked.h"
#include "mem/as.h"
#include "backend/core/elf.h"
#include "backend/core/file.h"

static const struct made_vcpu one = { .rip = 0xffffffff80201234,
	.rsp = 0xffffc90000001000,
	.rbp = 0xffffc90000001010,
	.rax = 0xa,
	.r15 = 0xf,
	.cr0 = 0x80010033,
	.cr3 = 0x3000,
	.cr4 = 0x20,
	.xen_flags = 0x20 };
static const struct made_vcpu never_started = { .rip = 0xfff0, .cr0 = 0x60000010 };

static void check_registers(const struct uni_regs *r, bool sys)
{
	uint64_t v;

	assert_int_equal(r->state, UNI_VCPU_RUNNING);
	assert_true(r->pc_valid && r->sp_valid);
	assert_int_equal(r->pc, one.rip);
	assert_int_equal(r->sp, one.rsp);
	assert_true(uni_regs_get(r, UNI_X86_RBP, &v) && v == one.rbp);
	assert_true(uni_regs_get(r, UNI_X86_RAX, &v) && v == one.rax);
	assert_true(uni_regs_get(r, UNI_X86_R15, &v) && v == one.r15);
	assert_true(uni_regs_get_sys(r, UNI_X86_FS_BASE, &v) && v == 0xf5);
	assert_true(uni_regs_get_sys(r, UNI_X86_GS_BASE, &v) && v == 0x65);
	if (!sys)
		return;
	assert_true(uni_regs_get_sys(r, UNI_X86_CR3, &v) && v == one.cr3);
	assert_true(uni_regs_get_sys(r, UNI_X86_CR0, &v) && v == one.cr0);
}

static void make_qemu(struct made *m, const struct made_load *load, uint16_t nr)
{
	struct uni_strbuf notes;

	uni_strbuf_init(&notes);
	made_prstatus(&notes, &one);
	made_qemu_note(&notes, &one);
	made_qemu_note(&notes, &never_started);
	made_core(&m->file, &notes, load, nr, m->memory, sizeof(m->memory));
	uni_strbuf_deinit(&notes);
}

/* RAM in two blocks with a hole between. */
static const struct made_load blocks[] = {
	{ .paddr = 0, .at = 0, .file_size = 0xa000, .mem_size = 0xa000 },
	{ .paddr = 0x100000, .at = 0xa000, .file_size = 0x6000, .mem_size = 0x6000 },
};

static void test_qemu(void **state)
{
	struct made *m = *state;

	make_qemu(m, blocks, 2);
	parse(m);
	assert_int_equal(m->core.vcpu.nr, 2);
	check_registers(&m->core.vcpu.v[0], true);
	assert_int_equal(m->core.vcpu.v[1].state, UNI_VCPU_OFFLINE);
	assert_int_equal(m->core.space, UNI_GMEM_PHYSICAL);
	assert_int_equal(m->core.mem_bytes, sizeof(m->memory));
	assert_int_equal(m->core.missing, 0);
	assert_false(m->core.inferred);
	assert_int_equal(m->core.region.nr, 2);
	assert_int_equal(byte_at(m, 0x9fff), m->memory[0x9fff]);
	assert_int_equal(byte_at(m, 0xa000), -1);
	assert_int_equal(byte_at(m, 0x100005), m->memory[0xa005]);
	assert_int_equal(byte_at(m, 0x106000), -1);
}

/*
 * Mappings instead of blocks: one page twice; a large page that is cut off at its block's end.
 * Nothing maps some page tables, between mapped pages and behind the last page.
 */
static void test_qemu_paging(void **state)
{
	static const struct made_load mappings[] = {
		{ .vaddr = 0xffff880000000000,
			.paddr = 0,
			.at = 0,
			.file_size = 0xa000,
			.mem_size = 0x108000 },
		{ .vaddr = 0x400000,
			.paddr = 0x2000,
			.at = 0x2000,
			.file_size = 0x1000,
			.mem_size = 0x1000 },
		{ .vaddr = 0x500000,
			.paddr = 0x100000,
			.at = 0xa000,
			.file_size = 0x1000,
			.mem_size = 0x1000 },
		{ .vaddr = 0x600000,
			.paddr = 0x103000,
			.at = 0xd000,
			.file_size = 0x1000,
			.mem_size = 0x1000 },
	};
	struct made *m = *state;

	make_qemu(m, mappings, 4);
	parse(m);
	assert_true(m->core.inferred);
	assert_int_equal(m->core.region.nr, 2);
	assert_int_equal(byte_at(m, 0x2007), m->memory[0x2007]);
	assert_int_equal(byte_at(m, 0xb000), -1);
	assert_int_equal(byte_at(m, 0x101005), m->memory[0xb005]);
	assert_int_equal(byte_at(m, 0x104005), m->memory[0xe005]);
	assert_int_equal(byte_at(m, 0x106000), -1); /* the file ends */
}

static void test_cut_off(void **state)
{
	struct made *m = *state;
	size_t data;

	make_qemu(m, blocks, 2);
	data = m->file.len - sizeof(m->memory);
	assert_int_equal(parse_cut(m, data + 0x9001), 0);
	check_registers(&m->core.vcpu.v[0], true);
	assert_int_equal(m->core.missing, sizeof(m->memory) - 0x9001);
	assert_int_equal(byte_at(m, 0x9000), m->memory[0x9000]);
	assert_int_equal(byte_at(m, 0x9001), -1);
	assert_int_equal(parse_cut(m, data), -UNI_EFORMAT);
	assert_non_null(strstr(m->err.msg, "no memory in it (the file is cut off)"));
	assert_int_equal(parse_cut(m, 300), -UNI_EFORMAT);
	assert_non_null(strstr(m->err.msg, "cut off"));
	/* Anywhere: an answer or a reason. */
	for (size_t size = 0; size < data; size += 7)
		assert_true(parse_cut(m, size) == 0 || m->err.msg[0] != '\0');
}

/* If there are more program headers than the ELF header can count, section 0 has their number. Here
 * it leaves one out. */
static void test_many_headers(void **state)
{
	struct made *m = *state;
	const Elf64_Shdr zero = { .sh_info = 2 };
	Elf64_Ehdr h;

	make_qemu(m, blocks, 2);
	memcpy(&h, m->file.s, sizeof(h));
	h.e_phnum = PN_XNUM;
	h.e_shoff = m->file.len;
	h.e_shnum = 1;
	memcpy(m->file.s, &h, sizeof(h));
	uni_strbuf_add(&m->file, &zero, sizeof(zero));
	parse(m);
	assert_int_equal(m->core.region.nr, 1);
	assert_int_equal(byte_at(m, 0x9fff), m->memory[0x9fff]);
	assert_int_equal(byte_at(m, 0x100005), -1);
}

/* The file has some memory twice: what comes first counts, and nothing empty is left. */
static void test_overlaps(void **state)
{
	static const struct {
		uint64_t start, size;
		size_t nr;
		uint64_t left;
	} second[] = { { 0x1800, 0x800, 1, 0 }, { 0x1800, 0x801, 2, 1 }, { 0x1fff, 1, 1, 0 },
		{ 0x2000, 1, 2, 1 } };
	const struct uni_core_src src = { .size = 0x10000 };

	(void)state;
	for (size_t i = 0; i < uni_array_len(second); i++) {
		struct uni_core_file f = { 0 };

		assert_int_equal(uni_core_add_memory(&f, &src, 0x1000, 0, 0x1000, NULL), 0);
		assert_int_equal(uni_core_add_memory(
					 &f, &src, second[i].start, 0x8000, second[i].size, NULL),
			0);
		uni_core_join_memory(&f, false);
		assert_int_equal(f.region.nr, second[i].nr);
		assert_int_equal(f.region.v[0].size, 0x1000);
		if (second[i].nr == 2) {
			assert_int_equal(f.region.v[1].start, 0x2000);
			assert_int_equal(f.region.v[1].size, second[i].left);
			assert_int_equal(
				f.region.v[1].cookie, 0x8000 + second[i].size - second[i].left);
		}
		uni_core_file_deinit(&f);
	}
}

static void test_process(void **state)
{
	static const struct made_load maps[] = {
		{ .vaddr = 0x400000, .at = 0, .file_size = 0x2000, .mem_size = 0x2000 },
		{ .vaddr = 0x500000, .at = 0x2000, .file_size = 0, .mem_size = 0x4000 },
		{ .vaddr = 0x7ffffffff000, .at = 0x2000, .file_size = 0x1000, .mem_size = 0x1000 },
	};
	struct made *m = *state;
	struct uni_strbuf notes;

	uni_strbuf_init(&notes);
	made_prstatus(&notes, &one);
	made_note(&notes, "CORE", NT_PRPSINFO, "x", 1);
	for (unsigned i = 1; i < UNI_VCPU_MAX + 6; i++)
		made_prstatus(&notes, &one);
	made_core(&m->file, &notes, maps, 3, m->memory, sizeof(m->memory));
	uni_strbuf_deinit(&notes);
	parse(m);
	assert_int_equal(m->core.vcpu.nr, UNI_VCPU_MAX);
	assert_int_equal(m->core.nr_vcpus, UNI_VCPU_MAX + 6);
	check_registers(&m->core.vcpu.v[0], false);
	assert_int_equal(m->core.space, UNI_GMEM_VIRTUAL);
	assert_int_equal(byte_at(m, 0x401003), m->memory[0x1003]);
	assert_int_equal(byte_at(m, 0x500000), -1); /* not dumped, which is not zero */
	assert_int_equal(byte_at(m, 0x7ffffffff003), m->memory[0x2003]);
}

static void test_xen_hvm(void **state)
{
	static const uint64_t frame[] = { 0x10, 0x11, 5, ~0ull, 0x12 };
	const struct made_vcpu v[] = { one, { .rip = 1 } };
	struct made *m = *state;

	made_xen_core(&m->file, false, v, 2, frame, 5, m->memory);
	parse(m);
	assert_string_equal(m->core.kind, "Xen core");
	assert_int_equal(m->core.vcpu.nr, 2);
	check_registers(&m->core.vcpu.v[0], true);
	assert_int_equal(m->core.vcpu.v[1].state, UNI_VCPU_OFFLINE);
	assert_int_equal(byte_at(m, 0x10007), m->memory[7]);
	assert_int_equal(byte_at(m, 0x11fff), m->memory[0x1fff]);
	assert_int_equal(byte_at(m, 0x5007), m->memory[0x2007]);
	assert_int_equal(byte_at(m, 0x12007), m->memory[0x4007]);
	assert_int_equal(byte_at(m, 0x13000), -1);
	assert_int_equal(m->core.mem_bytes, 4 * 4096);
	assert_int_equal(parse_cut(m, m->file.len - 4096 - 1), 0);
	assert_int_equal(m->core.missing, 4096);
}

/* Page tables hold machine frames, so that is where its memory is; paging is a matter of course. */
static void test_xen_pv(void **state)
{
	static const uint64_t p2m[] = { 0, 0x77, 1, 0x12345, 2, ~0ull, 3, 0x78 };
	struct made_vcpu v = one;
	struct made *m = *state;
	struct uni_pt_root root;

	v.cr3 = 0x12345000;
	v.cr0 = 0x8;
	v.cr4 = 0;
	made_xen_core(&m->file, true, &v, 1, p2m, 4, m->memory);
	parse(m);
	assert_string_equal(m->core.kind, "Xen core of a PV guest");
	assert_int_equal(byte_at(m, 0x77001), m->memory[1]);
	assert_int_equal(byte_at(m, 0x12345001), m->memory[0x1001]);
	assert_int_equal(byte_at(m, 0x78001), m->memory[0x3001]);
	assert_int_equal(byte_at(m, 1), -1);
	assert_int_equal(uni_arch_x86_64.paging(&m->core.vcpu.v[0], &root), 0);
	assert_int_equal(root.root.v, 0x12345000);
	assert_int_equal(root.geometry->nr_levels, 4);
}

static void test_xen_damaged(void **state)
{
	static const uint64_t frame[] = { 1 };
	struct made *m = *state;
	uint64_t many = 1u << 30;
	size_t at;

	made_xen_core(&m->file, false, &one, 1, frame, 1, m->memory);
	for (size_t size = 0; size < m->file.len; size += 61)
		assert_true(parse_cut(m, size) == 0 || m->err.msg[0] != '\0');
	/* The header note: after its name there are magic, vCPUs, pages, page size. */
	at = (size_t)((char *)memmem(m->file.s, m->file.len, "\xee\xeb\x0f\xf0", 4) - m->file.s);
	memcpy(m->file.s + at + 16, &many, 8);
	assert_int_equal(parse_cut(m, m->file.len), 0); /* as many as there are numbers */
	assert_int_equal(m->core.mem_bytes, 4096);
	memcpy(m->file.s + at + 8, &many, 8);
	assert_int_equal(parse_cut(m, m->file.len), -UNI_EFORMAT);
	assert_non_null(strstr(m->err.msg, "registers of vCPU 1 are not in it"));
	m->file.s[at] = 0;
	assert_int_equal(parse_cut(m, m->file.len), -UNI_EFORMAT);
	assert_non_null(strstr(m->err.msg, "header note"));
}

/* The version's upper half is that of the format. Its lower half may be any. */
static void test_xen_versions(void **state)
{
	static const uint64_t frame[] = { 1 };
	struct made *m = *state;
	uint64_t version = UINT32_MAX;
	char *at;

	made_xen_core(&m->file, false, &one, 1, frame, 1, m->memory);
	at = memmem(m->file.s, m->file.len, "\x03\0\0\x02Xen", 7);
	assert_non_null(at);
	memcpy(at + 8, &version, 8);
	assert_int_equal(parse_cut(m, m->file.len), 0);
	version++;
	memcpy(at + 8, &version, 8);
	assert_int_equal(parse_cut(m, m->file.len), -UNI_ENOTSUP);
	assert_non_null(strstr(m->err.msg, "version 1 of Xen's format is not known"));
}

/* Overlapping and wrapping memory, and absurd counts. */
static void test_hostile(void **state)
{
	static const struct made_load overlapping[] = {
		{ .paddr = 0x1000, .at = 0, .file_size = 0x3000, .mem_size = 0x3000 },
		{ .paddr = 0x2000, .at = 0, .file_size = 0x3000, .mem_size = 0x3000 },
		{ .paddr = 0x2800, .at = 5, .file_size = 0x10, .mem_size = 0x10 },
		{ .paddr = 0xfffffffffffff000, .at = 0, .file_size = 0x1000, .mem_size = 0x1000 },
	};
	static const struct made_load wraps[] = {
		{ .paddr = 0xfffffffffffff001, .at = 0, .file_size = 0x1000, .mem_size = 0x1000 },
	};
	static const struct uni_gmem_ops none;
	struct made *m = *state;
	struct uni_gmem *g;
	Elf64_Ehdr h;

	make_qemu(m, overlapping, 4);
	parse(m);
	assert_int_equal(byte_at(m, 0x3fff), m->memory[0x2fff]);
	assert_int_equal(byte_at(m, 0x4001), m->memory[0x2001]);
	assert_int_equal(byte_at(m, 0x5000), -1);
	assert_int_equal(uni_gmem_create(&none, NULL, m->core.space, m->core.region.v,
				 m->core.region.nr, &g, NULL),
		0);
	uni_gmem_destroy(g);
	memcpy(&h, m->file.s, sizeof(h));
	h.e_phnum = 0xfffe;
	memcpy(m->file.s, &h, sizeof(h));
	(void)parse_cut(m, m->file.len);
	h.e_machine = EM_386;
	memcpy(m->file.s, &h, sizeof(h));
	assert_int_equal(parse_cut(m, m->file.len), -UNI_ENOTSUP);
	uni_strbuf_reset(&m->file);
	make_qemu(m, wraps, 1);
	assert_int_equal(parse_cut(m, m->file.len), -UNI_EFORMAT);
}

static void test_others(void **state)
{
#define HEAD(s) s, sizeof(s)
	static const struct {
		const char *head;
		size_t size;
		const char *wanted;
	} row[] = {
		{ HEAD("makedumpfile\0\0\0"), "without -z" },
		{ HEAD("KDUMP   \6"), "without -z" },
		{ HEAD("LibvirtQemudSave"), "virsh dump --memory-only" },
		{ HEAD("QEVM\0\0\0\3"), "dump-guest-memory" },
		{ HEAD("\x1f\x8b\x08"), "gunzip" },
		{ HEAD("\x28\xb5\x2f\xfd"), "unzstd" },
		{ HEAD("Xen saved domain, xl format"), "xl dump-core" },
		{ HEAD("hello"), "core:raw=FILE" },
		{ HEAD("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2"), "goes to -e" },
		{ HEAD("\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\4"), "32-bit" },
		{ HEAD("\177ELF\2\2\1\0\0\0\0\0\0\0\0\0\4"), "big-endian" },
	};
	struct made *m = *state;

	for (size_t i = 0; i < uni_array_len(row); i++) {
		uni_strbuf_reset(&m->file);
		uni_strbuf_add(&m->file, row[i].head, row[i].size);
		made_pad(&m->file, 200);
		assert_true(parse_cut(m, m->file.len) < 0);
		if (strstr(m->err.msg, row[i].wanted) == NULL)
			fail_msg("%s", m->err.msg);
	}
}

static int parse_raw(struct made *m, const char *text)
{
	uni_core_file_deinit(&m->core);
	memset(&m->core, 0, sizeof(m->core));
	m->err = (struct uni_err){ 0 };
	m->src = uni_core_src_memory(m->memory, sizeof(m->memory));
	return uni_core_file_raw(&m->core, &m->src, NULL, 0x100000, text, &m->err);
}

static void test_registers_of_qemu(void **state)
{
	static const char text[] =
		"\r\nCPU#0\r\nRAX=000000000000000a RBX=0000000000000063\r\n"
		"RSI=ffffc900ff040e00 RBP=ffffc90000001010 RSP=ffffc90000001000\r\n"
		"R8 =0000000000000031 R9 =0000000000000100 R15=000000000000000f\r\n"
		"RIP=ffffffff80201234 RFL=00000006 [-----P-] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
		"CS =0008 0000000000000000 ffffffff 00af9b00 DPL=0 CS64 [-RA]\r\n"
		"FS =0000 00000000000000f5 00000000 00000000\r\n"
		"GS =0000 0000000000000065 00000000 00000000\r\n"
		"LDT=0000 0000000000000000 0000ffff 00008200 DPL=0 LDT\r\n"
		"CR0=80010033 CR2=0000000000000000 CR3=0000000000003000 CR4=00000020\r\n"
		"EFER=0000000000000d00\r\nXMM00=0000000000000000 0000000000000000\r\n\r\n"
		"CPU#1\r\nEAX=00000000 EBX=00000000 ESP=00000000\r\n"
		"EIP=0000fff0 EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"
		"CR0=60000010 CR2=00000000 CR3=00000000 CR4=00000000\r\nEFER=0000000000000000\r\n";
	struct made *m = *state;
	uint64_t v;

	assert_int_equal(parse_raw(m, text), 0);
	assert_int_equal(m->core.vcpu.nr, 2);
	check_registers(&m->core.vcpu.v[0], true);
	assert_true(uni_regs_get(&m->core.vcpu.v[0], UNI_X86_R8, &v) && v == 0x31);
	assert_true(uni_regs_get_sys(&m->core.vcpu.v[0], UNI_X86_CS, &v) && v == 8);
	assert_true(uni_regs_get_sys(&m->core.vcpu.v[0], UNI_X86_EFER, &v) && v == 0xd00);
	assert_int_equal(m->core.vcpu.v[0].state, UNI_VCPU_RUNNING);
	assert_int_equal(m->core.vcpu.v[1].state, UNI_VCPU_OFFLINE);
	assert_int_equal(byte_at(m, 0x100003), m->memory[3]);
	assert_int_equal(byte_at(m, 0xfffff), -1);
	/* It waits in a place that has no bytes here: QEMU alone can know that. */
	assert_int_equal(parse_raw(m, "CPU#0\nRIP=ffffffff80201234 HLT=1\n"
				      "CPU#1\nRIP=ffffffff80201234 HLT=0\n"),
		0);
	assert_int_equal(m->core.vcpu.v[0].state, UNI_VCPU_HALTED);
	assert_int_equal(m->core.vcpu.v[1].state, UNI_VCPU_RUNNING);
}

static void test_registers_of_gdb(void **state)
{
	struct made *m = *state;
	struct uni_pt_root root;
	uint64_t v;

	assert_int_equal(parse_raw(m, "rax            0xa                 10\n"
				      "rbp            0x10                0x10 <f+4>\n"
				      "rip            0xffffffff80201234  0x1 <main+4>\n"
				      "eflags         0x6                 [ PF ]\n"),
		0);
	assert_int_equal(m->core.vcpu.v[0].pc, one.rip);
	assert_false(m->core.vcpu.v[0].sp_valid);
	assert_true(uni_regs_get(&m->core.vcpu.v[0], UNI_X86_RAX, &v) && v == 0xa);
	/* No page tables: addresses are physical. */
	assert_int_equal(uni_arch_x86_64.paging(&m->core.vcpu.v[0], &root), 0);
	assert_int_equal(root.geometry->nr_levels, 0);
	/* CR3 alone: 64-bit mode. */
	assert_int_equal(parse_raw(m, "rip=1234 cr3=3000"), 0);
	assert_int_equal(uni_arch_x86_64.paging(&m->core.vcpu.v[0], &root), 0);
	assert_int_equal(root.geometry->nr_levels, 4);
	assert_int_equal(root.root.v, 0x3000);
}

static void test_bad_registers(void **state)
{
	static const struct {
		const char *text, *wanted;
	} row[] = {
		{ "", "no registers in the text" },
		{ "hello world\n=5\n= =", "no registers in the text" },
		{ "rsp=12", "lack rip" },
		{ "rip=12345678901234567", "no registers in the text" },
		{ "rip=12g", "no registers in the text" },
		{ "CPU#0\nrip=1\nCPU#1\nrsp=1\n", "vCPU 1 lack rip" },
	};
	struct made *m = *state;

	for (size_t i = 0; i < uni_array_len(row); i++) {
		assert_int_equal(parse_raw(m, row[i].text), -UNI_EFORMAT);
		if (strstr(m->err.msg, row[i].wanted) == NULL)
			fail_msg("%s", m->err.msg);
	}
}

static int attach(const char *text, struct uni_target **ret, struct uni_err *err)
{
	struct uni_spec spec;
	int rc = uni_spec_parse(text, &spec, err);

	return rc != 0 ? rc : uni_target_attach(&spec, NULL, ret, err);
}

static void test_specs(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *wanted;
	} row[] = {
		{ "core:", -UNI_EUSAGE, "core:file=PATH" },
		{ "core:file=a,raw=b", -UNI_EUSAGE, "core:file=PATH" },
		{ "core:file=a,rip=1", -UNI_EUSAGE, "has its registers" },
		{ "core:raw=a,regs=b,rip=1", -UNI_EUSAGE, "not both" },
		{ "core:pid=1", -UNI_EUSAGE, "unknown key pid" },
		{ "core:raw=/dev/null,rip=1", -UNI_EFORMAT, "not a regular file" },
		{ "core:file=/nonexistent/x", -UNI_ENOENT, "/nonexistent/x" },
		{ "core:file=/proc/self/status", -UNI_EFORMAT, "not an ELF core" },
		{ "core:raw=/proc/self/exe", -UNI_EUSAGE, "which registers" },
		{ "core:raw=/proc/self/exe,rip=x", -UNI_EUSAGE, "rip is not a number" },
		{ "core:raw=/proc/self/exe,regs=/nonexistent/y", -UNI_ENOENT, "/nonexistent/y" },
	};
	struct uni_target *t;

	for (size_t i = 0; i < uni_array_len(row); i++) {
		struct uni_err err = { 0 };

		assert_int_equal(attach(row[i].text, &t, &err), row[i].rc);
		if (strstr(err.msg, row[i].wanted) == NULL)
			fail_msg("%s", err.msg);
	}
}

/* A file on disk, and the vCPU that sleeps in hlt: page 0 is the code, there is no paging. */
static void test_target(void **state)
{
	char path[] = "/tmp/uni-core-XXXXXX", text[96];
	struct made *m = *state;
	struct uni_target_info info;
	struct uni_regs regs[2];
	struct uni_target *t;
	uint8_t buf[16];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	m->memory[0x21] = 0xf4;
	assert_int_equal(write(fd, m->memory, sizeof(m->memory)), sizeof(m->memory));
	(void)snprintf(text, sizeof(text), "core:raw=%s,rip=0x22,rsp=0x800,base=0", path);
	assert_int_equal(attach(text, &t, NULL), 0);
	assert_int_equal(t->ops->nr_vcpus(t), 1);
	assert_int_equal(t->ops->snap(t, VCPUS(1), regs, 0), 0);
	assert_int_equal(regs[0].state, UNI_VCPU_HALTED);
	assert_int_equal(regs[0].pc, 0x22);
	assert_int_equal(t->ops->snap(t, VCPUS(2), regs, 0), -UNI_EINVAL);
	assert_int_equal(
		t->ops->caps(t), UNI_CAP_NO_PAUSE | UNI_CAP_DEAD | UNI_CAP_STILL | UNI_CAP_SYSREGS);
	t->ops->info(t, &info);
	assert_string_equal(info.note, "raw memory, 64 KiB of memory");
	assert_int_equal(uni_gmem_read(t->ops->gmem(t), uni_gpa_of(0x5ff8), buf, 16), 0);
	assert_memory_equal(buf, m->memory + 0x5ff8, 16);
	/* Somebody cuts the file off while we read it. */
	assert_int_equal(ftruncate(fd, 0x3000), 0);
	assert_int_equal(uni_gmem_read(t->ops->gmem(t), uni_gpa_of(0x5ff8), buf, 16), -UNI_EFAULT);
	assert_int_equal(uni_gmem_read(t->ops->gmem(t), uni_gpa_of(0x2ff0), buf, 16), 0);
	uni_target_detach(t);
	(void)close(fd);
	(void)unlink(path);
}

/* A name is as long as the note says, and no longer. */
static void names_of_notes(void **state)
{
	static const uint8_t raw[] = "\5\0\0\0\4\0\0\0\1\0\0\0CORE\0\0\0\0abcd";
	struct uni_cursor c = uni_cursor_make(raw, sizeof(raw) - 1);
	struct uni_core_note n = { 0 };

	assert_true(uni_core_note_next(&c, &n));
	assert_int_equal(n.name_size, 5);
	assert_int_equal(n.size, 4);
	assert_memory_equal(n.desc, "abcd", 4);
	assert_true(uni_core_note_is(&n, "CORE", 1));
	assert_false(uni_core_note_is(&n, "COR", 1));
	assert_false(uni_core_note_is(&n, "CORE", 2));
	assert_false(uni_core_note_next(&c, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_notes),
		cmocka_unit_test_setup_teardown(test_qemu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_qemu_paging, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_headers, set_up, tear_down),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test_setup_teardown(test_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_xen_hvm, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_xen_pv, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_xen_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_xen_versions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_registers_of_qemu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_registers_of_gdb, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_registers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_target, set_up, tear_down),
		cmocka_unit_test(test_specs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
