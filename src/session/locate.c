/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/locate.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "obj/headers.h"
#include "session/check.h"
#include "session/pages.h"

#define TIME_NS	    (8 * UNI_NSEC_PER_SEC)
#define PROBES	    4 /* pages of an image's code that are looked for */
#define PROBE_BYTES 64
#define PLACES_MAX  256 /* of one image, and of ELF headers */
#define STACK_WORDS 512u
#define HERE	    1000u /* a vCPU that runs in an image says more than any stack */

/* Bytes of an image's code that are not across a page's end. */
struct probe {
	size_t image; /* index in the list */
	uint64_t svma;
	uint8_t bytes[PROBE_BYTES];
};

struct place {
	uint64_t bias;
	bool by_id; /* the guest has the image's build-id there */
};

struct search {
	const struct uni_locate_args *args;
	struct uni_located *list;
	size_t nr;
	struct uni_pt_root root;
	struct uni_as *as;
	bool is_virtual;
	UNI_VEC(struct probe) probe;
	UNI_VEC(uint64_t) header; /* GVAs of pages that begin like an ELF file */
	UNI_VEC(struct place) place[UNI_IMAGES_MAX];
};

static void begin(struct search *s)
{
	uni_as_begin(s->as, s->is_virtual ? NULL : &s->root);
}

static unsigned distinct_bytes(const uint8_t *p)
{
	bool seen[256] = { false };
	unsigned n = 0;

	for (size_t i = 0; i < PROBE_BYTES; i++) {
		n += !seen[p[i]];
		seen[p[i]] = true;
	}
	return n;
}

/* The most telling bytes of one page of code, whose first byte is at off. */
static bool pick(const struct uni_segment *seg, size_t off, struct probe *ret)
{
	unsigned best = 8; /* fewer different ones are padding */
	size_t end = uni_min(off + UNI_PAGE_BYTES, seg->file_size);
	bool any = false;

	for (; off <= end && end - off >= PROBE_BYTES; off += PROBE_BYTES) {
		unsigned d = distinct_bytes(seg->bytes + off);

		if ((seg->vaddr + off) % UNI_PAGE_BYTES > UNI_PAGE_BYTES - PROBE_BYTES || d <= best)
			continue;
		best = d;
		ret->svma = seg->vaddr + off;
		memcpy(ret->bytes, seg->bytes + off, PROBE_BYTES);
		any = true;
	}
	return any;
}

/* Some pages of code, spread over the image: a guest may have changed one of them. */
static bool add_probes(struct search *s, size_t image)
{
	const struct uni_image *img = s->list[image].image;

	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);
		size_t pages = seg->exec ? seg->file_size / UNI_PAGE_BYTES + 1 : 0;

		for (size_t k = 0; pages != 0 && k < uni_min(pages, (size_t)PROBES); k++) {
			size_t page = k * (pages - 1) / (PROBES - 1);
			struct probe p = { .image = image };

			if (pick(seg, page * UNI_PAGE_BYTES, &p) && !uni_vec_push(&s->probe, p))
				return false;
		}
	}
	return true;
}

static bool add_place(struct search *s, size_t image, struct place place)
{
	uni_vec_foreach (p, &s->place[image]) {
		if (p->bias != place.bias)
			continue;
		p->by_id = p->by_id || place.by_id;
		return true;
	}
	return s->place[image].nr == PLACES_MAX || uni_vec_push(&s->place[image], place);
}

static bool look_at_page(void *ctx, uint64_t gva, bool exec, const uint8_t *bytes)
{
	struct search *s = ctx;

	if (memcmp(bytes, "\177ELF", 4) == 0 && s->header.nr < PLACES_MAX &&
		!uni_vec_push(&s->header, gva))
		return false;
	for (size_t i = 0; exec && i < s->probe.nr; i++) {
		const struct probe *p = &s->probe.v[i];
		size_t at = (size_t)(p->svma % UNI_PAGE_BYTES);

		if (memcmp(bytes + at, p->bytes, PROBE_BYTES) == 0 &&
			!add_place(s, p->image, (struct place){ .bias = gva + at - p->svma }))
			return false;
	}
	return true;
}

/* The build-id in the notes of an ELF file at gva. */
static size_t loaded_id(struct search *s, uint64_t gva, struct uni_headers *h, uint8_t *id)
{
	uint8_t head[UNI_PAGE_BYTES], notes[UNI_PAGE_BYTES];
	size_t len = 0, n;

	begin(s);
	n = uni_as_read_some(s->as, uni_gva_of(gva), head, sizeof(head));
	if (!uni_headers_parse(head, n, h) || !h->loaded)
		return 0;
	for (size_t i = 0; len == 0 && i < h->nr_notes; i++) {
		n = (size_t)uni_min(h->note[i].size, (uint64_t)sizeof(notes));
		n = uni_as_read_some(s->as, uni_gva_of(h->note[i].svma - h->base + gva), notes, n);
		len = uni_headers_build_id(notes, n, id);
	}
	return len;
}

static bool has_id(const struct uni_image *img, const uint8_t *id, size_t len)
{
	const uint8_t *own;

	return uni_image_build_id(img, &own) == len && memcmp(own, id, len) == 0;
}

/* The index of an image with that build-id, from a sysroot if need be; UNI_IMAGES_MAX: none. */
static size_t image_of(struct search *s, const uint8_t *id, size_t len)
{
	static const struct uni_image_search how = { .called = true };

	for (size_t i = 0; i < s->nr; i++) {
		if (has_id(s->list[i].image, id, len))
			return i;
	}
	for (size_t r = 0; r < s->args->nr_sysroots && s->nr < UNI_IMAGES_MAX; r++) {
		const char *path;

		for (size_t i = 0;
			(path = uni_sysroot_find(s->args->sysroot[r], id, len, i)) != NULL; i++) {
			struct uni_located l = { .owned = true };
			struct uni_err err = { 0 };

			if (uni_image_load_from(path, &how, &l.image, &err) != 0)
				continue;
			if (uni_image_arch(l.image) != s->args->arch) {
				uni_image_destroy(l.image);
				continue;
			}
			s->list[s->nr] = l;
			return s->nr++;
		}
	}
	return UNI_IMAGES_MAX;
}

static int take_headers(struct search *s)
{
	uni_vec_foreach (gva, &s->header) {
		uint8_t id[UNI_BUILD_ID_MAX];
		struct uni_headers h;
		size_t len = loaded_id(s, *gva, &h, id);
		size_t image = len != 0 ? image_of(s, id, len) : UNI_IMAGES_MAX;

		if (image != UNI_IMAGES_MAX &&
			!add_place(s, image, (struct place){ *gva - h.base, true }))
			return -UNI_ENOMEM;
	}
	return 0;
}

static bool in_code(const struct uni_located *l, uint64_t addr)
{
	for (size_t i = 0; i < uni_image_nr_segments(l->image); i++) {
		const struct uni_segment *seg = uni_image_segment(l->image, i);

		if (seg->exec && uni_range_has(seg->vaddr + l->bias, seg->mem_size, addr))
			return true;
	}
	return false;
}

/* How much speaks for this place: vCPUs that are there, and addresses on their stacks. */
static unsigned evidence(struct search *s, const struct uni_located *l)
{
	unsigned n = 1;

	for (size_t v = 0; v < s->args->nr_regs; v++) {
		const struct uni_regs *r = &s->args->regs[v];
		uint64_t word[STACK_WORDS];
		size_t nr;

		if (!r->pc_valid || r->state == UNI_VCPU_OFFLINE)
			continue;
		n += in_code(l, r->pc) ? HERE : 0;
		if (!r->sp_valid)
			continue;
		begin(s);
		nr = uni_as_read_some(s->as, uni_gva_of(r->sp & ~7ull), word, sizeof(word)) / 8;
		for (size_t i = 0; i < nr; i++)
			n += in_code(l, word[i]);
	}
	return n;
}

/* May the code be run there? A copy in a map of all RAM, or a file in memory, mostly may not. */
static bool may_run(struct search *s, const struct uni_image *img, uint64_t bias)
{
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);
		uint64_t gva = (seg->vaddr + bias) & ~(uint64_t)(UNI_PAGE_BYTES - 1);
		struct uni_mapping map;

		if (!seg->exec)
			continue;
		begin(s);
		if (s->is_virtual || s->root.geometry->nr_levels == 0)
			return true;
		return uni_as_next(s->as, uni_gva_of(gva), &map) == 0 && map.gva.v == gva &&
		       map.exec;
	}
	return false;
}

static bool is_there(struct search *s, const struct uni_image *img, const struct place *p)
{
	enum uni_fit what = uni_check_fit(s->as, s->is_virtual ? NULL : &s->root, img, p->bias);

	/* A core may lack the code, which is in the file anyway. */
	if (what == UNI_FIT_EMPTY)
		return p->by_id && s->is_virtual;
	return what == UNI_FIT_SAME && may_run(s, img, p->bias);
}

/* The best of the places where an image may be. */
static bool choose(struct search *s, size_t image)
{
	struct uni_located *l = &s->list[image];
	struct uni_located at = *l;
	unsigned best = 0;

	uni_vec_foreach (p, &s->place[image]) {
		unsigned n;

		if (!is_there(s, l->image, p))
			continue;
		at.bias = p->bias;
		n = evidence(s, &at);
		if (n > best) {
			best = n;
			l->bias = p->bias;
		}
	}
	return best != 0;
}

/*
 * The first vCPU that has page tables. One that is known to have none runs firmware: the image lies
 * where that has copied it, but does not run yet. Where nothing is known, addresses are physical.
 */
static int find_root(struct search *s)
{
	bool any = false;

	s->is_virtual = uni_gmem_space(s->args->gmem) == UNI_GMEM_VIRTUAL;
	for (size_t i = 0; !s->is_virtual && i < s->args->nr_regs; i++) {
		const struct uni_regs *r = &s->args->regs[i];
		struct uni_pt_root root;

		if (r->state == UNI_VCPU_OFFLINE || r->state == UNI_VCPU_UNKNOWN ||
			s->args->arch->paging(r, &root) != 0 ||
			(root.geometry->nr_levels == 0 && r->sys_valid != 0))
			continue;
		if (!any || s->root.geometry->nr_levels == 0)
			s->root = root;
		any = true;
	}
	return any || s->is_virtual ? 0 : -UNI_EMISMATCH;
}

static int run(struct search *s)
{
	int rc = find_root(s);

	for (size_t i = 0; rc == 0 && i < s->nr; i++)
		rc = add_probes(s, i) ? 0 : -UNI_ENOMEM;
	if (rc == 0)
		rc = uni_pages_each(s->args->gmem, s->is_virtual ? NULL : &s->root,
			s->args->time_ns != 0 ? s->args->time_ns : TIME_NS, look_at_page, s);
	return rc == 0 ? take_headers(s) : rc;
}

static void search_deinit(struct search *s)
{
	for (size_t i = 0; i < UNI_IMAGES_MAX; i++)
		uni_vec_free(&s->place[i]);
	uni_vec_free(&s->header);
	uni_vec_free(&s->probe);
	uni_as_destroy(s->as);
}

/* What was found: of the images that we loaded ourselves, only those stay. */
static size_t keep_found(struct search *s, size_t given, bool *found, bool any)
{
	size_t n = given;

	for (size_t i = 0; i < s->nr; i++) {
		bool here = any && choose(s, i);

		if (i < given)
			found[i] = here;
		else if (here)
			s->list[n++] = s->list[i];
		else
			uni_image_destroy(s->list[i].image);
	}
	return n;
}

int uni_locate(const struct uni_locate_args *args, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr, struct uni_err *err)
{
	_cleanup_(search_deinit) struct search s = { .args = args, .list = list, .nr = *nr };
	int rc;

	if (uni_gmem_granule(args->gmem) != UNI_GMEM_GRANULE_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest's memory is reached by packets, which is too slow to look for "
			"images in it: run uniscope where the VMM runs, as its user");
	rc = uni_as_create(args->gmem, NULL, &s.as, err);
	if (rc != 0)
		return rc;
	rc = run(&s);
	*nr = keep_found(&s, *nr, found, rc == 0);
	if (rc != 0)
		return uni_err_set(
			err, (enum uni_errcode) - rc, "looking for images: %s", uni_strerror(rc));
	return 0;
}
