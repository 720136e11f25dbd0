/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading a second ELF file at run time, as some unikernels do with their application. */
#include "lab.h"
#include "cpu.h"

#define ET_EXEC	   2
#define PT_LOAD	   1
#define PT_DYNAMIC 2
#define PF_X	   1
#define PF_W	   2
#define DT_RELA	   7
#define DT_RELASZ  8
#define DT_DEBUG   21
#define RELATIVE   8 /* R_X86_64_RELATIVE */

struct elf_header {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, phoff, shoff;
	uint32_t flags;
	uint16_t ehsize, phentsize, phnum;
};

struct segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

/* The structures by which dynamic linkers tell debuggers, as in their link.h. */
struct link_map {
	uint64_t bias;
	const char *name;
	const uint64_t *dynamic;
	struct link_map *next, *prev;
};

static struct {
	int version;
	struct link_map *map;
} links;

static uint64_t module_pa, module_size;

void lab_program_init(const struct lab_boot_info *info)
{
	module_pa = info->module_pa;
	module_size = info->module_size;
}

/* Fresh pages for it, filled through the linear map. */
static void load_segment(const char *file, const struct segment *s, uint64_t bias)
{
	uint64_t va = (s->vaddr + bias) & ~(LAB_PAGE_SIZE - 1);
	uint64_t head = (s->vaddr + bias) - va;
	unsigned nr = (unsigned)((head + s->memsz + LAB_PAGE_SIZE - 1) / LAB_PAGE_SIZE);
	uint64_t pa = lab_page_alloc(nr);

	if (s->offset > module_size || s->filesz > module_size - s->offset)
		lab_fail("the program is cut off");
	memcpy((char *)lab_phys(pa) + head, file + s->offset, s->filesz);
	for (unsigned i = 0; i < nr; i++)
		lab_map(va + i * LAB_PAGE_SIZE, pa + i * LAB_PAGE_SIZE,
			(s->flags & PF_X ? 0 : PTE_NX) | (s->flags & PF_W ? PTE_WRITE : 0), 12);
}

static void relocate(uint64_t *dynamic, uint64_t bias)
{
	const uint64_t *rela = 0;
	uint64_t size = 0;

	for (; dynamic[0]; dynamic += 2) {
		if (dynamic[0] == DT_RELA)
			rela = (const uint64_t *)(dynamic[1] + bias);
		else if (dynamic[0] == DT_RELASZ)
			size = dynamic[1];
		else if (dynamic[0] == DT_DEBUG)
			dynamic[1] = (uint64_t)&links;
	}
	for (; rela && size >= 24; size -= 24, rela += 3) {
		if ((uint32_t)rela[1] != RELATIVE)
			lab_fail("the program needs a symbol");
		*(uint64_t *)(rela[0] + bias) = rela[2] + bias;
	}
}

/* A link map of its own for the program, behind one of the image, as libraries have it. */
static void tell(const uint64_t *dynamic, uint64_t bias)
{
	static struct link_map image = { .name = "" }, program = { .name = "/boot/program.elf" };

	program.bias = bias;
	program.dynamic = dynamic;
	program.prev = &image;
	image.next = &program;
	links.version = 1;
	links.map = &image;
}

uint64_t lab_program_load(void)
{
	const char *file = lab_phys(module_pa);
	const struct elf_header *h = (const struct elf_header *)file;
	uint64_t bias = LAB_PROGRAMS + (lab_tsc() * 0x9e3779b97f4a7c15 >> 44) * LAB_PAGE_SIZE;
	const struct segment *s;

	if (module_size < sizeof(*h) || memcmp(h->ident, "\177ELF\2\1", 6) ||
		h->phentsize != sizeof(*s))
		lab_fail("no program: boot with -initrd PROGRAM.elf");
	if (h->type == ET_EXEC)
		bias = 0;
	s = (const struct segment *)(file + h->phoff);
	for (unsigned i = 0; i < h->phnum; i++) {
		if (s[i].type == PT_LOAD)
			load_segment(file, &s[i], bias);
	}
	for (unsigned i = 0; i < h->phnum; i++) {
		if (s[i].type != PT_DYNAMIC)
			continue;
		relocate((uint64_t *)(s[i].vaddr + bias), bias);
		tell((const uint64_t *)(s[i].vaddr + bias), bias);
	}
	lab_printf("lab: program at %lx\n", bias);
	return h->entry + bias;
}
