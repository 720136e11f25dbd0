/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/check.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "mem/gmem.h"
#include "obj/sites.h"

#define PAGE	  4096u
#define PAGES_MAX 64u

/*
 * Kernels patch their own text (alternatives, static keys, tracing): some bytes of a page may
 * differ, not an eighth of it. And some give their start-up code's memory back: one page in ten
 * may be something else.
 */
#define DIFFERENT(bytes, size) ((bytes) > (size) / 8)
#define ENOUGH(same, readable) ((same)*10 >= (readable)*9)

/* A tracer's places are five bytes at each function's start and returns: where functions are small
 * they are most of a page. They are left out if the rest is not enough to tell. */
struct tally {
	unsigned readable, same;
	bool gone;
	uint64_t first_bad;	       /* address of the first page that differs */
	const struct uni_sites *sites; /* to be left out, or NULL */
};

/* [*off_ret, + *len_ret) of the segment is what its page number `page` shares with its file. */
static void page_of(const struct uni_segment *seg, uint64_t bias, uint64_t page, uint64_t *off_ret,
	size_t *len_ret)
{
	uint64_t head = PAGE - (seg->vaddr + bias) % PAGE; /* bytes of the first page */
	uint64_t off = page == 0 ? 0 : head + (page - 1) * PAGE;
	uint64_t len = page == 0 ? head : PAGE;

	*off_ret = off;
	*len_ret = (size_t)uni_min(len, (uint64_t)seg->file_size - off);
}

static uint64_t nr_pages(const struct uni_segment *seg, uint64_t bias)
{
	uint64_t head = PAGE - (seg->vaddr + bias) % PAGE;

	if (!seg->exec || seg->file_size == 0)
		return 0;
	return seg->file_size <= head ? 1 : 1 + (seg->file_size - head + PAGE - 1) / PAGE;
}

/* The hypervisor has written there. */
static bool is_stubs(const struct uni_image *img, uint64_t svma, size_t len)
{
	uint64_t stubs;

	return uni_image_stubs(img, &stubs) &&
	       uni_range_overlaps(stubs, UNI_STUBS_BYTES, svma, len);
}

/* Bytes of [svma, svma + len) that `now` has otherwise where the tracer writes. */
static size_t traced_bytes(const struct uni_sites *s, uint64_t svma, size_t len, const uint8_t *now,
	const uint8_t *file)
{
	size_t n = 0;

	for (size_t i = 0; s != NULL && i < s->nr_sites; i++) {
		for (unsigned k = 0; k < UNI_SITE_BYTES; k++) {
			uint64_t at = s->site[i].addr + k - svma;

			n += at < len && now[at] != file[at];
		}
	}
	return n;
}

static void compare(struct uni_as *as, const struct uni_pt_root *root, const struct uni_image *img,
	const struct uni_segment *seg, uint64_t bias, uint64_t page, struct tally *t)
{
	uint8_t buf[PAGE];
	uint64_t off, gva;
	size_t len, differ = 0;
	int rc;

	page_of(seg, bias, page, &off, &len);
	if (is_stubs(img, seg->vaddr + off, len))
		return;
	gva = seg->vaddr + bias + off;
	uni_as_begin(as, root);
	rc = uni_as_read(as, uni_gva_of(gva), buf, len);
	t->gone = t->gone || rc == -UNI_EGONE;
	if (rc != 0)
		return;
	t->readable++;
	for (size_t i = 0; i < len; i++)
		differ += buf[i] != seg->bytes[off + i];
	differ -= uni_min(
		differ, traced_bytes(t->sites, seg->vaddr + off, len, buf, seg->bytes + off));
	if (!DIFFERENT(differ, len))
		t->same++;
	else if (t->readable - t->same == 1)
		t->first_bad = gva;
}

/* The first and last page of all executable segments, and others spread evenly between. */
static void compare_all(struct uni_as *as, const struct uni_pt_root *root,
	const struct uni_image *img, uint64_t bias, uint64_t total, struct tally *t)
{
	uint64_t pick = uni_min(total, (uint64_t)PAGES_MAX), done = 0, before = 0;

	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);
		uint64_t n = nr_pages(seg, bias);

		while (done < pick) {
			uint64_t page = pick == 1 ? 0 : done * (total - 1) / (pick - 1);

			if (page - before >= n)
				break;
			compare(as, root, img, seg, bias, page - before, t);
			done++;
		}
		before += n;
	}
}

static int verdict(
	const struct tally *t, const struct uni_image *img, uint64_t bias, struct uni_err *err)
{
	if (t->gone)
		return uni_err_set(err, UNI_EGONE,
			"the guest ended while its code was compared with %s", uni_image_path(img));
	if (t->readable == 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: the guest has nothing mapped where this image's code would be (entry "
			"0x%" PRIx64 "); is it the image that the guest booted, and has it booted "
			"yet?",
			uni_image_path(img), uni_image_entry(img) + bias);
	if (!ENOUGH(t->same, t->readable))
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: not the image that the guest runs: %u of %u pages of code differ, the "
			"first at 0x%" PRIx64 "; give the file that was booted, of the same build "
			"(-e IMAGE)",
			uni_image_path(img), t->readable - t->same, t->readable, t->first_bad);
	return 0;
}

static uint64_t all_pages(const struct uni_image *img, uint64_t bias)
{
	uint64_t total = 0;

	for (size_t i = 0; i < uni_image_nr_segments(img); i++)
		total += nr_pages(uni_image_segment(img, i), bias);
	return total;
}

enum uni_fit uni_check_fit(struct uni_as *as, const struct uni_pt_root *root,
	const struct uni_image *img, uint64_t bias)
{
	uint64_t total = all_pages(img, bias);
	struct tally t = { 0 };

	if (total == 0)
		return UNI_FIT_OTHER;
	compare_all(as, root, img, bias, total, &t);
	if (t.readable == 0)
		return UNI_FIT_EMPTY;
	return ENOUGH(t.same, t.readable) ? UNI_FIT_SAME : UNI_FIT_OTHER;
}

int uni_check_image(struct uni_as *as, const struct uni_arch *arch, const struct uni_regs *regs,
	const struct uni_image *img, uint64_t bias, struct uni_err *err)
{
	bool is_virtual = uni_gmem_space(uni_as_gmem(as)) == UNI_GMEM_VIRTUAL;
	struct uni_err ignored = { 0 };
	struct uni_sites *sites = NULL;
	struct uni_pt_root root;
	struct tally t = { 0 };
	uint64_t total = all_pages(img, bias);

	if (total == 0)
		return uni_err_set(
			err, UNI_EMISMATCH, "%s: it has no code to compare", uni_image_path(img));
	if (!is_virtual && arch->paging(regs, &root) != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: cannot be compared: the guest's paging registers contradict "
			"themselves; has it booted yet?",
			uni_image_path(img));
	compare_all(as, is_virtual ? NULL : &root, img, bias, total, &t);
	if (!t.gone && t.readable != 0 && !ENOUGH(t.same, t.readable) &&
		uni_sites_read(img, &sites, &ignored) == 0) {
		t = (struct tally){ .sites = sites };
		compare_all(as, is_virtual ? NULL : &root, img, bias, total, &t);
		uni_sites_destroy(sites);
	}
	return verdict(&t, img, bias, err);
}
