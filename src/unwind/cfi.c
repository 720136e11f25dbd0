/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps by an image's unwind rows (arch/cfi.h). */
#include "arch/cfi.h"

#include "base/checked.h"
#include "unwind/expr.h"
#include "unwind/unwind.h"

struct frame {
	const struct uni_unwinder *u;
	const struct uni_cfi_table *t;
	const struct uni_cfi_rule *rule;
	struct uni_as *as;
	const struct uni_regs *regs; /* of the callee */
	uint64_t cfa;
};

static enum uni_stop stop_of(int rc)
{
	if (rc == -UNI_EBUDGET)
		return UNI_STOP_BUDGET;
	return rc == -UNI_EGONE ? UNI_STOP_GONE : UNI_STOP_FAULT;
}

static int eval(const struct frame *f, int32_t first, const uint64_t *cfa, uint64_t *ret)
{
	return uni_cfi_eval(f->t, (uint32_t)first, f->u->arch, f->as, f->regs, cfa, ret);
}

static int find_cfa(struct frame *f)
{
	const struct uni_cfi_val *v = &f->rule->cfa;

	if (v->how == UNI_CFI_IS_EXPR)
		return eval(f, v->arg, NULL, &f->cfa);
	if (!uni_cfi_register(f->u->arch, f->regs, v->reg, &f->cfa))
		return -UNI_EINVAL;
	f->cfa += (uint64_t)(int64_t)v->arg;
	return 0;
}

/* A register of the caller; `reg` is its number. -UNI_EINVAL: it is lost. */
static int value(const struct frame *f, const struct uni_cfi_val *v, unsigned reg, uint64_t *ret)
{
	uint64_t at = f->cfa + (uint64_t)(int64_t)v->arg;
	int rc;

	switch (v->how) {
	case UNI_CFI_SAME:
		return uni_cfi_register(f->u->arch, f->regs, reg, ret) ? 0 : -UNI_EINVAL;
	case UNI_CFI_AT_CFA:
		return uni_as_read_u64(f->as, uni_gva_of(at), ret);
	case UNI_CFI_IS_CFA:
		*ret = at;
		return 0;
	case UNI_CFI_REG:
		if (!uni_cfi_register(f->u->arch, f->regs, v->reg, ret))
			return -UNI_EINVAL;
		*ret += (uint64_t)(int64_t)v->arg;
		return 0;
	case UNI_CFI_AT_EXPR:
		rc = eval(f, v->arg, &f->cfa, &at);
		return rc != 0 ? rc : uni_as_read_u64(f->as, uni_gva_of(at), ret);
	case UNI_CFI_IS_EXPR:
		return eval(f, v->arg, &f->cfa, ret);
	default:
		return -UNI_EINVAL;
	}
}

/* A register that cannot be had is not known in the caller, which may do without. */
static void carry(
	const struct frame *f, const struct uni_cfi_val *v, unsigned reg, struct uni_regs *caller)
{
	uint64_t x;

	if (value(f, v, reg, &x) != 0) {
		caller->valid &= ~(1ull << reg);
		return;
	}
	uni_regs_set(caller, reg, x);
	if (reg == f->u->arch->sp_reg)
		caller->sp = x;
}

/* Is there code at a return address? Outside of all images what can be run is. */
static int check_pc(const struct frame *f, uint64_t pc, enum uni_stop *stop_ret)
{
	int rc;

	*stop_ret = UNI_STOP_ROOT;
	if (pc == 0)
		return 1;
	if (uni_hints_of(f->u->hints, pc - 1) != NULL)
		return 0;
	rc = uni_as_check_exec(f->as, uni_gva_of(pc - 1));
	*stop_ret = rc == -UNI_EFAULT ? UNI_STOP_BADPC : stop_of(rc);
	return rc != 0;
}

/*
 * The caller's registers in place of the callee's. Few rules are of more than the frame pointer;
 * these are all worked out from the callee's registers, so a copy of them is needed.
 */
static void enter_caller(struct frame *f, uint64_t pc, struct uni_regs *caller)
{
	const struct uni_arch *a = f->u->arch;
	const struct uni_cfi_rule *r = f->rule;
	struct uni_regs callee;
	uint64_t fp = 0;
	int rc = r->fp.how == UNI_CFI_SAME ? 0 : value(f, &r->fp, a->fp_reg, &fp);

	if (r->nr_other != 0) {
		callee = *caller;
		f->regs = &callee;
	}
	caller->valid &= f->t->regs | 1ull << a->fp_reg;
	caller->sp = f->cfa;
	caller->sp_valid = true;
	uni_regs_set(caller, a->sp_reg, f->cfa);
	if (rc != 0)
		caller->valid &= ~(1ull << a->fp_reg);
	else if (r->fp.how != UNI_CFI_SAME)
		uni_regs_set(caller, a->fp_reg, fp);
	for (unsigned i = 0; i < r->nr_other; i++) {
		const struct uni_cfi_val *v = &f->t->other[r->other + i];

		carry(f, v, v->of, caller);
	}
	f->regs = caller;
	caller->pc = pc;
	caller->pc_valid = true;
	uni_regs_set(caller, a->pc_reg, pc);
}

/*
 * Nearly all rules: a CFA above a register, return address and frame pointer on the stack at most.
 * The same as below, in few instructions. 0, or -UNI_EAGAIN: it is another kind, or something is
 * wrong with it.
 */
static int step_plain(const struct frame *f, struct uni_regs *regs)
{
	const struct uni_arch *a = f->u->arch;
	const struct uni_cfi_rule *r = f->rule;
	uint64_t cfa, pc, fp;

	if (r->cfa.how != UNI_CFI_REG || r->ra.how != UNI_CFI_AT_CFA || r->nr_other != 0 ||
		(r->fp.how != UNI_CFI_AT_CFA && r->fp.how != UNI_CFI_SAME))
		return -UNI_EAGAIN;
	if (!uni_regs_get(regs, r->cfa.reg, &cfa) || r->cfa.reg == a->pc_reg)
		return -UNI_EAGAIN;
	cfa += (uint64_t)(int64_t)r->cfa.arg;
	fp = regs->r[a->fp_reg];
	if (r->fp.how == UNI_CFI_AT_CFA &&
		uni_as_read_u64(f->as, uni_gva_of(cfa + (uint64_t)(int64_t)r->fp.arg), &fp) != 0)
		return -UNI_EAGAIN;
	if (uni_as_read_u64(f->as, uni_gva_of(cfa + (uint64_t)(int64_t)r->ra.arg), &pc) != 0)
		return -UNI_EAGAIN;
	pc = a->strip(regs, pc);
	if (pc == 0 || !uni_range_has(f->u->hints->text_start, f->u->hints->text_size, pc - 1))
		return -UNI_EAGAIN;
	regs->valid &= f->t->regs | 1ull << a->fp_reg;
	if (r->fp.how == UNI_CFI_AT_CFA)
		uni_regs_set(regs, a->fp_reg, fp);
	uni_regs_set(regs, a->sp_reg, cfa);
	uni_regs_set(regs, a->pc_reg, pc);
	regs->sp = cfa;
	regs->pc = pc;
	regs->sp_valid = regs->pc_valid = true;
	return 0;
}

static void find_rule(struct frame *f, uint64_t pc)
{
	const struct uni_unwind_hints *h = f->u->hints;

	for (; h != NULL && f->rule == NULL; h = h->next) {
		f->t = h->cfi;
		f->rule = f->t != NULL ? uni_cfi_find(f->t, pc) : NULL;
	}
}

static int step(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	const struct uni_unwinder *u = ctx;
	struct frame f = { .u = u, .as = as, .regs = regs };
	uint64_t pc;
	int rc;

	/* A return address may be the first byte behind a function that never returns. */
	find_rule(&f, st->leaf ? regs->pc : regs->pc - 1);
	if (f.rule == NULL)
		return -UNI_ENOTSUP;
	st->exact = (f.rule->flags & UNI_CFI_SIGNAL) != 0;
	if (step_plain(&f, regs) == 0)
		return 0;
	st->exact = false;
	st->stop = UNI_STOP_ROOT;
	if (f.rule->ra.how == UNI_CFI_UNDEF)
		return 1;
	rc = find_cfa(&f);
	if (rc == 0)
		rc = value(&f, &f.rule->ra, u->arch->pc_reg, &pc);
	if (rc == -UNI_EINVAL)
		return -UNI_ENOTSUP;
	if (rc != 0) {
		st->stop = stop_of(rc);
		return 1;
	}
	pc = u->arch->strip(regs, pc);
	if (check_pc(&f, pc, &st->stop) != 0)
		return 1;
	enter_caller(&f, pc, regs);
	st->exact = (f.rule->flags & UNI_CFI_SIGNAL) != 0;
	return 0;
}

const struct uni_unwinder_ops uni_unwind_cfi = { .name = "cfi", .step = step };
