/* SPDX-License-Identifier: BSD-2-Clause */
/* Images in two files (boot image and symbols), without symbols, and files that are no images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/sink.h"
#include "elf_spec.h"
#include "obj/debugfile.h"
#include "obj/image.h"
#include "obj/usym.h"

#define HIGH 0xffffffff80100000

/* mov %rdi,%rax; add %rsi,%rax; lea 1(%rax),%rax; ret: dense in REX prefixes, like real code. */
static const uint8_t code64[] = { 0x48, 0x89, 0xf8, 0x48, 0x01, 0xf0, 0x48, 0x8d, 0x40, 0x01, 0xc3,
	0x90 };

static const struct spec_sym low_syms[] = {
	{ "add1", 0x100000, 11, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
};
static const struct spec_sym high_syms[] = {
	{ "add1", HIGH, 11, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
};

static const struct elf_spec dbg_spec = { .text = 0x100000,
	.data = 0x101000,
	.entry = 0x100000,
	.code = code64,
	.code_size = sizeof(code64),
	.syms = low_syms,
	.nr_syms = 1 };

struct folder {
	unsigned nr;
	char file[8][64];
	char path[32];
};

static int folder_make(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->path, sizeof(f->path), "/tmp/uni-obj-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	*state = f;
	return 0;
}

static int folder_remove(void **state)
{
	struct folder *f = *state;

	for (unsigned i = 0; i < f->nr; i++)
		(void)unlink(f->file[i]);
	assert_int_equal(rmdir(f->path), 0);
	free(f);
	return 0;
}

static const char *save(struct folder *f, const char *name, const struct elf_spec *spec)
{
	char path[sizeof(f->file[0])];
	struct elf_image e;
	struct uni_sink *out;

	(void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
	memcpy(f->file[f->nr++], path, sizeof(path));
	elf_spec_write(spec, &e);
	assert_int_equal(uni_sink_open_file(path, &out, NULL), 0);
	uni_sink_write(out, e.data, e.size);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	return f->file[f->nr - 1];
}

static struct uni_image *load(const char *path)
{
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_image_load(path, &img, &err), 0);
	return img;
}

/* Unikraft: what boots is an ELF32/i386 file around 64-bit code, stripped; PATH.dbg is ELF64. */
static void wrapper_and_dbg(void **state)
{
	struct elf_spec wrapper = dbg_spec;
	const char *path, *dbg;
	struct uni_image *img;

	wrapper.elf32 = true;
	wrapper.machine = EM_386;
	wrapper.nr_syms = 0;
	path = save(*state, "k_qemu-x86_64", &wrapper);
	img = load(path);
	assert_int_equal(uni_image_nr_symbols(img), 0);
	assert_int_equal(uni_image_machine(img), EM_X86_64); /* by its instructions */
	assert_non_null(strstr(uni_image_note(img), "k_qemu-x86_64.dbg (not there)"));
	uni_image_destroy(img);

	dbg = save(*state, "k_qemu-x86_64.dbg", &dbg_spec);
	img = load(path);
	assert_int_equal(uni_image_machine(img), EM_X86_64);
	assert_string_equal(uni_image_arch(img)->name, "x86_64");
	assert_string_equal(uni_image_path(img), path);
	assert_string_equal(uni_image_symbol_path(img), dbg);
	assert_non_null(uni_image_lookup(img, 0x10000a));
	assert_null(uni_image_lookup(img, 0x10000b));
	assert_null(uni_image_note(img));
	uni_image_destroy(img);
}

/* The file with the symbols beside the one that boots, by the names that record's manual gives. */
static void names_of_pairs(void **state)
{
	static const struct {
		const char *boots, *beside;
	} pairs[] = { { "app.stripped", "app" }, { "app.stripped", "app.dbg" },
		{ "app.elf", "app.debug" }, { "app.bin", "app.elf" }, { "app.img", "app.dbg" },
		{ "app", "app.debug" }, { "app.elf", "app.elf.dbg" } };
	struct elf_spec boots = dbg_spec;
	struct folder *f = *state;

	boots.nr_syms = 0;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *path = save(f, pairs[i].boots, &boots);
		const char *beside = save(f, pairs[i].beside, &dbg_spec);
		struct uni_image *img = load(path);

		assert_string_equal(uni_image_symbol_path(img), beside);
		assert_int_equal(uni_image_nr_symbols(img), 1);
		uni_image_destroy(img);
		(void)unlink(path);
		(void)unlink(beside);
		f->nr = 0;
	}
}

static void other_build_is_refused(void **state)
{
	struct elf_spec boot = dbg_spec, dbg = dbg_spec;
	uint8_t changed[sizeof(code64)];
	const char *path;
	struct uni_image *img;

	memcpy(changed, code64, sizeof(code64));
	changed[9] = 2;
	boot.nr_syms = 0;
	dbg.code = changed;
	path = save(*state, "app", &boot);
	(void)save(*state, "app.dbg", &dbg);
	img = load(path);
	assert_int_equal(uni_image_nr_symbols(img), 0);
	assert_non_null(strstr(uni_image_note(img), "app.dbg (of another build)"));
	uni_image_destroy(img);

	/* Build-ids decide if both have one. */
	boot.build_id = "same";
	dbg.build_id = "diff";
	path = save(*state, "b.elf", &boot);
	(void)save(*state, "b.dbg", &dbg);
	img = load(path);
	assert_int_equal(uni_image_nr_symbols(img), 0);
	uni_image_destroy(img);
	((struct folder *)*state)->nr--;
	dbg.build_id = "same";
	(void)save(*state, "b.dbg", &dbg);
	img = load(path);
	assert_int_equal(uni_image_nr_symbols(img), 1);
	assert_string_equal(uni_image_id(img), "73616d65");
	uni_image_destroy(img);
}

/* objcopy -O elf32-i386 of a higher-half image: the segments must then come from the ELF64. */
static void cut_addresses(void **state)
{
	struct elf_spec full = dbg_spec, wrapper = dbg_spec;
	struct uni_image *img;
	const char *path;
	uint8_t b;

	full.text = full.entry = HIGH;
	full.data = HIGH + 0x1000;
	full.phys_offset = 0xffffffff80000000;
	full.syms = high_syms;
	wrapper.elf32 = true;
	wrapper.machine = EM_386;
	wrapper.text = (uint32_t)HIGH;
	wrapper.nr_syms = 0;
	path = save(*state, "m.elf", &wrapper);
	(void)save(*state, "m.debug", &full);
	img = load(path);
	assert_int_equal(uni_image_segment(img, 0)->vaddr, HIGH);
	assert_int_equal(uni_image_segment(img, 0)->paddr, 0x100000);
	assert_true(uni_image_bytes(img, HIGH, &b, 1));
	assert_non_null(uni_image_lookup(img, HIGH));
	assert_string_equal(uni_image_path(img), path);
	uni_image_destroy(img);
}

static void debug_half_finds_its_code(void **state)
{
	struct elf_spec code = dbg_spec, debug = dbg_spec;
	struct uni_image *img;
	const char *path;
	uint8_t b;

	code.build_id = debug.build_id = "bid1";
	code.nr_syms = 0;
	debug.debug_only = true;
	path = save(*state, "app.debug", &debug);
	img = load(path);
	assert_false(uni_image_bytes(img, 0x100000, &b, 1));
	assert_non_null(strstr(uni_image_note(img), "no code"));
	uni_image_destroy(img);
	(void)save(*state, "app", &code);
	img = load(path);
	assert_true(uni_image_bytes(img, 0x100000, &b, 1));
	assert_int_equal(b, 0x48);
	assert_non_null(uni_image_lookup(img, 0x100000));
	uni_image_destroy(img);
	/* And the other way: the code finds the debug half. */
	img = load(((struct folder *)*state)->file[1]);
	assert_non_null(uni_image_lookup(img, 0x100000));
	uni_image_destroy(img);
}

/* The places that are tried for an image with that .gnu_debuglink: its data section, by a name that
 * is a symbol's, too. */
static void expect_tried(const char *link, uint64_t size, const char *want)
{
	static const struct spec_sym syms[] = {
		{ ".gnu_debuglink", 0x100000, 11, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	};
	struct elf_spec spec = dbg_spec;
	struct elf_image e;
	struct uni_objfile f = { 0 }, found = { 0 };
	struct uni_strbuf note;
	uint8_t *header;

	spec.syms = syms;
	elf_spec_write(&spec, &e);
	e.data[offsetof(Elf64_Ehdr, e_shstrndx)] = SPEC_STRTAB;
	memcpy(e.data + e.code_off + spec.code_size, link, size);
	header = e.data + e.sh_off + SPEC_DATA * sizeof(Elf64_Shdr);
	header[offsetof(Elf64_Shdr, sh_name)] = 1;
	header[offsetof(Elf64_Shdr, sh_size)] = (uint8_t)size;
	uni_strbuf_init(&note);
	assert_int_equal(uni_objfile_from_memory("/none/image", e.data, e.size, &f, NULL), 0);
	assert_false(uni_objfile_find_debug(&f, NULL, uni_elf_has_dwarf, &found, &note));
	if (want == NULL)
		assert_int_equal(note.len, 0);
	else
		assert_non_null(strstr(note.s, want));
	uni_strbuf_deinit(&note);
	uni_objfile_deinit(&f);
}

static void links_to_debug_data(void **state)
{
	expect_tried("a.debug\0crc", 12, "/none/a.debug (not there)");
	expect_tried("ab.debug\0...crc", 16, "/none/.debug/ab.debug (not there)");
	/* Without a whole checksum it is none. */
	expect_tried("a.debug\0crc", 11, NULL);
	expect_tried("a.debug", 8, NULL);
	expect_tried("ab.debug\0crc..", 12, NULL);
	expect_tried("", 1, NULL);
	/* Nor if it leads to another folder. */
	expect_tried("../a.debug\0.crc", 16, NULL);
	expect_tried("/a.debug\0...crc", 16, NULL);
	expect_tried("b/a\0crc", 8, NULL);
}

static void try_load(const struct elf_image *e, size_t size)
{
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };
	const struct uni_unwind_hints *h;

	if (uni_image_from_memory("hostile", e->data, size, &img, &err) != 0) {
		assert_null(img);
		assert_non_null(strstr(err.msg, "hostile"));
		return;
	}
	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *sym = uni_image_symbol(img, i);

		assert_int_not_equal(sym->size, 0);
		assert_non_null(uni_image_lookup(img, sym->addr));
	}
	(void)uni_image_hints(img, 0, &h, NULL);
	uni_image_destroy(img);
}

/* Each byte of headers and tables in turn, each to values that make numbers huge or zero. */
static void damaged_files_do_no_harm(void **state)
{
	const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct elf_spec spec = dbg_spec;
	struct elf_image e;

	for (int elf32 = 0; elf32 < 2; elf32++) {
		spec.elf32 = elf32 != 0;
		spec.build_id = "bid1";
		elf_spec_write(&spec, &e);
		for (size_t i = 0; i < e.size; i++) {
			uint8_t good = e.data[i];

			for (size_t k = 0; k < sizeof(values); k++) {
				e.data[i] = values[k];
				try_load(&e, e.size);
			}
			e.data[i] = good;
			try_load(&e, i);
		}
	}
}

static void expect_error(const void *data, size_t size, int code, const char *text)
{
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_image_from_memory("f", data, size, &img, &err), -code);
	assert_null(img);
	if (strstr(err.msg, text) == NULL)
		fail_msg("\"%s\" is not in: %s", text, err.msg);
}

static void errors_say_what_is_wrong(void **state)
{
	struct elf_spec spec = dbg_spec;
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };
	struct elf_image e;

	expect_error("", 0, UNI_EFORMAT, "not an ELF");
	expect_error("#!/bin/sh and so on", 19, UNI_EFORMAT, "not an ELF");
	assert_int_equal(uni_image_load("/nonexistent/i", &img, &err), -UNI_ENOENT);
	spec.type = ET_REL;
	elf_spec_write(&spec, &e);
	expect_error(e.data, e.size, UNI_EFORMAT, "object file");
	elf_spec_write(&dbg_spec, &e);
	expect_error(e.data, e.size - 1, UNI_EFORMAT, "section headers lie outside");
	expect_error(e.data, 40, UNI_EFORMAT, "cut short");
	e.data[EI_DATA] = ELFDATA2MSB;
	expect_error(e.data, e.size, UNI_ENOTSUP, "little-endian");
	elf_spec_write(&dbg_spec, &e);
	e.data[e.ph_off + offsetof(Elf64_Phdr, p_offset) + 6] = 1;
	expect_error(e.data, e.size, UNI_EFORMAT, "segment 0 lies outside");
	elf_spec_write(&dbg_spec, &e);
	e.data[e.sh_off + SPEC_SYMTAB * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset) + 5] =
		1;
	expect_error(e.data, e.size, UNI_EFORMAT, "symbol table lies outside");
	elf_spec_write(&dbg_spec, &e);
	e.data[e.sh_off + SPEC_STRTAB * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size) + 7] = 1;
	expect_error(e.data, e.size, UNI_EFORMAT, "symbol names lie outside");
	elf_spec_write(&dbg_spec, &e);
	e.data[e.sh_off + SPEC_SYMTAB * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size)]++;
	expect_error(e.data, e.size, UNI_EFORMAT, "cannot read its symbols");
	elf_spec_write(&dbg_spec, &e);
	e.data[EI_VERSION] = 0;
	expect_error(e.data, e.size, UNI_EFORMAT, "version 0");
	elf_spec_write(&dbg_spec, &e);
	e.data[offsetof(Elf64_Ehdr, e_phnum) + 1] = 0xfe;
	expect_error(e.data, e.size, UNI_EFORMAT, "program headers lie outside");
}

/* Counts that do not fit the header are in section 0 (gABI, "ELF header"). */
static void counts_of_section_0(void **state)
{
	struct elf_image e;
	struct uni_image *img = NULL;
	size_t segments;

	elf_spec_write(&dbg_spec, &e);
	assert_int_equal(uni_image_from_memory("t", e.data, e.size, &img, NULL), 0);
	segments = uni_image_nr_segments(img);
	uni_image_destroy(img);
	e.data[e.sh_off + offsetof(Elf64_Shdr, sh_info)] = e.data[offsetof(Elf64_Ehdr, e_phnum)];
	e.data[e.sh_off + offsetof(Elf64_Shdr, sh_size)] = SPEC_NR_SECTIONS;
	memset(e.data + offsetof(Elf64_Ehdr, e_phnum), 0xff, 2);
	memset(e.data + offsetof(Elf64_Ehdr, e_shnum), 0, 2);
	assert_int_equal(uni_image_from_memory("t", e.data, e.size, &img, NULL), 0);
	assert_int_equal(uni_image_nr_segments(img), segments);
	assert_int_not_equal(uni_image_nr_symbols(img), 0);
	uni_image_destroy(img);
	e.data[e.sh_off + offsetof(Elf64_Shdr, sh_info) + 3] = 1;
	expect_error(e.data, e.size, UNI_EFORMAT, "program headers lie outside");
}

static void expect_name(const struct uni_symtab *s, uint64_t svma, const char *name, uint64_t off)
{
	const char *got;
	uint64_t got_off;

	assert_true(uni_symtab_lookup(s, svma, &got, &got_off));
	assert_string_equal(got, name);
	assert_int_equal(got_off, off);
}

static void a_library_names_code_without_symbols(void **state)
{
	const struct spec_sym syms[] = {
		{ "first", 0x1000, 4, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
		{ "second", 0x1010, 8, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	};
	struct elf_spec spec = { .text = 0x1000, .data = 0x3000, .code_size = 0x40, .syms = syms };
	struct uni_symtab *s;
	struct uni_image *img;
	struct elf_image e;
	const char *name;
	uint64_t off;

	for (spec.nr_syms = 0; spec.nr_syms <= 2; spec.nr_syms += 2) {
		elf_spec_write(&spec, &e);
		assert_int_equal(
			uni_image_from_memory("/usr/lib/libfoo.so.1", e.data, e.size, &img, NULL),
			0);
		assert_int_equal(uni_symtab_of_library(img, &s, NULL), 0);
		expect_name(s, 0x1008, "[libfoo.so.1]", spec.nr_syms == 0 ? 8 : 4);
		expect_name(s, 0x1020, "[libfoo.so.1]", spec.nr_syms == 0 ? 0x20 : 0x1c);
		if (spec.nr_syms != 0) {
			expect_name(s, 0x1000, "first", 0);
			expect_name(s, 0x1017, "second", 7);
		}
		assert_false(uni_symtab_lookup(s, 0x3000, &name, &off));
		uni_symtab_destroy(s);
		/* An image alone: its addresses say more. */
		assert_int_equal(uni_symtab_of_image(img, &s, NULL), 0);
		assert_false(uni_symtab_lookup(s, 0x1020, &name, &off));
		uni_symtab_destroy(s);
		uni_image_destroy(img);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wrapper_and_dbg, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(names_of_pairs, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(other_build_is_refused, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(cut_addresses, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(
			debug_half_finds_its_code, folder_make, folder_remove),
		cmocka_unit_test(links_to_debug_data),
		cmocka_unit_test(a_library_names_code_without_symbols),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(errors_say_what_is_wrong),
		cmocka_unit_test(counts_of_section_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
