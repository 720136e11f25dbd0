/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frame-pointer steps. [rbp] is the caller's rbp, and [rbp + 8] the return address. That is not
 * always so for the interrupted function. In its prologue and after its epilogue, rbp is the
 * caller's. GCC never sets rbp up in functions that need no stack, whatever the flags say. In these
 * cases the return address is searched on the stack; otherwise the chain would lack the caller.
 */
#include <string.h>

#include "arch/x86_64/x86_64.h"
#include "base/checked.h"
#include "base/cursor.h"

#define SEARCH_WORDS  64	     /* how far above rsp a frameless function may have moved it */
#define STACK_MAX     (1024u * 1024) /* rbp this close above rsp is on the same stack */
#define CALL_MAX      UNI_X86_CALL_MAX
#define START_MAX     UNI_X86_START_MAX
#define LEAF_CODE_MAX UNI_X86_LEAF_CODE_MAX

struct leaf {
	struct uni_as *as;
	const struct uni_unwind_hints *hints; /* may be NULL */
	const struct uni_func_hint *func;     /* may be NULL */
	uint64_t pc, sp, fp;
	bool same_stack; /* fp is a little above sp */
};

static enum uni_stop stop_of(int rc)
{
	if (rc == -UNI_EBUDGET)
		return UNI_STOP_BUDGET;
	return rc == -UNI_EGONE ? UNI_STOP_GONE : UNI_STOP_FAULT;
}

/* The bytes before a return address, if they can be read. */
static bool read_before(const struct leaf *l, uint64_t ret_addr, uint8_t *before)
{
	return ret_addr >= CALL_MAX &&
	       uni_as_read(l->as, uni_gva_of(ret_addr - CALL_MAX), before, CALL_MAX) == 0;
}

static bool in_text(const struct uni_unwind_hints *h, uint64_t pc)
{
	return uni_hints_of(h, pc) != NULL;
}

/* Does a call of exactly this address return to ret_addr? */
static bool returns_from(const struct leaf *l, uint64_t ret_addr, uint64_t callee)
{
	uint8_t before[CALL_MAX];
	uint64_t target;

	return in_text(l->hints, ret_addr - 1) && read_before(l, ret_addr, before) &&
	       uni_x86_64_direct_call(before, ret_addr, &target) && target == callee;
}

/* Is the word at addr a return address, that is, an address behind any call? */
static bool is_return_slot(const struct leaf *l, uint64_t addr)
{
	uint8_t before[CALL_MAX];
	uint64_t word, target;

	if (uni_as_read_u64(l->as, uni_gva_of(addr), &word) != 0)
		return false;
	if (l->hints != NULL && !in_text(l->hints, word - 1))
		return false;
	return read_before(l, word, before) &&
	       (uni_x86_64_direct_call(before, word, &target) || uni_x86_64_indirect_call(before));
}

/*
 * How far the function has moved rsp. True: this is certain, as there are only pushes and the like
 * between its start and pc. False: it is a guess from how the function begins.
 */
static bool moved_since_start(const struct leaf *l, uint32_t *ret)
{
	uint8_t code[START_MAX];
	uint64_t offset = l->pc - l->func->start;
	size_t n = (size_t)uni_min(offset, (uint64_t)sizeof(code));

	n = uni_as_read_some(l->as, uni_gva_of(l->func->start), code, n);
	return uni_x86_64_pushed(code, n, ret) && n == offset;
}

/*
 * For a function that sets up no frame where it begins. Its return address is at rsp, unless it
 * moved rsp. Then it is the lowest word above that a call of this very function left. If the
 * function sets up a frame later on (shrink-wrapping), that word is at rbp + 8.
 */
static bool search_frameless(const struct leaf *l, uint64_t *loc_ret)
{
	uint64_t word, callee = l->func->start;
	uint8_t slab[SEARCH_WORDS * 8];
	size_t words = SEARCH_WORDS, got;
	uint32_t moved;

	if ((l->sp & 7) != 0)
		return false;
	if (moved_since_start(l, &moved)) {
		*loc_ret = l->sp + moved;
		return true;
	}
	if (l->same_stack) /* up to the word that rbp points at */
		words = (size_t)uni_min((l->fp - l->sp) / 8 + 1, (uint64_t)words);
	got = uni_as_read_some(l->as, uni_gva_of(l->sp), slab, words * 8) / 8;
	for (size_t i = 0; i < got; i++) {
		*loc_ret = l->sp + i * 8;
		if (returns_from(l, uni_le64(slab + i * 8), callee))
			return true;
	}
	if (l->same_stack && (l->fp & 7) == 0 &&
		uni_as_read_u64(l->as, uni_gva_of(l->fp + 8), &word) == 0 &&
		returns_from(l, word, callee))
		return false;
	/* It was called through a pointer, or jumped to by a called function. */
	*loc_ret = l->sp + moved;
	if (is_return_slot(l, *loc_ret))
		return true;
	*loc_ret = l->sp;
	return moved != 0 && is_return_slot(l, l->sp);
}

/* Is pc before the frame is set up, in a function that begins by setting it up? */
static bool in_prologue(const struct leaf *l, uint64_t *loc_ret)
{
	uint64_t offset = l->pc - l->func->start;
	uint8_t code[UNI_X86_PROLOGUE_MAX];
	struct uni_x86_64_prologue p;
	size_t n = uni_min(sizeof(code), (size_t)l->func->size);

	if (offset >= n)
		return false;
	n = uni_as_read_some(l->as, uni_gva_of(l->func->start), code, n);
	if (!uni_x86_64_prologue(code, n, &p) || offset > p.mov)
		return false;
	*loc_ret = offset <= p.push ? l->sp : l->sp + 8;
	return true;
}

/* Nothing is known of the function: looks only at the code at pc. */
static bool at_known_code(const struct leaf *l, const uint8_t *code, size_t n, uint64_t *loc_ret)
{
	struct uni_x86_64_prologue p;

	*loc_ret = l->sp;
	if (uni_x86_64_prologue(code, n, &p))
		return true;
	if (n >= 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		return is_return_slot(l, l->sp);
	if (n >= 1 && code[0] == 0x55)
		return is_return_slot(l, l->sp);
	return false;
}

/* Is pc in code that the hypervisor wrote, which no image describes? */
static bool in_stub(const struct leaf *l, uint64_t *loc_ret)
{
	uint64_t start = l->pc & ~(uint64_t)(UNI_STUB_BYTES - 1);
	uint8_t code[UNI_STUB_BYTES];
	size_t n = (size_t)(l->pc - start);
	uint32_t offset;

	if (!uni_hints_in_stubs(l->hints, l->pc) ||
		uni_as_read(l->as, uni_gva_of(start), code, n) != 0 ||
		!uni_x86_64_stub(code, n, &offset))
		return false;
	*loc_ret = l->sp + offset;
	return true;
}

/* Finds the return address of the interrupted function; false: it is at rbp + 8. */
static bool find_return(const struct leaf *l, uint64_t *loc_ret)
{
	uint8_t code[LEAF_CODE_MAX], before[2] = { 0 };
	uint32_t offset;
	size_t n = uni_as_read_some(l->as, uni_gva_of(l->pc), code, sizeof(code));

	*loc_ret = l->sp;
	if (n == 0)
		return false;
	if (in_stub(l, loc_ret))
		return true;
	if (l->func != NULL && l->pc == l->func->start)
		return true;
	if (uni_x86_64_epilogue(code, n, &offset)) {
		*loc_ret = l->sp + offset;
		return true;
	}
	if (l->pc >= 2)
		(void)uni_as_read_some(l->as, uni_gva_of(l->pc - 2), before, sizeof(before));
	if (before[1] == 0x55 && uni_x86_64_is_set_frame(code, n)) {
		*loc_ret = l->sp + 8;
		return true;
	}
	if (l->func != NULL && (l->func->flags & UNI_FUNC_FRAMELESS) != 0)
		return search_frameless(l, loc_ret);
	if (l->func != NULL ? in_prologue(l, loc_ret) : at_known_code(l, code, n, loc_ret))
		return true;
	*loc_ret = l->sp;
	return uni_x86_64_frame_popped(before, sizeof(before)) && is_return_slot(l, l->sp);
}

/* Replaces regs by those of the caller that ret_addr returns to. */
static int enter_caller(struct uni_as *as, const struct uni_unwind_hints *hints, uint64_t ret_addr,
	uint64_t sp, uint64_t fp, struct uni_regs *regs, enum uni_stop *stop_ret)
{
	int rc;

	if (ret_addr == 0) {
		*stop_ret = UNI_STOP_ROOT;
		return 1;
	}
	/*
	 * A return address in an image that we do not know: outside of all hulls, any executable
	 * page counts as code.
	 */
	if (!in_text(hints, ret_addr - 1)) {
		rc = uni_as_check_exec(as, uni_gva_of(ret_addr - 1));
		if (rc != 0) {
			*stop_ret = rc == -UNI_EFAULT ? UNI_STOP_BADPC : stop_of(rc);
			return 1;
		}
	}
	regs->valid = 0; /* the callee may have changed all other registers */
	uni_regs_set(regs, UNI_X86_RIP, ret_addr);
	uni_regs_set(regs, UNI_X86_RSP, sp);
	uni_regs_set(regs, UNI_X86_RBP, fp);
	regs->pc = ret_addr;
	regs->sp = sp;
	regs->pc_valid = regs->sp_valid = true;
	return 0;
}

/* Is there a correction for the leaf? Then *rc_ret is the step's result. */
static bool step_leaf(
	const struct leaf *l, struct uni_regs *regs, enum uni_stop *stop_ret, int *rc_ret)
{
	uint64_t loc, ret_addr;
	int rc;

	if (!find_return(l, &loc))
		return false;
	rc = uni_as_read_u64(l->as, uni_gva_of(loc), &ret_addr);
	if (rc != 0) {
		*stop_ret = stop_of(rc);
		*rc_ret = 1;
		return true;
	}
	*rc_ret = enter_caller(l->as, l->hints, ret_addr, loc + 8, l->fp, regs, stop_ret);
	return true;
}

static int step_frame(struct uni_as *as, const struct uni_unwind_hints *hints, uint64_t fp,
	struct uni_regs *regs, enum uni_stop *stop_ret)
{
	uint8_t frame[16]; /* the caller's rbp, the return address */
	int rc;

	*stop_ret = UNI_STOP_BADPTR;
	if (fp == 0 || (fp & 7) != 0 || fp > UINT64_MAX - sizeof(frame))
		return 1;
	*stop_ret = UNI_STOP_LOOP;
	if (regs->sp_valid && fp < regs->sp)
		return 1;
	rc = uni_as_read(as, uni_gva_of(fp), frame, sizeof(frame));
	if (rc != 0) {
		*stop_ret = stop_of(rc);
		return 1;
	}
	return enter_caller(as, hints, uni_le64(frame + 8), fp + sizeof(frame), uni_le64(frame),
		regs, stop_ret);
}

int uni_x86_64_fp_step(struct uni_as *as, const struct uni_unwind_hints *hints, bool leaf,
	struct uni_regs *regs, enum uni_stop *stop_ret)
{
	struct leaf l = { .as = as, .hints = hints, .pc = regs->pc, .sp = regs->sp };
	int rc;

	*stop_ret = UNI_STOP_NOREGS;
	if (!regs->pc_valid || !uni_regs_get(regs, UNI_X86_RBP, &l.fp))
		return 1;
	if (hints != NULL)
		l.func = uni_hints_find(hints, leaf ? l.pc : l.pc - 1);
	if (l.func != NULL && (l.func->flags & UNI_FUNC_ENTRY) != 0) {
		*stop_ret = UNI_STOP_ROOT;
		return 1;
	}
	l.same_stack = l.fp >= l.sp && l.fp - l.sp < STACK_MAX;
	if (leaf && regs->sp_valid && step_leaf(&l, regs, stop_ret, &rc))
		return rc;
	return step_frame(as, hints, l.fp, regs, stop_ret);
}
