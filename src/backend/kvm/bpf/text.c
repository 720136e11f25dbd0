/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/text.h"

#include <stdlib.h>
#include <string.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"

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

int uni_kvm_text_add_cfi(
	struct uni_kvm_text *t, const struct uni_arch *arch, const struct uni_unwind_hints *hints)
{
	const struct uni_cfi_table *table = hints->cfi;
	uint64_t shift = table->base - hints->text_start;

	t->nr_cfi = uni_min(table->nr_rules, UINT16_MAX);
	t->cfi = calloc(t->nr_cfi + 1, sizeof(*t->cfi));
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
				t->text[off / 8].cfi[off % 8] = (uint16_t)rule;
		}
	}
	return 0;
}

void uni_kvm_text_free(struct uni_kvm_text *t)
{
	free(t->text);
	free(t->cfi);
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
