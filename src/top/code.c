/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* The frame whose symbol has the code: for an inlined function, of its callers the one in which
 * most of it is. */
static uint32_t frame_with_code(const struct uni_profile *p, uint32_t frame)
{
	_cleanup_free_ double *total = calloc(uni_profile_nr_frames(p) + 1, sizeof(*total));
	uint32_t best = UNI_NODE_NONE;

	if (uni_profile_get_frame(p, frame)->kind != UNI_FK_INLINED || total == NULL)
		return frame;
	for (uint32_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		const struct uni_node *n = uni_profile_node(p, i);
		double value = n->total;

		if (n->frame != frame)
			continue;
		while (n->frame != UNI_NODE_NONE &&
			uni_profile_get_frame(p, n->frame)->kind == UNI_FK_INLINED)
			n = uni_profile_node(p, n->parent);
		if (n->frame == UNI_NODE_NONE)
			continue;
		total[n->frame] += value;
		if (best == UNI_NODE_NONE || total[n->frame] > total[best])
			best = n->frame;
	}
	return best != UNI_NODE_NONE ? best : frame;
}

struct where {
	const struct uni_image *image;
	const struct uni_symbol *sym;
	uint64_t bias;
	uint32_t guest;
};

static bool look_in(const struct uni_image *img, uint64_t bias, uint64_t addr, uint32_t guest,
	struct where *ret)
{
	const struct uni_symbol *sym = img != NULL ? uni_image_lookup(img, addr - bias) : NULL;

	if (sym == NULL)
		return false;
	*ret = (struct where){ .image = img, .sym = sym, .bias = bias, .guest = guest };
	return true;
}

/* The first guest that has samples of it; frames of several guests differ by their images. */
static bool find_code(const struct uni_top_run *r, uint64_t addr, struct where *ret)
{
	for (uint32_t i = 0; i < r->nr_guests; i++) {
		const struct uni_guest *g = r->g[i];

		if (r->top.guest >= 0 && r->top.guest != i)
			continue;
		if (look_in(g->image, g->bias, addr, i, ret))
			return true;
		for (size_t k = 0; k < g->nr_more; k++) {
			if (look_in(g->more[k].image, g->more[k].bias, addr, i, ret))
				return true;
		}
	}
	return false;
}

static int find_selected(const struct uni_top_run *r, struct where *ret, struct uni_err *err)
{
	const struct uni_top *top = &r->top;
	uint32_t frame = uni_top_selected_frame(top);
	const struct uni_frame *f;

	if (frame == UNI_NODE_NONE)
		return uni_err_set(err, UNI_ENOENT, "no samples of %s in this window",
			top->selected_name[0] != '\0' ? top->selected_name : "a function");
	f = uni_profile_get_frame(top->profile, frame_with_code(top->profile, frame));
	if (f->kind == UNI_FK_KERNEL || f->addr == 0 || !find_code(r, f->addr, ret))
		return uni_err_set(
			err, UNI_ENOENT, "%s has no code in the image", top->selected_name);
	return 0;
}

/* Text to lines. */
static int cut_lines(struct uni_top_code *c)
{
	const char *s = c->text.s;

	c->begin.nr = 0;
	for (const char *p = s; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n') {
		if (!uni_vec_push(&c->begin, (size_t)(p - s)))
			return -UNI_ENOMEM;
	}
	return uni_vec_push(&c->begin, c->text.len) ? 0 : -UNI_ENOMEM;
}

static int print_code(struct uni_top_code *c)
{
	const struct uni_annotation_text plain = { 0 };
	struct uni_sink *out = NULL;
	int rc;

	uni_strbuf_reset(&c->text);
	if (uni_sink_open_strbuf(&c->text, &out) != 0)
		return -UNI_ENOMEM;
	rc = uni_annotation_print(&c->a, c->lines, &plain, out);
	if (uni_sink_close(out, NULL) != 0)
		rc = -UNI_ENOMEM;
	return rc != 0 ? rc : cut_lines(c);
}

static int add_chain(void *annotation, const struct uni_sample *s)
{
	uni_annotation_add(annotation, s);
	return 0;
}

int uni_top_code_refresh(struct uni_top_code *c, const struct uni_top_run *r)
{
	int rc;

	uni_annotation_clear(&c->a);
	rc = uni_top_each(&r->top, add_chain, &c->a);
	if (rc != 0)
		return rc;
	uni_annotation_finish(&c->a);
	return print_code(c);
}

int uni_top_code_open(struct uni_top_code *c, const struct uni_top_run *r, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&r->args->debug_dirs);
	struct uni_err no_debug = { 0 };
	struct where at = { 0 };
	int rc = find_selected(r, &at, err);

	if (rc != 0)
		return rc;
	*c = (struct uni_top_code){ .lines = uni_lines_create(NULL, 0) };
	uni_strbuf_init(&c->text);
	if (c->lines == NULL)
		return uni_err_nomem(err);
	c->a.guest = at.guest;
	c->a.bias = at.bias;
	c->a.image = uni_image_path(at.image);
	c->a.blocks = strcmp(r->g[at.guest]->info.accel, "tcg") == 0;
	(void)uni_debug_of_image(at.image, &search, &c->debug, &no_debug);
	if (c->debug != NULL && !uni_lines_add_debug(c->lines, c->debug)) {
		uni_top_code_close(c);
		return uni_err_nomem(err);
	}
	rc = uni_code_read(at.image, at.sym, c->debug, &c->a.code, err);
	if (rc == 0 && uni_top_code_refresh(c, r) != 0)
		rc = uni_err_nomem(err);
	if (rc != 0) {
		uni_top_code_close(c);
		return rc;
	}
	c->shown = true;
	return 0;
}

void uni_top_code_close(struct uni_top_code *c)
{
	uni_annotation_deinit(&c->a);
	uni_debug_destroy(c->debug);
	uni_lines_destroy(c->lines);
	uni_strbuf_deinit(&c->text);
	uni_vec_free(&c->begin);
	*c = (struct uni_top_code){ 0 };
}

size_t uni_top_code_nr_lines(const struct uni_top_code *c)
{
	return c->begin.nr != 0 ? c->begin.nr - 1 : 0;
}

double uni_top_code_line(const struct uni_top_code *c, size_t line, char *ret, size_t cap)
{
	const char *s = c->text.s + c->begin.v[line];
	size_t len = strcspn(s, "\n");
	double percent;
	char *end;

	len = uni_min(len, cap - 1);
	memcpy(ret, s, len);
	ret[len] = '\0';
	percent = strtod(ret, &end);
	return end != ret && end[0] == ' ' && end[1] == '%' ? percent : 0;
}

size_t uni_top_code_hottest(const struct uni_top_code *c)
{
	double most = 0, percent;
	size_t hottest = 0;
	char text[64];

	for (size_t i = 0; i < uni_top_code_nr_lines(c); i++) {
		percent = uni_top_code_line(c, i, text, sizeof(text));
		if (percent > most) {
			most = percent;
			hottest = i;
		}
	}
	return hottest;
}
