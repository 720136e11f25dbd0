/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/skid.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/vec.h"

#define FUNCTION_MOST ((uint64_t)1 << 20)

/*
 * Instructions of x86 are not decoded: each byte may begin one. A byte sequence that only looks
 * like a jump can make a certain call uncertain, but never the other way round.
 */
struct reader {
	const struct uni_image *img;
	UNI_VEC(struct uni_skid_call) call;
	UNI_VEC(uint64_t) target; /* targets of jumps within a function, then sorted */
	UNI_VEC(uint64_t)
	leaves; /* first bytes of functions that a jump may leave, sorted */
};

static bool add_call(struct reader *r, uint64_t ret, uint64_t callee)
{
	const struct uni_symbol *to = uni_image_lookup(r->img, callee);

	return to == NULL || to->addr != callee ||
	       uni_vec_push(&r->call, ((struct uni_skid_call){ ret, callee, 0 }));
}

static bool read_branch(struct reader *r, const struct uni_symbol *f, const uint8_t *code, size_t i,
	bool *leaves_ret)
{
	const struct uni_arch *a = uni_image_arch(r->img);
	uint64_t at = f->addr + i, to = 0;

	switch (a->branch(code + i, (size_t)f->size - i, at, &to)) {
	case UNI_BRANCH_CALL:
		return add_call(r, at + a->call_bytes, to);
	case UNI_BRANCH_JUMP:
		if (uni_range_has(f->addr, f->size, to))
			return uni_vec_push(&r->target, to);
		*leaves_ret = *leaves_ret || uni_image_lookup(r->img, to) != NULL;
		return true;
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
	return ok && (!leaves || uni_vec_push(&r->leaves, f->addr));
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

static void judge_calls(struct reader *r)
{
	if (r->target.nr != 0)
		qsort(r->target.v, r->target.nr, sizeof(*r->target.v), compare_addresses);
	if (r->leaves.nr != 0)
		qsort(r->leaves.v, r->leaves.nr, sizeof(*r->leaves.v), compare_addresses);
	uni_vec_foreach (c, &r->call) {
		if (!has_address(r->target.v, r->target.nr, c->ret) &&
			!has_address(r->leaves.v, r->leaves.nr, c->callee))
			c->flags |= UNI_SKID_RETURNS;
		if (!has_address(r->target.v, r->target.nr, c->callee))
			c->flags |= UNI_SKID_ENTERS;
	}
	if (r->call.nr != 0)
		qsort(r->call.v, r->call.nr, sizeof(*r->call.v), compare_calls);
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
	uni_vec_free(&r.leaves);
	ret->call = r.call.v;
	ret->nr = r.call.nr;
	if (!ok)
		uni_skid_deinit(ret);
	return ok ? 0 : -UNI_ENOMEM;
}

void uni_skid_deinit(struct uni_skid *s)
{
	free(s->call);
	*s = (struct uni_skid){ 0 };
}
