/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/check.h"

#define NR_PAGES  200u
#define CODE_SIZE (NR_PAGES * 4096u)
#define SVMA	  0x100f00u /* not page-aligned: 201 pages, the first and last in part */
#define BIAS	  0x40000000u

/* An image of one executable segment, and a guest whose memory starts as a copy of it. */
struct bench {
	uint8_t elf[sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + CODE_SIZE];
	uint8_t mem[CODE_SIZE];
	uint64_t hole_from, hole_size; /* offsets that the guest does not map */
	uint64_t reads;
	bool gone;
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
	struct bench *b = ctx;

	b->reads++;
	if (b->gone && b->reads > 10)
		return -UNI_EGONE;
	if (offset - b->hole_from < b->hole_size)
		return -UNI_EFAULT;
	memcpy(buf, b->mem + offset, len);
	return 0;
}

static const struct uni_gmem_ops ops = { .read = read_mem };

static int setup(void **state)
{
	const struct uni_gmem_region region = { .start = SVMA + BIAS, .size = CODE_SIZE };
	const Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = SVMA,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1 };
	const Elf64_Phdr ph = { .p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = sizeof(eh) + sizeof(ph),
		.p_vaddr = SVMA,
		.p_paddr = SVMA,
		.p_filesz = CODE_SIZE,
		.p_memsz = CODE_SIZE,
		.p_align = 1 };
	struct bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return 1;
	*state = b;
	for (size_t i = 0; i < CODE_SIZE; i++)
		b->mem[i] = (uint8_t)(i * 2654435761u >> 13);
	memcpy(b->elf, &eh, sizeof(eh));
	memcpy(b->elf + sizeof(eh), &ph, sizeof(ph));
	memcpy(b->elf + sizeof(eh) + sizeof(ph), b->mem, CODE_SIZE);
	b->regs.pc_valid = true;
	if (uni_image_from_memory("kernel.elf", b->elf, sizeof(b->elf), &b->img, &b->err) < 0)
		return 1;
	if (uni_gmem_create(&ops, b, UNI_GMEM_VIRTUAL, &region, 1, &b->m, &b->err) < 0)
		return 1;
	return uni_as_create(b->m, &uni_as_budget_once, &b->as, &b->err);
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
	b->err.code = 0;
	uni_difference_deinit(&b->d);
	return uni_check_image(
		b->as, &uni_arch_x86_64, &b->regs, b->img, bias, UNI_CHECK_FEW, &b->d, &b->err);
}

static void same_image_matches(void **state)
{
	struct bench *b = *state;

	assert_int_equal(check(b, BIAS), 0);
	assert_in_range(b->reads, 64, 200); /* a sample of the pages, not all bytes */
}

static void patched_text_matches(void **state)
{
	struct bench *b = *state;

	for (size_t i = 0; i < CODE_SIZE; i += 64) /* a static key in every cache line */
		memset(b->mem + i, 0x90, 5);
	assert_int_equal(check(b, BIAS), 0);
}

static void unmapped_pages_are_passed_over(void **state)
{
	struct bench *b = *state;

	b->hole_from = 0;
	b->hole_size = CODE_SIZE / 2;
	assert_int_equal(check(b, BIAS), 0);
}

static void freed_start_up_code_matches(void **state)
{
	struct bench *b = *state;

	memset(b->mem + CODE_SIZE - CODE_SIZE / 20, 0xcc, CODE_SIZE / 20);
	assert_int_equal(check(b, BIAS), 0);
}

static void another_build_differs(void **state)
{
	struct bench *b = *state;

	/* One function grew in the middle: what follows has moved. */
	memmove(b->mem + CODE_SIZE / 2 + 16, b->mem + CODE_SIZE / 2, CODE_SIZE / 2 - 16);
	assert_int_equal(check(b, BIAS), -UNI_EMISMATCH);
	assert_non_null(strstr(b->err.msg, "kernel.elf"));
	assert_non_null(strstr(b->err.msg, "pages of code differ"));
	memset(b->mem, 0, CODE_SIZE);
	assert_int_equal(check(b, BIAS), -UNI_EMISMATCH);
}

static void another_address_is_not_mapped(void **state)
{
	struct bench *b = *state;

	assert_int_equal(check(b, 0), -UNI_EMISMATCH);
	assert_non_null(strstr(b->err.msg, "nothing mapped"));
	assert_int_equal(check(b, UINT64_MAX - SVMA - 5), -UNI_EMISMATCH); /* wraps */
}

static void a_guest_that_ends_is_not_another_image(void **state)
{
	struct bench *b = *state;

	b->gone = true;
	assert_int_equal(check(b, BIAS), -UNI_EGONE);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(same_image_matches),
		T(patched_text_matches),
		T(unmapped_pages_are_passed_over),
		T(freed_start_up_code_matches),
		T(another_build_differs),
		T(another_address_is_not_mapped),
		T(a_guest_that_ends_is_not_another_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
