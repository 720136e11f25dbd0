/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of `xl dump-core` (Xen's docs/misc/dump-core-format.txt). It has no program headers,
 * but sections: .note.Xen, .xen_prstatus (a vcpu_guest_context for each vCPU), .xen_pages. .xen_pfn
 * has the frame number of each page; for PV guests, .xen_p2m has it with the machine frame. The
 * page tables of a PV guest use machine frames, so its memory is addressed by these.
 */
#include <stdlib.h>

#include "base/checked.h"
#include "backend/core/file.h"

#define NOTE_HEADER    0x2000001u
#define NOTE_VERSION   0x2000003u
#define MAGIC_PV       0xf00febedu
#define MAGIC_HVM      0xf00febeeu
#define PAGE	       4096u
#define FRAMES_AT_ONCE 65536u

struct header {
	uint64_t magic, nr_vcpus, nr_pages, page_size;
};

static bool is_xen(
	struct uni_core_file *f, const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	struct uni_core_sh sh;

	return f->ops->xen != NULL && uni_core_elf_section(e, ".xen_prstatus", &sh) == 0;
}

static int check_header(const struct header *h, uint64_t version, struct uni_err *err)
{
	if (version >> 32 != 0)
		return uni_err_set(err, UNI_ENOTSUP, "version %llu of Xen's format is not known",
			(unsigned long long)(version >> 32));
	if (h->magic != MAGIC_PV && h->magic != MAGIC_HVM)
		return uni_err_set(err, UNI_EFORMAT, "its Xen header note is missing or wrong");
	if (h->page_size != PAGE)
		return uni_err_set(err, UNI_ENOTSUP, "pages of %llu bytes are not known",
			(unsigned long long)h->page_size);
	return 0;
}

static int read_header(const struct uni_core_elf *e, struct header *ret, struct uni_err *err)
{
	struct uni_core_note n;
	struct uni_core_sh sh;
	struct uni_cursor c;
	uint64_t version = 0;
	uint8_t *raw;
	size_t size;
	int rc;

	if (uni_core_elf_section(e, ".note.Xen", &sh) != 0)
		return uni_err_set(err, UNI_EFORMAT, "it has no section .note.Xen");
	rc = uni_core_elf_bytes(e, sh.offset, sh.size, &raw, &size, err);
	if (rc != 0)
		return rc;
	c = uni_cursor_make(raw, size);
	while (uni_core_note_next(&c, &n)) {
		struct uni_cursor d = uni_cursor_make(n.desc, n.size);

		if (uni_core_note_is(&n, "Xen", NOTE_HEADER)) {
			ret->magic = uni_cursor_u64(&d);
			ret->nr_vcpus = uni_cursor_u64(&d);
			ret->nr_pages = uni_cursor_u64(&d);
			ret->page_size = uni_cursor_u64(&d);
		} else if (uni_core_note_is(&n, "Xen", NOTE_VERSION)) {
			version = uni_cursor_u64(&d);
		}
	}
	free(raw);
	return check_header(ret, version, err);
}

static int read_vcpus(struct uni_core_file *f, const struct uni_core_elf *e, const struct header *h,
	struct uni_err *err)
{
	struct uni_core_sh sh = { 0 };
	uint64_t stride;

	(void)uni_core_elf_section(e, ".xen_prstatus", &sh);
	stride = sh.ent_size != 0 ? sh.ent_size : UNI_CORE_XEN_VCPU;
	if (stride < UNI_CORE_XEN_VCPU)
		return uni_err_set(err, UNI_ENOTSUP,
			"its vCPUs have %llu bytes each: only 64-bit guests are known",
			(unsigned long long)stride);
	f->nr_vcpus = h->nr_vcpus;
	for (uint64_t i = 0; i < h->nr_vcpus && f->vcpu.nr < UNI_VCPU_MAX; i++) {
		uint8_t ctx[UNI_CORE_XEN_VCPU];
		struct uni_regs regs;
		uint64_t at = i * stride; /* i < UNI_VCPU_MAX here, but stride can be any number */
		int rc;

		if (__builtin_mul_overflow(i, stride, &at) ||
			!uni_range_contains(0, sh.size, at, sizeof(ctx)) ||
			__builtin_add_overflow(at, sh.offset, &at) ||
			uni_core_src_read(e->src, at, ctx, sizeof(ctx)) != 0 ||
			!f->ops->xen(ctx, sizeof(ctx), h->magic == MAGIC_PV, &regs))
			return uni_err_set(err, UNI_EFORMAT,
				"the registers of vCPU %llu are not in it: is it cut off?",
				(unsigned long long)i);
		rc = uni_core_add_vcpu(f, &regs, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

struct frames {
	struct uni_core_sh numbers, pages;
	size_t entry; /* bytes: a frame, or a pseudo-physical frame and its machine frame */
};

/* Adds nr pages from number `first` on; raw has their frame numbers. */
static int add_pages(struct uni_core_file *f, const struct uni_core_elf *e, const struct frames *fr,
	uint64_t first, const uint8_t *raw, size_t nr, struct uni_err *err)
{
	struct uni_cursor c = uni_cursor_make(raw, nr * fr->entry);

	for (size_t i = 0; i < nr; i++) {
		uint64_t frame, offset;
		int rc;

		(void)uni_cursor_take(&c, fr->entry - 8);
		frame = uni_cursor_u64(&c);
		if (frame > UINT64_MAX / PAGE) /* ~0: a hole */
			continue;
		if (__builtin_mul_overflow(first + i, (uint64_t)PAGE, &offset) ||
			__builtin_add_overflow(offset, fr->pages.offset, &offset))
			return uni_err_set(err, UNI_EFORMAT, "it claims more pages than can be");
		rc = uni_core_add_memory(f, e->src, frame * PAGE, offset, PAGE, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int read_frames(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct frames *fr, uint64_t nr_pages, struct uni_err *err)
{
	uint64_t nr = uni_min(nr_pages, fr->numbers.size / fr->entry);

	for (uint64_t done = 0; done < nr;) {
		uint64_t want = uni_min(nr - done, (uint64_t)FRAMES_AT_ONCE) * fr->entry;
		uint64_t off = done * fr->entry; /* less than the section's size */
		uint8_t *raw;
		size_t size;
		int rc;

		if (__builtin_add_overflow(off, fr->numbers.offset, &off))
			break;
		rc = uni_core_elf_bytes(e, off, want, &raw, &size, err);
		if (rc != 0)
			return rc;
		rc = add_pages(f, e, fr, done, raw, size / fr->entry, err);
		free(raw);
		if (rc != 0)
			return rc;
		done += size / fr->entry;
		if (size < want)
			break;
	}
	return 0;
}

static int read_memory(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct header *h, struct uni_err *err)
{
	bool pv = h->magic == MAGIC_PV;
	const char *numbers = pv ? ".xen_p2m" : ".xen_pfn";
	struct frames fr = { .entry = pv ? 16 : 8 };

	if (uni_core_elf_section(e, numbers, &fr.numbers) != 0 ||
		uni_core_elf_section(e, ".xen_pages", &fr.pages) != 0)
		return uni_err_set(
			err, UNI_EFORMAT, "it has no sections %s and .xen_pages", numbers);
	return read_frames(f, e, &fr, h->nr_pages, err);
}

static int open_xen(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	struct header h = { 0 };
	int rc = read_header(e, &h, err);

	if (rc != 0)
		return rc;
	f->kind = h.magic == MAGIC_PV ? "Xen core of a PV guest" : "Xen core";
	f->space = UNI_GMEM_PHYSICAL;
	rc = read_vcpus(f, e, &h, err);
	if (rc == 0)
		rc = read_memory(f, e, &h, err);
	if (rc == 0)
		uni_core_join_memory(f, false);
	return rc;
}

extern const struct uni_core_format uni_core_xen;
const struct uni_core_format uni_core_xen = { .sniff = is_xen, .open = open_xen };
