/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes cores as QEMU, Xen and Linux write them, of a guest whose registers and memory the test
 * chooses. Written from the formats' descriptions, not from the reader's code.
 */
#ifndef UNI_TESTS_CORE_FILE_H
#define UNI_TESTS_CORE_FILE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"

/* Registers of a made vCPU: each has a value of its own. */
struct made_vcpu {
	uint64_t rip, rsp, rbp, rax, r15, cr0, cr3, cr4;
	uint32_t xen_flags;
};

static inline void made_pad(struct uni_strbuf *b, size_t to)
{
	while (b->len < to)
		uni_strbuf_addc(b, '\0');
}

static inline void made_u32(struct uni_strbuf *b, uint32_t v)
{
	uni_strbuf_add(b, &v, sizeof(v));
}

static inline void made_u64(struct uni_strbuf *b, uint64_t v)
{
	uni_strbuf_add(b, &v, sizeof(v));
}

static inline void made_note(
	struct uni_strbuf *b, const char *name, uint32_t type, const void *desc, size_t size)
{
	uint32_t name_size = (uint32_t)strlen(name) + 1;

	made_u32(b, name_size);
	made_u32(b, (uint32_t)size);
	made_u32(b, type);
	uni_strbuf_add(b, name, name_size);
	made_pad(b, (b->len + 3) / 4 * 4);
	uni_strbuf_add(b, desc, size);
	made_pad(b, (b->len + 3) / 4 * 4);
}

/* QEMUCPUState, 440 bytes. */
static inline void made_qemu_note(struct uni_strbuf *b, const struct made_vcpu *v)
{
	uint64_t w[55] = { 0 };

	w[0] = 1 | 440ull << 32;
	w[1] = v->rax;
	w[7] = v->rsp;
	w[8] = v->rbp;
	w[16] = v->r15;
	w[17] = v->rip;
	w[18] = 0x202;		     /* rflags */
	w[19] = 8 | 0xffffull << 32; /* CS: selector, limit */
	w[19 + 3 * 3 + 2] = 0xf5;    /* base of the fourth segment, FS */
	w[19 + 4 * 3 + 2] = 0x65;    /* and of GS */
	w[49] = v->cr0;
	w[50] = 0xc1;
	w[51] = 0xc2;
	w[52] = v->cr3;
	w[53] = v->cr4;
	made_note(b, "QEMU", 0, w, sizeof(w));
}

/* struct elf_prstatus, 336 bytes. */
static inline void made_prstatus(struct uni_strbuf *b, const struct made_vcpu *v)
{
	uint64_t w[42] = { 0 };

	w[14 + 0] = v->r15;
	w[14 + 4] = v->rbp;
	w[14 + 10] = v->rax;
	w[14 + 15] = 0xbad; /* orig_rax */
	w[14 + 16] = v->rip;
	w[14 + 17] = 0x33;
	w[14 + 18] = 0x246;
	w[14 + 19] = v->rsp;
	w[14 + 21] = 0xf5;
	w[14 + 22] = 0x65;
	made_note(b, "CORE", NT_PRSTATUS, w, sizeof(w));
}

/* The same of aarch64, 392 bytes: the words of x0 to x30, sp, pc and pstate count up from first. */
static inline void made_a64_prstatus(struct uni_strbuf *b, uint64_t first)
{
	uint64_t w[49] = { 0 };

	for (unsigned i = 0; i < 34; i++)
		w[14 + i] = first + i;
	w[14 + 33] = 0x5; /* EL1h */
	made_note(b, "CORE", NT_PRSTATUS, w, sizeof(w));
}

/* struct vcpu_guest_context, 5168 bytes. */
static inline void made_xen_vcpu(struct uni_strbuf *b, const struct made_vcpu *v)
{
	uint64_t w[646] = { 0 };

	w[64] = v->xen_flags;
	w[65 + 0] = v->r15;
	w[65 + 4] = v->rbp;
	w[65 + 10] = v->rax;
	w[65 + 15] = 0xbad; /* error code and vector */
	w[65 + 16] = v->rip;
	w[65 + 17] = 0xe033;
	w[65 + 18] = 0x202;
	w[65 + 19] = v->rsp;
	w[623] = v->cr0;
	w[626] = v->cr3;
	w[627] = v->cr4;
	w[643] = 0xf5;
	w[644] = 0x65;
	uni_strbuf_add(b, w, sizeof(w));
}

static inline Elf64_Ehdr made_header(void)
{
	Elf64_Ehdr h = { .e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr) };

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	return h;
}

struct made_load {
	uint64_t vaddr, paddr;
	uint64_t at, file_size; /* of the memory that the file holds */
	uint64_t mem_size;
};

/* Header, program headers (a note, then loads), notes, memory. */
static inline void made_core(struct uni_strbuf *b, const struct uni_strbuf *notes,
	const struct made_load *load, uint16_t nr, const void *memory, size_t memory_size)
{
	Elf64_Ehdr h = made_header();
	Elf64_Phdr ph = { .p_type = PT_NOTE, .p_filesz = notes->len };
	uint64_t data;

	h.e_phoff = sizeof(h);
	h.e_phnum = (uint16_t)(nr + 1);
	ph.p_offset = sizeof(h) + sizeof(ph) * (size_t)h.e_phnum;
	data = ph.p_offset + notes->len;
	uni_strbuf_add(b, &h, sizeof(h));
	uni_strbuf_add(b, &ph, sizeof(ph));
	for (uint16_t i = 0; i < nr; i++) {
		ph = (Elf64_Phdr){ .p_type = PT_LOAD,
			.p_offset = data + load[i].at,
			.p_vaddr = load[i].vaddr,
			.p_paddr = load[i].paddr,
			.p_filesz = load[i].file_size,
			.p_memsz = load[i].mem_size };
		uni_strbuf_add(b, &ph, sizeof(ph));
	}
	uni_strbuf_add(b, notes->s, notes->len);
	uni_strbuf_add(b, memory, memory_size);
}

/*
 * Sections .note.Xen, .xen_prstatus, .xen_p2m or .xen_pfn, .xen_pages; no program headers. frame
 * has the number of each page, of a PV guest twice as many: pseudo-physical and machine frame.
 */
static inline void made_xen_core(struct uni_strbuf *b, bool pv, const struct made_vcpu *v,
	size_t nr_vcpus, const uint64_t *frame, size_t nr_pages, const void *pages)
{
	static const char names[] = "\0.shstrtab\0.note.Xen\0.xen_prstatus\0.xen_p2m\0.xen_pfn\0"
				    ".xen_pages";
	Elf64_Ehdr h = made_header();
	Elf64_Shdr sh[6] = { { 0 }, { .sh_name = 1, .sh_type = SHT_STRTAB },
		{ .sh_name = 11, .sh_type = SHT_NOTE },
		{ .sh_name = 21, .sh_type = SHT_PROGBITS, .sh_entsize = 5168 },
		{ .sh_name = pv ? 35 : 44, .sh_type = SHT_PROGBITS, .sh_entsize = pv ? 16 : 8 },
		{ .sh_name = 53, .sh_type = SHT_PROGBITS, .sh_entsize = 4096 } };
	uint64_t head[4] = { pv ? 0xf00febed : 0xf00febee, nr_vcpus, nr_pages, 4096 }, version = 1;
	struct uni_strbuf body;
	size_t start[7];

	uni_strbuf_init(&body);
	start[1] = body.len;
	uni_strbuf_add(&body, names, sizeof(names));
	start[2] = body.len;
	made_note(&body, "Xen", 0x2000000, "", 0);
	made_note(&body, "Xen", 0x2000001, head, sizeof(head));
	made_note(&body, "Xen", 0x2000003, &version, sizeof(version));
	start[3] = body.len;
	for (size_t i = 0; i < nr_vcpus; i++)
		made_xen_vcpu(&body, &v[i]);
	start[4] = body.len;
	uni_strbuf_add(&body, frame, nr_pages * (pv ? 16 : 8));
	start[5] = body.len;
	uni_strbuf_add(&body, pages, nr_pages * 4096);
	start[6] = body.len;
	h.e_shoff = sizeof(h);
	h.e_shnum = 6;
	h.e_shstrndx = 1;
	uni_strbuf_add(b, &h, sizeof(h));
	for (unsigned i = 1; i < 6; i++) {
		sh[i].sh_offset = sizeof(h) + sizeof(sh) + start[i];
		sh[i].sh_size = start[i + 1] - start[i];
	}
	uni_strbuf_add(b, sh, sizeof(sh));
	uni_strbuf_add(b, body.s, body.len);
	uni_strbuf_deinit(&body);
}

#endif
