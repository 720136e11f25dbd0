/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/hints.h"

#include "base/checked.h"

const struct uni_unwind_hints *uni_hints_of(const struct uni_unwind_hints *h, uint64_t pc)
{
	while (h != NULL && !uni_range_has(h->text_start, h->text_size, pc))
		h = h->next;
	return h;
}

static const struct uni_func_hint *find_in(const struct uni_unwind_hints *h, uint64_t pc)
{
	size_t lo = 0, hi = h->nr_funcs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (h->func[mid].start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || !uni_range_has(h->func[lo - 1].start, h->func[lo - 1].size, pc))
		return NULL;
	return &h->func[lo - 1];
}

const struct uni_func_hint *uni_hints_find(const struct uni_unwind_hints *h, uint64_t pc)
{
	const struct uni_func_hint *f = NULL;

	for (; h != NULL && f == NULL; h = h->next)
		f = find_in(h, pc);
	return f;
}

bool uni_hints_in_stubs(const struct uni_unwind_hints *h, uint64_t pc)
{
	while (h != NULL && !(h->has_stubs && uni_range_has(h->stubs, UNI_STUBS_BYTES, pc)))
		h = h->next;
	return h != NULL;
}

static bool keeps_frame(const struct uni_unwind_hints *h, uint64_t pc)
{
	const struct uni_unwind_hints *of = uni_hints_of(h, pc);
	const struct uni_func_hint *f = uni_hints_find(h, pc);

	if (of == NULL)
		return true;
	return f != NULL ? (f->flags & UNI_FUNC_FRAMELESS) == 0 : of->nr_funcs == 0;
}

bool uni_hints_is_end(const struct uni_unwind_hints *h, uint64_t callee, uint64_t pc)
{
	const struct uni_func_hint *f = uni_hints_find(h, pc);

	if (f != NULL && (f->flags & UNI_FUNC_CLEARS_FP) != 0)
		return true;
	return callee != 0 && keeps_frame(h, callee);
}

bool uni_hints_is_first(const struct uni_unwind_hints *h, uint64_t pc)
{
	const struct uni_func_hint *f = uni_hints_find(h, pc);

	return f == NULL || (f->flags & UNI_FUNC_CALLED) == 0 ||
	       (f->flags & (UNI_FUNC_ENTRY | UNI_FUNC_CLEARS_FP)) != 0;
}

bool uni_hints_frameless(const struct uni_unwind_hints *h)
{
	uint64_t all = 0, frameless = 0;

	for (size_t i = 0; i < h->nr_funcs; i++) {
		all += h->func[i].size;
		frameless += (h->func[i].flags & UNI_FUNC_FRAMELESS) != 0 ? h->func[i].size : 0;
	}
	return frameless > all / 2;
}
