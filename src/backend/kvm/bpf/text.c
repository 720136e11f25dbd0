/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/text.h"

#include <stdlib.h>
#include <string.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"

#define TAKING_MAX 256u /* bytes of a function that takes another stack */
#define KEPT_MAX   64u	/* rules for such functions */

/*
 * Fills in function starts: of the function that reaches into each element, and of one that begins
 * there.
 */
static void fill_functions(const struct uni_unwind_hints *h, struct uni_bpf_text *t, size_t nr)
{
	uint32_t last = 0;
	size_t k = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t off = 0;

		t[i].func = last;
		for (; k < h->nr_funcs; k++) {
			off = h->func[k].start - h->text_start;
			if (off >= (i + 1) * 8)
				break;
			last = (uint32_t)off;
			if (off == i * 8)
				t[i].func = last;
			else
				t[i].next = last;
		}
	}
}

static uint8_t cfi_where(const struct uni_cfi_val *v)
{
	switch (v->how) {
	case UNI_CFI_SAME:
		return UNI_BPF_CFI_SAME;
	case UNI_CFI_AT_CFA:
		return UNI_BPF_CFI_AT_CFA;
	case UNI_CFI_UNDEF:
		return UNI_BPF_CFI_UNDEF;
	default:
		return UNI_BPF_CFI_NONE;
	}
}

/* The index in saved[] of a register, or UNI_BPF_SAVED. */
static unsigned saved_index(const struct uni_arch *arch, unsigned reg)
{
	static const uint8_t saved[UNI_BPF_SAVED] = { 3, 12, 13, 14, 15 }; /* DWARF's numbers */
	unsigned i = 0;

	while (i < UNI_BPF_SAVED && ((arch->callee_saved >> reg & 1) == 0 || saved[i] != reg))
		i++;
	return i;
}

static uint8_t cfa_base(const struct uni_arch *arch, unsigned reg)
{
	unsigned i = saved_index(arch, reg);

	if (reg == arch->sp_reg)
		return UNI_BPF_CFI_SP;
	if (reg == arch->fp_reg)
		return UNI_BPF_CFI_FP;
	return i < UNI_BPF_SAVED ? (uint8_t)(UNI_BPF_CFI_SAVED + i) : UNI_BPF_CFI_NONE;
}

static bool add_offset(int *to, int64_t v)
{
	return !__builtin_add_overflow(*to, v, to);
}

/* A register plus an offset; the word there plus an offset; and so on. */
static void convert_cfa_expr(
	const struct uni_cfi_op *op, const struct uni_arch *arch, struct uni_bpf_cfi *c)
{
	uint8_t of = op->opcode == UNI_CFI_OP_REG ? cfa_base(arch, op->arg2) : UNI_BPF_CFI_NONE;
	int *to = &c->cfa;

	c->cfa = 0;
	if (of == UNI_BPF_CFI_NONE || !add_offset(to, op->arg))
		return;
	for (op++; op->opcode != UNI_CFI_OP_END; op++) {
		if (op->opcode == UNI_CFI_OP_LOAD && op->arg == 8 && c->nr_loads < UNI_BPF_LOADS)
			to = &c->load[c->nr_loads++];
		else if (op->opcode != UNI_CFI_OP_ADD_CONST || !add_offset(to, op->arg))
			return;
	}
	c->cfa_of = of;
}

/* Registers besides the frame pointer. */
static void convert_others(const struct uni_cfi_table *table, const struct uni_cfi_rule *r,
	const struct uni_arch *arch, struct uni_bpf_cfi *c)
{
	memset(c->saved_how, UNI_BPF_CFI_SAME, sizeof(c->saved_how));
	for (unsigned i = 0; i < r->nr_other; i++) {
		const struct uni_cfi_val *v = &table->other[r->other + i];
		unsigned k = saved_index(arch, v->of);

		if (k < UNI_BPF_SAVED) {
			c->saved[k] = v->arg;
			c->saved_how[k] = cfi_where(v);
		}
		if (v->of != arch->sp_reg)
			continue;
		c->sp = v->arg;
		c->sp_how = cfi_where(v);
		if (c->sp_how != UNI_BPF_CFI_AT_CFA)
			c->cfa_of = UNI_BPF_CFI_NONE;
	}
}

static struct uni_bpf_cfi convert_rule(const struct uni_cfi_table *table,
	const struct uni_cfi_rule *r, const struct uni_arch *arch)
{
	struct uni_bpf_cfi c = { .cfa = r->cfa.arg, .ra = r->ra.arg, .fp = r->fp.arg };

	if (r->cfa.how == UNI_CFI_REG)
		c.cfa_of = cfa_base(arch, r->cfa.reg);
	else if (r->cfa.how == UNI_CFI_IS_EXPR)
		convert_cfa_expr(&table->op[r->cfa.arg], arch, &c);
	c.ra_how = cfi_where(&r->ra);
	if (c.ra_how == UNI_BPF_CFI_SAME)
		c.ra_how = UNI_BPF_CFI_NONE;
	c.fp_how = cfi_where(&r->fp);
	if (c.fp_how == UNI_BPF_CFI_UNDEF)
		c.fp_how = UNI_BPF_CFI_NONE;
	c.interrupted = (r->flags & UNI_CFI_SIGNAL) != 0;
	convert_others(table, r, arch, &c);
	/* There is no caller, so the place of its frame does not matter. */
	if (c.ra_how == UNI_BPF_CFI_UNDEF)
		c.cfa_of = UNI_BPF_CFI_SP;
	return c;
}

/* The code of a function that may take another stack, from its first byte on. */
struct taking {
	const struct uni_arch *arch;
	const uint8_t *code;
	size_t n;
	uint64_t off; /* of the first byte, from text_start */
};

static size_t insn_size(const struct taking *f, size_t i)
{
	size_t size = f->arch->insn_size(f->code + i, f->n - i);

	return size == 0 || size > f->n - i ? 1 : size;
}

/* Does a jump of the function lead into its code behind `from`, up to `to`, from elsewhere? */
static bool is_joined(const struct taking *f, size_t from, size_t to)
{
	for (size_t i = 0; i < f->n; i += insn_size(f, i)) {
		uint64_t target = 0;
		enum uni_branch b = f->arch->branch(f->code + i, f->n - i, i, &target);

		if ((b == UNI_BRANCH_JUMP || b == UNI_BRANCH_GOTO) &&
			target - from - 1 < to - from && (i <= from || i > to))
			return true;
	}
	return false;
}

static uint16_t *cfi_of(struct uni_kvm_text *t, uint64_t off)
{
	return &t->text[off / 8].cfi[off % 8];
}

static bool counts_from_sp(const struct uni_bpf_cfi *c)
{
	return c->cfa_of == UNI_BPF_CFI_SP && c->nr_loads == 0 && c->ra_how == UNI_BPF_CFI_AT_CFA;
}

/* If a register still has the stack pointer of before, the row of that place holds at i. */
static void use_kept(
	struct uni_kvm_text *t, const struct taking *f, size_t i, const struct uni_taken_stack *s)
{
	struct uni_bpf_cfi c, *last = &t->cfi[t->nr_cfi - 1];
	unsigned saved = s->kept ? saved_index(f->arch, s->reg) : UNI_BPF_SAVED;

	if (saved == UNI_BPF_SAVED)
		return;
	c = t->cfi[*cfi_of(t, f->off + s->at)];
	if (!counts_from_sp(&c) || is_joined(f, s->at, i))
		return;
	c.cfa_of = (uint8_t)(UNI_BPF_CFI_SAVED + saved);
	if (memcmp(&c, last, sizeof(c)) != 0) {
		if (t->nr_cfi == t->cap_cfi)
			return;
		t->cfi[t->nr_cfi++] = c;
	}
	for (size_t k = 0; k < insn_size(f, i); k++)
		*cfi_of(t, f->off + i + k) = (uint16_t)(t->nr_cfi - 1);
}

/* Is the instruction at i on a stack that was taken, though its row counts from the stack pointer?
 */
static bool is_on_taken(
	const struct uni_kvm_text *t, const struct taking *f, size_t i, struct uni_taken_stack *s)
{
	f->arch->find_stack(f->code, i, s);
	return s->taken && counts_from_sp(&t->cfi[t->text[(f->off + i) / 8].cfi[(f->off + i) % 8]]);
}

/* Rows that are wrong where a function has taken another stack, as in unwind/cfi.c. */
static bool use_kept_stacks(struct uni_kvm_text *t, const struct uni_arch *arch,
	const struct uni_unwind_hints *h, const struct uni_func_hint *func)
{
	const struct uni_cfi_rule *r = uni_cfi_find(h->cfi, func->start);
	struct taking f = { .arch = arch, .n = func->size, .off = func->start - h->text_start };
	uint8_t code[TAKING_MAX];

	if (r == NULL || (r->flags & UNI_CFI_TAKES_STACK) == 0 || f.n > sizeof(code) ||
		f.off >= h->text_size || f.n > h->text_size - f.off ||
		(f.off + f.n + 7) / 8 > t->nr)
		return true;
	for (size_t i = 0; i < f.n; i++)
		code[i] = (uint8_t)(t->text[(f.off + i) / 8].code >> (f.off + i) % 8 * 8);
	f.code = code;
	for (size_t i = 0; i < f.n; i += insn_size(&f, i)) {
		const struct uni_kvm_place place = { func->start + i, insn_size(&f, i),
			func->start };
		struct uni_taken_stack s;

		if (!is_on_taken(t, &f, i, &s))
			continue;
		if (!uni_vec_push(&t->taken.places, place))
			return false;
		use_kept(t, &f, i, &s);
	}
	return true;
}

static bool takes_stack(const struct uni_kvm_taken *t, uint64_t func)
{
	size_t i = 0;

	while (i < t->places.nr && t->places.v[i].func != func)
		i++;
	return i < t->places.nr;
}

/* Notes the calls of functions that take another stack, and calls by pointers. */
static bool note_calls(
	struct uni_kvm_text *t, const struct uni_arch *arch, const struct uni_unwind_hints *h)
{
	uint8_t before[UNI_CALL_BYTES] = { 0 };

	for (uint64_t off = 0; t->taken.places.nr != 0 && off < h->text_size; off++) {
		struct uni_kvm_call call = { .pc = h->text_start + off + 1 };

		if (off / 8 >= t->nr)
			break;
		memmove(before, before + 1, sizeof(before) - 1);
		before[sizeof(before) - 1] = (uint8_t)(t->text[off / 8].code >> off % 8 * 8);
		if (arch->after_call(before, call.pc, &call.func) &&
			(call.func == 0 || takes_stack(&t->taken, call.func)) &&
			!uni_vec_push(&t->taken.calls, call))
			return false;
	}
	return true;
}

bool uni_kvm_taken_is_guess(const struct uni_kvm_taken *t, uint64_t at, uint64_t caller)
{
	size_t i = 0, low = 0, high = t->calls.nr;

	while (i < t->places.nr && !uni_range_has(t->places.v[i].start, t->places.v[i].size, at))
		i++;
	if (i == t->places.nr)
		return false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct uni_kvm_call *call = &t->calls.v[mid];

		if (call->pc == caller)
			return call->func != 0 && call->func != t->places.v[i].func;
		if (call->pc < caller)
			low = mid + 1;
		else
			high = mid;
	}
	return true;
}

void uni_kvm_taken_free(struct uni_kvm_taken *t)
{
	uni_vec_free(&t->places);
	uni_vec_free(&t->calls);
}

int uni_kvm_text_add_cfi(
	struct uni_kvm_text *t, const struct uni_arch *arch, const struct uni_unwind_hints *hints)
{
	const struct uni_cfi_table *table = hints->cfi;
	uint64_t shift = table->base - hints->text_start;

	t->nr_cfi = uni_min(table->nr_rules, UINT16_MAX);
	t->cap_cfi = uni_min(t->nr_cfi + KEPT_MAX, UINT16_MAX);
	t->cfi = calloc(t->cap_cfi + 1, sizeof(*t->cfi));
	if (t->cfi == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 1; i < t->nr_cfi; i++)
		t->cfi[i] = convert_rule(table, &table->rule[i], arch);
	for (uint32_t i = 0; i + 1 < table->nr_rows; i++) {
		uint32_t rule = table->row[i].rule;

		if (rule >= t->nr_cfi)
			continue;
		for (uint32_t at = table->row[i].start; at < table->row[i + 1].start; at++) {
			uint64_t off = shift + at;

			if (off < hints->text_size && off / 8 < t->nr)
				*cfi_of(t, off) = (uint16_t)rule;
		}
	}
	for (size_t i = 0; arch->find_stack != NULL && i < hints->nr_funcs; i++) {
		if (!use_kept_stacks(t, arch, hints, &hints->func[i]))
			return -UNI_ENOMEM;
	}
	return note_calls(t, arch, hints) ? 0 : -UNI_ENOMEM;
}

void uni_kvm_text_free(struct uni_kvm_text *t)
{
	free(t->text);
	free(t->cfi);
	uni_kvm_taken_free(&t->taken);
	*t = (struct uni_kvm_text){ 0 };
}

/* Fills in bytes, rules and function starts. */
static int make_text(const struct uni_arch *arch, const struct uni_unwind_hints *hints,
	const struct uni_kvm_code *code, struct uni_kvm_text *t)
{
	size_t n = (size_t)hints->text_size, nr = (n + 7) / 8;
	_cleanup_free_ uint8_t *bytes = calloc(nr + 1, 8);
	_cleanup_free_ uint8_t *rule = calloc(nr + 1, 8);

	t->text = calloc(nr + 1, sizeof(*t->text));
	if (bytes == NULL || rule == NULL || t->text == NULL)
		return -UNI_ENOMEM;
	t->nr = nr;
	code->read(code->ctx, hints->text_start, bytes, n);
	if (arch->leaf_rules != NULL && arch->leaf_rules(hints, bytes, n, rule) != 0)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		t->text[i].code = uni_le64(bytes + 8 * i);
		t->text[i].rule = uni_le64(rule + 8 * i);
	}
	fill_functions(hints, t->text, nr);
	return 0;
}

int uni_kvm_text_make(const struct uni_arch *arch, const struct uni_unwind_hints *hints,
	const struct uni_kvm_code *code, struct uni_kvm_text *ret, struct uni_err *err)
{
	struct uni_kvm_text t = { 0 };
	int rc;

	if (hints->text_size > UNI_KVM_TEXT_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the image has more than %u MiB of code: too much for the kernel side",
			UNI_KVM_TEXT_MAX >> 20);
	rc = make_text(arch, hints, code, &t);
	if (rc == 0 && hints->cfi != NULL && uni_hints_frameless(hints))
		rc = uni_kvm_text_add_cfi(&t, arch, hints);
	if (rc == 0) {
		*ret = t;
		return 0;
	}
	uni_kvm_text_free(&t);
	return uni_err_nomem(err);
}
