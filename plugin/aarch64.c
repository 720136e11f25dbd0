/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of A64 instructions on the flow of control and on the stack pointer (Arm ARM, section
 * C4.1). A call leaves its return address in x30, so its frame is found where x30 is stored.
 */
#include <string.h>

#include "plugin/plugin.h"

#define LINK 30u
#define SP   31u /* as a base, and as the result of an addition */
#define FP   29u

/* Hints that neither wait nor authenticate. */
#define QUIET_HINTS UINT64_C(0x550f1005f1)

static uint32_t word_of(const uint8_t *bytes)
{
	uint32_t w;

	memcpy(&w, bytes, sizeof(w));
	return w;
}

/* The signed field of that many bits, in units. */
static int64_t field(uint32_t w, unsigned low, unsigned bits, unsigned unit)
{
	int64_t v = w >> low & ((1u << bits) - 1);

	if ((v >> (bits - 1) & 1) != 0)
		v -= INT64_C(1) << bits;
	return v * unit;
}

static struct flow_insn flow_register(uint32_t w)
{
	static const struct flow_insn on = { FLOW_ON, false, NOWHERE };

	switch (w >> 21 & 7) {
	case 1:
		return (struct flow_insn){ FLOW_CALL, true, NOWHERE };
	case 2:
		return (struct flow_insn){ FLOW_RETURN, true, NOWHERE };
	case 4:
		return (struct flow_insn){ FLOW_IRET, true, NOWHERE };
	case 0:
		return (struct flow_insn){ FLOW_JUMP, true, NOWHERE };
	default:
		return on;
	}
}

static struct flow_insn aarch64_flow(uint64_t pc, const uint8_t *bytes, size_t size)
{
	struct flow_insn f = { FLOW_ON, false, NOWHERE };
	uint32_t w = size == 4 ? word_of(bytes) : 0;

	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		f.flow = w >> 31 != 0 ? FLOW_CALL : FLOW_ON;
		f.ends = true;
		f.target = pc + (uint64_t)field(w, 0, 26, 4);
	} else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		f.target = pc + (uint64_t)field(w, 5, 19, 4); /* b.cond, cbz, cbnz */
	} else if ((w & 0x7e000000) == 0x36000000) {
		f.target = pc + (uint64_t)field(w, 5, 14, 4); /* tbz, tbnz */
	} else if ((w & 0xfe000000) == 0xd6000000) {
		f = flow_register(w);
	} else if ((w & 0xffe0001c) == 0xd4000000 && (w & 3) != 0) {
		f.flow = FLOW_SYSCALL; /* svc, hvc, smc */
	}
	return f;
}

/* sp = another register, plus or minus something; not x29, from which an epilogue loads it. */
static bool aarch64_switches_stack(const uint8_t *bytes, size_t size)
{
	uint32_t w = size == 4 ? word_of(bytes) : 0, from = w >> 5 & 31;

	return (w & 0xbf80001f) == (0x91000000 | SP) && from != SP && from != FP;
}

static bool branch_may_stop(uint32_t w)
{
	if ((w & 0xfffff01f) == 0xd503201f) {
		unsigned hint = w >> 5 & 127;

		return hint > 63 || (QUIET_HINTS >> hint & 1) == 0;
	}
	if ((w & 0xfe000000) == 0xd6000000)
		return (w >> 21 & 7) > 2 || (w >> 10 & 3) != 0; /* or authenticates */
	return (w & 0xfe000000) == 0xd4000000;
}

static bool aarch64_may_stop(const uint8_t *bytes, size_t size)
{
	uint32_t w = size == 4 ? word_of(bytes) : 0;

	switch (w >> 25 & 15) {
	case 8: /* data processing: immediates, registers */
	case 9:
	case 5:
	case 13:
		return false;
	case 10:
	case 11:
		return branch_may_stop(w);
	default: /* memory; SIMD may be switched off */
		return true;
	}
}

static bool aarch64_is_behind_call(const uint8_t *end)
{
	return aarch64_flow(0, end - 4, 4).flow == FLOW_CALL;
}

/* Loads and stores of registers, and of pairs, with sp as their base. */
static bool aarch64_sp_access(const uint8_t *bytes, size_t size, struct sp_access *ret)
{
	uint32_t w = size == 4 ? word_of(bytes) : 0, vector = w >> 26 & 1, mode;
	bool is_pair = (w & 0x3a000000) == 0x28000000, moves;

	*ret = (struct sp_access){ 0 };
	if ((w >> 5 & 31) != SP)
		return false;
	if (is_pair) {
		mode = w >> 23 & 3;
		moves = (mode & 1) != 0;
		ret->offset = field(w, 15, 7, vector ? 4u << (w >> 30) : w >> 31 != 0 ? 8 : 4);
		ret->moved = moves ? ret->offset : 0;
		if (mode == 1) /* behind the access */
			ret->offset = 0;
		ret->saves_link = (w & 0xfc400000) == 0xa8000000 &&
				  ((w & 31) == LINK || (w >> 10 & 31) == LINK);
		ret->link = ret->offset + ((w & 31) == LINK ? 0 : 8);
		return true;
	}
	ret->saves_link = (w & 0xfec00000) == 0xf8000000 && (w & 31) == LINK;
	if ((w & 0x3b000000) == 0x39000000) {
		ret->offset = (int64_t)(w >> 10 & 4095) << (vector && (w >> 23 & 1) ? 4 : w >> 30);
	} else if ((w & 0x3b200000) == 0x38000000) {
		mode = w >> 10 & 3;
		ret->offset = field(w, 12, 9, 1);
		ret->moved = (mode & 1) != 0 ? ret->offset : 0;
		if (mode == 1)
			ret->offset = 0;
	} else {
		return false;
	}
	ret->link = ret->offset;
	return true;
}

/* add sp, sp, #n and sub sp, sp, #n */
static int64_t aarch64_sp_moved(const uint8_t *bytes, size_t size)
{
	uint32_t w = size == 4 ? word_of(bytes) : 0;
	int64_t by = (int64_t)(w >> 10 & 4095) << ((w >> 22 & 1) * 12);

	if ((w & 0xbf8003ff) != (0x91000000 | SP << 5 | SP))
		return 0;
	return (w & 0x40000000) != 0 ? -by : by;
}

/* A division never faults. */
static unsigned aarch64_traits(const uint8_t *bytes, size_t size)
{
	struct sp_access a;

	return aarch64_sp_access(bytes, size, &a) ? 0 : INSN_DEVICE;
}

const struct arch arch_aarch64 = {
	.target = "aarch64",
	.machine = 183, /* EM_AARCH64 */
	.call_bytes = 4,
	.vector_bytes = 128,
	.links = true,
	.flow = aarch64_flow,
	.switches_stack = aarch64_switches_stack,
	.may_stop = aarch64_may_stop,
	.traits = aarch64_traits,
	.is_behind_call = aarch64_is_behind_call,
	.sp_access = aarch64_sp_access,
	.sp_moved = aarch64_sp_moved,
};
