/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest whose code is that of another build than the image. The tests ask which functions differ,
 * which differences the image explains, and that nothing else keeps its name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/check.h"

#define TEXT	 0x200000u
#define NR_FUNCS 16u /* of 512 bytes each: f0 to f15; the last one has no type */
#define FUNC	 512u
#define TABLE	 (NR_FUNCS * FUNC) /* a page table in a page of the code */
#define CODE	 (TABLE + 4096u)
#define INIT	 (TEXT + CODE)	  /* 8 KiB of .init.text, more than there is other code */
#define ALT	 (INIT + 0x2000u) /* .altinstructions, one of 12 bytes for 5 bytes in f5 */
#define NOTE	 (ALT + 16u)
#define MCOUNT	 (NOTE + 24u) /* __mcount_loc: the nop of f6 */
#define TRACED	 (6 * FUNC + 4)
#define EMPTY                                                                                     \
	(7 * FUNC) /* calls f8, which is a `ret`; then f9, which is not, f10 by a trampoline, nop \
		    */
#define LOADED	0x5100u
#define ADDRESS (2 * FUNC + 50) /* of the image, in 4 bytes and in 8 */
#define LONG	(2 * FUNC + 60)
#define PERCPU	(2 * FUNC + 70) /* a distance to a variable that is linked at 0x40 */
#define NR_SYMS (NR_FUNCS + 1)

enum { S_NONE, S_TEXT, S_INIT, S_ALT, S_NOTE, S_MCOUNT, S_SYM, S_STR, S_NAMES, S_NR };

struct file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[S_NR];
	Elf64_Sym sym[NR_SYMS];
	char str[64], names[80];
	uint8_t loaded[LOADED];
};

struct bench {
	struct file f;
	uint8_t mem[LOADED];
	struct uni_image *img;
	struct uni_gmem *m;
	struct uni_as *as;
	struct uni_regs regs;
	struct uni_difference d;
	struct uni_err err;
};

static int read_mem(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	memcpy(buf, ((struct bench *)ctx)->mem + offset, len);
	return 0;
}

static const struct uni_gmem_ops ops = { .read = read_mem };

static void section(struct file *f, unsigned i, const char *name, uint32_t type, uint64_t flags,
	uint64_t addr, uint64_t offset, uint64_t size)
{
	size_t at = 1;

	while (f->names[at] != '\0')
		at += strlen(f->names + at) + 1;
	memcpy(f->names + at, name, strlen(name) + 1);
	f->sh[i] = (Elf64_Shdr){ .sh_name = (uint32_t)at,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = addr,
		.sh_offset = offset != 0 ? offset : offsetof(struct file, loaded) + addr - TEXT,
		.sh_size = size,
		.sh_link = type == SHT_SYMTAB ? S_STR : 0,
		.sh_entsize = type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0 };
}

static void put_call(uint8_t *at, int32_t rel)
{
	at[0] = 0xe8;
	memcpy(at + 1, &rel, sizeof(rel));
}

static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const uint8_t jump0[] = { 0xe9, 0, 0, 0, 0 }; /* to the next instruction */

static void fill_loaded(uint8_t *p)
{
	const uint64_t traced = TEXT + TRACED, address = TEXT + 0x1234;
	const uint32_t percpu = 0x40 - (TEXT + PERCPU + 4);
	const int32_t place = (int32_t)(TEXT + 5 * FUNC + 100 - ALT);
	const uint32_t note[] = { 4, 8, NT_GNU_BUILD_ID, 0x554e47, 0x11111111, 0x22222222 };

	for (size_t i = 0; i < ALT - TEXT; i++)
		p[i] = (uint8_t)(i * 2654435761u >> 13);
	memcpy(p + (ALT - TEXT), &place, 4);
	memcpy(p + (ALT - TEXT) + 4, &place, 4);
	p[ALT - TEXT + 10] = 5; /* instrlen */
	memcpy(p + (NOTE - TEXT), note, sizeof(note));
	memcpy(p + (MCOUNT - TEXT), &traced, sizeof(traced));
	memcpy(p + TRACED, nop5, sizeof(nop5));
	put_call(p + EMPTY, (int32_t)(FUNC - 5));
	put_call(p + EMPTY + 5, (int32_t)(2 * FUNC - 10));
	put_call(p + EMPTY + 10, (int32_t)(3 * FUNC - 15));
	memcpy(p + EMPTY + 15, nop5, sizeof(nop5));
	memcpy(p + EMPTY + 20, jump0, sizeof(jump0));
	p[8 * FUNC] = 0xc3;
	memcpy(p + (size_t)10 * FUNC, "\xe9....\x0f\xb9\xcc", 8);
	p[9 * FUNC] = 0x55;
	memcpy(p + ADDRESS, &address, 4);
	memcpy(p + LONG, &address, 8);
	memcpy(p + PERCPU, &percpu, 4);
	memset(p + TABLE, 0, 4096);
	for (uint64_t i = 1; i < 400; i++)
		memcpy(p + TABLE + 8 * i, &(uint64_t){ i << 21 | 0x83 }, 8);
}

static void fill_file(struct file *f)
{
	size_t at = 1;

	f->eh = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
				      EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = TEXT,
		.e_phoff = offsetof(struct file, ph),
		.e_shoff = offsetof(struct file, sh),
		.e_ehsize = sizeof(f->eh),
		.e_phentsize = sizeof(f->ph),
		.e_phnum = 1,
		.e_shentsize = sizeof(f->sh[0]),
		.e_shnum = S_NR,
		.e_shstrndx = S_NAMES };
	f->ph = (Elf64_Phdr){ .p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = offsetof(struct file, loaded),
		.p_vaddr = TEXT,
		.p_paddr = TEXT,
		.p_filesz = LOADED,
		.p_memsz = LOADED,
		.p_align = 1 };
	section(f, S_TEXT, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, 0, INIT - TEXT);
	section(f, S_INIT, ".init.text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, INIT, 0,
		ALT - INIT);
	section(f, S_ALT, ".altinstructions", SHT_PROGBITS, SHF_ALLOC, ALT, 0, 12);
	section(f, S_NOTE, ".note", SHT_NOTE, SHF_ALLOC, NOTE, 0, 24);
	section(f, S_MCOUNT, "__mcount_loc", SHT_PROGBITS, SHF_ALLOC, MCOUNT, 0, 8);
	section(f, S_SYM, ".symtab", SHT_SYMTAB, 0, 0, offsetof(struct file, sym), sizeof(f->sym));
	section(f, S_STR, ".strtab", SHT_STRTAB, 0, 0, offsetof(struct file, str), sizeof(f->str));
	section(f, S_NAMES, ".n", SHT_STRTAB, 0, 0, offsetof(struct file, names), sizeof(f->names));
	for (unsigned i = 0; i < NR_FUNCS; i++) {
		f->sym[i + 1] = (Elf64_Sym){ .st_name = (uint32_t)at,
			.st_info =
				ELF64_ST_INFO(STB_GLOBAL, i + 1 < NR_FUNCS ? STT_FUNC : STT_NOTYPE),
			.st_shndx = S_TEXT,
			.st_value = TEXT + i * FUNC,
			.st_size = FUNC };
		f->str[at++] = 'f';
		f->str[at++] = (char)('a' + i);
		at++;
	}
	fill_loaded(f->loaded);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return 1;
	*state = b;
	fill_file(&b->f);
	memcpy(b->mem, b->f.loaded, LOADED);
	return uni_image_from_memory("k.elf", &b->f, sizeof(b->f), &b->img, &b->err);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	uni_difference_deinit(&b->d);
	uni_as_destroy(b->as);
	uni_gmem_destroy(b->m);
	uni_image_destroy(b->img);
	free(b);
	return 0;
}

static int check(struct bench *b, uint64_t bias)
{
	const struct uni_gmem_region region = { .start = TEXT + bias, .size = LOADED };

	uni_as_destroy(b->as);
	uni_gmem_destroy(b->m);
	b->as = NULL;
	b->m = NULL;
	uni_difference_deinit(&b->d);
	b->err.code = 0;
	assert_int_equal(uni_gmem_create(&ops, b, UNI_GMEM_VIRTUAL, &region, 1, &b->m, &b->err), 0);
	assert_int_equal(uni_as_create(b->m, &uni_as_budget_once, &b->as, &b->err), 0);
	return uni_check_image(
		b->as, &uni_arch_x86_64, &b->regs, b->img, bias, UNI_CHECK_MANY, &b->d, &b->err);
}

static void set_id(struct bench *b, uint32_t word)
{
	memcpy(b->mem + (NOTE - TEXT) + 16, &word, 4);
}

/* The note is not in the guest: a build-id cannot be told. */
static void drop_id(struct bench *b)
{
	memset(b->mem + (NOTE - TEXT), 0, 24);
}

static void is_fine(struct bench *b)
{
	assert_int_equal(check(b, 0), 0);
	assert_false(uni_difference_is_stale(&b->d));
	assert_int_equal(b->d.code.nr, 0);
}

static void is_stale_in(struct bench *b, unsigned func)
{
	char text[512];

	assert_int_equal(check(b, 0), 0);
	assert_true(uni_difference_is_stale(&b->d));
	assert_int_equal(b->d.code.nr, 1);
	assert_int_equal(b->d.code.v[0].start, TEXT + func * FUNC);
	assert_int_equal(b->d.code.v[0].size, FUNC);
	uni_difference_text(&b->d, b->img, false, text, sizeof(text));
	assert_non_null(strstr(text, "k.elf is not exactly what the guest runs"));
	assert_non_null(strstr(text, "--accept-image"));
}

static void same_build(void **state)
{
	struct bench *b = *state;
	char text[512] = "x";

	is_fine(b);
	assert_int_equal(b->d.id, UNI_ID_SAME);
	assert_int_equal(b->d.compared, CODE);
	uni_difference_text(&b->d, b->img, false, text, sizeof(text));
	assert_string_equal(text, "");
	drop_id(b);
	is_fine(b);
	assert_int_equal(b->d.id, UNI_ID_UNKNOWN);
}

/* In pages. If there are more, the first and the last are among them. */
static void as_much_as_is_asked_for(void **state)
{
	struct bench *b = *state;

	is_fine(b);
	for (unsigned most = 1; most <= 4; most++) {
		uni_difference_deinit(&b->d);
		assert_int_equal(uni_check_image(b->as, &uni_arch_x86_64, &b->regs, b->img, 0, most,
					 &b->d, &b->err),
			0);
		assert_int_equal(b->d.compared, most < 3 ? most * 4096 : CODE);
	}
	assert_int_equal(UNI_CHECK_MANY * 4096, 64 << 20);
	assert_int_equal(UNI_CHECK_SOME * 4096, 2 << 20);
	assert_int_equal(UNI_CHECK_FEW * 4096, 256 << 10);
}

/* One byte is enough, and its function alone loses its name. */
static void one_byte_differs(void **state)
{
	struct bench *b = *state;

	drop_id(b);
	b->mem[3 * FUNC + 77] ^= 1;
	is_stale_in(b, 3);
	assert_int_equal(uni_image_forget_names(b->img, b->d.code.v, b->d.code.nr), 0);
	for (unsigned i = 0; i < NR_FUNCS; i++) {
		const struct uni_symbol *s = uni_image_lookup(b->img, TEXT + i * FUNC + 9);

		assert_true((s != NULL) == (i != 3));
	}
}

/* With another build-id, equal code is not enough. With the same one, it is not taken for equal. */
static void build_id_decides(void **state)
{
	struct bench *b = *state;
	char text[512];

	b->mem[3 * FUNC + 77] ^= 1;
	is_stale_in(b, 3);
	assert_int_equal(b->d.id, UNI_ID_SAME);
	uni_difference_text(&b->d, b->img, false, text, sizeof(text));
	assert_non_null(strstr(text, "its build-id is the same, but 1 of 12288 bytes of code "
				     "differ in fd; what differs has no name"));
	set_id(b, 0x33333333);
	is_stale_in(b, 3);
	assert_int_equal(b->d.id, UNI_ID_OTHER);
	b->mem[3 * FUNC + 77] ^= 1;
	assert_int_equal(check(b, 0), 0);
	assert_true(uni_difference_is_stale(&b->d));
}

/* The build-id is the file's, so it is the image, however much of it has changed. */
static void guest_that_changed_itself(void **state)
{
	struct bench *b = *state;

	for (unsigned i = 0; i < NR_FUNCS - 1; i += 2)
		memset(b->mem + (size_t)i * FUNC + 64, 0x90, FUNC - 64);
	assert_int_equal(check(b, 0), 0);
	assert_true(uni_difference_is_stale(&b->d));
	assert_int_equal(b->d.code.nr, NR_FUNCS / 2);
}

/* A tracer writes calls, jumps and nops at its places: other bytes there are no tracer's. */
static void tracers_places(void **state)
{
	struct bench *b = *state;

	put_call(b->mem + TRACED, 0x1234);
	is_fine(b);
	assert_in_range(b->d.changed[UNI_CHANGE_TRACER], 3, 5);
	memset(b->mem + TRACED, 0x90, sizeof(nop5));
	is_stale_in(b, 6);
	assert_int_equal(b->d.changed[UNI_CHANGE_TRACER], 0);
	/* A call of the function behind it: of no tracer. */
	put_call(b->mem + TRACED, (int32_t)(7 * FUNC - TRACED - 5));
	is_stale_in(b, 6);
	assert_int_equal(b->d.changed[UNI_CHANGE_TRACER], 0);
	/* The code that tracers of other machines write is not known. */
	uni_image_destroy(b->img);
	b->img = NULL;
	b->f.eh.e_machine = EM_AARCH64;
	assert_int_equal(uni_image_from_memory("k.elf", &b->f, sizeof(b->f), &b->img, &b->err), 0);
	assert_int_equal(check(b, 0), 0);
	assert_in_range(b->d.changed[UNI_CHANGE_TRACER], 3, 5);
}

/* Linux without symbols: where it calls nothing but a `ret`, it puts a nop. Static calls have a
 * trampoline, and static keys are jumps or nops. */
static void linux_without_symbols(void **state)
{
	static const struct {
		unsigned at;
		uint8_t now[5];
		enum uni_change_kind kind;
	} cases[] = {
		{ EMPTY, { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, UNI_CHANGE_TRACER },
		{ EMPTY, { 0x2e, 0x2e, 0x2e, 0x31, 0xc0 }, UNI_CHANGE_NONE },
		{ EMPTY + 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, UNI_CHANGE_NONE },
		{ EMPTY + 10, { 0x2e, 0x2e, 0x2e, 0x31, 0xc0 }, UNI_CHANGE_KEY },
		{ EMPTY + 10, { 0xe8, 0x11, 0x11, 0x11, 0x11 }, UNI_CHANGE_KEY },
		{ EMPTY + 10, { 0x90, 0x90, 0x90, 0x90, 0x90 }, UNI_CHANGE_NONE },
		{ EMPTY + 15, { 0xe9, 0x1f, 0x44, 0x00, 0x00 }, UNI_CHANGE_KEY },
		{ EMPTY + 20, { 0xe9, 0xe7, 0x6c, 0x42, 0xff }, UNI_CHANGE_KEY },
		{ EMPTY + 20, { 0x90, 0xe7, 0x6c, 0x42, 0xff }, UNI_CHANGE_NONE },
	};
	struct bench *b = *state;

	uni_image_destroy(b->img);
	b->img = NULL;
	b->f.sh[S_SYM].sh_type = SHT_PROGBITS;
	assert_int_equal(uni_image_from_memory("k.elf", &b->f, sizeof(b->f), &b->img, &b->err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(b->mem, b->f.loaded, LOADED);
		memcpy(b->mem + cases[i].at, cases[i].now, 5);
		assert_int_equal(check(b, 0), 0);
		assert_in_range(b->d.changed[cases[i].kind], 1, 5);
		assert_int_equal(uni_difference_is_stale(&b->d), cases[i].kind == UNI_CHANGE_NONE);
	}
}

/* A Linux guest has given it back: half of all code bytes, and yet this is the image. */
static void freed_init_section(void **state)
{
	struct bench *b = *state;

	drop_id(b);
	memset(b->mem + (INIT - TEXT), 0xcc, ALT - INIT);
	is_fine(b);
}

static void alternatives(void **state)
{
	struct bench *b = *state;

	drop_id(b);
	memset(b->mem + 5 * FUNC + 100, 0x90, 5);
	is_fine(b);
	assert_in_range(b->d.changed[UNI_CHANGE_ALTERNATIVE], 1, 5);
	b->mem[5 * FUNC + 105] ^= 0x10; /* one behind */
	is_stale_in(b, 5);
}

/* Accessed and dirty bits of a page that is a page table. Other code is none, though it differs in
 * the same bits: add (01) and and (21) do. */
static void page_tables(void **state)
{
	struct bench *b = *state;

	drop_id(b);
	b->mem[TABLE + 8] |= 0x60;
	b->mem[TABLE + 80] |= 0x20;
	is_fine(b);
	assert_int_equal(b->d.changed[UNI_CHANGE_TABLE], 2);
	for (unsigned i = 0; i < NR_FUNCS - 1; i++) {
		size_t at = (size_t)i * FUNC + 128;

		while ((b->f.loaded[at] & 0x61) != 1)
			at += 8;
		b->mem[at] |= 0x20;
		is_stale_in(b, i);
		b->mem[at] = b->f.loaded[at];
	}
	b->mem[TABLE + 88] |= 4; /* not a bit of the CPU's */
	assert_int_equal(check(b, 0), 0);
	assert_int_equal(b->d.changed[UNI_CHANGE_ASSEMBLER], 1);
}

/* A page that looks like a table, and has a function's name, is the function. */
static void function_like_a_table(void **state)
{
	struct bench *b = *state;

	uni_image_destroy(b->img);
	b->img = NULL;
	b->f.sym[3].st_value = TEXT + TABLE;
	assert_int_equal(uni_image_from_memory("k.elf", &b->f, sizeof(b->f), &b->img, &b->err), 0);
	drop_id(b);
	b->mem[TABLE + 8] |= 0x20;
	assert_int_equal(check(b, 0), 0);
	assert_int_equal(b->d.changed[UNI_CHANGE_NONE], 1);
}

/* Some bytes of assembler have a reason, which many have not. */
static void assembler(void **state)
{
	struct bench *b = *state;
	size_t at = (size_t)(NR_FUNCS - 1) * FUNC, most = CODE / 1000 + 16;

	drop_id(b);
	for (size_t i = 1; i <= most; i++) {
		b->mem[at + 100 + i] ^= 0xff;
		is_fine(b);
		assert_int_equal(b->d.changed[UNI_CHANGE_ASSEMBLER], i);
	}
	b->mem[at + 100] ^= 1;
	is_stale_in(b, NR_FUNCS - 1);
}

static void move_by(struct bench *b, size_t at, size_t len, uint64_t by)
{
	uint64_t word = 0;

	memcpy(&word, b->mem + at, len);
	word += by;
	memcpy(b->mem + at, &word, len);
}

/* Loaded elsewhere, its addresses differ by that; other numbers do not. */
static void moved(void **state)
{
	const uint64_t bias = 0x12e00000;
	struct bench *b = *state;

	drop_id(b);
	move_by(b, ADDRESS, 4, bias);
	move_by(b, LONG, 8, bias);
	move_by(b, PERCPU, 4, -bias);
	assert_int_equal(check(b, bias), 0);
	assert_false(uni_difference_is_stale(&b->d));
	assert_in_range(b->d.changed[UNI_CHANGE_MOVED], 6, 16);
	move_by(b, ADDRESS, 4, 0x1000);
	assert_int_equal(check(b, bias), 0);
	assert_true(uni_difference_is_stale(&b->d));
	move_by(b, ADDRESS, 4, -0x1000);
	/* Code differs by the same numbers, and is no address of the image. */
	for (unsigned i = 0; i < 2; i++) {
		move_by(b, 4 * FUNC + 40, 4, i == 0 ? bias : -2 * bias);
		assert_int_equal(check(b, bias), 0);
		assert_true(uni_difference_is_stale(&b->d));
		assert_int_equal(b->d.code.nr, 1);
		assert_int_equal(b->d.code.v[0].start, TEXT + 4 * FUNC);
	}
}

/* A function grew: the code behind it has moved, and is other code everywhere. */
static void grown(void **state)
{
	struct bench *b = *state;

	drop_id(b);
	memmove(b->mem + 2 * FUNC + 16, b->mem + 2 * FUNC, (NR_FUNCS - 3) * FUNC);
	assert_int_equal(check(b, 0), -UNI_EMISMATCH);
	memcpy(b->mem, b->f.loaded, LOADED);
	drop_id(b);
	memmove(b->mem + 14 * FUNC + 16, b->mem + 14 * FUNC, 64); /* near the end of a page */
	is_stale_in(b, 14);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(same_build),
		T(as_much_as_is_asked_for),
		T(one_byte_differs),
		T(build_id_decides),
		T(guest_that_changed_itself),
		T(tracers_places),
		T(linux_without_symbols),
		T(freed_init_section),
		T(alternatives),
		T(page_tables),
		T(function_like_a_table),
		T(assembler),
		T(moved),
		T(grown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
