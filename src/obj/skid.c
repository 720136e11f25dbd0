/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/skid.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/vec.h"

#define FUNCTION_MOST ((uint64_t)1 << 20)
#define SHORT_JUMP    130 /* bytes from its begin that a jump of two bytes reaches */

/*
 * Instructions of x86 are not decoded: each byte may begin one. A byte sequence that only looks
 * like a jump can make a certain call uncertain, but never the other way round. Pairs of bytes that
 * look like a short jump are frequent (75 eb c3: a loop's end, and ret). So a short jump out of a
 * function counts only if it leads to another one's first byte, as that of a tail call does.
 */
struct reader {
	const struct uni_image *img;
	UNI_VEC(struct uni_skid_call) call;
	UNI_VEC(struct uni_skid_entry) entry;
	UNI_VEC(uint64_t) target; /* of jumps within a function, then sorted */
	UNI_VEC(uint64_t) tail;	  /* of jumps from one function to another's first byte, as that */
	UNI_VEC(uint64_t)
	leaves; /* first bytes of functions that a jump may leave, sorted */
};

static bool add_call(struct reader *r, uint64_t ret, uint64_t callee)
{
	const struct uni_symbol *to = uni_image_lookup(r->img, callee);

	return to == NULL || to->addr != callee ||
	       uni_vec_push(&r->call, ((struct uni_skid_call){ ret, callee, 0 }));
}

static bool add_jump(
	struct reader *r, const struct uni_symbol *f, uint64_t at, uint64_t to, bool *leaves_ret)
{
	const struct uni_symbol *other;
	bool is_guess;

	if (uni_range_has(f->addr, f->size, to))
		return uni_vec_push(&r->target, to);
	other = uni_image_lookup(r->img, to);
	is_guess = uni_image_arch(r->img)->insn == 1 && to - at + SHORT_JUMP <= 2 * SHORT_JUMP;
	*leaves_ret = *leaves_ret || (other != NULL && (other->addr == to || !is_guess));
	return other == NULL || other->addr != to || uni_vec_push(&r->tail, to);
}

static bool read_branch(struct reader *r, const struct uni_symbol *f, const uint8_t *code, size_t i,
	bool *leaves_ret)
{
	const struct uni_arch *a = uni_image_arch(r->img);
	uint64_t at = f->addr + i, to = 0;

	switch (a->branch(code + i, (size_t)f->size - i, at, &to)) {
	case UNI_BRANCH_CALL:
		return add_call(r, at + a->call_bytes, to);
	case UNI_BRANCH_POINTER:
		return uni_vec_push(&r->call, ((struct uni_skid_call){ to, 0, 0 }));
	case UNI_BRANCH_JUMP:
		return add_jump(r, f, at, to, leaves_ret);
	case UNI_BRANCH_INDIRECT:
		*leaves_ret = true;
		return true;
	default:
		return true;
	}
}

static bool read_function(struct reader *r, const struct uni_symbol *f, const uint8_t *code)
{
	size_t step = uni_image_arch(r->img)->insn;
	bool leaves = false, ok = true;

	for (size_t i = 0; ok && i < f->size; i += step)
		ok = read_branch(r, f, code, i, &leaves);
	return ok && uni_vec_push(&r->entry, ((struct uni_skid_entry){ f->addr, false })) &&
	       (!leaves || uni_vec_push(&r->leaves, f->addr));
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return *p < *q ? -1 : *p > *q;
}

static int compare_calls(const void *a, const void *b)
{
	const struct uni_skid_call *p = a, *q = b;

	return p->ret < q->ret ? -1 : p->ret > q->ret;
}

static bool has_address(const uint64_t *v, size_t nr, uint64_t addr)
{
	return nr != 0 && bsearch(&addr, v, nr, sizeof(*v), compare_addresses) != NULL;
}

static int compare_entries(const void *a, const void *b)
{
	const struct uni_skid_entry *p = a, *q = b;

	return p->svma < q->svma ? -1 : p->svma > q->svma;
}

static void sort_addresses(uint64_t *v, size_t nr)
{
	if (nr != 0)
		qsort(v, nr, sizeof(*v), compare_addresses);
}

/* Bytes that look like another call end behind the same instruction: then it may be either. */
static void merge_calls(struct reader *r)
{
	size_t nr = 0;

	if (r->call.nr != 0)
		qsort(r->call.v, r->call.nr, sizeof(*r->call.v), compare_calls);
	for (size_t i = 0; i < r->call.nr; i++) {
		struct uni_skid_call *last = &r->call.v[nr - (nr != 0)];

		if (nr == 0 || last->ret != r->call.v[i].ret)
			r->call.v[nr++] = r->call.v[i];
		else if (last->callee != r->call.v[i].callee)
			last->callee = 0;
	}
	r->call.nr = nr;
}

static void judge_calls(struct reader *r)
{
	sort_addresses(r->target.v, r->target.nr);
	sort_addresses(r->tail.v, r->tail.nr);
	sort_addresses(r->leaves.v, r->leaves.nr);
	merge_calls(r);
	uni_vec_foreach (c, &r->call) {
		if (!has_address(r->target.v, r->target.nr, c->ret))
			c->flags |= UNI_SKID_BEHIND;
		if (c->callee != 0 && !has_address(r->leaves.v, r->leaves.nr, c->callee))
			c->flags |= UNI_SKID_RETURNS;
		if (c->callee != 0 && !has_address(r->target.v, r->target.nr, c->callee))
			c->flags |= UNI_SKID_ENTERS;
	}
	uni_vec_foreach (e, &r->entry)
		e->is_jumped = has_address(r->target.v, r->target.nr, e->svma) ||
			       has_address(r->tail.v, r->tail.nr, e->svma);
	if (r->entry.nr != 0)
		qsort(r->entry.v, r->entry.nr, sizeof(*r->entry.v), compare_entries);
}

int uni_skid_read(const struct uni_image *img, struct uni_skid *ret)
{
	struct reader r = { .img = img };
	bool ok = true;

	*ret = (struct uni_skid){ 0 };
	if (uni_image_arch(img) == NULL || uni_image_arch(img)->branch == NULL)
		return 0;
	for (size_t i = 0; ok && i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *f = uni_image_symbol(img, i);
		uint8_t *code = f->size <= FUNCTION_MOST ? malloc((size_t)f->size) : NULL;

		if (code != NULL && uni_image_bytes(img, f->addr, code, (size_t)f->size))
			ok = read_function(&r, f, code);
		free(code);
	}
	judge_calls(&r);
	uni_vec_free(&r.target);
	uni_vec_free(&r.tail);
	uni_vec_free(&r.leaves);
	*ret = (struct uni_skid){ r.call.v, r.call.nr, r.entry.v, r.entry.nr };
	if (!ok)
		uni_skid_deinit(ret);
	return ok ? 0 : -UNI_ENOMEM;
}

void uni_skid_deinit(struct uni_skid *s)
{
	free(s->call);
	free(s->entry);
	*s = (struct uni_skid){ 0 };
}
