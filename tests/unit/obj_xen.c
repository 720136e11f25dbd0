/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of an image that Xen fills in, or over which a guest maps a page of Xen's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "elf_spec.h"
#include "obj/image.h"

static struct uni_image *load(const struct elf_image *e)
{
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };

	assert_int_equal(uni_image_from_memory("t", e->data, e->size, &img, &err), 0);
	return img;
}

/* The page that Xen fills in: by its symbol, in an image that boots by PVH, if it is empty. */
static bool has_stubs(const struct elf_spec *spec, uint64_t *ret)
{
	struct uni_image *img;
	struct elf_image e;
	bool found;

	elf_spec_write(spec, &e);
	img = load(&e);
	found = uni_image_stubs(img, ret);
	uni_image_destroy(img);
	return found;
}

static void hypercall_page(void **state)
{
	static uint8_t code[8192 + 64];
	static const char *const names[] = { "hypercall_page", "HYPERCALL_PAGE",
		"solo5__xen_HYPERCALL_PAGE", "my_page" };
	struct spec_sym sym = { NULL, 0x101000, 4096, STT_OBJECT, STB_GLOBAL, SPEC_TEXT };
	struct elf_spec spec = { .text = 0x100000,
		.data = 0x200000,
		.code = code,
		.code_size = sizeof(code),
		.syms = &sym,
		.nr_syms = 1,
		.pvh_entry = 0x100000 };
	uint64_t svma = 1;

	memset(code, 0x90, sizeof(code));
	for (size_t i = 0; i < uni_array_len(names); i++) {
		sym.name = names[i];
		assert_int_equal(has_stubs(&spec, &svma), i < 3);
		assert_int_equal(svma, 0x101000);
	}
	sym.name = names[1];
	for (unsigned i = 0; i < 4; i++) {
		code[8191] = i == 1 ? 0xc3 : 0x90; /* it is code of the program's own */
		spec.pvh_entry = i == 2 ? 0 : 0x100000;
		sym.addr = i == 3 ? 0x101008 : 0x101000;
		assert_int_equal(has_stubs(&spec, &svma), i == 0);
	}
	/* An address has 4 or 8 bytes. */
	code[8191] = 0x90;
	sym.addr = 0x101000;
	for (spec.pvh_bytes = 3; spec.pvh_bytes <= 8; spec.pvh_bytes++)
		assert_int_equal(
			has_stubs(&spec, &svma), spec.pvh_bytes == 4 || spec.pvh_bytes == 8);
}

static bool is_xens(const struct elf_spec *spec, uint64_t svma)
{
	struct uni_image *img;
	struct elf_image e;
	bool is;

	elf_spec_write(spec, &e);
	img = load(&e);
	is = uni_image_is_xens(img, svma);
	uni_image_destroy(img);
	return is;
}

/* Unikraft and Mini-OS map the page that Xen shares with them over one of their code. */
static void shared_page(void **state)
{
	static uint8_t code[8192 + 64];
	struct spec_sym sym = { "shared_info", 0x101000, 0, STT_NOTYPE, STB_LOCAL, SPEC_TEXT };
	struct elf_spec spec = { .text = 0x100000,
		.data = 0x200000,
		.code = code,
		.code_size = sizeof(code),
		.syms = &sym,
		.nr_syms = 1 };

	assert_true(is_xens(&spec, 0x101000));
	assert_true(is_xens(&spec, 0x101fff));
	assert_false(is_xens(&spec, 0x100fff));
	assert_false(is_xens(&spec, 0x102000));
	sym.name = "_libxenplat_shared_info";
	assert_true(is_xens(&spec, 0x101000));
	sym.name = "my_shared_info";
	assert_false(is_xens(&spec, 0x101000));
	sym.name = "shared_info";
	code[0x1001] = 1;
	assert_false(is_xens(&spec, 0x101000));
	sym = (struct spec_sym){ "hypercall_page", 0x100000, 4096, STT_FUNC, STB_GLOBAL,
		SPEC_TEXT };
	spec.pvh_entry = 0x100000;
	assert_true(is_xens(&spec, 0x100fff));
	assert_false(is_xens(&spec, 0x101000));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hypercall_page),
		cmocka_unit_test(shared_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
