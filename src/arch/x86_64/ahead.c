/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Works out the few instructions with which a runtime takes another stack: moves, sums, jumps and
 * returns (Intel SDM volume 2). Others are refused.
 */
#include <string.h>

#include "arch/arch.h"
#include "arch/x86_64/x86_64.h"
#include "base/cursor.h"

#define CODE_BYTES 16u
#define REX_W	   8u
#define ENC_RSP	   4u
#define ENC_RBP	   5u

struct insn {
	struct uni_as *as;
	struct uni_ahead *a;
	const uint8_t *code;
	size_t n, pos;
	uint8_t rex;
	bool is_mem;	/* else rm is a register */
	unsigned r, rm; /* numbers in the code */
	uint64_t at;	/* is_mem: the address */
};

static bool get_reg(const struct insn *i, unsigned enc, uint64_t *ret)
{
	if (enc == ENC_RSP) {
		*ret = i->a->regs.sp;
		return i->a->regs.sp_valid;
	}
	return uni_regs_get(&i->a->regs, uni_x86_64_dwarf(enc), ret);
}

/* The stack pointer must be known; another register may be lost. */
static bool put_reg(const struct insn *i, unsigned enc, bool known, uint64_t v)
{
	struct uni_regs *regs = &i->a->regs;

	if (known)
		uni_regs_set(regs, uni_x86_64_dwarf(enc), v);
	else
		regs->valid &= ~(1ull << uni_x86_64_dwarf(enc));
	if (enc == ENC_RSP)
		regs->sp = v;
	return known || enc != ENC_RSP;
}

static bool was_stored(const struct uni_ahead *a, uint64_t at)
{
	for (unsigned i = 0; i < a->nr_stored; i++) {
		if (a->stored[i] - at + 7 < 15)
			return true;
	}
	return false;
}

/* Memory that this code writes is not what it was, so nothing is read there. */
static bool ahead_load(const struct insn *i, uint64_t at, uint64_t *ret)
{
	return !was_stored(i->a, at) && uni_as_read_u64(i->as, uni_gva_of(at), ret) == 0;
}

static bool ahead_store(const struct insn *i, uint64_t at)
{
	if (i->a->nr_stored == UNI_AHEAD_STORES)
		return false;
	i->a->stored[i->a->nr_stored++] = at;
	return true;
}

static bool take_number(struct insn *i, size_t bytes, int64_t *ret)
{
	int32_t wide;

	if (i->n - i->pos < bytes)
		return false;
	memcpy(&wide, i->code + i->pos, bytes == 4 ? 4 : 0);
	*ret = bytes == 4 ? wide : bytes == 1 ? (int8_t)i->code[i->pos] : 0;
	i->pos += bytes;
	return true;
}

/* ModRM with a base and a displacement, or a register. No index, nothing relative to rip. */
static bool take_modrm(struct insn *i)
{
	unsigned mod, base;
	int64_t by = 0;
	uint8_t p;

	if (i->pos == i->n)
		return false;
	p = i->code[i->pos++];
	mod = p >> 6;
	base = p & 7u;
	i->r = (p >> 3 & 7u) | (i->rex & 4u) << 1;
	i->rm = base | (i->rex & 1u) << 3;
	i->is_mem = mod != 3;
	if (!i->is_mem)
		return true;
	if ((mod == 0 && base == ENC_RBP) || i->pos == i->n ||
		(base == ENC_RSP && (i->code[i->pos++] & 0x3fu) != (ENC_RSP << 3 | ENC_RSP)))
		return false;
	if (!take_number(i, mod == 0 ? 0 : mod == 1 ? 1 : 4, &by) || !get_reg(i, i->rm, &i->at))
		return false;
	i->at += (uint64_t)by;
	return true;
}

static bool ahead_jump(struct insn *i, size_t bytes)
{
	int64_t by;

	if (!take_number(i, bytes, &by))
		return false;
	i->a->regs.pc += i->pos + (uint64_t)by;
	i->pos = 0;
	return true;
}

static bool ahead_move(struct insn *i, uint8_t op)
{
	bool known = true;
	uint64_t v = 0;

	if (!take_modrm(i))
		return false;
	if (op == 0x89 && i->is_mem)
		return ahead_store(i, i->at);
	if (op == 0x8d && !i->is_mem)
		return false;
	if (op == 0x8d)
		v = i->at;
	else
		known = i->is_mem ? ahead_load(i, i->at, &v)
				  : get_reg(i, op == 0x89 ? i->r : i->rm, &v);
	return put_reg(i, op == 0x89 ? i->rm : i->r, known, v);
}

/* add, or, and, sub of a register and a number. */
static bool ahead_sum(struct insn *i)
{
	uint64_t v = 0;
	bool known;
	int64_t by;

	if (!take_modrm(i) || i->is_mem || !take_number(i, 1, &by))
		return false;
	known = get_reg(i, i->rm, &v);
	switch (i->r & 7) {
	case 0:
		v += (uint64_t)by;
		break;
	case 1:
		v |= (uint64_t)by;
		break;
	case 4:
		v &= (uint64_t)by;
		break;
	case 5:
		v -= (uint64_t)by;
		break;
	default:
		return false;
	}
	return put_reg(i, i->rm, known, v);
}

/* pop to memory, where rsp counts as it is behind the pop. */
static bool ahead_pop(struct insn *i)
{
	uint64_t sp = i->a->regs.sp;

	return put_reg(i, ENC_RSP, true, sp + 8) && take_modrm(i) && (i->r & 7) == 0 && i->is_mem &&
	       ahead_store(i, i->at);
}

static bool ahead_ret(struct insn *i)
{
	uint64_t sp = i->a->regs.sp, pc;

	if (!ahead_load(i, sp, &pc))
		return false;
	i->a->regs.pc = pc;
	i->a->returned = true;
	i->pos = 0;
	return put_reg(i, ENC_RSP, true, sp + 8);
}

static bool ahead_run(struct insn *i)
{
	uint8_t op = i->code[i->pos++];
	int64_t ignored;

	if (op == 0xeb || op == 0xe9)
		return ahead_jump(i, op == 0xeb ? 1 : 4);
	if (op == 0xc3)
		return ahead_ret(i);
	if (op == 0x8f)
		return ahead_pop(i);
	if ((i->rex & REX_W) == 0)
		return false;
	if (op == 0x83)
		return ahead_sum(i);
	if (op == 0xc7)
		return take_modrm(i) && i->is_mem && ahead_store(i, i->at) &&
		       take_number(i, 4, &ignored);
	return (op == 0x89 || op == 0x8b || op == 0x8d) && ahead_move(i, op);
}

bool uni_x86_64_ahead(struct uni_as *as, struct uni_ahead *a)
{
	uint8_t code[CODE_BYTES];
	struct insn i = { .as = as, .a = a, .code = code };

	if (!a->regs.pc_valid || !a->regs.sp_valid || a->returned)
		return false;
	i.n = uni_as_read_some(as, uni_gva_of(a->regs.pc), code, sizeof(code));
	if (i.n < 2)
		return false;
	if ((code[0] & 0xf0) == 0x40)
		i.rex = code[i.pos++];
	if (!ahead_run(&i))
		return false;
	a->regs.pc += i.pos;
	uni_regs_set(&a->regs, UNI_X86_RIP, a->regs.pc);
	return true;
}
