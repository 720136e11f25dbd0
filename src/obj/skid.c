/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/skid.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"

#define FUNCTION_MOST ((uint64_t)1 << 20)
#define TABLES_MOST   ((size_t)1 << 22) /* entries of an image's tables that are read */
#define FIRST_BLOCK   256 /* bytes of a function in which its first branch is looked for */
#define POINTER_MOST  64  /* jumps by a pointer of a function that are compared with a place */

/* The stack pointer at a place, below the caller's: code that jumps leaves it as it is. */
struct frame {
	bool is_known;
	uint8_t reg;
	int32_t arg;
};

struct hop {
	uint64_t from, to; /* first bytes of functions */
	struct frame frame;
};

/*
 * Code is read instruction by instruction from each function's first byte on. Bytes that are no
 * instruction are skipped, and then nothing is certain of that function.
 */
struct reader {
	const struct uni_image *img;
	const struct uni_cfi_table *rows; /* may be NULL */
	uint64_t bias;			  /* of the rows */
	UNI_VEC(struct uni_skid_call) call;
	UNI_VEC(struct uni_skid_entry) entry;
	UNI_VEC(uint64_t) target;    /* of jumps within a function or into one, then sorted */
	UNI_VEC(uint64_t) tail;	     /* of jumps from one function to another's first byte */
	UNI_VEC(uint64_t) leaves;    /* first bytes of functions that may end in another one */
	UNI_VEC(uint64_t) odd;	     /* the same of those whose return goes elsewhere */
	UNI_VEC(uint64_t) past;	     /* the same of those that return past their callers */
	UNI_VEC(struct hop) pointer; /* jumps from `from` to nobody knows where */
	UNI_VEC(struct hop) out;     /* jumps from one function to another's first byte */
	UNI_VEC(uint64_t) shared;    /* as in struct uni_skid */
	size_t table_entries;
	bool has_tail_pointers;
	UNI_VEC(struct hop) together; /* functions that jump into each other, as f and f.cold */
};

struct function {
	struct reader *r;
	const struct uni_symbol *f;
	const uint8_t *code;
	uint64_t end; /* as in struct uni_skid_entry */
	bool is_odd;
	bool has_pushed; /* so far, in the order of the code */
	bool is_past;
	enum uni_branch last;
};

static struct frame frame_at(const struct reader *r, uint64_t svma)
{
	const struct uni_cfi_rule *rule =
		r->rows == NULL ? NULL : uni_cfi_find(r->rows, svma + r->bias);

	if (rule == NULL || rule->cfa.how != UNI_CFI_REG)
		return (struct frame){ 0 };
	return (struct frame){ true, rule->cfa.reg, rule->cfa.arg };
}

static bool may_be_same(const struct frame *a, const struct frame *b)
{
	return !a->is_known || !b->is_known || (a->reg == b->reg && a->arg == b->arg);
}

/* Code that drops the return address of the call that leads there: the call is a jump. */
static bool is_jump(const struct function *f, uint64_t callee)
{
	size_t at = (size_t)(callee - f->f->addr);
	uint64_t to;

	return uni_image_arch(f->r->img)->branch(
		       f->code + at, (size_t)f->f->size - at, callee, &to) == UNI_BRANCH_DROP;
}

static bool add_call(struct function *f, uint64_t ret, uint64_t callee)
{
	const struct uni_symbol *to = uni_image_lookup(f->r->img, callee);

	/* To a place within: a thunk that returns to where it was told, or just returns. */
	if (to == f->f && to->addr != callee) {
		f->is_odd = f->is_odd || !is_jump(f, callee);
		f->has_pushed = true;
		return uni_vec_push(&f->r->target, callee);
	}
	return to == NULL || to->addr != callee ||
	       uni_vec_push(&f->r->call, ((struct uni_skid_call){ ret, callee, 0 }));
}

/* It leaves for the function at `to`, be it for a place within, or for nobody knows which. */
static void add_end(struct function *f, uint64_t to)
{
	f->end = f->end == 0 || f->end == to ? to : UNI_SKID_ANYWHERE;
}

static bool add_jump(struct function *f, uint64_t at, uint64_t to)
{
	struct reader *r = f->r;
	const struct uni_symbol *other;
	struct hop hop = { f->f->addr, 0, frame_at(r, at) };

	if (uni_range_has(f->f->addr, f->f->size, to))
		return uni_vec_push(&r->target, to);
	other = uni_image_lookup(r->img, to);
	add_end(f, other != NULL ? other->addr : UNI_SKID_ANYWHERE);
	if (other == NULL)
		return true;
	hop.to = other->addr;
	if (other->addr == to)
		return uni_vec_push(&r->tail, to) && uni_vec_push(&r->out, hop);
	return uni_vec_push(&r->target, to) && uni_vec_push(&r->shared, to) &&
	       uni_vec_push(&r->together, hop);
}

static bool is_part(const struct reader *r, const struct uni_symbol *f)
{
	return strstr(uni_image_sym_name(r->img, f), ".cold") != NULL;
}

/*
 * The entries of a switch's table, and of those of the same function that are directly behind it:
 * jumps lead there, too. It is none if it does not begin with a place in the function. False: no
 * memory.
 */
static bool add_table(struct function *f, uint64_t table, bool *is_switch_ret)
{
	struct reader *r = f->r;
	const struct uni_symbol *in;
	uint64_t to;
	bool ok = true;

	*is_switch_ret = false;
	for (size_t i = 0; ok; i++, r->table_entries++) {
		if (r->table_entries == TABLES_MOST) {
			*is_switch_ret = false;
			break;
		}
		if (!uni_image_bytes(r->img, table + i * sizeof(to), &to, sizeof(to)))
			break;
		in = uni_image_lookup(r->img, to);
		if (in == NULL || (in != f->f && !is_part(r, in))) {
			/* A function behind cases: a tail call of the same table, or another one.
			 */
			if (*is_switch_ret && in != NULL && in->addr == to)
				add_end(f, UNI_SKID_ANYWHERE);
			break;
		}
		*is_switch_ret = *is_switch_ret || (i == 0 && in == f->f && to != in->addr);
		ok = uni_vec_push(&r->target, to);
	}
	return ok;
}

static bool add_pointer(struct function *f, uint64_t at, uint64_t table)
{
	struct hop hop = { f->f->addr, 0, frame_at(f->r, at) };
	bool is_switch = false;

	if (table != 0 && !add_table(f, table, &is_switch))
		return false;
	if (!is_switch)
		add_end(f, UNI_SKID_ANYWHERE);
	return is_switch || uni_vec_push(&f->r->pointer, hop);
}

/* Nothing is on the stack but the return address, as far as rows or the code before tell. */
static bool drops_return(const struct function *f, uint64_t at)
{
	struct frame here = frame_at(f->r, at);
	const struct uni_arch *a = uni_image_arch(f->r->img);

	return !f->has_pushed && !is_part(f->r, f->f) &&
	       (!here.is_known || (here.reg == a->sp_reg && here.arg == (int32_t)a->word));
}

static bool read_branch(struct function *f, const uint8_t *code, size_t size, uint64_t at)
{
	enum uni_branch last = f->last;
	uint64_t to = 0;
	enum uni_branch b = uni_image_arch(f->r->img)->branch(code, size, at, &to);

	f->last = b == UNI_BRANCH_PAD ? last : b;
	switch (b) {
	case UNI_BRANCH_CALL:
		return add_call(f, at + size, to);
	case UNI_BRANCH_POINTER:
		return uni_vec_push(&f->r->call, ((struct uni_skid_call){ to, 0, 0 }));
	case UNI_BRANCH_TRAP:
		return uni_vec_push(&f->r->call, ((struct uni_skid_call){ to, 0, UNI_SKID_TRAP }));
	case UNI_BRANCH_JUMP:
	case UNI_BRANCH_GOTO:
		return add_jump(f, at, to);
	case UNI_BRANCH_INDIRECT:
		return add_pointer(f, at, to);
	case UNI_BRANCH_AWAY:
		add_end(f, UNI_SKID_ANYWHERE);
		return true;
	case UNI_BRANCH_TOP:
	case UNI_BRANCH_ROOM:
		f->has_pushed = true;
		return true;
	case UNI_BRANCH_DROP:
		f->is_past = f->is_past || drops_return(f, at);
		return true;
	case UNI_BRANCH_RETURN:
		f->is_odd = f->is_odd || last == UNI_BRANCH_TOP;
		return true;
	default:
		return true;
	}
}

static bool goes_on(enum uni_branch last)
{
	return last == UNI_BRANCH_NONE || last == UNI_BRANCH_JUMP || last == UNI_BRANCH_TOP ||
	       last == UNI_BRANCH_DROP || last == UNI_BRANCH_TRAP;
}

static bool ends_block(enum uni_branch b)
{
	return b != UNI_BRANCH_NONE && b != UNI_BRANCH_TOP && b != UNI_BRANCH_DROP &&
	       b != UNI_BRANCH_PAD;
}

/* A function whose return, or unreadable code, leads nobody knows where. */
static bool add_odd(struct reader *r, uint64_t addr)
{
	return uni_vec_push(&r->odd, addr) &&
	       uni_vec_push(&r->pointer, ((struct hop){ addr, 0, { 0 } }));
}

/* A block that goes on into the function ends at its first branch: these places follow. */
static bool share_first_block(struct reader *r, uint64_t addr)
{
	const struct uni_symbol *f = uni_image_lookup(r->img, addr);
	const struct uni_arch *a = uni_image_arch(r->img);
	uint8_t code[FIRST_BLOCK];
	size_t n, size, i;

	if (f == NULL || f->addr != addr)
		return true;
	n = (size_t)uni_min(f->size, (uint64_t)sizeof(code));
	if (!uni_image_bytes(r->img, addr, code, n))
		return true;
	for (i = 0; i < n; i += size) {
		enum uni_branch b;
		uint64_t to = 0;

		size = a->insn_size == NULL ? a->insn : a->insn_size(code + i, n - i);
		if (size == 0 || size > n - i)
			break;
		b = a->branch(code + i, size, addr + i, &to);
		if (b == UNI_BRANCH_JUMP || b == UNI_BRANCH_GOTO)
			return uni_vec_push(&r->shared, addr + i + size) &&
			       (!uni_range_has(f->addr, f->size, to) ||
				       uni_vec_push(&r->shared, to));
		if (ends_block(b))
			break;
	}
	return true;
}

static bool read_function(struct reader *r, const struct uni_symbol *f, const uint8_t *code)
{
	const struct uni_arch *a = uni_image_arch(r->img);
	struct function fn = { .r = r, .f = f, .code = code };
	size_t size, i;
	bool ok = true;

	for (i = 0; ok && i < f->size; i += size) {
		size = a->insn_size == NULL ? a->insn : a->insn_size(code + i, (size_t)f->size - i);
		if (size == 0 || size > f->size - i) {
			fn.is_odd = true;
			size = 1;
		} else {
			ok = read_branch(&fn, code + i, size, f->addr + i);
		}
	}
	if (fn.is_odd)
		add_end(&fn, UNI_SKID_ANYWHERE);
	if (goes_on(fn.last)) {
		add_end(&fn, f->addr + i);
		ok = ok && uni_vec_push(&r->tail, f->addr + i) && share_first_block(r, f->addr + i);
	}
	return ok &&
	       uni_vec_push(
		       &r->entry, ((struct uni_skid_entry){ .svma = f->addr, .end = fn.end })) &&
	       (fn.end == 0 || uni_vec_push(&r->leaves, f->addr)) &&
	       (!fn.is_past || uni_vec_push(&r->past, f->addr)) &&
	       (!fn.is_odd || add_odd(r, f->addr));
}

/* Linkers fill with zeros, which need not be whole instructions. */
static bool is_padding(const struct uni_arch *a, const uint8_t *code)
{
	return a->insn_size != NULL && code[0] == 0;
}

/* The jumps of code that no symbol covers, as of a section of fix-ups. */
static bool read_nameless(struct reader *r, const struct uni_segment *seg, size_t at, size_t end)
{
	const struct uni_arch *a = uni_image_arch(r->img);
	/* Each jump leads out of nothing. */
	const struct uni_symbol nothing = { .addr = seg->vaddr + at };
	struct function fn = { .r = r, .f = &nothing };
	size_t size;
	bool ok = true;

	for (; ok && at < end; at += size) {
		const uint8_t *code = seg->bytes + at;
		enum uni_branch b;
		uint64_t to = 0;

		size = a->insn_size == NULL ? a->insn : a->insn_size(code, end - at);
		if (size == 0 || size > end - at || is_padding(a, code)) {
			size = a->insn;
			continue;
		}
		b = a->branch(code, size, seg->vaddr + at, &to);
		if (b == UNI_BRANCH_JUMP || b == UNI_BRANCH_GOTO)
			ok = add_jump(&fn, seg->vaddr + at, to);
	}
	return ok;
}

/* All that lies between the symbols of a segment. */
static bool read_gaps(struct reader *r, const struct uni_segment *seg)
{
	size_t end = 0; /* of the symbols so far, from the segment's beginning */
	bool ok = true;

	for (size_t i = 0; ok && i < uni_image_nr_symbols(r->img); i++) {
		const struct uni_symbol *f = uni_image_symbol(r->img, i);
		size_t begin = (size_t)(f->addr - seg->vaddr);

		if (!uni_range_has(seg->vaddr, seg->file_size, f->addr))
			continue;
		if (begin > end)
			ok = read_nameless(r, seg, end, begin);
		end = uni_max(end, begin + (size_t)f->size);
	}
	return ok && (end >= seg->file_size || read_nameless(r, seg, end, seg->file_size));
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
		else if (last->callee != r->call.v[i].callee || last->flags != r->call.v[i].flags)
			*last = (struct uni_skid_call){ .ret = last->ret };
	}
	r->call.nr = nr;
}

static int compare_hops(const void *a, const void *b)
{
	const struct hop *p = a, *q = b;

	return p->from < q->from ? -1 : p->from > q->from;
}

/* The first jump by a pointer of the function, so far as there is one. */
static size_t first_pointer(const struct reader *r, size_t nr, uint64_t from)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->pointer.v[mid].from < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void sort_pointers(struct reader *r)
{
	if (r->pointer.nr != 0)
		qsort(r->pointer.v, r->pointer.nr, sizeof(*r->pointer.v), compare_hops);
}

/* The part `to` of a function has the jumps of `from`. */
static bool give_pointers(struct reader *r, size_t sorted, uint64_t from, uint64_t to)
{
	size_t i = first_pointer(r, sorted, from);
	bool has = i < sorted && r->pointer.v[i].from == from;

	return !has || uni_vec_push(&r->pointer, ((struct hop){ to, 0, { 0 } }));
}

/* A jump to a thunk is one by a pointer; the parts of a function have each other's jumps. */
static bool join_pointers(struct reader *r)
{
	bool ok = true;
	size_t nr;

	sort_addresses(r->odd.v, r->odd.nr);
	for (size_t i = 0; ok && i < r->out.nr; i++) {
		const struct hop *h = &r->out.v[i];

		if (has_address(r->odd.v, r->odd.nr, h->to))
			ok = uni_vec_push(&r->pointer, *h);
		else if (is_part(r, uni_image_lookup(r->img, h->to)))
			ok = uni_vec_push(&r->together, *h);
	}
	uni_vec_foreach (h, &r->pointer) {
		struct frame entry = frame_at(r, h->from);

		r->has_tail_pointers = r->has_tail_pointers || may_be_same(&entry, &h->frame);
	}
	sort_pointers(r);
	nr = r->pointer.nr;
	for (size_t i = 0; ok && i < r->together.nr; i++) {
		const struct hop *h = &r->together.v[i];

		ok = give_pointers(r, nr, h->from, h->to) && give_pointers(r, nr, h->to, h->from);
	}
	sort_pointers(r);
	return ok;
}

/* May a jump by a pointer of this function lead there? Not with another stack pointer. */
static bool is_pointed(const struct reader *r, const struct uni_symbol *f, uint64_t svma)
{
	struct frame there = frame_at(r, svma);
	size_t first = f == NULL ? r->pointer.nr : first_pointer(r, r->pointer.nr, f->addr);

	for (size_t i = first; i < r->pointer.nr && r->pointer.v[i].from == f->addr; i++) {
		if (i - first == POINTER_MOST || may_be_same(&r->pointer.v[i].frame, &there))
			return true;
	}
	return false;
}

static void judge_call(const struct reader *r, struct uni_skid_call *c)
{
	bool leaves = has_address(r->leaves.v, r->leaves.nr, c->callee);

	if (!has_address(r->target.v, r->target.nr, c->ret) &&
		!is_pointed(r, uni_image_lookup(r->img, c->ret - 1), c->ret))
		c->flags |= UNI_SKID_BEHIND;
	if (c->callee == 0)
		return;
	if (!leaves)
		c->flags |= UNI_SKID_RETURNS;
	if (!has_address(r->target.v, r->target.nr, c->callee) &&
		!is_pointed(r, uni_image_lookup(r->img, c->callee), c->callee) &&
		!(leaves && has_address(r->tail.v, r->tail.nr, c->callee)))
		c->flags |= UNI_SKID_ENTERS;
}

/* A function whose callee returns past it has not run last before it is returned from. */
static bool skip_callers(struct reader *r)
{
	bool ok = true;

	sort_addresses(r->past.v, r->past.nr);
	for (size_t i = 0; ok && i < r->call.nr; i++) {
		const struct uni_skid_call *c = &r->call.v[i];
		const struct uni_symbol *f = uni_image_lookup(r->img, c->ret - 1);

		if (f != NULL && has_address(r->past.v, r->past.nr, c->callee))
			ok = uni_vec_push(&r->leaves, f->addr);
	}
	return ok;
}

static bool judge_calls(struct reader *r)
{
	if (!skip_callers(r))
		return false;
	sort_addresses(r->target.v, r->target.nr);
	sort_addresses(r->tail.v, r->tail.nr);
	sort_addresses(r->leaves.v, r->leaves.nr);
	sort_addresses(r->shared.v, r->shared.nr);
	merge_calls(r);
	if (!join_pointers(r))
		return false;
	uni_vec_foreach (c, &r->call)
		judge_call(r, c);
	uni_vec_foreach (e, &r->entry) {
		e->is_repeated = has_address(r->target.v, r->target.nr, e->svma) ||
				 is_pointed(r, uni_image_lookup(r->img, e->svma), e->svma);
		e->is_jumped = e->is_repeated || has_address(r->tail.v, r->tail.nr, e->svma);
	}
	if (r->entry.nr != 0)
		qsort(r->entry.v, r->entry.nr, sizeof(*r->entry.v), compare_entries);
	return true;
}

int uni_skid_read(const struct uni_image *img, const struct uni_cfi_table *rows, uint64_t bias,
	struct uni_skid *ret)
{
	struct reader r = { .img = img, .rows = rows, .bias = bias };
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
	for (size_t i = 0; ok && i < uni_image_nr_segments(img); i++) {
		if (uni_image_segment(img, i)->exec)
			ok = read_gaps(&r, uni_image_segment(img, i));
	}
	ok = ok && judge_calls(&r);
	uni_vec_free(&r.target);
	uni_vec_free(&r.tail);
	uni_vec_free(&r.leaves);
	uni_vec_free(&r.odd);
	uni_vec_free(&r.past);
	uni_vec_free(&r.pointer);
	uni_vec_free(&r.out);
	uni_vec_free(&r.together);
	*ret = (struct uni_skid){ r.call.v, r.call.nr, r.entry.v, r.entry.nr, r.has_tail_pointers,
		r.shared.v, r.shared.nr };
	if (!ok)
		uni_skid_deinit(ret);
	return ok ? 0 : -UNI_ENOMEM;
}

void uni_skid_deinit(struct uni_skid *s)
{
	free(s->call);
	free(s->entry);
	free(s->shared);
	*s = (struct uni_skid){ 0 };
}
