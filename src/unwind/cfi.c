/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps by an image's unwind rows (arch/cfi.h). */
#include "arch/cfi.h"

#include "base/checked.h"
#include "base/cursor.h"
#include "unwind/expr.h"
#include "unwind/lost.h"
#include "unwind/unwind.h"

#define RED_ZONE	 128u /* System V psABI 3.2.2 */
#define CODE_BYTES	 32u  /* of the end of a function */
#define STACK_CODE_BYTES 256  /* from a function's first byte on */
#define AHEAD_MAX	 24u  /* instructions that are worked out */

struct frame {
	const struct uni_unwinder *u;
	const struct uni_cfi_table *t;
	const struct uni_cfi_rule *rule;
	struct uni_as *as;
	const struct uni_regs *regs; /* of the callee */
	uint64_t pc;		     /* in the callee's code */
	uint64_t cfa;
};

static enum uni_stop stop_of(int rc)
{
	if (rc == -UNI_EBUDGET)
		return UNI_STOP_BUDGET;
	return rc == -UNI_EGONE ? UNI_STOP_GONE : UNI_STOP_FAULT;
}

static int eval_expr(const struct frame *f, int32_t first, const uint64_t *cfa, uint64_t *ret)
{
	return uni_cfi_eval(f->t, (uint32_t)first, f->u->arch, f->as, f->regs, cfa, ret);
}

static int find_cfa(struct frame *f)
{
	const struct uni_cfi_val *v = &f->rule->cfa;

	if (v->how == UNI_CFI_IS_EXPR)
		return eval_expr(f, v->arg, NULL, &f->cfa);
	if (!uni_cfi_register(f->u->arch, f->regs, v->reg, &f->cfa))
		return -UNI_EINVAL;
	f->cfa += (uint64_t)(int64_t)v->arg;
	return 0;
}

static bool is_popped(const struct frame *f, uint64_t at)
{
	return f->regs->sp_valid && f->regs->sp - at - 1 < RED_ZONE;
}

/* The code has popped its return address: a scan above the stack pointer could not find it. */
static bool has_popped_pc(const struct frame *f)
{
	const struct uni_cfi_val *ra = &f->rule->ra;

	return ra->how == UNI_CFI_AT_CFA && is_popped(f, f->cfa + (uint64_t)(int64_t)ra->arg);
}

/*
 * Behind the pops of an epilogue, rows still name the words below the stack pointer. If these
 * cannot be read: the register has its value back.
 */
static bool was_taken_back(const struct frame *f, uint64_t at, unsigned reg, uint64_t *ret)
{
	return reg != f->u->arch->pc_reg && is_popped(f, at) &&
	       uni_cfi_register(f->u->arch, f->regs, reg, ret);
}

/* A register of the caller; `reg` is its number. -UNI_EINVAL: it is lost. */
static int register_value(
	const struct frame *f, const struct uni_cfi_val *v, unsigned reg, uint64_t *ret)
{
	uint64_t at = f->cfa + (uint64_t)(int64_t)v->arg;
	int rc;

	switch (v->how) {
	case UNI_CFI_SAME:
		return uni_cfi_register(f->u->arch, f->regs, reg, ret) ? 0 : -UNI_EINVAL;
	case UNI_CFI_AT_CFA:
		rc = uni_as_read_u64(f->as, uni_gva_of(at), ret);
		return rc == -UNI_EFAULT && was_taken_back(f, at, reg, ret) ? 0 : rc;
	case UNI_CFI_IS_CFA:
		*ret = at;
		return 0;
	case UNI_CFI_REG:
		if (!uni_cfi_register(f->u->arch, f->regs, v->reg, ret))
			return -UNI_EINVAL;
		*ret += (uint64_t)(int64_t)v->arg;
		return 0;
	case UNI_CFI_AT_EXPR:
		rc = eval_expr(f, v->arg, &f->cfa, &at);
		return rc != 0 ? rc : uni_as_read_u64(f->as, uni_gva_of(at), ret);
	case UNI_CFI_IS_EXPR:
		return eval_expr(f, v->arg, &f->cfa, ret);
	default:
		return -UNI_EINVAL;
	}
}

/* If the register cannot be had, it is unknown in the caller, which may not need it. */
static void carry_register(
	const struct frame *f, const struct uni_cfi_val *v, unsigned reg, struct uni_regs *caller)
{
	uint64_t x;

	if (register_value(f, v, reg, &x) != 0) {
		caller->valid &= ~(1ull << reg);
		return;
	}
	uni_regs_set(caller, reg, x);
	if (reg == f->u->arch->sp_reg)
		caller->sp = x;
}

/*
 * Pages of data may be executable, too. Code that was interrupted may be anywhere, and copies of
 * stacks have no code.
 */
static bool may_be_called(const struct frame *f, uint64_t pc)
{
	const struct uni_arch *a = f->u->arch;
	uint8_t before[UNI_CALL_BYTES];
	uint64_t target;

	if (a->after_call == NULL || (f->rule->flags & UNI_CFI_SIGNAL) != 0)
		return true;
	return pc < sizeof(before) ||
	       uni_as_read(f->as, uni_gva_of(pc - sizeof(before)), before, sizeof(before)) != 0 ||
	       a->after_call(before, pc, &target);
}

/*
 * Is there code at a return address? Outside of all images, any executable page behind a call
 * counts as code.
 */
static int check_pc(const struct frame *f, uint64_t pc, enum uni_stop *stop_ret)
{
	int rc;

	*stop_ret = uni_hints_is_first(f->u->hints, f->pc) ? UNI_STOP_ROOT : UNI_STOP_BADPC;
	if (pc == 0)
		return 1;
	if (uni_hints_of(f->u->hints, pc - 1) != NULL)
		return 0;
	rc = uni_as_check_exec(f->as, uni_gva_of(pc - 1));
	if (rc == 0 && !may_be_called(f, pc))
		rc = -UNI_EFAULT;
	*stop_ret = rc == -UNI_EFAULT ? UNI_STOP_BADPC : stop_of(rc);
	return rc != 0;
}

/*
 * Replaces the callee's registers by the caller's. Few rules have more than the frame pointer.
 * Those rules are worked out from the callee's registers, so they need a copy of them.
 */
static void enter_caller(struct frame *f, uint64_t pc, struct uni_regs *caller)
{
	const struct uni_arch *a = f->u->arch;
	const struct uni_cfi_rule *r = f->rule;
	struct uni_regs callee;
	uint64_t fp = 0;
	int rc = r->fp.how == UNI_CFI_SAME ? 0 : register_value(f, &r->fp, a->fp_reg, &fp);

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

		carry_register(f, v, v->of, caller);
	}
	f->regs = caller;
	caller->pc = pc;
	caller->pc_valid = true;
	uni_regs_set(caller, a->pc_reg, pc);
}

/*
 * Nearly all rules are plain. The CFA is a register plus an offset, and the return address is on
 * the stack. The frame pointer is on the stack or untouched.
 */
static bool is_plain(const struct uni_cfi_rule *r)
{
	return r->cfa.how == UNI_CFI_REG && r->ra.how == UNI_CFI_AT_CFA && r->nr_other == 0 &&
	       r->flags == 0 && (r->fp.how == UNI_CFI_AT_CFA || r->fp.how == UNI_CFI_SAME);
}

/* The values that change from frame to frame while all rules are plain. */
struct plain {
	uint64_t pc, sp, fp;
	bool fp_valid, exact;
	struct uni_as_window window; /* of the stack */
};

/* Most words are in the window: a read in few instructions. */
static inline bool read_word(struct uni_as *as, struct uni_as_window *w, uint64_t va, uint64_t *ret)
{
	uint64_t offset = va - w->va;

	if (offset < w->words) {
		*ret = uni_le64(w->bytes + offset);
		return true;
	}
	if (uni_as_read_u64(as, uni_gva_of(va), ret) != 0)
		return false;
	uni_as_look(as, w);
	return true;
}

/* One frame up. False: only step_cfi() can do this step; p is unchanged. */
static bool plain_step(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct plain *p)
{
	const struct uni_unwind_hints *h = u->hints;
	const struct uni_cfi_rule *r = uni_cfi_recall(h->cfi, p->exact ? p->pc : p->pc - 1);
	uint64_t cfa, pc, fp = p->fp;

	if (r == NULL || !is_plain(r))
		return false;
	if (r->cfa.reg == u->arch->sp_reg)
		cfa = p->sp;
	else if (r->cfa.reg == u->arch->fp_reg && p->fp_valid)
		cfa = p->fp;
	else
		return false;
	cfa += (uint64_t)(int64_t)r->cfa.arg;
	if (cfa <= p->sp)
		return false;
	if (r->fp.how == UNI_CFI_AT_CFA &&
		!read_word(as, &p->window, cfa + (uint64_t)(int64_t)r->fp.arg, &fp))
		return false;
	if (!read_word(as, &p->window, cfa + (uint64_t)(int64_t)r->ra.arg, &pc))
		return false;
	if (u->arch->strip != uni_arch_keep_pc)
		pc = u->arch->strip(regs, pc);
	if (pc == 0 || !uni_range_has(h->text_start, h->text_size, pc - 1))
		return false;
	p->pc = pc;
	p->sp = cfa;
	p->fp = fp;
	p->fp_valid = p->fp_valid || r->fp.how == UNI_CFI_AT_CFA;
	p->exact = false;
	return true;
}

/* Does what repeated calls of step_cfi() do, in a fraction of the instructions. */
static void run_cfi(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st,
	struct uni_chain *c, uint16_t max)
{
	const struct uni_unwinder *u = ctx;
	const struct uni_arch *a = u->arch;
	struct plain p = { .pc = regs->pc,
		.sp = regs->sp,
		.fp = regs->r[a->fp_reg],
		.fp_valid = (regs->valid >> a->fp_reg & 1) != 0,
		.exact = st->exact };
	uint16_t before = c->nr;

	if (u->hints == NULL || u->hints->cfi == NULL || !regs->sp_valid)
		return;
	while (c->nr < max && plain_step(u, as, regs, &p)) {
		c->pc[c->nr] = p.pc;
		c->sp[c->nr] = p.sp;
		c->flags[c->nr++] = 0;
	}
	if (c->nr == before)
		return;
	regs->valid &= u->hints->cfi->regs;
	if (p.fp_valid)
		uni_regs_set(regs, a->fp_reg, p.fp);
	uni_regs_set(regs, a->sp_reg, p.sp);
	uni_regs_set(regs, a->pc_reg, p.pc);
	regs->sp = p.sp;
	regs->pc = p.pc;
	st->exact = false;
}

static void find_rule(struct frame *f, uint64_t pc)
{
	const struct uni_unwind_hints *h = f->u->hints;

	for (; h != NULL && f->rule == NULL; h = h->next) {
		f->t = h->cfi;
		f->rule = f->t != NULL ? uni_cfi_recall(f->t, pc) : NULL;
	}
}

/*
 * The rows of a function may be wrong where it takes another stack and returns there, as OCaml 4
 * raises an exception. The code itself says where the return address of an interrupted function is.
 */
static bool returns_to(struct frame *f, const struct uni_step *st, uint64_t *pc_ret)
{
	const struct uni_arch *a = f->u->arch;
	uint8_t code[CODE_BYTES];
	enum uni_stop ignored;
	uint32_t offset;
	uint64_t at;
	size_t n;

	if (!st->leaf || a->epilogue == NULL || !f->regs->sp_valid)
		return false;
	n = uni_as_read_some(f->as, uni_gva_of(f->regs->pc), code, sizeof(code));
	if (!a->epilogue(code, n, &offset))
		return false;
	at = f->regs->sp + offset;
	if (uni_as_read_u64(f->as, uni_gva_of(at), pc_ret) != 0 || *pc_ret == 0 ||
		check_pc(f, *pc_ret, &ignored) != 0)
		return false;
	f->cfa = at + a->word;
	return true;
}

/* The caller's pc, and the CFA, by f->rule. 1: there is none, and st->stop says why. */
static int follow_rule(struct frame *f, struct uni_step *st, uint64_t *pc_ret)
{
	enum uni_stop stop_by_rows;
	int rc = find_cfa(f);

	if (rc == 0 && has_popped_pc(f) && returns_to(f, st, pc_ret))
		return 0;
	if (rc == 0)
		rc = register_value(f, &f->rule->ra, f->u->arch->pc_reg, pc_ret);
	if (rc == -UNI_EINVAL)
		return -UNI_ENOTSUP;
	if (rc != 0) {
		st->stop = stop_of(rc);
		st->elsewhere = f->rule->cfa.how == UNI_CFI_IS_EXPR || has_popped_pc(f);
		return 1;
	}
	*pc_ret = f->u->arch->strip(f->regs, *pc_ret);
	if (check_pc(f, *pc_ret, &stop_by_rows) == 0)
		return 0;
	st->stop = stop_by_rows;
	return stop_by_rows == UNI_STOP_BADPC && returns_to(f, st, pc_ret) ? 0 : 1;
}

/* What does a caller have that code of its callee returned to? Its registers are those at hand. */
static const struct uni_cfi_rule returned = { .fp.how = UNI_CFI_SAME };

/* Do the registers at hand have a caller, by the rows of their pc? */
static bool is_known_ahead(struct frame *f, const struct uni_ahead *a, uint64_t *pc_ret)
{
	struct uni_step st = { .leaf = false };

	if (a->returned) {
		f->rule = &returned;
		f->cfa = a->regs.sp;
		*pc_ret = a->regs.pc;
		return *pc_ret != 0 && check_pc(f, *pc_ret, &st.stop) == 0;
	}
	return f->rule->ra.how != UNI_CFI_UNDEF && follow_rule(f, &st, pc_ret) == 0;
}

/*
 * Rows may be wrong where a function takes another stack. OCaml 4 has those of a return behind it,
 * and OCaml 5 those of the stack that it leaves. So the code is worked out from the pc on. At the
 * first place with other rows, or another stack pointer, that has a caller, this is the caller.
 */
static bool go_ahead(struct frame *f, struct uni_ahead *a, uint64_t *pc_ret)
{
	const struct uni_cfi_rule *tried = f->rule;
	uint64_t sp = f->regs->sp;

	a->regs = *f->regs;
	a->nr_stored = 0;
	a->returned = false;
	f->regs = &a->regs;
	for (unsigned i = 0; i < AHEAD_MAX && f->u->arch->ahead(f->as, a); i++) {
		f->rule = NULL;
		find_rule(f, a->regs.pc);
		if (f->rule == NULL && !a->returned)
			return false;
		if (f->rule == tried && a->regs.sp == sp && !a->returned)
			continue;
		if (is_known_ahead(f, a, pc_ret))
			return true;
		tried = f->rule;
		sp = a->regs.sp;
	}
	return false;
}

/* Rows named no caller: may they be wrong? A word that a pause did not copy is no sign of it. */
static bool may_be_wrong(const struct frame *f, const struct uni_step *st)
{
	if (f->u->arch->ahead == NULL)
		return false;
	return st->stop == UNI_STOP_BADPC ||
	       (st->leaf && st->stop == UNI_STOP_FAULT && !uni_as_missed(f->as));
}

/* Has the function at f taken another stack? *start_ret is its first byte. */
static struct uni_taken_stack find_stack(const struct frame *f, uint64_t *start_ret)
{
	const struct uni_func_hint *func = uni_hints_find(f->u->hints, f->pc);
	struct uni_taken_stack ret = { 0 };
	uint8_t code[STACK_CODE_BYTES];
	size_t n;

	*start_ret = func != NULL ? func->start : 0;
	if ((f->rule->flags & UNI_CFI_TAKES_STACK) == 0 || func == NULL)
		return ret;
	n = (size_t)uni_min(f->regs->pc - func->start, sizeof(code) + 1);
	if (n <= sizeof(code) && uni_as_read(f->as, uni_gva_of(func->start), code, n) == 0)
		f->u->arch->find_stack(code, n, &ret);
	return ret;
}

/* Behind a call of this function, or one by a pointer. */
static bool is_called_from(const struct frame *f, uint64_t pc, uint64_t start)
{
	uint64_t target;

	return uni_unwind_after_call(f->u, f->as, pc, &target) && (target == 0 || target == start);
}

/* By the register that has the stack pointer of before the function took another stack. */
static bool go_back(struct frame *f, const struct uni_taken_stack *s, uint64_t start,
	struct uni_regs *before, uint64_t *pc_ret)
{
	struct uni_step st = { .leaf = false };
	uint64_t sp, target;

	if (!s->taken || !s->kept || !uni_regs_get(f->regs, s->reg, &sp))
		return false;
	*before = *f->regs;
	before->sp = sp;
	before->pc = start + s->at;
	uni_regs_set(before, f->u->arch->sp_reg, sp);
	f->regs = before;
	f->rule = NULL;
	find_rule(f, before->pc);
	return f->rule != NULL && f->rule->ra.how != UNI_CFI_UNDEF &&
	       follow_rule(f, &st, pc_ret) == 0 &&
	       uni_unwind_after_call(f->u, f->as, *pc_ret, &target);
}

/*
 * As follow_rule(); regs are then those with which the caller was found. Behind the place where a
 * function takes another stack, the word there is where it will go, which need not be its caller.
 */
static int find_caller(
	struct frame *f, struct uni_step *st, struct uni_regs *regs, uint64_t *pc_ret)
{
	const struct frame before = *f;
	struct uni_ahead ahead;
	uint64_t start;
	const struct uni_taken_stack s = find_stack(f, &start);
	bool found;
	int rc = follow_rule(f, st, pc_ret);

	if (rc == 0 && s.taken && st->leaf)
		st->guess = f->rule->cfa.how == UNI_CFI_REG && !is_called_from(f, *pc_ret, start);
	if (rc != 1 || !may_be_wrong(f, st))
		return rc;
	found = go_back(f, &s, start, &ahead.regs, pc_ret);
	if (!found) {
		*f = before;
		found = go_ahead(f, &ahead, pc_ret);
	}
	if (!found) {
		*f = before;
		return 1;
	}
	st->elsewhere = ahead.regs.sp != regs->sp;
	st->guess = s.taken && (st->leaf || s.kept) && !is_called_from(f, *pc_ret, start);
	*regs = ahead.regs;
	f->regs = regs;
	return 0;
}

/* With the registers at hand. */
static int step_rows(
	const struct uni_unwinder *u, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	struct frame f = { .u = u, .as = as, .regs = regs };
	uint64_t pc;
	int rc;

	/* A return address may be the first byte after a function that never returns. */
	f.pc = st->leaf ? regs->pc : regs->pc - 1;
	find_rule(&f, f.pc);
	if (f.rule == NULL)
		return -UNI_ENOTSUP;
	st->stop = UNI_STOP_ROOT;
	if (f.rule->ra.how == UNI_CFI_UNDEF)
		return 1;
	rc = find_caller(&f, st, regs, &pc);
	if (rc != 0)
		return rc;
	enter_caller(&f, pc, regs);
	st->exact = (f.rule->flags & UNI_CFI_SIGNAL) != 0;
	/* An interrupted function may have been on any stack. A CFA that is not above the stack
	 * pointer says where the caller's stack is. */
	st->elsewhere = st->elsewhere || st->exact || f.rule->cfa.how != UNI_CFI_REG ||
			f.rule->cfa.reg != u->arch->sp_reg;
	return 0;
}

static int step_cfi(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	int rc = step_rows(ctx, as, regs, st);

	return rc == -UNI_ENOTSUP ? uni_unwind_lost(ctx, as, regs, st, step_rows) : rc;
}

const struct uni_unwinder_ops uni_unwind_cfi = {
	.name = "cfi", .step = step_cfi, .run = run_cfi, .knows = true
};
