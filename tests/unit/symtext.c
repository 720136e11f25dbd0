/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "obj/symtext.h"

static struct uni_symtab *parse(const char *text)
{
	struct uni_symtab *s = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_symtab_of_text("t.map", text, strlen(text), &s, &err), 0);
	assert_string_equal(err.msg, "");
	assert_string_equal(uni_symtab_path(s), "t.map");
	return s;
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

static void refused(const char *text, int code, const char *words)
{
	struct uni_symtab *s = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_symtab_of_text("t.map", text, strlen(text), &s, &err), -code);
	assert_non_null(strstr(err.msg, words));
	assert_null(s);
}

/* The values that older tools are known by; theirs gave `baz+0xffffffedff` for the last one. */
static void nm(void **state)
{
	struct uni_symtab *s = parse("                 U undef\n"
				     "                 w maybe\n"
				     "0000000000000007 A number\n"
				     "0000000000001000 T foo\n"
				     "0000000000001100 T bar\n"
				     "0000000000001100 t bar_alias\n"
				     "0000000000001200 T baz\n");

	assert_int_equal(uni_symtab_nr(s), 3);
	expect(s, 7, NULL, 0);
	expect(s, 0xfff, NULL, 0);
	expect(s, 0x1000, "foo", 0);
	expect(s, 0x1005, "foo", 5);
	expect(s, 0x1100, "bar", 0);
	expect(s, 0x1210, "baz", 0x10);
	expect(s, 0x2fff, "baz", 0x1dff);
	expect(s, 0x3000, NULL, 0);
	expect(s, 0xffffffffff, NULL, 0);
	uni_symtab_destroy(s);
}

/* symbolize took the last of several; a global name still goes before a local one. */
static void nm_aliases(void **state)
{
	static const char text[] = "1000 T foo\n1100 T bar\n1100 T bar_alias\n1200 T glob\n"
				   "1200 t loc\n";
	struct uni_symtab *s = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_symtab_of_nm("t.syms", text, strlen(text), &s, &err), 0);
	expect(s, 0x1100, "bar_alias", 0);
	expect(s, 0x1200, "glob", 0);
	uni_symtab_destroy(s);
	s = parse(text);
	expect(s, 0x1100, "bar", 0);
	uni_symtab_destroy(s);
}

/* Data ends a function, sizes are believed, and nothing reaches further than a megabyte. */
static void ends(void **state)
{
	struct uni_symtab *s = parse("0000000000001000 0000000000000010 T sized\r\n"
				     "0000000000001020 T unsized\n"
				     "0000000000001040 D data\n"
				     "0000000000001080 W weak\n"
				     "0000000001000000 0000000000000004 t far\n"
				     "fffffffffffffff0 T top\n");

	expect(s, 0x100f, "sized", 0xf);
	expect(s, 0x1010, NULL, 0);
	expect(s, 0x103f, "unsized", 0x1f);
	expect(s, 0x1040, NULL, 0);
	expect(s, 0x1080, "weak", 0);
	expect(s, 0x1080 + UNI_SYMTEXT_REACH - 1, "weak", UNI_SYMTEXT_REACH - 1);
	expect(s, 0x1080 + UNI_SYMTEXT_REACH, NULL, 0);
	expect(s, 0x1000003, "far", 3);
	expect(s, UINT64_MAX, "top", 0xf);
	expect(s, 0xfff, NULL, 0);
	expect(s, 0, NULL, 0);
	uni_symtab_destroy(s);
}

static void kallsyms(void **state)
{
	struct uni_symtab *s = parse("0000000000000000 A fixed_percpu_data\n"
				     "ffffffff81000000 T startup_64\n"
				     "ffffffff81000000 T _text\n"
				     "ffffffff81000040 t .Llabel\n"
				     "ffffffff81000050 t $x\n"
				     "ffffffffc0100000 t init_module\t[ext4]\n");

	assert_int_equal(uni_symtab_nr(s), 2);
	expect(s, 0xffffffff81000060, "_text", 0x60);
	expect(s, 0xffffffffc0100001, "init_module", 1);
	uni_symtab_destroy(s);
	refused("0000000000000000 T startup_64\n0000000000000000 t init_module\t[ext4]\n",
		UNI_EPERM, "kptr_restrict");
}

static const char objdump_t[] = "\n"
				"app.elf:     file format elf64-x86-64\n"
				"\n"
				"SYMBOL TABLE:\n"
				"0000000000001000 l    d  .text\t0000000000000000 .text\n"
				"0000000000000000 l    df *ABS*\t0000000000000000 app.c\n"
				"0000000000001040 l     F .text\t0000000000000010 helper\n"
				"0000000000001050 l       .text\t0000000000000000 label\n"
				"0000000000001058 l     O .data\t0000000000000008 object\n"
				"0000000000000000         *UND*\t0000000000000000 undef\n"
				"0000000000001060 g     F .text\t0000000000000020 .hidden main\n"
				"0000000000001060  w    F .text\t0000000000000020 weak_main\n"
				"0000000000001080 g     F .text\t0000000000000004 0x80 odd\n";

static void objdump(void **state)
{
	struct uni_symtab *s = parse(objdump_t);

	assert_int_equal(uni_symtab_nr(s), 4);
	expect(s, 0x1000, NULL, 0);
	expect(s, 0x104f, "helper", 0xf);
	expect(s, 0x1057, "label", 7);
	expect(s, 0x1058, NULL, 0);
	expect(s, 0x1060, "main", 0);
	expect(s, 0x1083, "odd", 3);
	uni_symtab_destroy(s);
}

/* `objdump -x X | awk '{print $1,$2,$NF}'`: code and data cannot be told apart. */
static void three_columns(void **state)
{
	struct uni_symtab *s = parse("app.elf: file elf64-x86-64\n"
				     "0 .text 2**4\n"
				     "CONTENTS, ALLOC, CODE\n"
				     "SYMBOL TABLE: TABLE:\n"
				     "0000000000000000 l app.c\n"
				     "0000000000001000 l .text\n"
				     "0000000000001040 l helper\n"
				     "0000000000001060 g main\n"
				     "0000000000001060 w weak_main\n"
				     "0000000000000000 *UND* undef\n");

	assert_int_equal(uni_symtab_nr(s), 2);
	expect(s, 0, NULL, 0);
	expect(s, 0x1041, "helper", 1);
	expect(s, 0x1060, "main", 0);
	uni_symtab_destroy(s);
}

static void other_text_is_refused(void **state)
{
	static const char words[] = "neither an ELF image nor a .usym nor a symbol table";

	refused("", UNI_EFORMAT, words);
	refused("this is no program\n", UNI_EFORMAT, words);
	refused("main;foo;bar 12\n", UNI_EFORMAT, words);
	refused("0x1000\n0x1010\n1\n\n", UNI_EFORMAT, words);
	refused("00000000  7f 45 4c 46 02 01 01 00  |.ELF....|\n", UNI_EFORMAT, words);
	refused("0000000000001000 <main>:\n    1000:\t55\tpush %rbp\n", UNI_EFORMAT, words);
	refused("0000000000001000 D only_data\n", UNI_EFORMAT, words);
}

/* The id names files and tells tables apart. */
static void ids(void **state)
{
	struct uni_symtab *a = parse("0000000000001000 T foo\n");
	struct uni_symtab *b = parse("0000000000001000 T foo\n\n");
	struct uni_symtab *c = parse("0000000000001001 T foo\n");

	assert_string_equal(uni_symtab_id(a), uni_symtab_id(b));
	assert_string_not_equal(uni_symtab_id(a), uni_symtab_id(c));
	assert_int_equal(strlen(uni_symtab_id(a)), 17);
	uni_symtab_destroy(a);
	uni_symtab_destroy(b);
	uni_symtab_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nm),
		cmocka_unit_test(nm_aliases),
		cmocka_unit_test(ends),
		cmocka_unit_test(kallsyms),
		cmocka_unit_test(objdump),
		cmocka_unit_test(three_columns),
		cmocka_unit_test(other_text_is_refused),
		cmocka_unit_test(ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
