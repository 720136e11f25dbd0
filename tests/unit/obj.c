/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/checked.h"
#include "elf_spec.h"
#include "obj/image.h"
#include "obj/usym.h"

#define FUNC(name, addr, size, bind)                        \
	{                                                   \
		name, addr, size, STT_FUNC, bind, SPEC_TEXT \
	}
#define LABEL(name, addr, bind)                            \
	{                                                  \
		name, addr, 0, STT_NOTYPE, bind, SPEC_TEXT \
	}
#define OBJECT(name, addr, size, bind)                        \
	{                                                     \
		name, addr, size, STT_OBJECT, bind, SPEC_DATA \
	}

static struct uni_image *load(const struct elf_image *e)
{
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_image_from_memory("t", e->data, e->size, &img, &err), 0);
	assert_string_equal(err.msg, "");
	return img;
}

/* An image of code at base with these symbols. */
static struct uni_image *load_syms(
	uint64_t base, uint64_t size, const struct spec_sym *syms, size_t nr)
{
	const struct elf_spec spec = {
		.text = base, .data = base ^ 0x10000, .code_size = size, .syms = syms, .nr_syms = nr
	};
	struct elf_image e;

	elf_spec_write(&spec, &e);
	return load(&e);
}

static void expect(const struct uni_image *img, uint64_t addr, const char *name, uint64_t off)
{
	const struct uni_symbol *sym = uni_image_lookup(img, addr);

	if (name == NULL) {
		assert_null(sym);
		return;
	}
	assert_non_null(sym);
	assert_string_equal(uni_image_sym_name(img, sym), name);
	assert_int_equal(addr - sym->addr, off);
	assert_true(uni_range_has(sym->addr, sym->size, addr));
}

static void past_the_end_is_unknown(void **state)
{
	const struct spec_sym syms[] = {
		FUNC("main", 0x1040, 0x10, STB_GLOBAL),
		FUNC("spin", 0x1050, 0x20, STB_LOCAL),
		FUNC("last", 0x10f0, 0x10, STB_GLOBAL),
	};
	struct uni_image *img = load_syms(0x1000, 0x100, syms, uni_array_len(syms));

	assert_int_equal(uni_image_nr_symbols(img), 3);
	expect(img, 0, NULL, 0);
	expect(img, 1, NULL, 0);
	expect(img, 0x103f, NULL, 0);
	expect(img, 0x1040, "main", 0);
	expect(img, 0x104f, "main", 0xf);
	expect(img, 0x1050, "spin", 0);
	expect(img, 0x106f, "spin", 0x1f);
	expect(img, 0x1070, NULL, 0);
	expect(img, 0x10ff, "last", 0xf);
	expect(img, 0x1100, NULL, 0);
	expect(img, UINT64_MAX, NULL, 0);
	uni_image_destroy(img);
	uni_image_destroy(NULL);
}

/* The values that older tools are known by; theirs gave `baz+0xffffffedff` for the last one. */
static void nm_style_symbols(void **state)
{
	const struct spec_sym syms[] = {
		LABEL("foo", 0x1000, STB_GLOBAL),
		LABEL("bar", 0x1100, STB_GLOBAL),
		LABEL("bar_alias", 0x1100, STB_GLOBAL),
		LABEL("baz", 0x1200, STB_GLOBAL),
	};
	struct uni_image *img = load_syms(0x1000, 0x300, syms, uni_array_len(syms));

	expect(img, 0x1100, "bar", 0);
	expect(img, 0x1210, "baz", 0x10);
	expect(img, 0x1005, "foo", 5);
	expect(img, 0xffffffffff, NULL, 0);
	expect(img, 0x1300, NULL, 0);
	assert_true(uni_image_lookup(img, 0x1005)->guessed_size);
	uni_image_destroy(img);
}

static void aliases_have_one_winner(void **state)
{
	const struct spec_sym syms[] = {
		LABEL("_text", 0x1000, STB_GLOBAL),
		FUNC("first_static", 0x1000, 0x10, STB_LOCAL),
		FUNC("l", 0x1010, 0x10, STB_LOCAL),
		FUNC("weaker", 0x1010, 0x10, STB_WEAK),
		FUNC("globalest", 0x1010, 0x10, STB_GLOBAL),
		FUNC("unsized", 0x1020, 0, STB_GLOBAL),
		FUNC("sized_global", 0x1020, 4, STB_GLOBAL),
		FUNC("bbb", 0x1030, 4, STB_GLOBAL),
		FUNC("aaa", 0x1030, 4, STB_GLOBAL),
		FUNC("longer", 0x1030, 4, STB_GLOBAL),
		FUNC("memcpy", 0x1040, 0, STB_GLOBAL),
		FUNC("memcpy_erms", 0x1040, 6, STB_LOCAL),
		FUNC("a_local", 0x1050, 4, STB_LOCAL),
		FUNC("weak_one", 0x1050, 4, STB_WEAK),
		LABEL("camlList.code_begin", 0x1060, STB_GLOBAL),
		LABEL("camlList.first_function_12", 0x1060, STB_GLOBAL),
		LABEL("camlA__code_end", 0x1070, STB_GLOBAL),
		LABEL("camlB__first_function_1", 0x1070, STB_GLOBAL),
		LABEL("camlC__code_end", 0x1080, STB_GLOBAL),
	};
	struct uni_image *img = load_syms(0x1000, 0x100, syms, uni_array_len(syms));
	uint64_t addr, size;

	assert_int_equal(uni_image_nr_symbols(img), 9);
	expect(img, 0x1062, "camlList.first_function_12", 2);
	expect(img, 0x1070, "camlB__first_function_1", 0);
	expect(img, 0x1080, "camlC__code_end", 0);
	expect(img, 0x1050, "weak_one", 0);
	expect(img, 0x1000, "first_static", 0);
	expect(img, 0x1010, "globalest", 0);
	expect(img, 0x1023, "sized_global", 3);
	expect(img, 0x1024, NULL, 0);
	expect(img, 0x1030, "aaa", 0);
	/* A winner without a size has its alias's: that much is known. */
	expect(img, 0x1045, "memcpy", 5);
	expect(img, 0x1046, NULL, 0);
	assert_false(uni_image_lookup(img, 0x1040)->guessed_size);
	/* The losers can still be found by name. */
	assert_int_equal(uni_image_find(img, "memcpy_erms", &addr, &size), 0);
	assert_int_equal(addr, 0x1040);
	assert_int_equal(size, 6);
	uni_image_destroy(img);
}

/* A file that was cut off: what a section says of its size is more than there is. */
static void sections_lie_in_the_file(void **state)
{
	const struct spec_sym syms[] = { FUNC("main", 0x1000, 0x10, STB_GLOBAL) };
	const struct elf_spec spec = {
		.text = 0x1000, .data = 0x11000, .code_size = 0x100, .syms = syms, .nr_syms = 1
	};
	const unsigned sections[] = { SPEC_SYMTAB, SPEC_STRTAB };

	for (size_t i = 0; i < uni_array_len(sections); i++) {
		struct uni_image *img = NULL;
		struct uni_err err = { 0 };
		struct elf_image e;
		Elf64_Shdr sh; /* there it may be at any address */
		uint8_t *at;

		elf_spec_write(&spec, &e);
		at = e.data + e.sh_off + sections[i] * sizeof(sh);
		memcpy(&sh, at, sizeof(sh));
		sh.sh_size += (e.size / sh.sh_size + 1) * sh.sh_size;
		memcpy(at, &sh, sizeof(sh));
		assert_int_equal(
			uni_image_from_memory("t", e.data, e.size, &img, &err), -UNI_EFORMAT);
		assert_null(img);
	}
}

static void size_zero_reaches_on(void **state)
{
	const struct spec_sym syms[] = {
		LABEL("at_zero", 0, STB_GLOBAL), /* Xen PV guests are linked at 0 */
		LABEL("second", 0x10, STB_LOCAL), FUNC("start64", 0x20, 0x20, STB_GLOBAL),
		LABEL("no_xsave", 0x28, STB_LOCAL), LABEL("after", 0x40, STB_LOCAL),
		LABEL(".Ltmp", 0x48, STB_LOCAL), LABEL("$x", 0x4a, STB_LOCAL),
		LABEL("_etext", 0x50, STB_GLOBAL), /* the first byte behind the section */
	};
	struct uni_image *img = load_syms(0, 0x50, syms, uni_array_len(syms));
	uint64_t addr, size;

	expect(img, 0, "at_zero", 0);
	expect(img, 0xf, "at_zero", 0xf);
	expect(img, 0x1f, "second", 0xf);
	/* A label inside a function is not a function. */
	expect(img, 0x2a, "start64", 0xa);
	expect(img, 0x3f, "start64", 0x1f);
	expect(img, 0x4f, "after", 0xf);
	expect(img, 0x50, NULL, 0);
	assert_int_equal(uni_image_find(img, "_etext", &addr, &size), 0);
	assert_int_equal(addr, 0x50);
	uni_image_destroy(img);
}

static void symbols_may_overlap_and_end_at_the_top(void **state)
{
	const uint64_t top = UINT64_MAX - 0xff;
	const struct spec_sym syms[] = {
		FUNC("outer", top, 0x80, STB_GLOBAL),
		FUNC("inner", top + 0x10, 0x10, STB_GLOBAL),
		FUNC("straddles", top + 0x70, 0x20, STB_GLOBAL),
		FUNC("endless", top + 0xa0, UINT64_MAX, STB_GLOBAL),
	};
	struct uni_image *img = load_syms(top, 0x100, syms, uni_array_len(syms));

	expect(img, top + 0xf, "outer", 0xf);
	expect(img, top + 0x10, "inner", 0);
	expect(img, top + 0x20, "outer", 0x20);
	expect(img, top + 0x70, "straddles", 0);
	expect(img, top + 0x8f, "straddles", 0x1f);
	expect(img, top + 0x90, NULL, 0);
	expect(img, UINT64_MAX, "endless", 0x5f);
	expect(img, top - 1, NULL, 0);
	expect(img, 0, NULL, 0);
	assert_int_equal(uni_image_symbol(img, 3)->size, 0x60);
	uni_image_destroy(img);
}

static void only_code_is_code(void **state)
{
	const struct spec_sym syms[] = {
		FUNC("typed", 0x1000, 8, STB_GLOBAL),
		OBJECT("lab_truth", 0x11000, 16, STB_GLOBAL),
		OBJECT("twice", 0x11004, 4, STB_LOCAL),
		OBJECT("twice", 0x11002, 2, STB_LOCAL),
		OBJECT("twice", 0x11008, 8, STB_GLOBAL),
		{ "number", 0x1004, 0, STT_NOTYPE, STB_GLOBAL, SHN_ABS },
		{ "undefined", 0x1008, 8, STT_FUNC, STB_GLOBAL, SHN_UNDEF },
		{ "outside", 0x5000, 8, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
		{ "no_section", 0x1010, 8, STT_FUNC, STB_GLOBAL, 77 },
		{ "tls", 0, 8, STT_TLS, STB_GLOBAL, SPEC_DATA },
		{ "file.c", 0, 0, STT_FILE, STB_LOCAL, SHN_ABS },
		{ "ev\x1b[2Jil", 0x1020, 4, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
		{ "", 0x1030, 4, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	};
	struct uni_image *img = load_syms(0x1000, 0x100, syms, uni_array_len(syms));
	uint64_t addr = 1, size = 1;

	assert_int_equal(uni_image_nr_symbols(img), 2);
	expect(img, 0x1020, "ev\xef\xbf\xbd[2Jil", 0);
	expect(img, 0x11000, NULL, 0);
	assert_int_equal(uni_image_find(img, "undefined", &addr, &size), -UNI_ENOENT);
	assert_int_equal(uni_image_find(img, "tls", &addr, &size), -UNI_ENOENT);
	assert_int_equal(addr, 1); /* untouched */
	assert_int_equal(uni_image_find(img, "lab_truth", &addr, &size), 0);
	assert_int_equal(addr, 0x11000);
	assert_int_equal(size, 16);
	assert_int_equal(uni_image_find(img, "twice", &addr, &size), 0);
	assert_int_equal(addr, 0x11008);
	uni_image_destroy(img);
}

static void segments_and_bytes(void **state)
{
	const struct elf_spec spec = { .text = 0xffffffff80200000,
		.data = 0xffffffff80201000,
		.phys_offset = 0xffffffff80000000,
		.code_size = 0x20,
		.entry = 0x200004 };
	struct elf_image e;
	struct uni_image *img;
	char buf[17] = "";

	elf_spec_write(&spec, &e);
	img = load(&e);
	assert_int_equal(uni_image_nr_segments(img), 2);
	assert_true(uni_image_segment(img, 0)->exec && !uni_image_segment(img, 0)->write);
	assert_int_equal(uni_image_segment(img, 1)->paddr, 0x201000);
	assert_int_equal(uni_image_segment(img, 1)->mem_size, 64);
	assert_null(uni_image_segment(img, 2));
	assert_true(uni_image_bytes(img, 0xffffffff80201000, buf, 16));
	assert_string_equal(buf, "0123456789abcdef");
	assert_false(
		uni_image_bytes(img, 0xffffffff80201001, buf, 16)); /* .bss is not in the file */
	assert_false(uni_image_bytes(img, 0x200000, buf, 1));
	assert_int_equal(uni_image_nr_symbols(img), 0);
	assert_non_null(uni_image_arch(img));
	uni_image_destroy(img);
}

static void build_ids(void **state)
{
	struct elf_spec spec = { .text = 0x1000,
		.data = 0x2000,
		.code_size = 8,
		.build_id = "\x01\xab"
			    "cd" };
	struct uni_image *img;
	struct elf_image e;
	const uint8_t *id;

	elf_spec_write(&spec, &e);
	img = load(&e);
	assert_int_equal(uni_image_build_id(img, &id), 4);
	assert_memory_equal(id,
		"\x01\xab"
		"cd",
		4);
	assert_string_equal(uni_image_id(img), "01ab6364");
	uni_image_destroy(img);
	e.data[e.is64 ? offsetof(Elf64_Ehdr, e_shnum) : 0] = 0; /* only the segment tells now */
	img = load(&e);
	assert_string_equal(uni_image_id(img), "01ab6364");
	uni_image_destroy(img);

	spec.build_id = NULL;
	elf_spec_write(&spec, &e);
	img = load(&e);
	assert_int_equal(uni_image_build_id(img, &id), 0);
	/* FNV-1a of eight bytes 0x90, computed elsewhere: ids name files and must not change. */
	assert_string_equal(uni_image_id(img), "x795acb8d70e549c5");
	uni_image_destroy(img);
}

/* push %rbp; mov %rsp,%rbp; ...   and   mov %edi,%eax; ret */
static const uint8_t two_functions[] = { 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x5d, 0xc3, 0x89, 0xf8,
	0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x5d, 0xc3 };

static void hints_say_how_functions_begin(void **state)
{
	const struct spec_sym syms[] = {
		FUNC("framed", 0xffffffff80200000, 8, STB_GLOBAL),
		FUNC("in_framed", 0xffffffff80200004, 2, STB_GLOBAL),
		FUNC("leaf", 0xffffffff80200008, 3, STB_GLOBAL),
		FUNC("boot", 0xffffffff80200010, 8, STB_GLOBAL),
	};
	const struct elf_spec spec = { .text = 0xffffffff80200000,
		.data = 0xffffffff80300000,
		.phys_offset = 0xffffffff80000000,
		.code = two_functions,
		.code_size = sizeof(two_functions),
		.syms = syms,
		.nr_syms = uni_array_len(syms),
		.entry = 0xffffffff80200000,
		.pvh_entry = 0x200010 };
	const struct uni_unwind_hints *h, *again;
	const uint64_t bias = (uint64_t)-0x100000;
	struct uni_image *img;
	struct elf_image e;
	uint32_t frameless;

	elf_spec_write(&spec, &e);
	img = load(&e);
	frameless = uni_image_arch(img)->sets_frame != NULL ? UNI_FUNC_FRAMELESS : 0;
	assert_int_equal(uni_image_hints(img, bias, &h, NULL), 0);
	assert_int_equal(uni_image_hints(img, 0, &again, NULL), 0);
	assert_int_equal(again->func[0].start, 0xffffffff80200000);
	assert_int_equal(uni_image_hints(img, bias, &again, NULL), 0);
	assert_ptr_equal(h, again);
	assert_int_equal(h->text_start, 0xffffffff80100000);
	assert_int_equal(h->text_size, sizeof(two_functions));
	/* framed, in_framed, leaf, boot; the rest of framed behind in_framed has no prologue. */
	assert_int_equal(h->nr_funcs, 4);
	assert_int_equal(h->func[0].start, 0xffffffff80100000);
	assert_int_equal(h->func[0].size, 4);
	assert_int_equal(h->func[0].flags, UNI_FUNC_ENTRY);
	assert_int_equal(h->func[2].size, 3);
	assert_int_equal(h->func[2].flags, frameless);
	assert_int_equal(h->func[3].flags, UNI_FUNC_ENTRY);
	assert_null(uni_hints_find(h, 0xffffffff80100006));
	assert_ptr_equal(uni_hints_find(h, 0xffffffff8010000a), &h->func[2]);
	/* Half the image above the top, half at 0: no such place. */
	assert_int_equal(uni_image_hints(img, 0x7fdffff8, &again, NULL), -UNI_ERANGE);
	uni_image_destroy(img);
}

/* A small function calls a large leaf, which GCC gives no frame in any case. Does the image lack
 * frame pointers? */
static bool lacks_frames(bool framed)
{
	uint8_t code[0x60];
	const struct spec_sym syms[] = { FUNC("caller", 0x1000, 0x10, STB_GLOBAL),
		FUNC("leaf", 0x1010, 0x50, STB_GLOBAL) };
	const struct elf_spec spec = { .text = 0x1000,
		.data = 0x3000,
		.code = code,
		.code_size = sizeof(code),
		.syms = syms,
		.nr_syms = uni_array_len(syms) };
	static const uint8_t frame[] = { 0x55, 0x48, 0x89, 0xe5 }, call[] = { 0xe8, 7, 0, 0, 0 };
	const struct uni_unwind_hints *h;
	struct uni_image *img;
	struct elf_image e;
	bool lacks;

	memset(code, 0x90, sizeof(code));
	memcpy(code, frame, framed ? sizeof(frame) : 0);
	memcpy(code + 4, call, sizeof(call));
	elf_spec_write(&spec, &e);
	img = load(&e);
	assert_int_equal(uni_image_hints(img, 0x10000, &h, NULL), 0);
	assert_true(uni_hints_frameless(h));
	lacks = uni_image_lacks_frames(img, h);
	uni_image_destroy(img);
	return lacks;
}

static void leaves_do_not_lack_frames(void **state)
{
	assert_true(!lacks_frames(true) && lacks_frames(false));
}

/* The first function calls the second, and the third itself. */
static void called_functions_are_known(void **state)
{
	uint8_t code[0x30];
	const struct spec_sym syms[] = { FUNC("caller", 0x1000, 0x10, STB_GLOBAL),
		FUNC("called", 0x1010, 0x10, STB_GLOBAL), FUNC("self", 0x1020, 0x10, STB_GLOBAL) };
	const struct elf_spec spec = { .text = 0x1000,
		.data = 0x3000,
		.code = code,
		.code_size = sizeof(code),
		.syms = syms,
		.nr_syms = uni_array_len(syms) };
	const struct uni_unwind_hints *h;
	struct uni_image *img;
	struct elf_image e;

	memset(code, 0x90, sizeof(code));
	memcpy(code + 4, "\xe8\x07\0\0", 5);
	memcpy(code + 0x24, "\xe8\xf7\xff\xff\xff", 5);
	elf_spec_write(&spec, &e);
	img = load(&e);
	assert_int_equal(uni_image_hints(img, 0x10000, &h, NULL), 0);
	assert_true(uni_hints_is_first(h, 0x11008));
	assert_false(uni_hints_is_first(h, 0x11010));
	assert_false(uni_hints_is_first(h, 0x1101f));
	assert_true(uni_hints_is_first(h, 0x11028));
	assert_true(uni_hints_is_first(h, 0x5000));
	uni_image_destroy(img);
}

/* Flags of the hints at 0x1000, 0x1010, ... of this image, one digit for each symbol. */
static void entries_are(const struct elf_spec *spec, const char *want)
{
	const struct uni_unwind_hints *h;
	struct uni_image *img;
	struct elf_image e;
	char got[16] = "";

	elf_spec_write(spec, &e);
	img = load(&e);
	assert_int_equal(uni_image_hints(img, 0, &h, NULL), 0);
	for (size_t i = 0; i < spec->nr_syms; i++) {
		const struct uni_func_hint *f = uni_hints_find(h, 0x1000 + i * 16);

		got[i] = f != NULL && (f->flags & UNI_FUNC_ENTRY) != 0 ? 'E' : '-';
	}
	assert_string_equal(got, want);
	uni_image_destroy(img);
}

/* Unikraft's boot code for Xen: labels without type between the entry point and the call of C. */
static void boot_code_has_labels(void **state)
{
	uint8_t code[0x50];
	struct spec_sym syms[] = {
		{ "start", 0x1000, 0, STT_NOTYPE, STB_GLOBAL, 1 },
		{ "noavx", 0x1010, 0, STT_NOTYPE, STB_LOCAL, 1 },
		{ "nopku", 0x1020, 0, STT_NOTYPE, STB_LOCAL, 1 },
		{ "trap", 0x1030, 0, STT_NOTYPE, STB_GLOBAL, 1 },
		{ "inside", 0x1040, 0, STT_NOTYPE, STB_LOCAL, 1 },
	};
	struct elf_spec spec = { .text = 0x1000,
		.data = 0x3000,
		.code = code,
		.code_size = sizeof(code),
		.syms = syms,
		.nr_syms = uni_array_len(syms),
		.entry = 0x1000 };

	memset(code, 0x90, sizeof(code));
	entries_are(&spec, "EEE--");
	/* A subroutine of the boot code has a caller: its chain is cut. */
	memcpy(code + 4, "\xe8\x17\0\0\0", 5);
	entries_are(&spec, "EE---");
	memset(code + 4, 0x90, 5);
	/* So has one that is called from elsewhere. */
	memcpy(code + 0x45, "\xe8\xc6\xff\xff\xff", 5);
	entries_are(&spec, "E----");
	memset(code + 0x45, 0x90, 5);
	/* A function of its own, and code behind an entry point whose size is known. */
	syms[1].type = STT_FUNC;
	entries_are(&spec, "E----");
	syms[1].type = STT_NOTYPE;
	syms[0].type = STT_FUNC;
	syms[0].size = 16;
	entries_are(&spec, "E----");
}

/* Solo5's _newstack, and code that only looks like it. */
static void entry_that_takes_a_stack(void **state)
{
	uint8_t code[0x50];
	const struct spec_sym syms[] = {
		FUNC("start", 0x1000, 8, STB_GLOBAL),
		FUNC("newstack", 0x1010, 16, STB_GLOBAL),
		FUNC("newstack_r9", 0x1020, 16, STB_GLOBAL),
		FUNC("leaves", 0x1030, 16, STB_GLOBAL),
		FUNC("switch", 0x1040, 16, STB_GLOBAL),
	};
	const struct elf_spec spec = { .text = 0x1000,
		.data = 0x3000,
		.code = code,
		.code_size = sizeof(code),
		.syms = syms,
		.nr_syms = uni_array_len(syms),
		.entry = 0x1000 };

	memset(code, 0x90, sizeof(code));
	/* mov %rdi, %rsp; mov %rdx, %rdi; push $0; push $0; call *%rsi */
	memcpy(code + 0x10, "\x48\x89\xfc\x48\x89\xd7\x6a\0\x6a\0\xff\xd6\xfa\xf4", 14);
	memcpy(code + 0x20, "\xf3\x0f\x1e\xfa\x4c\x89\xcc\xe8\0\0\0\0", 12);
	memcpy(code + 0x30, "\x48\x89\xec\x5d\xff\xd6", 6); /* mov %rbp, %rsp; pop; call */
	memcpy(code + 0x40, "\x48\x89\xf4\x5d\xc3", 5);	    /* mov %rsi, %rsp; pop; ret */
	entries_are(&spec, "EEE--");
}

/* "name+offset" at each of the addresses. */
static __attribute__((noinline)) int a_static_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void own_executable(void **state)
{
	struct uni_image *img;
	struct uni_err err = { 0 };
	uint64_t bias;

	assert_int_equal(a_static_function(1), 2);
	assert_int_equal(uni_image_load("/proc/self/exe", &img, &err), 0);
	bias = getauxval(AT_ENTRY) - uni_image_entry(img);
	expect(img, (uintptr_t)a_static_function - bias, "a_static_function", 0);
	expect(img, (uintptr_t)own_executable + 4 - bias, "own_executable", 4);
	expect(img, (uintptr_t)uni_image_load - bias, "uni_image_load", 0);
	uni_image_destroy(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(past_the_end_is_unknown),
		cmocka_unit_test(nm_style_symbols),
		cmocka_unit_test(aliases_have_one_winner),
		cmocka_unit_test(sections_lie_in_the_file),
		cmocka_unit_test(size_zero_reaches_on),
		cmocka_unit_test(symbols_may_overlap_and_end_at_the_top),
		cmocka_unit_test(only_code_is_code),
		cmocka_unit_test(segments_and_bytes),
		cmocka_unit_test(build_ids),
		cmocka_unit_test(hints_say_how_functions_begin),
		cmocka_unit_test(leaves_do_not_lack_frames),
		cmocka_unit_test(called_functions_are_known),
		cmocka_unit_test(boot_code_has_labels),
		cmocka_unit_test(entry_that_takes_a_stack),
		cmocka_unit_test(own_executable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
