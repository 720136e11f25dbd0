/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/inside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/door.h"
#include "app/images.h"
#include "app/term.h"
#include "sampling/pages.h"
#include "sampling/placer.h"

#define HEAD  "uni_trace_head"
#define LEAST 4u /* return addresses, before a program is doubted */

/* A program; g owns its image once it has a place. */
struct inside_program {
	struct uni_image *image;
	struct uni_placer *placer;
	uint64_t bias;
	bool placed;
};

struct uni_inside {
	struct inside_program program[UNI_IMAGES_MAX];
	size_t nr;
};

/* Nothing can be at address 0, so it is not linked for a place. */
static bool is_movable(const struct uni_image *img)
{
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		if (uni_image_segment(img, i)->vaddr < UNI_PAGE_BYTES)
			return true;
	}
	return false;
}

static int check_build(
	const struct uni_image *img, const struct uni_target_info *info, struct uni_err *err)
{
	const char *id = uni_image_id(img);

	if (info->build_id[0] != '\0' && id[0] != '\0' && strcmp(info->build_id, id) != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s is not what the guest runs: its build-id is %s, the guest's %s",
			uni_image_path(img), id, info->build_id);
	if (info->build_id[0] == '\0' || id[0] == '\0')
		uni_note("that the guest runs %s cannot be checked: %s has no build-id",
			uni_image_path(img), id[0] == '\0' ? "the image" : "the guest");
	return 0;
}

static bool find_head(
	const struct uni_image *img, const struct uni_target_info *info, uint64_t *bias_ret)
{
	uint64_t head, size;

	if (info->trace_head == 0 || uni_image_find(img, HEAD, &head, &size) != 0)
		return false;
	*bias_ret = info->trace_head - head;
	return true;
}

static int load_program(struct uni_guest *g, const char *path,
	const struct uni_image_search *search, struct uni_err *err)
{
	struct inside_program *p = &g->inside->program[g->inside->nr];
	struct uni_image_search how = *search;
	struct stat st;
	int rc;

	if (uni_door_fstatat(AT_FDCWD, path, &st, 0) == 0 && S_ISDIR(st.st_mode))
		return uni_err_set(err, UNI_ENOTSUP,
			"--sysroot %s: which of its files %s has loaded is not known, because its "
			"memory cannot be read: give each program with -e",
			path, g->spec.text);
	if (g->inside->nr == UNI_IMAGES_MAX - 1)
		return uni_err_set(err, UNI_EUSAGE,
			"-e and --sysroot name too many images: at most %d", UNI_IMAGES_MAX);
	how.called = true;
	rc = uni_image_load_from(path, &how, &p->image, err);
	if (rc == 0)
		rc = uni_placer_create(p->image, &p->placer, err);
	if (rc != 0) {
		uni_image_destroy(p->image);
		p->image = NULL;
		return rc;
	}
	g->inside->nr++;
	if (uni_image_arch(p->image) != g->t->arch)
		return uni_err_set(err, UNI_EMISMATCH, "%s is not of the guest's machine (%s)",
			path, g->t->arch->name);
	return 0;
}

static void place_program(struct uni_guest *g, struct inside_program *p, uint64_t bias)
{
	g->more[g->nr_more++] =
		(struct uni_located){ .image = p->image, .bias = bias, .owned = true };
	p->bias = bias;
	p->placed = true;
}

static int load_programs(struct uni_guest *g, const struct uni_attach_args *args,
	const struct uni_target_info *info, struct uni_err *err)
{
	size_t nr = args->sysroot != NULL ? args->sysroot->items.nr : 0;
	uint64_t bias;
	int rc = 0;

	if (nr == 0)
		return 0;
	g->inside = calloc(1, sizeof(*g->inside));
	if (g->inside == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; rc == 0 && i < nr; i++)
		rc = load_program(g, args->sysroot->items.v[i], &args->search, err);
	for (size_t i = 0; rc == 0 && i < g->inside->nr; i++) {
		if (find_head(g->inside->program[i].image, info, &bias))
			rc = uni_err_set(err, UNI_EUSAGE,
				"%s is the kernel, as it has the tracer (" HEAD "): give it with "
				"the first -e, and programs after it",
				uni_image_path(g->inside->program[i].image));
	}
	return rc;
}

int uni_guest_place_inside(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	struct uni_target_info info;
	int rc;

	g->t->ops->info(g->t, &info);
	rc = load_programs(g, args, &info, err);
	if (rc == 0 && g->image != NULL) {
		rc = check_build(g->image, &info, err);
		if (!find_head(g->image, &info, &g->bias) && rc == 0 && is_movable(g->image))
			uni_note("%s has no fixed address: with -e KERNEL before it, the samples "
				 "tell where it runs",
				uni_image_path(g->image));
	}
	if (rc != 0 || g->inside == NULL)
		return rc;
	for (size_t i = 0; i < g->inside->nr; i++) {
		if (!is_movable(g->inside->program[i].image))
			place_program(g, &g->inside->program[i], 0);
	}
	return uni_guest_chain_hints(g, err);
}

static bool is_kernel(const struct uni_guest *g, uint64_t pc)
{
	return g->image != NULL && g->hints != NULL &&
	       uni_range_has(g->hints->text_start, g->hints->text_size, pc);
}

static void try_place(struct uni_guest *g, struct inside_program *p,
	void (*on_image)(void *ctx, const struct uni_located *image), void *ctx)
{
	struct uni_located found = { .image = p->image, .owned = true };
	struct uni_placed at;

	if (!uni_placer_find(p->placer, &found.bias, &at))
		return;
	p->bias = found.bias;
	p->placed = true;
	on_image(ctx, &found);
}

void uni_guest_saw(struct uni_guest *g, const struct uni_sample *s,
	void (*on_image)(void *ctx, const struct uni_located *image), void *ctx)
{
	for (size_t i = 0; g->inside != NULL && i < g->inside->nr; i++) {
		struct inside_program *p = &g->inside->program[i];
		bool ask = false;

		for (uint16_t k = 1; k < s->nr; k++) {
			if ((s->flags[k] & (UNI_FRAME_EXACT | UNI_FRAME_GUESS)) == 0 &&
				!is_kernel(g, s->pc[k]))
				ask |= uni_placer_saw(p->placer, s->pc[k]);
		}
		if (ask && !p->placed)
			try_place(g, p, on_image, ctx);
	}
}

void uni_guest_judge_inside(const struct uni_guest *g)
{
	for (size_t i = 0; g->inside != NULL && i < g->inside->nr; i++) {
		const struct inside_program *p = &g->inside->program[i];
		struct uni_placed at;

		if (!p->placed) {
			uni_note("%s: the samples do not tell where it runs: too few calls of it "
				 "were seen, or another build runs; its frames have no names",
				uni_image_path(p->image));
			continue;
		}
		uni_placer_count(p->placer, p->bias, &at);
		if (at.inside >= LEAST && at.behind < at.inside / 2)
			uni_note("%s: %zu of %zu return addresses in it are behind no call: "
				 "another program or another build runs there, and its names are "
				 "wrong",
				uni_image_path(p->image), at.inside - at.behind, at.inside);
	}
}

void uni_guest_note_unplaced(const struct uni_guest *g, const char *why)
{
	for (size_t i = 0; g->inside != NULL && i < g->inside->nr; i++) {
		if (!g->inside->program[i].placed)
			uni_note("%s: %s", uni_image_path(g->inside->program[i].image), why);
	}
}

void uni_guest_drop_inside(struct uni_guest *g)
{
	for (size_t i = 0; g->inside != NULL && i < g->inside->nr; i++) {
		if (!g->inside->program[i].placed)
			uni_image_destroy(g->inside->program[i].image);
		uni_placer_destroy(g->inside->program[i].placer);
	}
	free(g->inside);
	g->inside = NULL;
}
