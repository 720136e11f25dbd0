/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind hints: how each function begins, and which functions nobody calls. */
#include "obj/image.h"

#include <elf.h>
#include <stdlib.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "obj/image_priv.h"

/*
 * Enough for a landing pad, the realignment of a stack and the frame pointer's set-up. On aarch64
 * the stores of all callee-saved registers may come before.
 */
#define PROLOGUE_BYTES 64

void uni_image_hints_free(struct uni_image_hints *h)
{
	while (h != NULL) {
		struct uni_image_hints *next = h->next;

		free(h->func);
		free(h);
		h = next;
	}
}

/* Does the function's first unwind row say that nobody called it? */
static bool has_no_caller(const struct uni_image *img, uint64_t addr)
{
	const struct uni_cfi_rule *rule =
		img->cfi != NULL ? uni_cfi_find(&img->cfi->table, addr) : NULL;

	return rule != NULL && rule->ra.how == UNI_CFI_UNDEF;
}

/* Does it begin a stack, and have no rows that say otherwise (Solo5's _newstack)? */
static bool begins_stack(const struct uni_image *img, const struct uni_symbol *sym)
{
	uint8_t code[PROLOGUE_BYTES];
	size_t n = (size_t)uni_min(sym->size, (uint64_t)sizeof(code));

	return img->arch != NULL && img->arch->begins_stack != NULL &&
	       (img->cfi == NULL || uni_cfi_find(&img->cfi->table, sym->addr) == NULL) &&
	       uni_image_bytes(img, sym->addr, code, n) && img->arch->begins_stack(code, n);
}

/* A label in an assembler's code, which only that file sees. */
static bool is_label(const struct uni_image *img, const struct uni_symbol *s)
{
	return s->type == STT_NOTYPE && s->bind == STB_LOCAL && s->guessed_size &&
	       (img->cfi == NULL || uni_cfi_find(&img->cfi->table, s->addr) == NULL);
}

/* The bytes from start on, of so many, before the first place behind start that some code calls. */
static uint64_t size_to_called(const struct uni_image *img, uint64_t start, uint64_t size)
{
	for (size_t i = 0; img->arch->after_call != NULL && i < img->file.segs.nr; i++) {
		const struct uni_segment *s = &img->file.segs.v[i];

		for (size_t k = UNI_CALL_BYTES; s->exec && k <= s->file_size; k++) {
			const uint8_t *before = s->bytes + k - UNI_CALL_BYTES;
			uint64_t to;

			if (img->arch->after_call(before, s->vaddr + k, &to) && to != start &&
				uni_range_has(start, size, to))
				size = to - start;
		}
	}
	return size;
}

/*
 * The size of the code that begins at an entry point, 0: that of its symbol. An assembler's labels
 * make several symbols of one piece of code (Unikraft's plat/xen/x86/entry64.S). They belong to it
 * up to the next symbol that is a function, is global or has unwind rows. A label that is called
 * begins a subroutine.
 */
static uint64_t boot_size(const struct uni_image *img, uint64_t entry)
{
	const struct uni_symbol *first = uni_image_lookup(img, entry), *s = first;
	const struct uni_symbol *stop;

	if (first == NULL || !first->guessed_size || img->arch == NULL)
		return 0;
	stop = img->syms.v + img->syms.nr;
	while (s + 1 < stop && s[1].addr - s->addr == s->size && is_label(img, s + 1))
		s++;
	return s == first ? 0 : size_to_called(img, entry, s->size + (s->addr - entry));
}

static uint32_t function_flags(
	const struct uni_image *img, const struct uni_symbol *sym, const uint64_t *boot)
{
	uint8_t code[PROLOGUE_BYTES];
	size_t n = (size_t)uni_min(sym->size, (uint64_t)sizeof(code));
	uint32_t flags = 0;

	/* A function whose bytes are not known gets no flags. */
	if (img->arch != NULL && img->arch->sets_frame != NULL &&
		uni_image_bytes(img, sym->addr, code, n) && !img->arch->sets_frame(code, n)) {
		flags |= UNI_FUNC_FRAMELESS;
		if (img->arch->clears_fp != NULL && img->arch->clears_fp(code, n))
			flags |= UNI_FUNC_CLEARS_FP;
	}
	if (has_no_caller(img, sym->addr) || begins_stack(img, sym))
		flags |= UNI_FUNC_ENTRY;
	for (size_t i = 0; i < img->nr_entries; i++) {
		if (uni_range_has(sym->addr, sym->size, img->entries[i]) ||
			uni_range_has(img->entries[i], boot[i], sym->addr))
			flags |= UNI_FUNC_ENTRY;
	}
	return flags;
}

/*
 * Makes one hint for each piece of the flattened symbols. A later piece of a function (another
 * symbol lies inside it) does not begin with the prologue. So it gets no hint if the function has a
 * frame: its start would be taken for the function's.
 */
static size_t make_funcs(const struct uni_image *img, uint64_t bias, struct uni_func_hint *func)
{
	const struct uni_ranges *r = &img->syms.ranges;
	uint64_t boot[UNI_ENTRIES_MAX] = { 0 };
	size_t nr = 0;

	for (size_t i = 0; i < img->nr_entries; i++)
		boot[i] = boot_size(img, img->entries[i]);
	for (size_t i = 0; i < r->nr; i++) {
		const struct uni_symbol *sym;
		uint64_t last;
		uint32_t flags;

		if (r->sym[i] == UNI_RANGE_GAP)
			continue;
		sym = &img->syms.v[r->sym[i]];
		last = i + 1 < r->nr ? r->start[i + 1] - 1 : sym->addr + (sym->size - 1);
		flags = function_flags(img, sym, boot);
		if (r->start[i] != sym->addr && !(flags & UNI_FUNC_FRAMELESS))
			continue;
		/* A piece that the bias wraps is outside the checked hull: it is data, not code. */
		if (nr != 0 && r->start[i] + bias <= func[nr - 1].start)
			continue;
		func[nr++] = (struct uni_func_hint){
			.start = r->start[i] + bias,
			.size = (uint32_t)(uni_min(last - r->start[i], UINT32_MAX - 1) + 1),
			.flags = flags,
		};
	}
	return nr;
}

static struct uni_func_hint *find_func(struct uni_func_hint *func, size_t nr, uint64_t at)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (func[mid].start <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo != 0 && at - func[lo - 1].start < func[lo - 1].size ? &func[lo - 1] : NULL;
}

/* Which functions does other code call? A call of itself tells nothing. */
static void mark_called(
	const struct uni_image *img, uint64_t bias, struct uni_func_hint *func, size_t nr)
{
	for (size_t i = 0;
		img->arch != NULL && img->arch->after_call != NULL && i < img->file.segs.nr; i++) {
		const struct uni_segment *s = &img->file.segs.v[i];

		for (size_t k = UNI_CALL_BYTES; s->exec && k <= s->file_size; k++) {
			struct uni_func_hint *f;
			uint64_t to;

			if (!img->arch->after_call(
				    s->bytes + k - UNI_CALL_BYTES, s->vaddr + k, &to) ||
				to == 0)
				continue;
			f = find_func(func, nr, to + bias);
			if (f != NULL && f->start == to + bias &&
				!uni_range_has(f->start, f->size, s->vaddr + k - 1 + bias))
				f->flags |= UNI_FUNC_CALLED;
		}
	}
}

/* The hull of all code of the image; 0, 0 if it has no code. */
static void text_hull(const struct uni_image *img, uint64_t *start_ret, uint64_t *size_ret)
{
	const struct uni_segments *s = &img->file.segs;
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < s->nr; i++) {
		if (!s->v[i].exec)
			continue;
		first = uni_min(first, s->v[i].vaddr);
		last = uni_max(last, s->v[i].vaddr + (s->v[i].mem_size - 1));
	}
	*start_ret = first <= last ? first : 0;
	/* A hull of all 2^64 bytes is one byte shorter here: only a broken file has such a hull. */
	*size_ret = first <= last ? uni_min(last - first, UINT64_MAX - 1) + 1 : 0;
}

static struct uni_image_hints *hints_new(size_t nr)
{
	struct uni_image_hints *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->func = calloc(nr, sizeof(*h->func));
	if (h->func == NULL) {
		free(h);
		return NULL;
	}
	return h;
}

int uni_image_hints(struct uni_image *img, uint64_t bias, const struct uni_unwind_hints **ret,
	struct uni_err *err)
{
	struct uni_image_hints *h;
	uint64_t start, size, stubs = 0;
	bool has_stubs;
	size_t nr;

	for (struct uni_image_hints *old = img->hints; old != NULL; old = old->next) {
		if (old->bias == bias) {
			*ret = &old->hints;
			return 0;
		}
	}
	text_hull(img, &start, &size);
	/* A bias may be a negative number in two's complement, but the image must stay in one
	 * piece. */
	if (!uni_range_ok(start + bias, size))
		return uni_err_set(err, UNI_ERANGE,
			"%s: loaded at offset %#llx it would wrap around the address space",
			img->path, (unsigned long long)bias);
	h = hints_new(img->syms.ranges.nr + 1);
	if (h == NULL)
		return uni_err_set(
			err, UNI_ENOMEM, "out of memory for unwind hints of %s", img->path);
	nr = make_funcs(img, bias, h->func);
	mark_called(img, bias, h->func, nr);
	has_stubs = uni_image_stubs(img, &stubs);
	h->bias = bias;
	h->hints = (struct uni_unwind_hints){
		.func = h->func,
		.nr_funcs = nr,
		.text_start = start + bias,
		.text_size = size,
		.has_stubs = has_stubs,
		.stubs = stubs + bias,
	};
	if (img->cfi != NULL) {
		h->cfi = img->cfi->table;
		h->cfi.base += bias;
		h->hints.cfi = &h->cfi;
	}
	h->next = img->hints;
	img->hints = h;
	*ret = &h->hints;
	return 0;
}

/* Is there a call in the bytes from start on? */
static bool has_call(const struct uni_image *img, uint64_t start, uint64_t size)
{
	for (size_t i = 0; i < img->file.segs.nr; i++) {
		const struct uni_segment *s = &img->file.segs.v[i];
		uint64_t off = start - s->vaddr, end, to;

		if (!s->exec || !uni_range_has(s->vaddr, s->file_size, start))
			continue;
		end = off + uni_min(size, s->file_size - off);
		for (uint64_t k = uni_max(off, (uint64_t)UNI_CALL_BYTES); k <= end; k++) {
			if (img->arch->after_call(
				    s->bytes + k - UNI_CALL_BYTES, s->vaddr + k, &to) &&
				k > off)
				return true;
		}
	}
	return false;
}

bool uni_image_lacks_frames(const struct uni_image *img, const struct uni_unwind_hints *h)
{
	uint64_t start, size, calling = 0, frameless = 0;

	if (!uni_hints_frameless(h) || img->arch == NULL || img->arch->after_call == NULL)
		return uni_hints_frameless(h);
	text_hull(img, &start, &size);
	for (size_t i = 0; i < h->nr_funcs; i++) {
		const struct uni_func_hint *f = &h->func[i];

		if ((f->flags & UNI_FUNC_ENTRY) != 0 ||
			!has_call(img, f->start - h->text_start + start, f->size))
			continue;
		calling += f->size;
		frameless += (f->flags & UNI_FUNC_FRAMELESS) != 0 ? f->size : 0;
	}
	return frameless > calling / 2;
}
