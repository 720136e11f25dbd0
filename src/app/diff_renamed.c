/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/diff_renamed.h"

#include <stdlib.h>
#include <string.h>

#include "annotate/code.h"
#include "base/checked.h"
#include "base/strbuf.h"
#include "app/annotating.h"
#include "app/symbols.h"
#include "recording/sjson.h"

#define CODE_MIN 24    /* bytes: shorter functions are alike by chance */
#define MOST	 20000 /* functions of a side that are looked at */

/* A function of one side, and its code as text without places. */
struct one {
	size_t function;
	struct uni_strbuf code;
};

struct images {
	UNI_VEC(struct uni_image *) v;
};

static int add_image(
	struct images *im, const char *path, const char *id, const struct uni_image_search *search)
{
	struct uni_err why = { 0 };
	struct uni_image *img = NULL;

	if (path[0] == '\0' || id[0] == '\0' ||
		uni_annotating_load(path, id, search, &img, &why) != 0)
		return 0;
	if (uni_vec_push(&im->v, img))
		return 0;
	uni_image_destroy(img);
	return -UNI_ENOMEM;
}

static int load_images(struct images *im, const struct uni_diffing_side *side,
	const struct uni_image_search *search)
{
	struct uni_session s;
	int rc = 0;

	if (side->nr == 0 || uni_session_load(side->path[0], &s, NULL) != 0)
		return 0;
	for (uint32_t g = 0; rc == 0 && g < s.nr_guests; g++) {
		const struct uni_record_meta *m = &s.guest[g]->meta;

		rc = add_image(im, m->image_path, m->image_id, search);
		for (uint32_t i = 0; rc == 0 && i < m->nr_more; i++)
			rc = add_image(im, m->more[i].path, m->more[i].id, search);
	}
	uni_session_free_parsed(&s);
	return rc;
}

/* An address as a number, or beside the instruction pointer: another place is the same code. */
static bool has_place(const struct uni_code *c, const struct uni_code_insn *i)
{
	return (i->insn.target != 0 && !uni_range_has(c->addr, c->size, i->insn.target)) ||
	       strstr(i->insn.text, "(%rip)") != NULL;
}

/* Jumps by their distance, so that the function may be elsewhere. */
static void put_insn(struct uni_strbuf *b, const struct uni_code *c, const struct uni_code_insn *i)
{
	size_t word = strcspn(i->insn.text, " ");

	if (has_place(c, i)) {
		uni_strbuf_add(b, i->insn.text, word);
	} else if (i->insn.target != 0) {
		uni_strbuf_add(b, i->insn.text, word);
		uni_strbuf_addf(b, " %lld", (long long)(i->insn.target - i->insn.addr));
	} else {
		uni_strbuf_adds(b, i->insn.text);
	}
	uni_strbuf_addc(b, '\n');
}

/* Nothing, if no image has the function, or several functions have that name. */
static void read_code(const struct images *im, const char *name, struct uni_strbuf *ret)
{
	const struct uni_symbol *sym[2];
	struct uni_err why = { 0 };

	for (size_t i = 0; i < im->v.nr; i++) {
		struct uni_code c = { 0 };

		if (uni_code_find(im->v.v[i], name, sym, 2) != 1 || sym[0]->size < CODE_MIN)
			continue;
		if (uni_code_read(im->v.v[i], sym[0], NULL, &c, &why) == 0) {
			uni_vec_foreach (insn, &c.insns)
				put_insn(ret, &c, insn);
		}
		uni_code_deinit(&c);
		return;
	}
}

static int by_code(const void *a, const void *b)
{
	const struct one *x = a, *y = b;

	return strcmp(x->code.s, y->code.s);
}

struct only {
	UNI_VEC(struct one) v;
};

static bool add_only(
	struct only *o, const struct uni_diff_sides *d, size_t f, const struct images *im)
{
	struct one one = { .function = f };

	uni_strbuf_init(&one.code);
	read_code(im, uni_diff_name(d, f), &one.code);
	if (one.code.len != 0 && !uni_strbuf_failed(&one.code) && uni_vec_push(&o->v, one))
		return true;
	uni_strbuf_deinit(&one.code);
	return one.code.len == 0;
}

/* Those that have values on this side, and none on the other. */
static bool find_only(
	struct only *o, const struct uni_diff_sides *d, enum uni_side side, const struct images *im)
{
	bool ok = true;

	for (size_t f = 0; ok && f < uni_diff_nr_functions(d) && o->v.nr < MOST; f++) {
		if (!uni_diff_is_synthetic(d, f) && uni_diff_has(d, f, side) &&
			!uni_diff_has(d, f, side == UNI_BEFORE ? UNI_AFTER : UNI_BEFORE))
			ok = add_only(o, d, f, im);
	}
	if (o->v.nr != 0)
		qsort(o->v.v, o->v.nr, sizeof(*o->v.v), by_code);
	return ok;
}

static bool is_alone(const struct only *o, size_t i)
{
	return (i == 0 || by_code(&o->v.v[i - 1], &o->v.v[i]) != 0) &&
	       (i + 1 == o->v.nr || by_code(&o->v.v[i + 1], &o->v.v[i]) != 0);
}

static void join_same(struct uni_diff_sides *d, const struct only *old, const struct only *new)
{
	size_t n = 0;

	for (size_t i = 0; i < old->v.nr; i++) {
		while (n < new->v.nr && by_code(&new->v.v[n], &old->v.v[i]) < 0)
			n++;
		if (n < new->v.nr && by_code(&new->v.v[n], &old->v.v[i]) == 0 && is_alone(old, i) &&
			is_alone(new, n))
			uni_diff_rename(d, old->v.v[i].function, new->v.v[n].function);
	}
}

int uni_diff_renamed(struct uni_diff_sides *d, const struct uni_diffing_args *args)
{
	const struct uni_image_search search = uni_search_of(&args->src.debug_dirs);
	struct images im[UNI_SIDES] = { 0 };
	struct only only[UNI_SIDES] = { 0 };
	int rc = 0;

	for (int s = 0; rc == 0 && s < UNI_SIDES; s++)
		rc = load_images(&im[s], &args->side[s], &search);
	for (int s = 0; rc == 0 && s < UNI_SIDES && im[UNI_AFTER].v.nr != 0; s++) {
		if (!find_only(&only[s], d, (enum uni_side)s, &im[s]))
			rc = -UNI_ENOMEM;
	}
	if (rc == 0)
		join_same(d, &only[UNI_BEFORE], &only[UNI_AFTER]);
	for (int s = 0; s < UNI_SIDES; s++) {
		uni_vec_foreach (o, &only[s].v)
			uni_strbuf_deinit(&o->code);
		uni_vec_foreach (i, &im[s].v)
			uni_image_destroy(*i);
		uni_vec_free(&only[s].v);
		uni_vec_free(&im[s].v);
	}
	return rc;
}
