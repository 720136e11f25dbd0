/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps by frame records (AAPCS64, 6.4.6). x29 points at { the caller's x29, the return address }.
 * The interrupted function's return address is in x30 until the function calls something, and again
 * before it returns. Functions that call nothing have no record, whatever the compiler flags say.
 * If x30 points outside the interrupted function, it is always the return address. Only the
 * function's own calls change x30, and they leave addresses of the function there.
 */
#include "arch/aarch64/aarch64.h"
#include "base/checked.h"

#define CODE_MAX 64u /* bytes of the function's start, and from pc on */

struct step {
	struct uni_as *as;
	const struct uni_unwind_hints *hints; /* may be NULL */
	const struct uni_func_hint *func;     /* may be NULL */
	struct uni_regs *regs;
	uint64_t fp;
};

struct record {
	uint64_t fp, lr;
};

static enum uni_stop stop_of(int rc)
{
	if (rc == -UNI_EBUDGET)
		return UNI_STOP_BUDGET;
	return rc == -UNI_EGONE ? UNI_STOP_GONE : UNI_STOP_FAULT;
}

static uint64_t strip_pc(const struct step *s, uint64_t pc)
{
	return uni_arch_aarch64.strip(s->regs, pc);
}

/* Reads both words at once. */
static int read_record(const struct step *s, struct record *ret)
{
	uint8_t b[16];
	int rc = uni_as_read(s->as, uni_gva_of(s->fp), b, sizeof(b));

	*ret = (struct record){ 0 };
	for (unsigned i = 0; rc == 0 && i < 8; i++) {
		ret->fp |= (uint64_t)b[i] << (8 * i);
		ret->lr |= (uint64_t)b[8 + i] << (8 * i);
	}
	ret->lr = strip_pc(s, ret->lr);
	return rc;
}

static int enter_caller(
	const struct step *s, uint64_t ret_addr, uint64_t sp, uint64_t fp, enum uni_stop *stop_ret)
{
	struct uni_regs *regs = s->regs;
	int rc;

	*stop_ret = UNI_STOP_ROOT;
	if (ret_addr == 0)
		return 1;
	/*
	 * A return address in an image that we do not know: outside of all hulls, any executable
	 * page counts as code.
	 */
	if (uni_hints_of(s->hints, ret_addr - 1) == NULL) {
		rc = uni_as_check_exec(s->as, uni_gva_of(ret_addr - 1));
		*stop_ret = rc == -UNI_EFAULT ? UNI_STOP_BADPC : stop_of(rc);
		if (rc != 0)
			return 1;
	}
	regs->valid = 0; /* the callee may have changed all other registers */
	uni_regs_set(regs, UNI_A64_PC, ret_addr);
	uni_regs_set(regs, UNI_A64_SP, sp);
	uni_regs_set(regs, UNI_A64_FP, fp);
	regs->pc = ret_addr;
	regs->sp = sp;
	regs->pc_valid = regs->sp_valid = true;
	return 0;
}

/* Is pc in the part of the function before its frame record is set up? */
static bool in_prologue(const struct step *s)
{
	uint64_t offset = s->regs->pc - s->func->start;
	uint8_t code[CODE_MAX];
	size_t n = (size_t)uni_min((uint64_t)s->func->size, (uint64_t)sizeof(code)), set;

	if (offset >= n)
		return false;
	n = uni_as_read_some(s->as, uni_gva_of(s->func->start), code, n);
	return uni_aarch64_prologue(code, n, &set) && offset <= set;
}

/* Is the function about to return, with its record, if there was one, already taken down? */
static bool in_epilogue(const struct step *s)
{
	uint8_t code[CODE_MAX];
	size_t n = uni_as_read_some(s->as, uni_gva_of(s->regs->pc), code, sizeof(code));

	return uni_aarch64_epilogue(code, n);
}

/*
 * Is x30 still, or again, the interrupted function's return address? *framed_ret: the function may
 * have a frame record nevertheless.
 */
static bool lr_is_live(const struct step *s, uint64_t lr, bool *framed_ret)
{
	*framed_ret = false;
	if (s->func == NULL)
		return in_epilogue(s);
	if (in_prologue(s) || in_epilogue(s))
		return true;
	*framed_ret = true;
	return (s->func->flags & UNI_FUNC_FRAMELESS) != 0 &&
	       !uni_range_has(s->func->start, s->func->size, lr - UNI_A64_INSN);
}

/* The step from the interrupted function, if x30 is its return address. */
static bool step_leaf(const struct step *s, enum uni_stop *stop_ret, int *rc_ret)
{
	struct record r;
	bool framed;
	uint64_t lr;

	if (!uni_regs_get(s->regs, UNI_A64_LR, &lr) || !s->regs->sp_valid)
		return false;
	lr = strip_pc(s, lr);
	if (lr == 0 || !lr_is_live(s, lr, &framed))
		return false;
	/* If there is a record after all (shrink-wrapping), it has the same address. */
	if (framed && (s->fp & 7) == 0 && s->fp >= s->regs->sp && read_record(s, &r) == 0 &&
		r.lr == lr)
		return false;
	*rc_ret = enter_caller(s, lr, s->regs->sp, s->fp, stop_ret);
	return true;
}

static int step_record(const struct step *s, enum uni_stop *stop_ret)
{
	struct record r;
	int rc;

	*stop_ret = UNI_STOP_BADPTR;
	if (s->fp == 0 || (s->fp & 7) != 0 || s->fp > UINT64_MAX - sizeof(r))
		return 1;
	*stop_ret = UNI_STOP_LOOP;
	if (s->regs->sp_valid && s->fp < s->regs->sp)
		return 1;
	rc = read_record(s, &r);
	if (rc != 0) {
		*stop_ret = stop_of(rc);
		return 1;
	}
	return enter_caller(s, r.lr, s->fp + sizeof(r), r.fp, stop_ret);
}

int uni_aarch64_fp_step(struct uni_as *as, const struct uni_unwind_hints *hints, bool leaf,
	struct uni_regs *regs, enum uni_stop *stop_ret)
{
	struct step s = { .as = as, .hints = hints, .regs = regs };
	int rc;

	*stop_ret = UNI_STOP_NOREGS;
	if (!regs->pc_valid || !uni_regs_get(regs, UNI_A64_FP, &s.fp))
		return 1;
	s.func = uni_hints_find(hints, leaf ? regs->pc : regs->pc - 1);
	if (s.func != NULL && (s.func->flags & UNI_FUNC_ENTRY) != 0) {
		*stop_ret = UNI_STOP_ROOT;
		return 1;
	}
	if (leaf && step_leaf(&s, stop_ret, &rc))
		return rc;
	return step_record(&s, stop_ret);
}
