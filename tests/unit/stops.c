/* SPDX-License-Identifier: BSD-2-Clause */
/* Stops of TCG in the code of several images, and in code that nobody has read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "app/skids.h"
#include "elf_spec.h"

#define TEXT   0x100000u
#define STACK  0x800000u
#define HERE   0x40000000u /* the bias of the kernel, and that of a program */
#define THERE  0x50000000u
#define MAIN   TEXT
#define PLAIN  (TEXT + 0x20)
#define TAIL   (TEXT + 0x30)
#define BEHIND (TEXT + 5)    /* the call of plain */
#define INTO   (TEXT + 0x44) /* the last function, by the one before */
#define NONAME (TEXT + 0x4c)

/* main: call plain; call tail; nop; jmp .; plain: nop; ret; tail: jmp plain; jumps: jmp 1f; last:
 * nop; nop; 1: nop; ret */
static const uint8_t code[0x50] = { 0xe8, 0x1b, 0, 0, 0, 0xe8, 0x26, 0, 0, 0, 0x90, 0xeb,
	0xfe, [0x20] = 0x90, 0xc3, [0x30] = 0xe9, 0xeb, 0xff, 0xff, 0xff, [0x40] = 0xeb, 2, 0x90,
	0x90, 0x90, 0xc3 };

static const struct spec_sym syms[] = {
	{ "main", MAIN, 0x0d, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "plain", PLAIN, 2, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "tail", TAIL, 5, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "jumps", TEXT + 0x40, 2, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "last", TEXT + 0x42, 4, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
};

static struct uni_image *make_image(size_t nr_syms)
{
	const struct elf_spec spec = { .machine = EM_X86_64,
		.text = TEXT,
		.data = TEXT + 0x100000,
		.entry = TEXT,
		.code = code,
		.code_size = sizeof(code),
		.syms = syms,
		.nr_syms = nr_syms };
	static struct elf_image e[2];
	static unsigned turn;
	struct elf_image *mine = &e[turn++ % 2];
	struct uni_err err = { 0 };
	struct uni_image *img;

	elf_spec_write(&spec, mine);
	assert_int_equal(uni_image_from_memory("t", mine->data, mine->size, &img, &err), 0);
	return img;
}

static uint64_t below; /* the stack pointer */

static int read_stack(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	uint8_t stack[4096] = { 0 };

	memcpy(stack + 2048 - 8, &below, sizeof(below));
	memcpy(buf, stack + offset, len);
	return 0;
}

/* The chain at pc, called from a place behind `ret_addr` (0: not known), after the word below the
 * stack was `word`. */
static struct uni_chain stop_at(
	const struct uni_guest *g, uint64_t pc, uint64_t ret_addr, uint64_t word)
{
	static const struct uni_gmem_ops ops = { .read = read_stack };
	const struct uni_gmem_region region = { .start = STACK, .size = 4096 };
	struct uni_regs regs = { .state = UNI_VCPU_RUNNING,
		.pc = pc,
		.pc_valid = true,
		.sp = STACK + 2048,
		.sp_valid = true };
	struct uni_chain c = {
		.nr = ret_addr != 0 ? 2 : 1, .pc = { pc, ret_addr }, .flags = { UNI_FRAME_EXACT, 0 }
	};
	struct uni_err err = { 0 };
	struct uni_gmem *m;
	struct uni_as *as;

	below = word;
	assert_int_equal(uni_gmem_create(&ops, NULL, UNI_GMEM_VIRTUAL, &region, 1, &m, &err), 0);
	assert_int_equal(uni_as_create(m, &uni_as_budget_once, &as, &err), 0);
	uni_as_begin(as, NULL);
	uni_unwind_stopped(&g->unwinder, as, &regs, &c);
	uni_as_destroy(as);
	uni_gmem_destroy(m);
	return c;
}

static bool is_unsure(struct uni_chain c)
{
	return (c.flags[0] & UNI_FRAME_UNSURE) != 0;
}

static void open_guest(
	struct uni_guest *g, const char *accel, struct uni_image *first, struct uni_image *more)
{
	const struct uni_attach_args args = { 0 };
	struct uni_err err = { 0 };

	*g = (struct uni_guest){ .image = first, .bias = HERE };
	(void)snprintf(g->info.vmm, sizeof(g->info.vmm), "qemu");
	(void)snprintf(g->info.accel, sizeof(g->info.accel), "%s", accel);
	g->unwinder.arch = &uni_arch_x86_64;
	if (more != NULL)
		g->more[g->nr_more++] = (struct uni_located){ .image = more, .bias = THERE };
	assert_int_equal(uni_guest_use_skid(g, &args, &err), 0);
}

static void close_guest(struct uni_guest *g)
{
	uni_skid_deinit(&g->skid);
	uni_vec_free(&g->skid_code);
	if (g->nr_more != 0)
		uni_image_destroy(g->more[0].image);
	uni_image_destroy(g->image);
}

/* A kernel and a program at another place: each has its own calls. */
static void each_image_has_its_calls(void **state)
{
	static struct uni_guest g;
	static const uint64_t bias[] = { HERE, THERE };

	open_guest(&g, "tcg", make_image(5), make_image(5));
	for (size_t i = 0; i < 2; i++) {
		uint64_t b = bias[i];
		struct uni_chain c = stop_at(&g, BEHIND + b, 0x1234, BEHIND + b);

		assert_int_equal(c.nr, 3);
		assert_int_equal(c.pc[0], PLAIN + b);
		c = stop_at(&g, TAIL + b, MAIN + 10 + b, 0); /* main's block ended in the call */
		assert_int_equal(c.nr, 1);
		assert_int_equal(c.pc[0], MAIN + 9 + b);
		c = stop_at(&g, PLAIN + b, MAIN + 10 + b, 0); /* tail went on there */
		assert_int_equal(c.pc[0], TAIL + b);
		assert_false(is_unsure(stop_at(&g, MAIN + 11 + b, 0x1234, 0)));
		assert_true(is_unsure(stop_at(&g, INTO + b, 0x1234, 0)));
		/* No function has that byte. */
		assert_true(is_unsure(stop_at(&g, NONAME + b, 0x1234, 0)));
	}
	assert_true(is_unsure(stop_at(&g, 0x7000000, 0x1234, 0)));
	close_guest(&g);
}

/* Its caller is not known, as in a chain that is cut short: whose block ran? */
static void first_byte_without_a_caller(void **state)
{
	static struct uni_guest g;

	open_guest(&g, "tcg", make_image(5), NULL);
	assert_true(is_unsure(stop_at(&g, PLAIN + HERE, 0, 0)));
	assert_true(is_unsure(stop_at(&g, PLAIN + HERE, 0x1234, 0)));
	assert_false(is_unsure(stop_at(&g, PLAIN + 1 + HERE, 0, 0)));
	close_guest(&g);
}

/* Nobody knows where its functions begin. Its neighbour is read all the same. */
static void stripped_image(void **state)
{
	static struct uni_guest g;

	open_guest(&g, "tcg", make_image(0), make_image(5));
	assert_true(is_unsure(stop_at(&g, PLAIN + HERE, MAIN + 10 + HERE, 0)));
	assert_true(is_unsure(stop_at(&g, MAIN + 11 + HERE, 0x1234, 0)));
	assert_false(is_unsure(stop_at(&g, MAIN + 11 + THERE, 0x1234, 0)));
	close_guest(&g);
}

/* A program that the guest loads while it is sampled. */
static void loaded_later(void **state)
{
	static struct uni_guest g;
	struct uni_err err = { 0 };
	struct uni_image *img = make_image(5);

	open_guest(&g, "tcg", make_image(5), NULL);
	assert_true(is_unsure(stop_at(&g, MAIN + 11 + THERE, 0x1234, 0)));
	assert_int_equal(uni_guest_add_skid(&g, img, THERE, &err), 0);
	assert_false(is_unsure(stop_at(&g, MAIN + 11 + THERE, 0x1234, 0)));
	assert_false(is_unsure(stop_at(&g, MAIN + 11 + HERE, 0x1234, 0)));
	uni_image_destroy(img);
	close_guest(&g);
}

/* KVM stops a vCPU anywhere. If QEMU does not say what runs its guest, nothing is sure. */
static void other_accelerators(void **state)
{
	static struct uni_guest g;

	open_guest(&g, "kvm", make_image(5), NULL);
	assert_false(is_unsure(stop_at(&g, PLAIN + HERE, MAIN + 10 + HERE, 0)));
	assert_int_equal(stop_at(&g, BEHIND + HERE, 0x1234, BEHIND + HERE).nr, 2);
	close_guest(&g);
	open_guest(&g, "", make_image(5), NULL);
	assert_true(is_unsure(stop_at(&g, MAIN + 11 + HERE, 0x1234, 0)));
	assert_int_equal(stop_at(&g, BEHIND + HERE, 0x1234, BEHIND + HERE).nr, 2);
	close_guest(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_image_has_its_calls),
		cmocka_unit_test(first_byte_without_a_caller),
		cmocka_unit_test(stripped_image),
		cmocka_unit_test(loaded_later),
		cmocka_unit_test(other_accelerators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
