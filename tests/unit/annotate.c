/* SPDX-License-Identifier: BSD-2-Clause */
/* A function's instructions, with the samples of chains that have it; jumps drawn; source files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "annotate/annotation.h"
#include "annotate/arrows.h"
#include "elf_spec.h"

#define TEXT 0x100000u
#define BIAS 0x40000000u

/*
 *  00  hot: push %rbp; 01 call twin; 06 dec %ecx; 08 jne 01; 0a je 0f; 0c call *%rax;
 *      0e (bad); 0f jmp twin; 14 ret
 *  20  twin: nop; ret
 *  30  twin, of another file: ret
 */
static const uint8_t code[0x40] = { 0x55, 0xe8, 0x1a, 0, 0, 0, 0xff, 0xc9, 0x75, 0xf7, 0x74, 0x03,
	0xff, 0xd0, 0x06, 0xe9, 0x0c, 0, 0, 0, 0xc3, [0x20] = 0x90, 0xc3, [0x30] = 0xc3 };

static const struct spec_sym syms[] = {
	{ "hot", TEXT, 0x15, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "twin", TEXT + 0x20, 2, STT_FUNC, STB_LOCAL, SPEC_TEXT },
	{ "twin", TEXT + 0x30, 1, STT_FUNC, STB_LOCAL, SPEC_TEXT },
	{ "other_name", TEXT, 0x15, STT_FUNC, STB_WEAK, SPEC_TEXT },
};

static struct uni_image *make_image(void)
{
	const struct elf_spec spec = { .text = TEXT,
		.data = TEXT + 0x100000,
		.entry = TEXT,
		.code = code,
		.code_size = sizeof(code),
		.syms = syms,
		.nr_syms = sizeof(syms) / sizeof(syms[0]) };
	static struct elf_image e;
	struct uni_image *img;
	struct uni_err err = { 0 };

	elf_spec_write(&spec, &e);
	assert_int_equal(uni_image_from_memory("t", e.data, e.size, &img, &err), 0);
	return img;
}

static struct uni_annotation read_hot(void)
{
	struct uni_annotation a = { .bias = BIAS, .guest = 1, .image = "t" };
	struct uni_image *img = make_image();
	const struct uni_symbol *sym[4];
	struct uni_err err = { 0 };

	assert_int_equal(uni_code_find(img, "hot", sym, 4), 1);
	assert_int_equal(uni_code_read(img, sym[0], NULL, &a.code, &err), 0);
	uni_image_destroy(img);
	return a;
}

static const struct uni_code_insn *insn_at(struct uni_annotation *a, uint64_t offset)
{
	const struct uni_code_insn *i = uni_code_at(&a->code, TEXT + offset);

	assert_non_null(i);
	assert_int_equal(i->insn.addr, TEXT + offset);
	return i;
}

static void names_and_kinds(void **state)
{
	const struct uni_symbol *sym[4];
	struct uni_image *img = make_image();
	struct uni_annotation a = read_hot();

	assert_int_equal(uni_code_find(img, "twin", sym, 1), 2);
	assert_int_equal(uni_code_find(img, "other_name", sym, 4), 1);
	assert_int_equal(sym[0]->addr, TEXT);
	assert_int_equal(uni_code_find(img, "none", sym, 4), 0);
	assert_int_equal(a.code.insns.nr, 9);
	assert_int_equal(insn_at(&a, 1)->insn.kind, UNI_INSN_CALL);
	assert_string_equal(uni_code_string(&a.code, insn_at(&a, 1)->callee), "twin");
	assert_int_equal(insn_at(&a, 8)->to, 1);
	assert_int_equal(insn_at(&a, 8)->callee, 0);
	assert_int_equal(insn_at(&a, 0xa)->to, 7);
	assert_int_equal(insn_at(&a, 0xc)->insn.kind, UNI_INSN_CALL);
	assert_int_equal(insn_at(&a, 0xc)->insn.target, 0);
	assert_int_equal(insn_at(&a, 0xe)->insn.kind, UNI_INSN_BAD);
	assert_string_equal(insn_at(&a, 0xe)->insn.text, ".byte 0x06");
	assert_int_equal(insn_at(&a, 0xf)->to, UNI_CODE_NONE);
	assert_string_equal(uni_code_string(&a.code, insn_at(&a, 0xf)->callee), "twin");
	assert_int_equal(insn_at(&a, 0x14)->insn.kind, UNI_INSN_RETURN);
	assert_null(uni_code_at(&a.code, TEXT + 0x15));
	assert_null(uni_code_at(&a.code, TEXT - 1));
	uni_annotation_deinit(&a);
	uni_image_destroy(img);
}

static void add_chain(struct uni_annotation *a, uint64_t weight, uint8_t vcpu_state,
	const uint64_t *pc, const uint8_t *flags, uint16_t nr)
{
	const struct uni_sample s = { .weight = weight,
		.guest = 1,
		.state = vcpu_state,
		.nr = nr,
		.pc = pc,
		.flags = flags };

	uni_annotation_add(a, &s);
}

static void samples_of_chains(void **state)
{
	const uint64_t leaf[] = { TEXT + BIAS + 7, 0x1234 };
	/* twin, called by hot, which was called by hot at the same place. */
	const uint64_t below[] = { TEXT + BIAS + 0x20, TEXT + BIAS + 6, TEXT + BIAS + 6 };
	/* An interrupt came in at an instruction that follows a call. */
	const uint64_t handler[] = { 0x9999, TEXT + BIAS + 6 };
	const uint64_t elsewhere[] = { TEXT + BIAS + 0x20, 0x1234 };
	/* The kernel below a process, whose place is not known. */
	const uint64_t kernel[] = { TEXT + BIAS + 1, 0x1234 };
	const uint8_t plain[] = { UNI_FRAME_EXACT, 0, 0 };
	const uint8_t exact[] = { UNI_FRAME_EXACT, UNI_FRAME_EXACT };
	const uint8_t in_kernel[] = { UNI_FRAME_KERNEL, 0 };
	const uint8_t moved[] = { UNI_FRAME_EXACT | UNI_FRAME_MOVED, 0 };
	const uint64_t start[] = { TEXT + BIAS, 0x1234 };
	struct uni_annotation a = read_hot();
	struct uni_sample other = {
		.weight = 100, .guest = 0, .nr = 1, .pc = leaf, .flags = plain
	};

	add_chain(&a, 3, UNI_VCPU_RUNNING, leaf, plain, 2);
	add_chain(&a, 10, UNI_VCPU_RUNNING, below, plain, 3);
	add_chain(&a, 1, UNI_VCPU_RUNNING, handler, exact, 2);
	add_chain(&a, 20, UNI_VCPU_RUNNING, elsewhere, plain, 2);
	add_chain(&a, 40, UNI_VCPU_RUNNING, kernel, in_kernel, 2);
	add_chain(&a, 5, UNI_VCPU_HALTED, leaf, plain, 2);
	add_chain(&a, 2, UNI_VCPU_RUNNING, start, moved, 2);
	add_chain(&a, 7, UNI_VCPU_RUNNING, leaf, moved, 2);
	uni_annotation_add(&a, &other);
	uni_annotation_finish(&a);
	assert_int_equal((int)insn_at(&a, 6)->self, 3 + 7);
	assert_int_equal((int)insn_at(&a, 1)->below, 10);
	assert_int_equal((int)insn_at(&a, 6)->below, 1 + 5);
	assert_int_equal((int)insn_at(&a, 0)->self, 0);
	assert_int_equal((int)a.somewhere, 2);
	assert_int_equal((int)a.self, 3 + 2 + 7);
	assert_int_equal((int)a.total, 3 + 10 + 1 + 5 + 2 + 7);
	assert_int_equal((int)a.all, 3 + 10 + 1 + 20 + 40 + 5 + 2 + 7);
	uni_annotation_deinit(&a);
}

static void callees_at_their_calls(void **state)
{
	struct uni_annotation a = read_hot();

	a.of = UNI_ANNOTATE_CALLS;
	assert_true(uni_annotation_add_call(&a, TEXT + 0x30, "far", 1, 5));
	assert_true(uni_annotation_add_call(&a, TEXT + 0x20, "twin", 3, 100));
	assert_true(uni_annotation_add_call(&a, TEXT + 0x20, "twin", 4, 11));
	uni_annotation_finish(&a);
	assert_int_equal(a.callees.nr, 2);
	/* By a call and by a jump; nothing calls the other one directly. */
	assert_int_equal(a.callees.v[0].sites, 2);
	assert_int_equal(a.callees.v[1].sites, 0);
	assert_int_equal(insn_at(&a, 1)->calls, 7);
	assert_int_equal((int)insn_at(&a, 0xf)->below, 111);
	assert_int_equal(insn_at(&a, 0xf)->sites, 2);
	assert_int_equal(insn_at(&a, 0xc)->sites, 0);
	uni_annotation_deinit(&a);
}

/* Each place was executed so often, whatever the callee's sum. */
static void exact_calls_of_places(void **state)
{
	struct uni_annotation a = read_hot();

	a.of = UNI_ANNOTATE_EXACT;
	uni_code_at(&a.code, TEXT + 1)->self = 4;
	uni_code_at(&a.code, TEXT + 0xf)->self = 3;
	assert_true(uni_annotation_add_call(&a, TEXT + 0x20, "twin", 7, 100));
	uni_annotation_finish(&a);
	assert_int_equal(insn_at(&a, 1)->calls, 4);
	assert_int_equal(insn_at(&a, 0xf)->calls, 3);
	assert_int_equal((int)insn_at(&a, 0xf)->below, 100);
	uni_annotation_deinit(&a);
}

static void jumps_are_drawn(void **state)
{
	static const char *const want[] = { "   ", ",->", "|  ", "'--", ",--", "|  ", "|  ", "'->",
		"   " };
	struct uni_annotation a = read_hot();
	struct uni_arrows arrows = { 0 };
	char text[UNI_ARROW_LANES + 3];

	assert_true(uni_arrows_draw(&a.code, &arrows));
	assert_int_equal(arrows.lanes, 1);
	assert_int_equal(arrows.left_out, 0);
	for (size_t i = 0; i < a.code.insns.nr; i++) {
		uni_arrows_text(&arrows, i, text);
		assert_string_equal(text, want[i]);
	}
	uni_arrows_deinit(&arrows);
	/* One across another; and one that nobody can follow. */
	a.code.insns.v[6].to = 2;
	a.code.insns.v[0].to = 8;
	arrows = (struct uni_arrows){ 0 };
	assert_true(uni_arrows_draw(&a.code, &arrows));
	uni_arrows_text(&arrows, 2, text);
	assert_string_equal(text, "|,+->");
	uni_arrows_text(&arrows, 4, text);
	assert_string_equal(text, "||,--");
	uni_arrows_text(&arrows, 8, text);
	assert_string_equal(text, "'--->");
	uni_arrows_deinit(&arrows);
	uni_annotation_deinit(&a);
}

static void write_file(const char *dir, const char *name, const char *content)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void source_files(void **state)
{
	char dir[] = "/tmp/uniscope-annotate-XXXXXX", path[512], text[64];
	const char *const dirs[] = { dir };
	struct uni_lines *l;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/src", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(dir, "src/a.c", "one\n\ttwo\t;\r\n\x1b[31mthree");
	write_file(dir, "top.c", "top\n");
	write_file(dir, "src/b", "short\n");
	l = uni_lines_create(dirs, 1);
	assert_non_null(l);
	assert_string_equal(uni_lines_get(l, "/build/src/a.c", 1, text, sizeof(text)), "one");
	assert_string_equal(
		uni_lines_get(l, "/build/src/a.c", 2, text, sizeof(text)), "        two     ;");
	/* No control characters on a terminal. */
	assert_null(strchr(uni_lines_get(l, "/build/src/a.c", 3, text, sizeof(text)), '\x1b'));
	assert_non_null(strstr(text, "three"));
	assert_string_equal(uni_lines_get(l, "/build/src/a.c", 4, text, sizeof(text)), "");
	assert_string_equal(uni_lines_get(l, "/build/src/a.c", 0, text, sizeof(text)), "");
	assert_string_equal(uni_lines_get(l, "b.c", 1, text, sizeof(text)), "");
	/* A path of an image leads to no file above the folder. */
	(void)snprintf(path, sizeof(path), "src/../../../../..%s/top.c", dir);
	assert_string_equal(uni_lines_get(l, path, 1, text, sizeof(text)), "top");
	assert_string_equal(uni_lines_get(l, "../../../../etc/passwd", 1, text, sizeof(text)), "");
	assert_string_equal(uni_lines_get(l, "./x/src/.././/top.c", 1, text, sizeof(text)), "top");
	/* A name of one letter is one. */
	assert_string_equal(uni_lines_get(l, "x/./src//b", 1, text, sizeof(text)), "short");
	uni_lines_destroy(l);
	l = uni_lines_create(NULL, 0);
	(void)snprintf(path, sizeof(path), "%s/top.c", dir);
	assert_string_equal(uni_lines_get(l, path, 1, text, sizeof(text)), "top");
	uni_lines_destroy(l);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/src/a.c", dir);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/src/b", dir);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/src", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_kinds),
		cmocka_unit_test(samples_of_chains),
		cmocka_unit_test(callees_at_their_calls),
		cmocka_unit_test(exact_calls_of_places),
		cmocka_unit_test(jumps_are_drawn),
		cmocka_unit_test(source_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
