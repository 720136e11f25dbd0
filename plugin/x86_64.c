/* SPDX-License-Identifier: BSD-2-Clause */
/* The effect of x86 instructions on the flow of control, in 64-bit code (Intel SDM volume 2). */
#include <string.h>

#include "plugin/plugin.h"

struct parts {
	const uint8_t *op; /* the opcode, 0f included */
	size_t len;	   /* from there on */
	bool rep;
	uint8_t rex;
};

static bool is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0xf0 || b == 0x2e ||
	       b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

static struct parts take_apart(const uint8_t *bytes, size_t size)
{
	struct parts p = { bytes, size, false, 0 };

	for (; p.len > 1 && is_prefix(*p.op); p.op++, p.len--)
		p.rep = p.rep || *p.op == 0xf2 || *p.op == 0xf3;
	if (p.len > 1 && (*p.op & 0xf0) == 0x40) {
		p.rex = *p.op;
		p.op++;
		p.len--;
	}
	return p;
}

/* The operand of n bytes at the instruction's end, relative to it. */
static uint64_t relative(uint64_t end, const uint8_t *after, size_t n)
{
	int32_t off = (int8_t)after[-1];

	if (n == 4)
		memcpy(&off, after - 4, 4);
	return end + (uint64_t)(int64_t)off;
}

static struct flow_insn flow_0f(const struct parts *p, uint64_t end, const uint8_t *after)
{
	struct flow_insn f = { FLOW_ON, false, NOWHERE };

	if (p->len < 2)
		return f;
	if ((p->op[1] & 0xf0) == 0x80 && p->len >= 6)
		f.target = relative(end, after, 4);
	else if (p->op[1] == 0x05 || p->op[1] == 0x34) /* syscall, sysenter */
		f.flow = FLOW_SYSCALL;
	else if (p->op[1] == 0x07 || p->op[1] == 0x35) /* sysret, sysexit */
		f = (struct flow_insn){ FLOW_IRET, true, NOWHERE };
	return f;
}

static struct flow_insn flow_ff(const struct parts *p)
{
	unsigned reg = p->len >= 2 ? p->op[1] >> 3 & 7 : 0;

	if (reg == 2)
		return (struct flow_insn){ FLOW_CALL, true, NOWHERE };
	if (reg >= 3 && reg <= 5) /* far calls, too: how modes are changed */
		return (struct flow_insn){ FLOW_JUMP, true, NOWHERE };
	return (struct flow_insn){ FLOW_ON, false, NOWHERE };
}

static struct flow_insn x86_64_flow(uint64_t pc, const uint8_t *bytes, size_t size)
{
	struct parts p = take_apart(bytes, size);
	struct flow_insn f = { FLOW_ON, false, NOWHERE };
	const uint8_t *after = bytes + size;
	uint64_t end = pc + size;

	switch (p.op[0]) {
	case 0x0f:
		return flow_0f(&p, end, after);
	case 0xff:
		return flow_ff(&p);
	case 0xe8:
		/* Code finds its own place that way, and pops the address. */
		if (p.len >= 5 && relative(end, after, 4) == end)
			return (struct flow_insn){ FLOW_ON, true, end };
		if (p.len >= 5)
			return (struct flow_insn){ FLOW_CALL, true, relative(end, after, 4) };
		return (struct flow_insn){ FLOW_CALL, true, NOWHERE };
	case 0xe9:
		if (p.len >= 5)
			return (struct flow_insn){ FLOW_ON, true, relative(end, after, 4) };
		return (struct flow_insn){ FLOW_JUMP, true, NOWHERE };
	case 0xeb:
		return (struct flow_insn){ FLOW_ON, true, relative(end, after, 1) };
	case 0xc2:
	case 0xc3:
		return (struct flow_insn){ FLOW_RETURN, true, NOWHERE };
	case 0xcf:
		return (struct flow_insn){ FLOW_IRET, true, NOWHERE };
	case 0xca: /* far returns and jumps: how modes are changed */
	case 0xcb:
	case 0xea:
		return (struct flow_insn){ FLOW_JUMP, true, NOWHERE };
	default:
		break;
	}
	if (((p.op[0] & 0xf0) == 0x70 || (p.op[0] & 0xfc) == 0xe0) && p.len >= 2)
		f.target = relative(end, after, 1);
	else if (p.rep &&
		 ((p.op[0] >= 0xa4 && p.op[0] <= 0xaf) || (p.op[0] >= 0x6c && p.op[0] <= 0x6f)))
		f.target = pc; /* each turn of it is a block of its own */
	return f;
}

static bool x86_64_switches_stack(const uint8_t *bytes, size_t size)
{
	struct parts p = take_apart(bytes, size);
	uint8_t modrm = p.len >= 2 ? p.op[1] : 0;

	if (p.op[0] == 0x5c && (p.rex & 1) == 0) /* pop %rsp */
		return true;
	if (p.len < 2)
		return false;
	if (p.op[0] == 0x8b && (p.rex & 4) == 0) /* mov r/m, %rsp; from %rbp an epilogue does */
		return (modrm >> 3 & 7) == 4 && !(modrm >> 6 == 3 && (modrm & 7) == 5);
	if (p.op[0] == 0x89 && (p.rex & 1) == 0) /* mov reg, %rsp */
		return modrm >> 6 == 3 && (modrm & 7) == 4 &&
		       !((modrm >> 3 & 7) == 5 && (p.rex & 4) == 0);
	if (p.op[0] == 0x87) /* xchg */
		return ((modrm >> 3 & 7) == 4 && (p.rex & 4) == 0) ||
		       (modrm >> 6 == 3 && (modrm & 7) == 4 && (p.rex & 1) == 0);
	return false;
}

/* It pops: a return, too. */
static bool x86_64_sp_access(const uint8_t *bytes, size_t size, struct sp_access *ret)
{
	struct parts p = take_apart(bytes, size);

	*ret = (struct sp_access){ .moved = 8 };
	return (p.op[0] & 0xf8) == 0x58 || p.op[0] == 0x9d || p.op[0] == 0xc3;
}

/* Two-byte opcodes without prefixes that access no memory if their operand is a register. */
static bool is_plain_0f(uint8_t op)
{
	return (op & 0xf0) == 0x40 || (op & 0xe0) == 0x80 || op == 0xa3 || op == 0xab ||
	       op == 0xaf || op == 0xb3 || op == 0xb6 || op == 0xb7 || op >= 0xba;
}

/* Does not distinguish them by whether they access memory, fault or leave the block: most do not
 * matter.
 */
static bool x86_64_may_stop(const uint8_t *bytes, size_t size)
{
	struct parts p = take_apart(bytes, size);
	bool is_register = p.len >= 2 && p.op[1] >> 6 == 3;
	uint8_t op = p.op[0], reg = p.len >= 2 ? p.op[1] >> 3 & 7 : 0;

	if (p.op - bytes > (p.rex != 0) + (bytes[0] == 0x66))
		return true;
	if (op == 0x0f && p.len >= 2) {
		if ((p.op[1] & 0xf0) == 0x80 || p.op[1] == 0x1f)
			return false;
		return p.len < 3 || p.op[2] >> 6 != 3 || !is_plain_0f(p.op[1]) || p.op[1] > 0xbf;
	}
	if (op < 0x40)
		return (op & 7) < 4 ? !is_register : (op & 7) > 5;
	if ((op & 0xf0) == 0x70 || op == 0x8d || (op & 0xf8) == 0x90 || op == 0x98 || op == 0x99 ||
		op == 0xa8 || op == 0xa9 || (op & 0xf0) == 0xb0 || op == 0xe9 || op == 0xeb)
		return false;
	if (op == 0xf6 || op == 0xf7)
		return !is_register || reg > 5;
	if (op == 0xfe || op == 0xff)
		return !is_register || reg > 1;
	return !is_register ||
	       !(op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8b) ||
		       op == 0xc0 || op == 0xc1 || (op & 0xfc) == 0xd0);
}

static unsigned x86_64_traits(const uint8_t *bytes, size_t size)
{
	struct parts p = take_apart(bytes, size);
	unsigned reg = p.len >= 2 ? p.op[1] >> 3 & 7 : 0;
	bool is_register = p.len >= 2 && p.op[1] >> 6 == 3;
	uint8_t op = p.op[0];

	if (op == 0x0f && p.len >= 2 && (p.op[1] == 0x0b || p.op[1] == 0xb9 || p.op[1] == 0xff))
		return INSN_NEVER;
	if (op == 0xf6 || op == 0xf7)
		return (reg > 5 ? INSN_TRAP : 0) | (is_register ? 0 : INSN_DEVICE);
	/* Pushes and pops: a stack is no device. */
	return (op & 0xf0) == 0x50 || (op & 0xfe) == 0xc2 || op == 0xe8 ? 0 : INSN_DEVICE;
}

static bool x86_64_is_output(const uint8_t *bytes, size_t size)
{
	struct parts p = take_apart(bytes, size);

	return p.len != 0 && (p.op[0] & 0xf6) == 0xe6;
}

/* call rel32, and call through a register or memory, with all lengths of its operand. */
static bool x86_64_is_behind_call(const uint8_t *end)
{
	if (end[-5] == 0xe8)
		return true;
	for (int n = 2; n <= 7; n++) {
		if (end[-n] == 0xff && (end[1 - n] >> 3 & 7) == 2)
			return true;
	}
	return false;
}

const struct arch arch_x86_64 = {
	.target = "x86_64",
	.machine = 62, /* EM_X86_64 */
	.call_bytes = 7,
	.flow = x86_64_flow,
	.switches_stack = x86_64_switches_stack,
	.may_stop = x86_64_may_stop,
	.traits = x86_64_traits,
	.is_output = x86_64_is_output,
	.is_behind_call = x86_64_is_behind_call,
	.sp_access = x86_64_sp_access,
};
