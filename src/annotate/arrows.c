/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotate/arrows.h"

#include <string.h>

#include "base/checked.h"

#define LENGTH_MAX 400 /* instructions: nobody can follow a longer one */

enum cell {
	CELL_LINE = 1,	/* goes by */
	CELL_ABOVE = 2, /* the upper end */
	CELL_BELOW = 4, /* the lower end */
	CELL_TARGET = 8,
};

struct jump {
	uint32_t from, to;
};

static uint32_t jump_length(const struct jump *j)
{
	return j->from < j->to ? j->to - j->from : j->from - j->to;
}

static int by_length(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;
	uint32_t p = jump_length(x), q = jump_length(y);

	if (p != q)
		return p < q ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static bool lane_is_free(const struct uni_arrows *a, uint32_t top, uint32_t end, unsigned lane)
{
	for (size_t i = top; i <= end; i++) {
		if (a->cells.v[i * UNI_ARROW_LANES + lane] != 0)
			return false;
	}
	return true;
}

static void draw_one(struct uni_arrows *a, const struct jump *j)
{
	uint32_t top = uni_min(j->from, j->to), end = uni_max(j->from, j->to);
	unsigned lane = 0;

	while (lane < UNI_ARROW_LANES && !lane_is_free(a, top, end, lane))
		lane++;
	if (lane == UNI_ARROW_LANES) {
		a->left_out++;
		return;
	}
	for (size_t i = top; i <= end; i++)
		a->cells.v[i * UNI_ARROW_LANES + lane] = i == top   ? CELL_ABOVE
							 : i == end ? CELL_BELOW
								    : CELL_LINE;
	a->cells.v[(size_t)j->to * UNI_ARROW_LANES + lane] |= CELL_TARGET;
	a->lanes = uni_max(a->lanes, lane + 1);
}

bool uni_arrows_draw(const struct uni_code *c, struct uni_arrows *ret)
{
	UNI_VEC(struct jump) jumps = { 0 };
	size_t nr = c->insns.nr * UNI_ARROW_LANES;
	bool ok = uni_vec_grow(&ret->cells, nr + 1);

	for (uint32_t i = 0; ok && i < c->insns.nr; i++) {
		const struct jump j = { i, c->insns.v[i].to };

		if (j.to == UNI_CODE_NONE || j.to == i)
			continue;
		if (jump_length(&j) > LENGTH_MAX)
			ret->left_out++;
		else
			ok = uni_vec_push(&jumps, j);
	}
	if (ok) {
		memset(ret->cells.v, 0, nr + 1);
		ret->cells.nr = nr;
		if (jumps.nr != 0)
			qsort(jumps.v, jumps.nr, sizeof(*jumps.v), by_length);
		uni_vec_foreach (j, &jumps)
			draw_one(ret, j);
	}
	uni_vec_free(&jumps);
	return ok;
}

void uni_arrows_deinit(struct uni_arrows *a)
{
	uni_vec_free(&a->cells);
}

void uni_arrows_text(const struct uni_arrows *a, size_t insn, char ret[static UNI_ARROW_LANES + 3])
{
	const uint8_t *cell = a->cells.v + insn * UNI_ARROW_LANES;
	bool crosses = false, target = false;
	size_t n = 0;

	for (unsigned lane = a->lanes; lane-- != 0;) {
		bool ends = (cell[lane] & (CELL_ABOVE | CELL_BELOW)) != 0;

		ret[n++] = (char)((cell[lane] & CELL_ABOVE) != 0   ? ','
				  : (cell[lane] & CELL_BELOW) != 0 ? '\''
				  : cell[lane] == CELL_LINE	   ? (crosses ? '+' : '|')
				  : crosses			   ? '-'
								   : ' ');
		crosses = crosses || ends;
		target = target || (cell[lane] & CELL_TARGET) != 0;
	}
	ret[n++] = (char)(crosses ? '-' : ' ');
	ret[n++] = (char)(target ? '>' : crosses ? '-' : ' ');
	ret[n] = '\0';
}
