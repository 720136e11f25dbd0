/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/images.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "app/inside.h"
#include "app/skids.h"
#include "app/symbols.h"
#include "app/term.h"
#include "obj/symtext.h"
#include "profile/profile.h"
#include "sampling/pages.h"

#define KALLSYMS_MAX ((size_t)256 << 20)
#define MAPPED_MAX   (1u << 20) /* bytes of an image that is no file: the vDSO has 8 KiB */

/* The state of a search. */
struct uni_finder {
	struct uni_located list[UNI_IMAGES_MAX]; /* the main image first, if there is one */
	bool found[UNI_IMAGES_MAX];
	size_t nr, nr_given; /* given: the main image and files, not what folders hold */
	struct uni_sysroot *root[UNI_IMAGES_MAX];
	size_t nr_roots;
	struct uni_regs *regs; /* of all vCPUs */
};

const char *uni_images_first(const struct uni_opt_list *given)
{
	return given->items.nr != 0 ? given->items.v[0] : NULL;
}

int uni_images_others(
	const struct uni_opt_list *given, struct uni_opt_list *sysroot, struct uni_err *err)
{
	for (size_t i = 1; i < given->items.nr; i++) {
		if (!uni_vec_push(&sysroot->items, given->items.v[i]))
			return uni_err_nomem(err);
	}
	return 0;
}

static bool is_file(const char *path)
{
	struct stat st;

	return uni_door_fstatat(AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode);
}

/* A single file is also found by its code, files of a folder only by their build-id. */
static int add_sysroot(struct uni_finder *f, const char *path,
	const struct uni_image_search *search, struct uni_err *err)
{
	struct uni_located *l = &f->list[f->nr];
	struct uni_image_search how = *search;
	int rc;

	how.called = true;
	if (!is_file(path)) {
		if (f->nr_roots == UNI_IMAGES_MAX)
			return uni_err_set(err, UNI_EUSAGE,
				"-e and --sysroot name too many images: at most %d",
				UNI_IMAGES_MAX);
		rc = uni_sysroot_open(path, &f->root[f->nr_roots], err);
		f->nr_roots += rc == 0;
		return rc;
	}
	if (f->nr == UNI_IMAGES_MAX)
		return uni_err_set(err, UNI_EUSAGE,
			"-e and --sysroot name too many images: at most %d", UNI_IMAGES_MAX);
	rc = uni_image_load_from(path, &how, &l->image, err);
	l->owned = rc == 0;
	f->nr += rc == 0;
	return rc;
}

static int hold_regs(struct uni_guest *g, struct uni_finder *f, size_t nr, struct uni_err *err)
{
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)nr);
	struct uni_pause pause;
	int rc;

	free(f->regs);
	f->regs = calloc(nr, sizeof(*f->regs));
	if (f->regs == NULL)
		return uni_err_nomem(err);
	rc = uni_guest_look(g, &pause, &all, f->regs, err);
	(void)uni_pause_end(&pause);
	return rc;
}

static int look_for_images(struct uni_guest *g, struct uni_finder *f, struct uni_err *err)
{
	struct uni_locate_args args = { .gmem = g->t->ops->gmem(g->t),
		.arch = g->t->arch,
		.nr_regs = (size_t)g->t->ops->nr_vcpus(g->t),
		.sysroot = (const struct uni_sysroot *const *)f->root,
		.nr_sysroots = f->nr_roots,
		.others_ret = &g->other_ids };
	int rc = hold_regs(g, f, args.nr_regs, err);

	args.regs = f->regs;
	return rc != 0 ? rc : uni_locate(&args, f->list, f->found, &f->nr, err);
}

/* Gives the images that were found to the guest. */
static void adopt_found(struct uni_guest *g, struct uni_finder *f, bool moved)
{
	size_t first = g->image != NULL;

	if (first != 0 && moved)
		g->bias = f->list[0].bias;
	for (size_t i = first; i < f->nr; i++) {
		if (i < f->nr_given && !f->found[i])
			continue;
		g->more[g->nr_more++] = f->list[i];
		f->list[i].owned = false;
	}
	/* Without another, the first one found is the main one. */
	if (g->image == NULL && g->symtab == NULL && g->nr_more != 0) {
		g->image = g->more[0].image;
		g->bias = g->more[0].bias;
		memmove(g->more, g->more + 1, --g->nr_more * sizeof(g->more[0]));
	}
}

static int chain_one(
	struct uni_guest *g, struct uni_image *img, uint64_t bias, size_t *nr, struct uni_err *err)
{
	const struct uni_unwind_hints *h;
	int rc = uni_image_hints(img, bias, &h, err);

	if (rc != 0)
		return rc;
	g->chain[*nr] = *h;
	if (*nr != 0)
		g->chain[*nr - 1].next = &g->chain[*nr];
	g->hints = &g->chain[0];
	++*nr;
	return 0;
}

int uni_guest_chain_hints(struct uni_guest *g, struct uni_err *err)
{
	size_t nr = 0;
	int rc = g->image != NULL ? chain_one(g, g->image, g->bias, &nr, err) : 0;

	for (size_t i = 0; rc == 0 && i < g->nr_more && nr < UNI_IMAGES_MAX; i++)
		rc = chain_one(g, g->more[i].image, g->more[i].bias, &nr, err);
	return rc;
}

static int locate_images(struct uni_guest *g, const struct uni_attach_args *args,
	struct uni_finder *f, bool moved, struct uni_err *err)
{
	int rc = 0;

	if (g->image != NULL)
		f->list[f->nr++] = (struct uni_located){ .image = g->image, .bias = g->bias };
	for (size_t i = 0; rc == 0 && args->sysroot != NULL && i < args->sysroot->items.nr; i++)
		rc = add_sysroot(f, args->sysroot->items.v[i], &args->search, err);
	f->nr_given = f->nr;
	if (rc == 0)
		rc = look_for_images(g, f, err);
	if (rc == 0 && moved && !f->found[0])
		rc = uni_err_set(err, UNI_EMISMATCH, "%s: not found anywhere in the guest's memory",
			uni_image_path(g->image));
	if (rc != 0)
		return rc;
	adopt_found(g, f, moved);
	return uni_guest_chain_hints(g, err);
}

static void finder_free(struct uni_finder *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < f->nr_roots; i++)
		uni_sysroot_close(f->root[i]);
	for (size_t i = 0; i < f->nr; i++) {
		if (f->list[i].owned)
			uni_image_destroy(f->list[i].image);
	}
	free(f->regs);
	free(f);
}

int uni_guest_find_images(
	struct uni_guest *g, const struct uni_attach_args *args, bool moved, struct uni_err *err)
{
	struct uni_finder *f = calloc(1, sizeof(*f));
	int rc = f == NULL ? uni_err_nomem(err) : locate_images(g, args, f, moved, err);

	if (rc == 0)
		g->finder = f;
	else
		finder_free(f);
	return rc;
}

void uni_guest_note_missing(const struct uni_guest *g)
{
	const struct uni_finder *f = g->finder;

	for (size_t i = 0; f != NULL && i < f->nr_given; i++) {
		if (f->list[i].owned && !f->found[i])
			uni_note("%s: not found in the guest's memory",
				uni_image_path(f->list[i].image));
	}
}

int uni_guest_add_image(struct uni_guest *g, const struct uni_located *image, struct uni_err *err)
{
	int rc;

	for (size_t i = 0; g->finder != NULL && i < g->finder->nr; i++) {
		if (g->finder->list[i].image == image->image)
			g->finder->list[i].owned = false;
	}
	if (g->image == NULL && g->symtab == NULL) {
		g->image = image->image;
		g->bias = image->bias;
	} else if (g->nr_more == UNI_IMAGES_MAX) {
		uni_image_destroy(image->image);
		return uni_err_set(
			err, UNI_ERANGE, "a guest has at most %d images", UNI_IMAGES_MAX);
	} else {
		g->more[g->nr_more++] = *image;
	}
	rc = uni_guest_chain_hints(g, err);
	g->unwinder.hints = g->hints;
	return rc == 0 ? uni_guest_add_skid(g, image->image, image->bias, err) : rc;
}

int uni_guest_lookout(struct uni_guest *g,
	void (*on_image)(void *ctx, const struct uni_located *image), void *ctx,
	struct uni_lookout **ret, struct uni_err *err)
{
	struct uni_located list[UNI_IMAGES_MAX];
	struct uni_finder *f = g->finder;
	unsigned caps = g->t->ops->caps(g->t);
	struct uni_lookout_cfg cfg = { .gmem = g->t->ops->gmem(g->t),
		.arch = g->t->arch,
		.list = list,
		.on_image = on_image,
		.ctx = ctx };

	*ret = NULL;
	if (f == NULL || (caps & (UNI_CAP_DEAD | UNI_CAP_STILL | UNI_CAP_INSIDE)) != 0)
		return 0;
	cfg.sysroot = (const struct uni_sysroot *const *)f->root;
	cfg.nr_sysroots = f->nr_roots;
	if (g->image != NULL)
		list[cfg.nr++] =
			(struct uni_located){ .image = g->image, .bias = g->bias, .placed = true };
	for (size_t i = 0; i < g->nr_more && cfg.nr < UNI_IMAGES_MAX; i++) {
		list[cfg.nr] = g->more[i];
		list[cfg.nr++].placed = true;
	}
	for (size_t i = 0; i < f->nr && cfg.nr < UNI_IMAGES_MAX; i++) {
		if (f->list[i].owned)
			list[cfg.nr++] = f->list[i];
	}
	return uni_lookout_create(&cfg, ret, err);
}

struct placing {
	struct uni_guest *g;
	struct uni_image_search search;
	bool placed; /* the main image */
};

/* The linked address of the image's first byte. */
static uint64_t first_byte(const struct uni_image *img)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < uni_image_nr_segments(img); i++)
		first = uni_min(first, uni_image_segment(img, i)->vaddr);
	return first & ~(uint64_t)(UNI_PAGE_BYTES - 1);
}

static bool same_build(const struct uni_image *a, const struct uni_image *b)
{
	const uint8_t *x, *y;
	size_t len = uni_image_build_id(a, &x);

	if (len != 0 || uni_image_build_id(b, &y) != 0)
		return uni_image_build_id(b, &y) == len && memcmp(x, y, len) == 0;
	return strcmp(uni_image_path(a), uni_image_path(b)) == 0;
}

static int load_mapped(const struct placing *p, const char *name, uni_gva gva, uint64_t size,
	struct uni_image **ret, struct uni_err *err)
{
	_cleanup_free_ void *data = size <= MAPPED_MAX ? malloc((size_t)size) : NULL;
	int rc = -UNI_ENOMEM;

	/* A process has no other addresses. */
	if (data != NULL)
		rc = uni_gmem_read(
			p->g->t->ops->gmem(p->g->t), uni_gpa_of(gva.v), data, (size_t)size);
	return rc == 0 ? uni_image_from_memory_for(name, data, (size_t)size, &p->search, ret, err)
		       : rc;
}

/* A file that is no ELF, or of another machine, has no place here. path NULL: it is no file. */
static void place_file(void *ctx, const char *path, const char *name, uni_gva gva, uint64_t size)
{
	struct placing *p = ctx;
	struct uni_guest *g = p->g;
	struct uni_image *img;
	struct uni_err err = { 0 };

	if ((path != NULL ? uni_image_load_from(path, &p->search, &img, &err)
			  : load_mapped(p, name, gva, size, &img, &err)) != 0)
		return;
	if (g->image != NULL && !p->placed && same_build(g->image, img)) {
		g->bias = gva.v - first_byte(g->image);
		p->placed = true;
	} else if (uni_image_arch(img) == g->t->arch && g->nr_more < UNI_IMAGES_MAX - 1 &&
		   uni_image_set_path(img, name)) {
		g->more[g->nr_more++] = (struct uni_located){
			.image = img, .bias = gva.v - first_byte(img), .owned = true
		};
		return;
	}
	uni_image_destroy(img);
}

/* Symbols of the kernel below a process. Without them its frames are addresses. */
static void load_kernel(struct uni_guest *g)
{
	_cleanup_free_ char *text = NULL;
	struct uni_err err = { 0 };
	size_t size;

	if (uni_read_file("/proc/kallsyms", KALLSYMS_MAX, &text, &size, &err) != 0 ||
		uni_symtab_of_text(UNI_KERNEL_IMAGE, text, size, &g->kernel, &err) != 0)
		uni_note("the kernel's frames have no names: %s", err.msg);
}

static int say_other_build(
	const struct uni_guest *g, const struct uni_image *runs, struct uni_err *err)
{
	const uint8_t *x, *y;
	const bool by_id =
		uni_image_build_id(g->image, &x) != 0 && uni_image_build_id(runs, &y) != 0;

	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_EMISMATCH,
		"%s is not the program that runs, or another build of it: the %s that of %s. Give "
		"that file (-e)%s",
		uni_image_path(g->image), by_id ? "build-id is not" : "code is not",
		uni_image_path(runs),
		g->differ.compared != 0 ? ", or insist by --accept-image" : "");
}

/* The image is none of the files that are mapped. It may be another build of the first of them,
 * which is the program. */
static int check_as_program(struct uni_guest *g, struct uni_err *err)
{
	struct uni_located *l = &g->more[0];
	int rc;

	if (g->nr_more == 0)
		return -UNI_EMISMATCH;
	*err = (struct uni_err){ 0 };
	g->bias = l->bias + first_byte(l->image) - first_byte(g->image);
	rc = uni_guest_check_image(g, err);
	if (rc == -UNI_EMISMATCH)
		return say_other_build(g, l->image, err);
	if (rc != 0)
		return rc;
	uni_image_destroy(l->image);
	g->nr_more--;
	memmove(l, l + 1, g->nr_more * sizeof(*l));
	return 0;
}

int uni_guest_place_files(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	struct placing p = { .g = g, .search = args->search };
	struct uni_err ignored = { 0 };
	int rc;

	p.search.called = true;
	p.search.follow = g->image != NULL ? uni_image_follows(g->image) : 0;
	rc = g->t->ops->files(g->t, place_file, &p);
	if (rc != 0)
		return uni_err_set(
			err, (enum uni_errcode) - rc, "%s: %s", g->spec.text, uni_strerror(rc));
	if (g->kernel == NULL && !args->once && (g->t->ops->caps(g->t) & UNI_CAP_KERNEL) != 0)
		load_kernel(g);
	/* A program that a tender loaded is no file of its own in there: it is at its linked
	 * address. */
	if (g->image != NULL && !p.placed) {
		rc = uni_guest_check_image(g, err);
		if (rc == -UNI_EMISMATCH && g->differ.compared == 0)
			rc = check_as_program(g, err);
	} else if (g->image != NULL)
		(void)uni_guest_check_image(g, &ignored); /* the file may be another one by now */
	return rc != 0 ? rc : uni_guest_chain_hints(g, err);
}

void uni_guest_drop_images(struct uni_guest *g)
{
	for (size_t i = 0; i < g->nr_more; i++)
		uni_image_destroy(g->more[i].image);
	g->nr_more = 0;
	g->hints = NULL;
	finder_free(g->finder);
	g->finder = NULL;
	uni_guest_drop_inside(g);
}

static int add_symbols(struct uni_guest_symbols *s, const struct uni_image *img, bool library,
	const struct uni_image_search *search, const struct uni_naming *naming, struct uni_err *err)
{
	int rc = library ? uni_symtab_of_library(img, &s->own[s->nr], err)
			 : uni_symtab_of_image(img, &s->own[s->nr], err);

	if (rc != 0)
		return rc;
	uni_symbols_add_debug(img, search, naming, s->own[s->nr]);
	s->nr++;
	return 0;
}

int uni_guest_symbols_load(const struct uni_guest *g, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_guest_symbols *ret, struct uni_err *err)
{
	struct uni_symtab_part part[UNI_IMAGES_MAX];
	size_t nr = 0;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	if (g->symtab != NULL) {
		part[nr++] = (struct uni_symtab_part){ .symtab = g->symtab };
	} else if (g->image != NULL) {
		rc = add_symbols(ret, g->image, false, search, naming, err);
		part[nr++] = (struct uni_symtab_part){ .symtab = ret->own[0] };
	}
	for (size_t i = 0; rc == 0 && i < g->nr_more && nr < UNI_IMAGES_MAX; i++) {
		rc = add_symbols(ret, g->more[i].image, true, search, naming, err);
		part[nr++] = (struct uni_symtab_part){ .symtab = ret->own[ret->nr - 1],
			.delta = g->bias - g->more[i].bias };
	}
	if (rc == 0 && g->kernel != NULL && nr != 0 && nr < UNI_IMAGES_MAX)
		part[nr++] = (struct uni_symtab_part){ .symtab = g->kernel, .delta = g->bias };
	if (rc == 0 && nr > 1) {
		rc = uni_symtab_join(part, nr, &ret->own[ret->nr], err);
		ret->nr += rc == 0;
		ret->symtab = ret->own[ret->nr - 1];
	} else if (rc == 0 && nr == 1) {
		ret->symtab = part[0].symtab;
	}
	if (rc != 0)
		uni_guest_symbols_free(ret);
	return rc;
}

void uni_guest_symbols_free(struct uni_guest_symbols *s)
{
	while (s->nr != 0) /* a join goes before its parts */
		uni_symtab_destroy(s->own[--s->nr]);
	s->symtab = NULL;
}
