/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/locate.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "obj/headers.h"
#include "sampling/check.h"
#include "sampling/linkmap.h"
#include "sampling/pages.h"
#include "sampling/probe.h"

#define TIME_NS	    (8 * UNI_NSEC_PER_SEC)
#define PLACES_MAX  256 /* of one image, and of ELF headers */
#define STACK_WORDS 512u
#define HERE	    1000u /* a vCPU that runs in an image is better evidence than any stack */

struct probe {
	size_t image; /* index in the list */
	struct uni_probe p;
};

struct place {
	uint64_t bias;
	bool by_id; /* the guest has the image's build-id there */
};

/* A table of dynamic linking, by which link maps may be found. */
struct table {
	uint64_t gva, size;
};

struct uni_search {
	struct uni_locate_args args;
	struct uni_located list[UNI_IMAGES_MAX];
	bool here[UNI_IMAGES_MAX];
	size_t nr, given;
	struct uni_pages *pages; /* NULL: nothing of memory was looked through yet */
	struct uni_pt_root root;
	struct uni_as *as;
	bool is_virtual;
	UNI_VEC(struct probe) probe;
	UNI_VEC(uint64_t) header; /* GVAs of pages that begin like an ELF file */
	UNI_VEC(struct table) table;
	UNI_VEC(struct place) place[UNI_IMAGES_MAX];
};

static void begin_space(struct uni_search *s)
{
	uni_as_begin(s->as, s->is_virtual ? NULL : &s->root);
}

static bool add_probes(struct uni_search *s, size_t image)
{
	const struct uni_image *img = s->list[image].image;

	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		struct uni_probe probe[UNI_PROBES];
		size_t nr = uni_probes_of(uni_image_segment(img, i), probe);

		for (size_t k = 0; k < nr; k++) {
			if (!uni_vec_push(&s->probe, ((struct probe){ image, probe[k] })))
				return false;
		}
	}
	return true;
}

static bool add_place(struct uni_search *s, size_t image, struct place place)
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
	struct uni_search *s = ctx;

	if (memcmp(bytes, "\177ELF", 4) == 0 && s->header.nr < PLACES_MAX &&
		!uni_vec_push(&s->header, gva))
		return false;
	for (size_t i = 0; exec && i < s->probe.nr; i++) {
		const struct uni_probe *p = &s->probe.v[i].p;
		size_t at = (size_t)(p->svma % UNI_PAGE_BYTES), image = s->probe.v[i].image;

		if (memcmp(bytes + at, p->bytes, UNI_PROBE_BYTES) == 0 &&
			!add_place(s, image, (struct place){ .bias = gva + at - p->svma }))
			return false;
	}
	return true;
}

/* The build-id in the notes of an ELF file at gva. */
static size_t loaded_id(struct uni_search *s, uint64_t gva, struct uni_headers *h, uint8_t *id)
{
	uint8_t head[UNI_PAGE_BYTES], notes[UNI_PAGE_BYTES];
	size_t len = 0, n;

	begin_space(s);
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

/* Puts a sysroot's file on the list; UNI_IMAGES_MAX: it is no image for this guest. */
static size_t load_sysroot_file(struct uni_search *s, const char *path)
{
	static const struct uni_image_search how = { .called = true };
	struct uni_located l = { .owned = true };
	struct uni_err err = { 0 };

	if (s->nr == UNI_IMAGES_MAX || uni_image_load_from(path, &how, &l.image, &err) != 0)
		return UNI_IMAGES_MAX;
	if (uni_image_arch(l.image) != s->args.arch) {
		uni_image_destroy(l.image);
		return UNI_IMAGES_MAX;
	}
	s->list[s->nr] = l;
	return s->nr++;
}

/* The index of an image with that build-id, from a sysroot if need be; UNI_IMAGES_MAX: none. */
static size_t image_of(struct uni_search *s, const uint8_t *id, size_t len)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (has_id(s->list[i].image, id, len))
			return i;
	}
	for (size_t r = 0; r < s->args.nr_sysroots; r++) {
		const char *path;

		for (size_t i = 0;
			(path = uni_sysroot_find(s->args.sysroot[r], id, len, i)) != NULL; i++) {
			size_t image = load_sysroot_file(s, path);

			if (image != UNI_IMAGES_MAX)
				return image;
		}
	}
	return UNI_IMAGES_MAX;
}

static bool add_table(struct uni_search *s, uint64_t gva, uint64_t size)
{
	return size == 0 || s->table.nr == PLACES_MAX ||
	       uni_vec_push(&s->table, ((struct table){ gva, size }));
}

static int take_headers(struct uni_search *s)
{
	size_t others = 0;
	bool is_there = false;

	uni_vec_foreach (gva, &s->header) {
		uint8_t id[UNI_BUILD_ID_MAX];
		struct uni_headers h = { 0 };
		size_t len = loaded_id(s, *gva, &h, id);
		size_t image = len != 0 ? image_of(s, id, len) : UNI_IMAGES_MAX;

		others += len != 0 && image == UNI_IMAGES_MAX;
		is_there = is_there || image == 0;
		if (image != UNI_IMAGES_MAX &&
			!add_place(s, image, (struct place){ *gva - h.base, true }))
			return -UNI_ENOMEM;
		if (h.loaded && !add_table(s, h.dynamic - h.base + *gva, h.dynamic_size))
			return -UNI_ENOMEM;
	}
	if (s->args.others_ret != NULL)
		*s->args.others_ret = is_there ? 0 : others;
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
static unsigned count_evidence(struct uni_search *s, const struct uni_located *l)
{
	unsigned n = 1;

	for (size_t v = 0; v < s->args.nr_regs; v++) {
		const struct uni_regs *r = &s->args.regs[v];
		uint64_t word[STACK_WORDS];
		size_t nr;

		if (!r->pc_valid || r->state == UNI_VCPU_OFFLINE)
			continue;
		n += in_code(l, r->pc) ? HERE : 0;
		if (!r->sp_valid)
			continue;
		begin_space(s);
		nr = uni_as_read_some(s->as, uni_gva_of(r->sp & ~7ull), word, sizeof(word)) / 8;
		for (size_t i = 0; i < nr; i++)
			n += in_code(l, word[i]);
	}
	return n;
}

/* May the code be run there? A copy in a map of all RAM, or a file in memory, mostly may not. */
static bool may_run(struct uni_search *s, const struct uni_image *img, uint64_t bias)
{
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);
		uint64_t gva = (seg->vaddr + bias) & ~(uint64_t)(UNI_PAGE_BYTES - 1);
		struct uni_mapping map;

		if (!seg->exec)
			continue;
		begin_space(s);
		if (s->is_virtual || s->root.geometry->nr_levels == 0)
			return true;
		/* A segment that is mapped on demand may begin anywhere. */
		return uni_as_next(s->as, uni_gva_of(gva), &map) == 0 && map.exec &&
		       map.gva.v - gva < seg->vaddr + bias - gva + seg->mem_size;
	}
	return false;
}

static bool is_there(struct uni_search *s, const struct uni_image *img, const struct place *p)
{
	enum uni_fit what = uni_check_fit(s->as, s->is_virtual ? NULL : &s->root, img, p->bias);

	/* A core may lack the code, which is in the file anyway. */
	if (what == UNI_FIT_EMPTY)
		return p->by_id && s->is_virtual;
	return what == UNI_FIT_SAME && may_run(s, img, p->bias);
}

/* The best of the places where an image may be. */
static bool choose_place(struct uni_search *s, size_t image)
{
	struct uni_located *l = &s->list[image];
	struct uni_located at = *l;
	unsigned best = 0;

	uni_vec_foreach (p, &s->place[image]) {
		unsigned n;

		if (!is_there(s, l->image, p))
			continue;
		at.bias = p->bias;
		n = count_evidence(s, &at);
		if (n > best) {
			best = n;
			l->bias = p->bias;
		}
	}
	s->place[image].nr = 0;
	return best != 0;
}

/*
 * The first vCPU that has page tables. A vCPU that is known to have none runs firmware: the image
 * is where the firmware has copied it, but does not run yet. If nothing is known, addresses are
 * physical.
 */
static int find_root(struct uni_search *s)
{
	bool any = false;

	s->is_virtual = uni_gmem_space(s->args.gmem) == UNI_GMEM_VIRTUAL;
	for (size_t i = 0; !s->is_virtual && i < s->args.nr_regs; i++) {
		const struct uni_regs *r = &s->args.regs[i];
		struct uni_pt_root root;

		if (r->state == UNI_VCPU_OFFLINE || r->state == UNI_VCPU_UNKNOWN ||
			s->args.arch->paging(r, &root) != 0 ||
			(root.geometry->nr_levels == 0 && r->sys_valid != 0))
			continue;
		if (!any || s->root.geometry->nr_levels == 0)
			s->root = root;
		any = true;
	}
	return any || s->is_virtual ? 0 : -UNI_EMISMATCH;
}

/* The index of the image that a link map names; UNI_IMAGES_MAX: none. */
static size_t image_named(struct uni_search *s, const char *path)
{
	for (size_t r = 0; path[0] != '\0' && r < s->args.nr_sysroots; r++) {
		const char *own = uni_sysroot_find_name(s->args.sysroot[r], path);

		for (size_t i = 0; own != NULL && i < s->nr; i++) {
			if (strcmp(uni_image_path(s->list[i].image), own) == 0)
				return i;
		}
		if (own != NULL)
			return load_sysroot_file(s, own);
	}
	return UNI_IMAGES_MAX;
}

/* By the build-id in memory, where the header is mapped, and else by the name. */
static int take_link(struct uni_search *s, const struct uni_link *link)
{
	uint8_t id[UNI_BUILD_ID_MAX];
	struct uni_headers h;
	size_t len = loaded_id(s, link->bias, &h, id);
	size_t image = len != 0 ? image_of(s, id, len) : image_named(s, link->path);

	if (image == UNI_IMAGES_MAX || s->here[image])
		return 0;
	return add_place(s, image, (struct place){ link->bias, len != 0 }) ? 0 : -UNI_ENOMEM;
}

static int take_links(struct uni_search *s)
{
	struct uni_link *link = reallocarray(NULL, UNI_LINKS_MAX, sizeof(*link));
	int rc = link != NULL ? 0 : -UNI_ENOMEM;

	for (size_t i = 0; rc == 0 && i < s->nr; i++) {
		uint64_t svma, size;

		if (s->here[i] && uni_image_dynamic(s->list[i].image, &svma, &size) &&
			!add_table(s, svma + s->list[i].bias, size))
			rc = -UNI_ENOMEM;
	}
	for (size_t i = 0; rc == 0 && i < s->table.nr; i++) {
		size_t n = uni_links_read(s->as, s->is_virtual ? NULL : &s->root, s->table.v[i].gva,
			s->table.v[i].size, link, UNI_LINKS_MAX);

		for (size_t k = 0; rc == 0 && k < n; k++)
			rc = take_link(s, &link[k]);
	}
	free(link);
	return rc;
}

static void choose_all(struct uni_search *s)
{
	for (size_t i = 0; i < s->nr; i++)
		s->here[i] = s->here[i] || choose_place(s, i);
}

void uni_search_destroy(struct uni_search *s)
{
	if (s == NULL)
		return;
	for (size_t i = s->given; i < s->nr; i++)
		uni_image_destroy(s->list[i].image);
	for (size_t i = 0; i < UNI_IMAGES_MAX; i++)
		uni_vec_free(&s->place[i]);
	uni_vec_free(&s->header);
	uni_vec_free(&s->table);
	uni_vec_free(&s->probe);
	uni_pages_destroy(s->pages);
	uni_as_destroy(s->as);
	free(s);
}

static void cleanup_search(struct uni_search **s)
{
	uni_search_destroy(*s);
}

static int prepare_search(struct uni_search *s, const struct uni_located *list, size_t nr)
{
	int rc = find_root(s);

	for (size_t i = 0; rc == 0 && i < nr; i++) {
		s->list[i] = list[i];
		s->here[i] = list[i].placed;
		s->nr = s->given = i + 1;
		if (!list[i].placed && !add_probes(s, i))
			rc = -UNI_ENOMEM;
	}
	return rc;
}

static int search_failed(int rc, struct uni_err *err)
{
	return uni_err_set(
		err, (enum uni_errcode) - rc, "looking for images: %s", uni_strerror(rc));
}

int uni_search_begin(const struct uni_locate_args *args, const struct uni_located *list, size_t nr,
	struct uni_search **ret, struct uni_err *err)
{
	_cleanup_(cleanup_search) struct uni_search *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return uni_err_nomem(err);
	s->args = *args;
	if (uni_gmem_granule(args->gmem) != UNI_GMEM_GRANULE_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the guest's memory is reached by packets, which is too slow to look for "
			"images in it. Run uniscope where the VMM runs, as its user");
	rc = uni_as_create(args->gmem, &uni_as_budget_once, &s->as, err);
	if (rc != 0)
		return rc;
	rc = prepare_search(s, list, nr);
	if (rc != 0)
		return search_failed(rc, err);
	*ret = uni_take(s);
	return 0;
}

int uni_search_step(struct uni_search *s, uint64_t time_ns)
{
	int rc = s->pages != NULL ? 0
				  : uni_pages_create(s->args.gmem, s->is_virtual ? NULL : &s->root,
					    &s->pages);

	return rc == 0 ? uni_pages_step(s->pages, time_ns, look_at_page, s) : rc;
}

int uni_search_end(struct uni_search *s, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr)
{
	size_t n = s->given;
	int rc = take_headers(s);

	choose_all(s);
	if (rc == 0)
		rc = take_links(s);
	choose_all(s);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < s->nr; i++) {
		if (i < s->given) {
			found[i] = s->here[i];
			list[i] = s->list[i];
		} else if (s->here[i]) {
			list[n++] = s->list[i];
		} else {
			uni_image_destroy(s->list[i].image);
		}
	}
	s->nr = s->given;
	*nr = n;
	return 0;
}

int uni_locate(const struct uni_locate_args *args, struct uni_located list[UNI_IMAGES_MAX],
	bool found[UNI_IMAGES_MAX], size_t *nr, struct uni_err *err)
{
	_cleanup_(cleanup_search) struct uni_search *s = NULL;
	int rc = uni_search_begin(args, list, *nr, &s, err);

	if (rc != 0)
		return rc;
	rc = uni_search_step(s, args->time_ns != 0 ? args->time_ns : TIME_NS);
	if (rc >= 0)
		rc = uni_search_end(s, list, found, nr);
	return rc < 0 ? search_failed(rc, err) : 0;
}
