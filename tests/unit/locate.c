/* SPDX-License-Identifier: BSD-2-Clause */
/* Images in a made guest's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/loaded.h"
#include "obj/headers.h"
#include "sampling/linkmap.h"
#include "sampling/pages.h"

static void locate_one(struct world *w)
{
	w->list[w->nr++].image = load(w->file);
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), 0);
}

static void test_by_code(void **state)
{
	struct world *w = *state;

	map_image(w, 0xffffffff12345000ull - LINK, 0, false);
	w->g.ram[HOME + 4096 + 77] ^= 1; /* guests patch their code */
	locate_one(w);
	assert_true(w->found[0]);
	assert_int_equal(w->list[0].bias, 0xffffffff12345000ull - LINK);
}

static void test_not_there(void **state)
{
	struct world *w = *state;
	size_t others = 0;

	make_file(w->file, 8); /* of another build */
	map_image(w, 0x10000000, 0, true);
	w->args.others_ret = &others;
	locate_one(w);
	assert_false(w->found[0]);
	assert_int_equal(others, 1);
	assert_int_equal(w->nr, 1);
}

/* A map of all RAM shows the same bytes, which cannot be run there. */
static void test_copies(void **state)
{
	struct world *w = *state;
	size_t others = 9;

	map_image(w, 0x10000000, MADE_NX, true);
	map_image(w, 0x70000000, 0, true);
	w->args.others_ret = &others;
	locate_one(w);
	assert_true(w->found[0]);
	assert_int_equal(w->list[0].bias, 0x70000000);
	assert_int_equal(others, 0);
}

/* If it could run at several addresses, the vCPUs decide: by pc, else by their stacks. */
static void test_evidence(void **state)
{
	struct world *w = *state;

	map_image(w, 0x10000000, 0, true);
	map_image(w, 0x20000000, 0, true);
	map_image(w, 0x30000000, 0, true);
	made_map(&w->t, 0x9000000, 0x40000, 12, MADE_NX);
	guest_put64(&w->g, 0x40ff0, LINK + 0x20000000 + 5000);
	w->regs[0].pc = 0x1234;
	w->regs[0].sp = 0x9000fe0;
	w->regs[0].pc_valid = w->regs[0].sp_valid = true;
	locate_one(w);
	assert_true(w->found[0]);
	assert_int_equal(w->list[0].bias, 0x20000000);
	w->regs[0].pc = LINK + 0x30000000 + 4096;
	w->list[0].bias = 0;
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), 0);
	assert_int_equal(w->list[0].bias, 0x30000000);
}

static void test_sysroot(void **state)
{
	struct world *w = *state;
	const struct uni_sysroot *roots[1];
	struct uni_sysroot *proc;
	uint8_t other[SIZE], id[UNI_BUILD_ID_MAX];

	make_file(other, 9);
	write_file(w, "other", other);
	write_file(w, "app", w->file);
	assert_int_equal(uni_sysroot_open(w->dir, &w->root, &w->err), 0);
	assert_int_equal(uni_sysroot_nr(w->root), 2);
	memset(id, 7, sizeof(id));
	assert_non_null(strstr(uni_sysroot_find(w->root, id, 20, 0), "/sub/app"));
	assert_null(uni_sysroot_find(w->root, id, 20, 1));
	assert_null(uni_sysroot_find(w->root, id, 16, 0));
	roots[0] = w->root;
	w->args.sysroot = roots;
	w->args.nr_sysroots = 1;
	map_image(w, 0x50000000, 0, true);
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), 0);
	assert_int_equal(w->nr, 1);
	assert_true(w->list[0].owned);
	assert_int_equal(w->list[0].bias, 0x50000000);
	assert_non_null(strstr(uni_image_path(w->list[0].image), "/sub/app"));
	/* A file system of the kernel, with programs in /proc/PID/root. */
	assert_int_equal(uni_sysroot_open("/proc", &proc, &w->err), 0);
	assert_int_equal(uni_sysroot_nr(proc), 0);
	uni_sysroot_close(proc);
	assert_int_equal(uni_sysroot_open("/nonexistent/x", &w->root, &w->err), -UNI_ENOENT);
}

/* The header tells the build-id, but the code is another's: a file that lies in memory. */
static void test_header_alone(void **state)
{
	const struct uni_sysroot *roots[1];
	struct world *w = *state;

	write_file(w, "app", w->file);
	assert_int_equal(uni_sysroot_open(w->dir, &w->root, &w->err), 0);
	roots[0] = w->root;
	w->args.sysroot = roots;
	w->args.nr_sysroots = 1;
	map_image(w, 0x50000000, 0, true);
	memset(w->g.ram + HOME + 4096, 0x90, CODE);
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), 0);
	assert_int_equal(w->nr, 0);
}

/* Code that is mapped when it is used: not its first page. */
static void test_lazy(void **state)
{
	struct world *w = *state;

	for (uint64_t i = 2; i < 5; i++)
		made_map(&w->t, LINK + 0x70000000 + i * 4096, HOME + i * 4096, 12, 0);
	locate_one(w);
	assert_true(w->found[0]);
	assert_int_equal(w->list[0].bias, 0x70000000);
}

/* In small steps the same comes out, and what was found before is left where it was. */
static void test_steps(void **state)
{
	struct world *w = *state;
	struct uni_search *s = NULL;
	unsigned steps = 0;
	int rc = 1;

	map_image(w, 0x10000000, 0, true);
	made_map(&w->t, 0x200000000, 0, 30, MADE_NX);
	w->list[w->nr++].image = load(w->file);
	w->list[w->nr] = (struct uni_located){ .image = load(w->file), .bias = 77, .placed = true };
	w->nr++;
	assert_int_equal(uni_search_begin(&w->args, w->list, w->nr, &s, &w->err), 0);
	for (; rc == 1; steps++)
		rc = uni_search_step(s, 0);
	assert_int_equal(rc, 0);
	assert_true(steps > 5 && steps < 100);
	assert_int_equal(uni_search_end(s, w->list, w->found, &w->nr), 0);
	uni_search_destroy(s);
	assert_true(w->found[0] && w->found[1]);
	assert_int_equal(w->list[0].bias, 0x10000000);
	assert_int_equal(w->list[1].bias, 77);
	assert_int_equal(w->nr, 2);
}

#define MAPS 0x5000000ull /* where the guest's linker has its list, at 0x40000 in RAM */

/* r_debug, and link maps of these biases and names that follow each other. */
static void make_links(struct world *w, const uint64_t *bias, const char *const *name, size_t nr)
{
	made_map(&w->t, MAPS, 0x40000, 12, MADE_NX);
	guest_put64(&w->g, 0x40000, 1);
	guest_put64(&w->g, 0x40008, MAPS + 0x100);
	for (size_t i = 0; i < nr; i++) {
		uint64_t at = 0x40100 + i * 0x40, text = 0x800 + i * 0x80;

		guest_put64(&w->g, at, bias[i]);
		guest_put64(&w->g, at + 8, MAPS + text);
		guest_put64(&w->g, at + 24, i + 1 < nr ? MAPS + 0x100 + (i + 1) * 0x40 : 0);
		(void)snprintf((char *)w->g.ram + 0x40000 + text, 0x80, "%s", name[i]);
	}
	guest_put64(&w->g, HOME + DYNAMIC + 24, MAPS);
}

/* A library without header in memory, nor build-id: only its link map tells of it. */
static void test_link_map(void **state)
{
	static const uint64_t bias[] = { 0x10000000, 0x20000000, 0x30000000 };
	static const char *const name[] = { "", "/lib/none", "/x/sub/other" };
	const struct uni_sysroot *roots[1];
	struct world *w = *state;
	uint8_t other[SIZE];

	make_file(other, 9);
	memset(other + 0x200, 0, 36);
	write_file(w, "other", other);
	assert_int_equal(uni_sysroot_open(w->dir, &w->root, &w->err), 0);
	assert_null(uni_sysroot_find_name(w->root, "/x/sub/othe"));
	assert_null(uni_sysroot_find_name(w->root, "/x/sub/"));
	assert_non_null(uni_sysroot_find_name(w->root, "other"));
	roots[0] = w->root;
	w->args.sysroot = roots;
	w->args.nr_sysroots = 1;
	map_image(w, bias[0], 0, true);
	memcpy(w->g.ram + 0x50000, other + 4096, CODE);
	for (uint64_t i = 0; i < 4; i++)
		made_map(&w->t, LINK + bias[2] + (i + 1) * 4096, 0x50000 + i * 4096, 12, 0);
	locate_one(w);
	assert_int_equal(w->nr, 1); /* there is no list yet */
	make_links(w, bias, name, 3);
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), 0);
	assert_int_equal(w->nr, 2);
	assert_true(w->list[1].owned);
	assert_int_equal(w->list[1].bias, bias[2]);
	assert_non_null(strstr(uni_image_path(w->list[1].image), "/sub/other"));
	/* A word of the guest's alone is not believed. */
	uni_image_destroy(w->list[--w->nr].image);
	memset(w->g.ram + 0x50000, 0x90, CODE);
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), 0);
	assert_int_equal(w->nr, 1);
}

static void test_links(void **state)
{
	static const uint64_t bias[] = { 1, 2 };
	static const char *const name[] = { "a\tb", "c" };
	struct uni_link link[UNI_LINKS_MAX];
	struct world *w = *state;
	uint64_t table = LINK + DYNAMIC;
	struct uni_as *as = NULL;
	struct uni_pt_root root;

	map_image(w, 0, 0, true);
	assert_int_equal(uni_arch_x86_64.paging(&w->regs[0], &root), 0);
	assert_int_equal(uni_as_create(w->g.m, &uni_as_budget_once, &as, NULL), 0);
	assert_int_equal(uni_links_read(as, &root, table, 48, link, UNI_LINKS_MAX), 0);
	make_links(w, bias, name, 2);
	assert_int_equal(uni_links_read(as, &root, table, 48, link, UNI_LINKS_MAX), 2);
	assert_int_equal(link[1].bias, 2);
	assert_string_equal(link[1].path, "c");
	assert_null(strchr(link[0].path, '\t'));
	assert_int_equal(uni_links_read(as, &root, table, 48, link, 1), 1);
	assert_int_equal(uni_links_read(as, &root, table, 31, link, UNI_LINKS_MAX), 0);
	guest_put64(&w->g, 0x40140 + 24, MAPS + 0x100); /* without end */
	assert_int_equal(uni_links_read(as, &root, table, 48, link, UNI_LINKS_MAX), UNI_LINKS_MAX);
	guest_put64(&w->g, 0x40140 + 24, MAPS + 0xff0); /* over the end of what is mapped */
	assert_int_equal(uni_links_read(as, &root, table, 48, link, UNI_LINKS_MAX), 2);
	guest_put64(&w->g, HOME + DYNAMIC + 24, UINT64_MAX);
	assert_int_equal(uni_links_read(as, &root, table, 48, link, UNI_LINKS_MAX), 0);
	uni_as_destroy(as);
}

static void test_packets(void **state)
{
	struct world *w = *state;

	uni_gmem_set_granule(w->g.m, 256);
	w->list[w->nr++].image = load(w->file);
	assert_int_equal(uni_locate(&w->args, w->list, w->found, &w->nr, &w->err), -UNI_ENOTSUP);
	assert_non_null(strstr(w->err.msg, "by packets"));
}

static bool count_page(void *ctx, uint64_t gva, bool exec, const uint8_t *bytes)
{
	uint64_t *sum = ctx;

	sum[0]++;
	sum[1] += exec;
	sum[2] = gva;
	return true;
}

/* A leaf far larger than RAM gives what there is of it. */
static void test_pages(void **state)
{
	struct world *w = *state;
	struct uni_pt_root root;
	uint64_t sum[3] = { 0 };

	made_map(&w->t, 0x40000000, 0, 30, 0);
	made_map(&w->t, 0xffff800000000000, 0x7f000, 12, MADE_NX);
	made_map(&w->t, 0xffff800000001000, 0x80000, 12, MADE_NX); /* no RAM */
	assert_int_equal(uni_arch_x86_64.paging(&w->regs[0], &root), 0);
	assert_int_equal(uni_pages_each(w->g.m, &root, UINT32_MAX, count_page, sum), 0);
	assert_int_equal(sum[0], 0x80 + 1);
	assert_int_equal(sum[1], 0x80);
	assert_int_equal(sum[2], 0xffff800000000000ull);
	memset(sum, 0, sizeof(sum));
	assert_int_equal(uni_pages_each(w->g.m, NULL, UINT32_MAX, count_page, sum), 0);
	assert_int_equal(sum[0], 0x80);
	w->g.gone_at = w->g.reads + 1;
	assert_int_equal(uni_pages_each(w->g.m, NULL, UINT32_MAX, count_page, sum), -UNI_EGONE);
}

static void test_headers(void **state)
{
	struct world *w = *state;
	struct uni_headers h;
	uint8_t id[UNI_BUILD_ID_MAX];

	assert_true(uni_headers_parse(w->file, 4096, &h));
	assert_true(h.loaded);
	assert_int_equal(h.base, LINK);
	assert_int_equal(h.nr_notes, 1);
	assert_int_equal(h.note[0].svma, LINK + 0x200);
	assert_int_equal(h.dynamic, LINK + DYNAMIC);
	assert_int_equal(h.dynamic_size, 48);
	assert_int_equal(uni_headers_build_id(w->file + 0x200, 36, id), 20);
	assert_int_equal(id[19], 7);
	assert_int_equal(uni_headers_build_id(w->file + 0x200, 35, id), 0);
	for (size_t size = 0; size < sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr); size++)
		assert_false(uni_headers_parse(w->file, size, &h));
	w->file[4] = ELFCLASS32;
	assert_false(uni_headers_parse(w->file, 4096, &h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_by_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_evidence, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sysroot, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_header_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lazy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_link_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_packets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_headers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
