/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a switch between threads: loads from the stack, and a return (Arm ARM, C6.2: LDP, LDR,
 * ADD). Loads of vector registers (C7.2) are passed over. A thread that has not run yet begins in
 * code that also clears registers, and returns into its function.
 */
#include "arch/aarch64/aarch64.h"
#include "base/checked.h"

#define CODE_MAX   128u /* bytes: ten pairs, of general and vector registers, and a return */
#define STAGES_MAX 3u
#define SP	   31u /* as a base */
#define ZR	   31u /* as a destination */

#define ADD_SP_MASK 0xff8003ffu
#define ADD_SP	    0x910003ffu /* add sp, sp, #n{, lsl #12} */
#define HINT_MASK   0xfffff01fu
#define HINT	    0xd503201fu /* nop, bti, autiasp */
#define SYSTEM_MASK 0xff200000u
#define SYSTEM	    0xd5000000u /* barriers, msr: no general register is written */

/* Clears of registers: movz Rd, #0, and mov Rd, zr; of 32 bits and of 64. */
#define CLEAR_MASK 0x7fffffe0u
#define MOVZ_ZERO  0x52800000u
#define MOV_ZR	   0x2a1f03e0u

/* A form of load, by its bits. */
struct form {
	uint32_t mask, bits;
	uint8_t imm_at, imm_bits; /* the offset */
	uint8_t bytes;		  /* bytes of a register; a scaled offset is a multiple of that */
	bool is_signed, scaled, pair, vector;
	bool writes_base, before; /* sp moves by the offset; whether it does so before the load */
};

static const struct form forms[] = {
	{ 0xffc00000, 0xa9400000, 15, 7, 8, true, true, true, false, false, true },    /* ldp x */
	{ 0xffc00000, 0xa8c00000, 15, 7, 8, true, true, true, false, true, false },    /* post */
	{ 0xffc00000, 0xa9c00000, 15, 7, 8, true, true, true, false, true, true },     /* pre */
	{ 0xffc00000, 0xf9400000, 10, 12, 8, false, true, false, false, false, true }, /* ldr x */
	{ 0xffe00c00, 0xf8400400, 12, 9, 8, true, false, false, false, true, false },
	{ 0xffe00c00, 0xf8400c00, 12, 9, 8, true, false, false, false, true, true },
	{ 0xffc00000, 0x6d400000, 15, 7, 8, true, true, true, true, false, true }, /* ldp d */
	{ 0xffc00000, 0x6cc00000, 15, 7, 8, true, true, true, true, true, false },
	{ 0xffc00000, 0x6dc00000, 15, 7, 8, true, true, true, true, true, true },
	{ 0xffc00000, 0xad400000, 15, 7, 16, true, true, true, true, false, true }, /* ldp q */
	{ 0xffc00000, 0xacc00000, 15, 7, 16, true, true, true, true, true, false },
	{ 0xffc00000, 0xadc00000, 15, 7, 16, true, true, true, true, true, true },
	{ 0xffc00000, 0xfd400000, 10, 12, 8, false, true, false, true, false, true }, /* ldr d */
};

static uint64_t offset_of(const struct form *f, uint32_t insn)
{
	uint64_t v = insn >> f->imm_at & ((1u << f->imm_bits) - 1);

	if (f->is_signed && (v >> (f->imm_bits - 1) & 1) != 0)
		v |= UINT64_MAX << f->imm_bits;
	return f->scaled ? v * f->bytes : v;
}

static void set_sp(struct uni_regs *regs, uint64_t sp)
{
	regs->sp = sp;
	uni_regs_set(regs, UNI_A64_SP, sp);
}

static int load_reg(struct uni_as *as, struct uni_regs *regs, unsigned reg, uint64_t at)
{
	uint64_t v;
	int rc = uni_as_read_u64(as, uni_gva_of(at), &v);

	if (rc == 0 && reg != ZR)
		uni_regs_set(regs, reg, v);
	return rc;
}

/* All or nothing: if the memory cannot be read, the registers stay unchanged. */
static int load_saved(struct uni_as *as, struct uni_regs *regs, const struct form *f, uint32_t insn)
{
	uint64_t offset = offset_of(f, insn), at = f->before ? regs->sp + offset : regs->sp;
	struct uni_regs after = *regs;
	int rc = 0;

	if (!f->vector)
		rc = load_reg(as, &after, insn & 31, at);
	if (rc == 0 && !f->vector && f->pair)
		rc = load_reg(as, &after, insn >> 10 & 31, at + f->bytes);
	if (rc != 0)
		return rc;
	if (f->writes_base)
		set_sp(&after, regs->sp + offset);
	*regs = after;
	return 0;
}

/* The form of a load from the stack; NULL: it is none. */
static const struct form *form_of(uint32_t insn)
{
	if ((insn >> 5 & 31) != SP)
		return NULL;
	for (size_t i = 0; i < uni_array_len(forms); i++) {
		if ((insn & forms[i].mask) == forms[i].bits)
			return &forms[i];
	}
	return NULL;
}

static bool clears_register(uint32_t insn)
{
	return (insn & CLEAR_MASK) == MOVZ_ZERO || (insn & CLEAR_MASK) == MOV_ZR;
}

enum next { GOES_ON, ENDS, RETURNS };

/* Runs one instruction; sets *begins if only new threads begin with such an instruction. */
static int step_restore(
	struct uni_as *as, struct uni_regs *regs, uint32_t insn, bool *begins, enum next *next_ret)
{
	const struct form *f = form_of(insn);
	int to = uni_aarch64_return_reg(insn), rc = 0;
	uint64_t pc;

	*next_ret = GOES_ON;
	if (to >= 0 && to != (int)ZR && uni_regs_get(regs, (unsigned)to, &pc)) {
		regs->pc = uni_arch_aarch64.strip(regs, pc);
		*next_ret = RETURNS;
		return 0;
	}
	if (f != NULL) {
		rc = load_saved(as, regs, f, insn);
	} else if ((insn & ADD_SP_MASK) == ADD_SP) {
		set_sp(regs, regs->sp + ((uint64_t)(insn >> 10 & 0xfff)
						<< ((insn >> 22 & 1) != 0 ? 12 : 0)));
	} else if (clears_register(insn)) {
		if ((insn & 31) != ZR)
			uni_regs_set(regs, insn & 31, 0);
		*begins |= (insn & 31) != 0; /* x0 may be a result */
	} else if ((insn & HINT_MASK) != HINT && (insn & SYSTEM_MASK) != SYSTEM) {
		*next_ret = ENDS;
		return 0;
	}
	if (rc == 0)
		regs->pc += UNI_A64_INSN;
	return rc;
}

/*
 * Runs the code up to and with a return. 0: that was the end; 1: the code begins a thread, and may
 * go on.
 */
static int restore_stage(struct uni_as *as, struct uni_regs *regs)
{
	uint8_t code[CODE_MAX];
	size_t n = uni_as_read_some(as, uni_gva_of(regs->pc), code, sizeof(code));
	bool begins = false;

	for (size_t at = 0; n - at >= UNI_A64_INSN; at += UNI_A64_INSN) {
		enum next next;
		int rc = step_restore(as, regs, uni_aarch64_insn(code + at), &begins, &next);

		if (rc != 0 || next == ENDS)
			return rc;
		if (next == RETURNS)
			return begins;
	}
	return 0;
}

int uni_aarch64_restore(struct uni_as *as, struct uni_regs *regs)
{
	int rc = 1;

	for (unsigned i = 0; i < STAGES_MAX && rc == 1; i++)
		rc = restore_stage(as, regs);
	return rc == 1 ? 0 : rc;
}
