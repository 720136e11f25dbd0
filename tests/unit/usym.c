/* SPDX-License-Identifier: BSD-2-Clause */
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
#include "base/io.h"
#include "elf_spec.h"
#include "obj/usym.h"

static const struct spec_sym syms[] = {
	{ "main", 0x1000, 0x10, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "label", 0x1008, 0, STT_NOTYPE, STB_LOCAL, SPEC_TEXT },
	{ "tail", 0x1020, 0, STT_NOTYPE, STB_GLOBAL, SPEC_TEXT },
};

/* The .usym of a small image; the caller frees it. */
static char *make_usym(size_t *size_ret)
{
	const struct elf_spec spec = { .text = 0x1000,
		.data = 0x9000,
		.code_size = 0x40,
		.syms = syms,
		.nr_syms = uni_array_len(syms),
		.build_id = "\x12\x34" };
	char dir[] = "/tmp/uni-usym-XXXXXX", path[64];
	struct uni_err err = { 0 };
	struct uni_symtab *s;
	struct uni_image *img;
	struct elf_image e;
	char *data;

	elf_spec_write(&spec, &e);
	assert_int_equal(uni_image_from_memory("/tmp/k\n.elf", e.data, e.size, &img, &err), 0);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/1234.usym", dir);
	assert_int_equal(uni_usym_write(img, path, &err), 0);
	uni_image_destroy(img);
	assert_int_equal(uni_symtab_load(path, &s, &err), 0);
	uni_symtab_destroy(s);
	assert_int_equal(uni_read_file(path, 1 << 20, &data, size_ret, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* no temporary file was left */
	return data;
}

static void expect(const struct uni_symtab *s, uint64_t addr, const char *name, uint64_t off)
{
	const char *got = NULL;
	uint64_t got_off = 0;

	assert_int_equal(uni_symtab_lookup(s, addr, &got, &got_off), name != NULL);
	if (name == NULL)
		return;
	assert_string_equal(got, name);
	assert_int_equal(got_off, off);
}

static void travels_unchanged(void **state)
{
	struct uni_err err = { 0 };
	struct uni_symtab *s;
	size_t size;
	char *data = make_usym(&size);

	assert_int_equal(uni_symtab_parse(data, size, &s, &err), 0);
	free(data);
	assert_string_equal(uni_symtab_id(s), "1234");
	assert_string_equal(uni_symtab_path(s), "/tmp/k\xef\xbf\xbd.elf");
	assert_int_equal(uni_symtab_nr(s), 3);
	expect(s, 0xfff, NULL, 0);
	expect(s, 0x1000, "main", 0);
	expect(s, 0x1009, "main", 9); /* not the label: guesses stay marked */
	expect(s, 0x1010, NULL, 0);
	expect(s, 0x103f, "tail", 0x1f);
	expect(s, 0x1040, NULL, 0);
	uni_symtab_destroy(s);
	uni_symtab_destroy(NULL);
}

/* The header as docs/formats/usym.md has it. */
static void layout_is_as_documented(void **state)
{
	size_t size;
	char *data = make_usym(&size);
	uint32_t u32;

	assert_memory_equal(data, "uniusym\0\1\0\0\0\100\0\0\0", 16);
	memcpy(&u32, data + 24, 4);
	assert_int_equal(u32, 3);
	assert_int_equal(size, 64 + 3 * 24 + strlen("1234./tmp/k***.elf.main.label.tail.") + 0);
	assert_memory_equal(data + 64, "\x00\x10\0\0\0\0\0\0\x10\0\0\0\0\0\0\0", 16);
	free(data);
}

/* FNV-1a as documented, written again so that the file's own sum is checked. */
static void fix_checksum(char *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325ull;

	memset(data + 56, 0, 8);
	for (size_t i = 0; i < size; i++)
		h = (h ^ (uint8_t)data[i]) * 0x100000001b3ull;
	memcpy(data + 56, &h, 8);
}

static void damage_is_found(void **state)
{
	struct uni_symtab *s = NULL;
	struct uni_err err = { 0 };
	size_t size;
	char *data = make_usym(&size);

	for (size_t i = 0; i < size; i++) {
		data[i] ^= 0x40;
		assert_true(uni_symtab_parse(data, size, &s, NULL) < 0);
		data[i] ^= 0x40;
		assert_int_equal(uni_symtab_parse(data, i, &s, NULL), -UNI_EFORMAT);
	}
	assert_null(s);
	data[8] = 3;
	assert_int_equal(uni_symtab_parse(data, size, &s, &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, "version 3"));
	free(data);
}

/* With a right checksum: what is then read must still hold together. */
static void hostile_files_do_no_harm(void **state)
{
	const uint8_t values[] = { 0, 1, 0x2f, 0x7f, 0x80, 0xff };
	size_t size;
	char *data = make_usym(&size);

	for (size_t i = 0; i < size * sizeof(values); i++) {
		char *byte = &data[i / sizeof(values)], good = *byte;
		struct uni_symtab *s = NULL;
		const char *name;
		uint64_t off;

		*byte = (char)values[i % sizeof(values)];
		fix_checksum(data, size);
		if (uni_symtab_parse(data, size, &s, NULL) == 0) {
			(void)uni_symtab_lookup(s, 0x1008, &name, &off);
			assert_null(strchr(uni_symtab_id(s), '/'));
			uni_symtab_destroy(s);
		}
		*byte = good;
	}
	data[64 + 3 * 24] = '/'; /* the id's first letter: it must not lead out of the session */
	fix_checksum(data, size);
	assert_int_equal(uni_symtab_parse(data, size, NULL, NULL), -UNI_EFORMAT);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(travels_unchanged),
		cmocka_unit_test(layout_is_as_documented),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(hostile_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
