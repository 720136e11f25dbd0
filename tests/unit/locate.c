/* SPDX-License-Identifier: BSD-2-Clause */
/* Images in a made guest's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/tables.h"
#include "obj/headers.h"
#include "session/locate.h"
#include "session/pages.h"

#define LINK 0x400000ull /* header page, then four pages of code, the last one in part */
#define CODE (3 * 4096u + 100)
#define SIZE (4096u + CODE)
#define HOME 0x30000ull /* where it is loaded in the guest's RAM */

struct world {
	struct guest g;
	struct tables t;
	struct uni_regs regs[2];
	uint8_t file[SIZE];
	struct uni_located list[UNI_IMAGES_MAX];
	bool found[UNI_IMAGES_MAX];
	size_t nr;
	char dir[32];
	struct uni_sysroot *root;
	struct uni_locate_args args;
	struct uni_err err;
};

/* A linked file with a build-id of this byte, and code that depends on it. */
static void make_file(uint8_t *file, uint8_t id)
{
	Elf64_Ehdr h = { .e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_entry = LINK + 4096 };
	const Elf64_Phdr ph[] = {
		{ .p_type = PT_LOAD,
			.p_flags = PF_R,
			.p_vaddr = LINK,
			.p_filesz = 4096,
			.p_memsz = 4096 },
		{ .p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = 4096,
			.p_vaddr = LINK + 4096,
			.p_filesz = CODE,
			.p_memsz = CODE },
		{ .p_type = PT_NOTE,
			.p_offset = 0x200,
			.p_vaddr = LINK + 0x200,
			.p_filesz = 36,
			.p_memsz = 36 },
	};
	const uint32_t note[] = { 4, 20, NT_GNU_BUILD_ID };
	uint32_t x = 12345u + id;

	memset(file, 0, SIZE);
	memcpy(h.e_ident, "\177ELF\2\1\1", 7);
	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), ph, sizeof(ph));
	memcpy(file + 0x200, note, sizeof(note));
	memcpy(file + 0x20c, "GNU", 4);
	memset(file + 0x210, id, 20);
	for (size_t i = 4096; i < SIZE; i++)
		file[i] = (uint8_t)((x = x * 1103515245u + 12345u) >> 16);
}

/* Maps what was loaded at home, the header page too if asked. */
static void map_image(struct world *w, uint64_t bias, uint64_t flags, bool header)
{
	for (uint64_t i = header ? 0 : 1; i < 5; i++)
		made_map(&w->t, LINK + bias + i * 4096, HOME + i * 4096, 12, flags);
}

static struct uni_image *load(const uint8_t *file)
{
	struct uni_image *img = NULL;

	assert_int_equal(uni_image_from_memory("app", file, SIZE, &img, NULL), 0);
	return img;
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_true(guest_init(&w->g, 0, 0x80000, UNI_GMEM_PHYSICAL));
	w->t = (struct tables){ .g = &w->g, .next = 0x2000 };
	w->regs[0] = made_regs();
	w->regs[1].state = UNI_VCPU_OFFLINE;
	make_file(w->file, 7);
	memcpy(w->g.ram + HOME, w->file, SIZE);
	w->args = (struct uni_locate_args){
		.gmem = w->g.m, .arch = &uni_arch_x86_64, .regs = w->regs, .nr_regs = 2
	};
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char path[64];

	for (size_t i = 0; i < w->nr; i++)
		uni_image_destroy(w->list[i].image);
	uni_sysroot_close(w->root);
	guest_deinit(&w->g);
	if (w->dir[0] != '\0') {
		(void)snprintf(path, sizeof(path), "%s/sub/app", w->dir);
		(void)unlink(path);
		(void)snprintf(path, sizeof(path), "%s/sub/other", w->dir);
		(void)unlink(path);
		(void)snprintf(path, sizeof(path), "%s/sub", w->dir);
		(void)rmdir(path);
		(void)rmdir(w->dir);
	}
	free(w);
	return 0;
}

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

	make_file(w->file, 8); /* of another build */
	map_image(w, 0x10000000, 0, true);
	locate_one(w);
	assert_false(w->found[0]);
	assert_int_equal(w->nr, 1);
}

/* A map of all RAM shows the same bytes, which cannot be run there. */
static void test_copies(void **state)
{
	struct world *w = *state;

	map_image(w, 0x10000000, MADE_NX, true);
	map_image(w, 0x70000000, 0, true);
	locate_one(w);
	assert_true(w->found[0]);
	assert_int_equal(w->list[0].bias, 0x70000000);
}

/* Where it could be run at several addresses, the vCPUs tell: by pc, else by their stacks. */
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

static void write_file(struct world *w, const char *name, const uint8_t *data)
{
	char path[64];
	int fd;

	if (w->dir[0] == '\0') {
		memcpy(w->dir, "/tmp/uni-locate-XXXXXX", sizeof("/tmp/uni-locate-XXXXXX"));
		assert_non_null(mkdtemp(w->dir));
		(void)snprintf(path, sizeof(path), "%s/sub", w->dir);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/sub/%s", w->dir, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, data, SIZE), SIZE);
	(void)close(fd);
}

static void test_sysroot(void **state)
{
	struct world *w = *state;
	const struct uni_sysroot *roots[1];
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
	assert_int_equal(uni_headers_build_id(w->file + 0x200, 36, id), 20);
	assert_int_equal(id[19], 7);
	assert_int_equal(uni_headers_build_id(w->file + 0x200, 35, id), 0);
	for (size_t size = 0; size < sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr); size++)
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
		cmocka_unit_test_setup_teardown(test_packets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_headers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
