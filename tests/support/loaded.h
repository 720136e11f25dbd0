/* SPDX-License-Identifier: BSD-2-Clause */
/* A made guest with an image in its memory, for who looks for images; to be included after cmocka.
 */
#ifndef UNI_TESTS_LOADED_H
#define UNI_TESTS_LOADED_H

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampling/locate.h"
#include "tables.h"

#define LINK	0x400000ull /* header page, then four pages of code, the last one in part */
#define CODE	(3 * 4096u + 100)
#define SIZE	(4096u + CODE)
#define DYNAMIC 0x300u	   /* in the header page */
#define HOME	0x30000ull /* where it is loaded in the guest's RAM */

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
static inline void make_file(uint8_t *file, uint8_t id)
{
	Elf64_Ehdr h = { .e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 4,
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
		{ .p_type = PT_DYNAMIC,
			.p_offset = DYNAMIC,
			.p_vaddr = LINK + DYNAMIC,
			.p_filesz = 48,
			.p_memsz = 48 },
	};
	const uint64_t dynamic[] = { DT_HASH, 0, DT_DEBUG, 0, DT_NULL, 0 };
	const uint32_t note[] = { 4, 20, NT_GNU_BUILD_ID };
	uint32_t x = 12345u + id;

	memset(file, 0, SIZE);
	memcpy(h.e_ident, "\177ELF\2\1\1", 7);
	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), ph, sizeof(ph));
	memcpy(file + 0x200, note, sizeof(note));
	memcpy(file + 0x20c, "GNU", 4);
	memset(file + 0x210, id, 20);
	memcpy(file + DYNAMIC, dynamic, sizeof(dynamic));
	for (size_t i = 4096; i < SIZE; i++)
		file[i] = (uint8_t)((x = x * 1103515245u + 12345u) >> 16);
}

/* Maps what was loaded at home, the header page too if asked. */
static inline void map_image(struct world *w, uint64_t bias, uint64_t flags, bool header)
{
	for (uint64_t i = header ? 0 : 1; i < 5; i++)
		made_map(&w->t, LINK + bias + i * 4096, HOME + i * 4096, 12, flags);
}

static inline struct uni_image *load(const uint8_t *file)
{
	struct uni_image *img = NULL;

	assert_int_equal(uni_image_from_memory("app", file, SIZE, &img, NULL), 0);
	return img;
}

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

static inline void write_file(struct world *w, const char *name, const uint8_t *data)
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

#endif
