/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/skid.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"

#define CALL_BYTES    5 /* e8 and a distance */
#define FUNCTION_MOST ((uint64_t)1 << 20)

/*
 * Instructions are not decoded: each byte may begin one. A byte sequence that only looks like a
 * jump can make a certain call uncertain, but never the other way round.
 */
struct reader {
	const struct uni_image *img;
	UNI_VEC(struct uni_skid_call) call;
	UNI_VEC(uint64_t) target; /* targets of jumps within a function, then sorted */
	UNI_VEC(uint64_t)
	leaves; /* first bytes of functions that a jump may leave, sorted */
};

static int32_t branch_distance(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool find_call(struct reader *r, const uint8_t *code, size_t n, uint64_t svma)
{
	const struct uni_symbol *to;
	uint64_t callee;

	if (code[0] != 0xe8 || n < CALL_BYTES)
		return true;
	callee = svma + CALL_BYTES + (uint64_t)(int64_t)branch_distance(code + 1);
	to = uni_image_lookup(r->img, callee);
	return to == NULL || to->addr != callee ||
	       uni_vec_push(&r->call, ((struct uni_skid_call){ svma + CALL_BYTES, callee, 0 }));
}

/* The target of a jump at code, or UINT64_MAX: it is no jump. */
static uint64_t jump_target(const uint8_t *code, size_t n, uint64_t svma)
{
	if (n >= 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0))
		return svma + 2 + (uint64_t)(int64_t)(int8_t)code[1];
	if (n >= 5 && code[0] == 0xe9)
		return svma + 5 + (uint64_t)(int64_t)branch_distance(code + 1);
	if (n >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80)
		return svma + 6 + (uint64_t)(int64_t)branch_distance(code + 2);
	return UINT64_MAX;
}

/* jmp by a register or memory: to a case of a switch, or a tail call. */
static bool is_indirect(const uint8_t *code, size_t n)
{
	return n >= 2 && code[0] == 0xff && ((code[1] >> 3) & 7) == 4;
}

static bool read_function(struct reader *r, const struct uni_symbol *f, const uint8_t *code)
{
	size_t n = (size_t)f->size;
	bool leaves = false, ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		uint64_t to = jump_target(code + i, n - i, f->addr + i);
		const struct uni_symbol *other;

		ok = find_call(r, code + i, n - i, f->addr + i);
		leaves = leaves || is_indirect(code + i, n - i);
		if (!ok || to == UINT64_MAX)
			continue;
		if (uni_range_has(f->addr, f->size, to)) {
			ok = uni_vec_push(&r->target, to);
			continue;
		}
		other = uni_image_lookup(r->img, to);
		leaves = leaves || other != NULL;
	}
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
	if (uni_image_machine(img) != EM_X86_64)
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
