/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/page_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "app/annotating.h"
#include "app/symbols.h"
#include "app/term.h"

#define CODE_MAX ((uint64_t)64 << 10) /* bytes of a function in a page */

struct uni_page_code_image {
	struct uni_image *image;
	struct uni_debug *debug; /* NULL: none */
	uint32_t guest;
	uint64_t bias;
	UNI_VEC(double) self; /* by symbol */
};

struct maker {
	struct uni_page_code *c;
	double all; /* weight of all samples */
};

/* A function of an image, by its self value. */
struct hot {
	struct uni_page_code_image *in;
	const struct uni_symbol *sym;
	double self;
};

static void free_image(struct uni_page_code_image *i)
{
	uni_debug_destroy(i->debug);
	uni_image_destroy(i->image);
	uni_vec_free(&i->self);
	free(i);
}

static int add_image(struct uni_page_code *c, uint32_t guest, const char *path, const char *id,
	uint64_t bias, const struct uni_image_search *search)
{
	struct uni_page_code_image *i = calloc(1, sizeof(*i));
	struct uni_err why = { 0 }, no_debug = { 0 };
	bool ok = i != NULL && uni_vec_push(&c->images, i);

	if (!ok) {
		free(i);
		return -UNI_ENOMEM;
	}
	i->guest = guest;
	i->bias = bias;
	if (uni_annotating_load(path, id, search, &i->image, &why) != 0) {
		uni_note("no code in the page: %s", why.msg);
		return 0;
	}
	for (size_t k = 0; ok && k < uni_image_nr_symbols(i->image); k++)
		ok = uni_vec_push(&i->self, 0);
	(void)uni_debug_of_image(i->image, search, &i->debug, &no_debug);
	return ok ? 0 : -UNI_ENOMEM;
}

static int add_images(struct uni_page_code *c, const struct uni_recording *rec,
	const struct uni_page_code_args *args)
{
	const struct uni_image_search search = uni_search_of(&args->src->debug_dirs);
	int rc = 0;

	for (uint32_t g = 0; rc == 0 && g < uni_recording_nr_guests(rec); g++) {
		const struct uni_record_meta *m = uni_recording_guest(rec, g).meta;

		if (!uni_only_passes(args->src->build.filter.guest, g))
			continue;
		if (m->image_path[0] != '\0')
			rc = add_image(c, g, m->image_path, m->image_id, m->bias, &search);
		for (uint32_t i = 0; rc == 0 && i < m->nr_more; i++)
			rc = m->more[i].path[0] == '[' /* no file: the kernel */
				     ? 0
				     : add_image(c, g, m->more[i].path, m->more[i].id,
					       m->more[i].bias, &search);
	}
	return rc;
}

/* The first look: which functions are hot. */
static int count_self(void *maker, const struct uni_sample *s, uint32_t node)
{
	struct maker *m = maker;

	(void)node;
	m->all += (double)s->weight;
	if (s->nr == 0 || uni_state_frame(s->state) != NULL ||
		(s->flags[0] & UNI_FRAME_KERNEL) != 0)
		return 0;
	uni_vec_foreach (p, &m->c->images) {
		struct uni_page_code_image *i = *p;
		const struct uni_symbol *sym =
			i->guest == s->guest && i->image != NULL
				? uni_image_lookup(i->image, s->pc[0] - i->bias)
				: NULL;

		if (sym == NULL)
			continue;
		i->self.v[sym - uni_image_symbol(i->image, 0)] += (double)s->weight;
		break;
	}
	return 0;
}

/* The second look: where in them. */
static int count_places(void *maker, const struct uni_sample *s, uint32_t node)
{
	struct maker *m = maker;

	(void)node;
	m->all += (double)s->weight;
	uni_vec_foreach (a, &m->c->functions) {
		for (size_t i = 0; i < s->nr; i++) {
			if (uni_range_has(a->code.addr, a->code.size + 1, s->pc[i] - a->bias)) {
				uni_annotation_add(a, s);
				break;
			}
		}
	}
	return 0;
}

static int hotter_first(const void *a, const void *b)
{
	const struct hot *x = a, *y = b;

	return x->self != y->self ? (x->self < y->self) - (x->self > y->self)
				  : (x->sym->addr > y->sym->addr) - (x->sym->addr < y->sym->addr);
}

static int read_function(struct uni_page_code *c, const struct hot *h, struct uni_err *err)
{
	struct uni_annotation a = {
		.image = uni_image_path(h->in->image), .guest = h->in->guest, .bias = h->in->bias
	};
	struct uni_err why = { 0 };
	int rc = uni_code_read(h->in->image, h->sym, h->in->debug, &a.code, &why);

	if (rc == 0 && uni_vec_push(&c->functions, a))
		return 0;
	uni_annotation_deinit(&a);
	if (rc == 0 || rc == -UNI_ENOMEM)
		return uni_err_nomem(err);
	/* Without a disassembler there is none at all. */
	if (rc == -UNI_ENOTSUP) {
		*err = why;
		return rc;
	}
	return 0;
}

static int choose_functions(struct uni_page_code *c, struct uni_err *err)
{
	UNI_VEC(struct hot) hot = { 0 };
	bool ok = true;
	int rc = 0;

	uni_vec_foreach (p, &c->images) {
		for (size_t k = 0; ok && k < (*p)->self.nr; k++) {
			const struct hot h = { .in = *p,
				.sym = uni_image_symbol((*p)->image, k),
				.self = (*p)->self.v[k] };

			if (h.self > 0 && h.sym->size <= CODE_MAX)
				ok = uni_vec_push(&hot, h);
		}
	}
	if (hot.nr != 0)
		qsort(hot.v, hot.nr, sizeof(*hot.v), hotter_first);
	for (size_t i = 0; ok && rc == 0 && i < uni_min(hot.nr, (size_t)UNI_PAGE_CODE_MAX); i++)
		rc = read_function(c, &hot.v[i], err);
	uni_vec_free(&hot);
	return ok ? rc : uni_err_nomem(err);
}

static int look_through(struct maker *m, const struct uni_page_code_args *args,
	const struct uni_source *s, int (*fn)(void *ctx, const struct uni_sample *s, uint32_t node),
	struct uni_err *err)
{
	const struct uni_build_watch watch = { .ctx = m, .sample = fn };
	struct uni_build_opts opts = args->src->build;
	struct uni_build_read read = { 0 };
	struct uni_profile *p = NULL;
	int rc;

	m->all = 0;
	opts.watch = &watch;
	opts.filter.on_cpu = !opts.filter.off_cpu;
	rc = uni_profile_build(s->rec, &opts, &p, &read, err);
	uni_profile_destroy(p);
	return rc;
}

int uni_page_code_make(const struct uni_page_code_args *args, const struct uni_source *s,
	struct uni_page_code *ret, struct uni_err *err)
{
	struct maker m = { .c = ret };
	int rc;

	*ret = (struct uni_page_code){ 0 };
	if (s->rec == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"--code needs a session: other formats have no addresses of instructions");
	ret->lines = uni_lines_create(args->source->items.v, args->source->items.nr);
	if (ret->lines == NULL || add_images(ret, s->rec, args) != 0)
		return uni_err_nomem(err);
	if (ret->images.nr == 0)
		uni_note("no code in the page: %s names no image", args->src->path);
	uni_vec_foreach (i, &ret->images) {
		if ((*i)->debug != NULL && !uni_lines_add_debug(ret->lines, (*i)->debug))
			return uni_err_nomem(err);
	}
	rc = look_through(&m, args, s, count_self, err);
	if (rc == 0)
		rc = choose_functions(ret, err);
	if (rc == 0)
		rc = look_through(&m, args, s, count_places, err);
	uni_vec_foreach (a, &ret->functions) {
		const struct uni_record_meta *meta = uni_recording_guest(s->rec, a->guest).meta;

		a->blocks = strcmp(meta->info.accel, "tcg") == 0;
		a->all = m.all;
		uni_annotation_finish(a);
	}
	return rc;
}

void uni_page_code_deinit(struct uni_page_code *c)
{
	uni_vec_foreach (a, &c->functions)
		uni_annotation_deinit(a);
	uni_vec_foreach (i, &c->images)
		free_image(*i);
	uni_vec_free(&c->functions);
	uni_vec_free(&c->images);
	uni_lines_destroy(c->lines);
	*c = (struct uni_page_code){ 0 };
}
