/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few instructions around calls, prologues and epilogues; opcodes from Intel SDM volume 2. This
 * is no disassembler: it refuses unknown code, and the caller falls back to the plain chain.
 */
#include <string.h>

#include "arch/x86_64/x86_64.h"

#define RSP 4
#define RBP 5

static bool starts_with(const uint8_t *code, size_t n, const char *bytes, size_t len)
{
	return n >= len && memcmp(code, bytes, len) == 0;
}
#define STARTS(code, n, bytes) starts_with((code), (n), (bytes), sizeof(bytes) - 1)

/* Length of ModRM, SIB and displacement; 0 if there are fewer bytes. */
static size_t modrm_len(const uint8_t *p, size_t n)
{
	uint8_t mod, rm;
	size_t len = 1;

	if (n < 1)
		return 0;
	mod = p[0] >> 6;
	rm = p[0] & 7;
	if (mod != 3 && rm == 4) {
		if (n < 2)
			return 0;
		len++;
		if (mod == 0 && (p[1] & 7) == 5)
			len += 4;
	}
	if (mod == 0 && rm == 5)
		len += 4;
	else if (mod == 1)
		len += 1;
	else if (mod == 2)
		len += 4;
	return len <= n ? len : 0;
}

/* The form of a one-byte opcode that can stand between the parts of a prologue. */
enum shape {
	NONE,	    /* not known to be harmless */
	DEST_RM,    /* ModRM; writes r/m */
	DEST_REG,   /* ModRM; writes reg */
	NO_DEST,    /* ModRM; writes flags only */
	DEST_RM_8,  /* DEST_RM and an 8-bit immediate */
	DEST_RM_32, /* DEST_RM and a 32-bit immediate (16 with 0x66) */
	DEST_REG_8, /* imul reg, r/m, immediate */
	DEST_REG_32,
	GROUP_3, /* not, neg: DEST_RM; mul, div: write only rax, rdx; test has an immediate */
};

static enum shape shape_of(uint8_t op)
{
	switch (op) {
	case 0x01: /* add, or, and, sub, xor, mov to r/m */
	case 0x09:
	case 0x21:
	case 0x29:
	case 0x31:
	case 0x88:
	case 0x89:
		return DEST_RM;
	case 0x03: /* the same to reg; movsxd, lea */
	case 0x0b:
	case 0x23:
	case 0x2b:
	case 0x33:
	case 0x63:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		return DEST_REG;
	case 0x38: /* cmp, test */
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
		return NO_DEST;
	case 0x83: /* group 1, shifts, mov */
	case 0xc1:
	case 0xc6:
		return DEST_RM_8;
	case 0x81:
	case 0xc7:
		return DEST_RM_32;
	case 0x6b:
		return DEST_REG_8;
	case 0x69:
		return DEST_REG_32;
	case 0xf7:
		return GROUP_3;
	case 0xd1: /* shifts */
	case 0xd3:
		return DEST_RM;
	default:
		return NONE;
	}
}

/* movzx, movsx (0F B6..BF), imul, long nop (0F 1F) and SSE moves and xors that touch no stack. */
static bool harmless_0f(uint8_t op, enum shape *ret)
{
	*ret = DEST_REG;
	if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || op == 0xaf)
		return true;
	*ret = NO_DEST; /* memory or an SSE register */
	return op == 0x1f || op == 0x10 || op == 0x11 || op == 0x28 || op == 0x29 || op == 0x57 ||
	       op == 0xef;
}

/* The register that ModRM at p makes the destination; SIZE_MAX if it is memory. */
static size_t dest_of(enum shape shape, const uint8_t *p, uint8_t rex)
{
	if (shape == DEST_REG || shape == DEST_REG_8 || shape == DEST_REG_32)
		return (size_t)(p[0] >> 3 & 7) | (size_t)(rex & 4) << 1;
	return p[0] >> 6 == 3 ? (size_t)(p[0] & 7) | (size_t)(rex & 1) << 3 : SIZE_MAX;
}

static size_t imm_len(enum shape shape, bool op16)
{
	if (shape == DEST_RM_8 || shape == DEST_REG_8)
		return 1;
	if (shape == DEST_RM_32 || shape == DEST_REG_32)
		return op16 ? 2 : 4;
	return 0;
}

/* The rest of an instruction from its ModRM at code[pos]; its whole length or 0. */
static size_t harmless_modrm(
	const uint8_t *code, size_t pos, size_t n, enum shape shape, uint8_t rex, bool op16)
{
	size_t len = modrm_len(code + pos, n - pos), dest;

	if (len == 0 || shape == NONE)
		return 0;
	if (shape == GROUP_3 && (code[pos] >> 3 & 7) < 2)
		return 0;
	dest = shape == NO_DEST ? SIZE_MAX : dest_of(shape, code + pos, rex);
	if (dest == RSP || dest == RBP)
		return 0;
	len += pos + imm_len(shape, op16);
	return len <= n ? len : 0;
}

/* Length of an instruction that changes neither rsp nor rbp and pushes nothing; 0 if unsure. */
static size_t harmless_len(const uint8_t *code, size_t n)
{
	size_t pos = 0, dest, len;
	enum shape shape;
	uint8_t rex = 0;
	bool op16 = false;

	if (STARTS(code, n, "\xc5\xf8\x77")) /* vzeroupper */
		return 3;
	while (pos < n && (code[pos] == 0x66 || code[pos] == 0xf2 || code[pos] == 0xf3))
		op16 |= code[pos++] == 0x66;
	if (pos < n && (code[pos] & 0xf0) == 0x40)
		rex = code[pos++];
	if (pos >= n)
		return 0;
	if (code[pos] == 0x90)
		return pos + 1;
	if ((code[pos] & 0xf8) == 0xb8) { /* mov reg, imm */
		dest = (size_t)(code[pos] & 7) | (size_t)(rex & 1) << 3;
		len = pos + 1 + ((rex & 8) != 0 ? 8 : op16 ? 2 : 4);
		return dest != RSP && dest != RBP && len <= n ? len : 0;
	}
	if (code[pos] == 0x0f) {
		if (++pos >= n || !harmless_0f(code[pos], &shape))
			return 0;
	} else {
		shape = shape_of(code[pos]);
	}
	return harmless_modrm(code, pos + 1, n, shape, rex, op16);
}

bool uni_x86_64_is_set_frame(const uint8_t *code, size_t n)
{
	return STARTS(code, n, "\x48\x89\xe5") || STARTS(code, n, "\x48\x8b\xec");
}

/*
 * Length of the code with which GCC aligns the stack of a function, or 0: lea r10,[rsp+8]; and
 * rsp,-N; push [r10-8]. It copies the return address to the place where the frame pointer expects
 * it.
 */
static size_t realign_len(const uint8_t *code, size_t n)
{
	if (STARTS(code, n, "\x4c\x8d\x54\x24\x08\x48\x83\xe4") && n >= 13 &&
		memcmp(code + 9, "\x41\xff\x72\xf8", 4) == 0)
		return 13;
	return 0;
}

bool uni_x86_64_prologue(const uint8_t *code, size_t n, struct uni_x86_64_prologue *ret)
{
	bool pushed = false;
	size_t pos = 0, len;

	if (n > UNI_X86_PROLOGUE_MAX)
		n = UNI_X86_PROLOGUE_MAX;
	if (STARTS(code, n, "\xf3\x0f\x1e\xfa")) /* endbr64 */
		pos = 4;
	pos += realign_len(code + pos, n - pos);
	while (pos < n) {
		if (!pushed && code[pos] == 0x55) {
			pushed = true;
			ret->push = (uint8_t)pos++;
			continue;
		}
		if (pushed && uni_x86_64_is_set_frame(code + pos, n - pos)) {
			ret->mov = (uint8_t)pos;
			return true;
		}
		len = harmless_len(code + pos, n - pos);
		if (len == 0)
			return false;
		pos += len;
	}
	return false;
}

bool uni_x86_64_sets_frame(const uint8_t *code, size_t n)
{
	struct uni_x86_64_prologue p;

	return uni_x86_64_prologue(code, n, &p);
}

bool uni_x86_64_direct_call(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret)
{
	const uint8_t *p = before + (UNI_X86_CALL_MAX - 5);
	uint32_t rel =
		(uint32_t)p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;

	if (p[0] != 0xe8)
		return false;
	*target_ret = ret_addr + (uint64_t)(int64_t)(int32_t)rel;
	return true;
}

bool uni_x86_64_indirect_call(const uint8_t *before)
{
	for (size_t len = 2; len <= UNI_X86_CALL_MAX; len++) {
		const uint8_t *p = before + (UNI_X86_CALL_MAX - len);

		if (p[0] == 0xff && (p[1] >> 3 & 7) == 2 && modrm_len(p + 1, len - 1) == len - 1)
			return true;
	}
	return false;
}

bool uni_x86_64_after_call(const uint8_t *before, uint64_t ret_addr, uint64_t *target_ret)
{
	if (uni_x86_64_direct_call(before, ret_addr, target_ret))
		return true;
	*target_ret = 0;
	return uni_x86_64_indirect_call(before);
}

static bool is_ret(const uint8_t *code, size_t n)
{
	if (n > 0 && (code[0] == 0xf3 || code[0] == 0xf2)) { /* rep ret, bnd ret */
		code++;
		n--;
	}
	return n > 0 && (code[0] == 0xc3 || code[0] == 0xc2);
}

/* Length of pop qword [mem] (8F /0); 0 if it is none. */
static size_t pop_mem_len(const uint8_t *code, size_t n)
{
	size_t rex = n > 0 && (code[0] & 0xf0) == 0x40, len;

	if (n < rex + 2 || code[rex] != 0x8f || code[rex + 1] >> 6 == 3 ||
		(code[rex + 1] >> 3 & 7) != 0)
		return 0;
	len = modrm_len(code + rex + 1, n - rex - 1);
	return len != 0 ? rex + 1 + len : 0;
}

/*
 * Length of pop or add rsp, N, and what it adds to rsp; 0 if it is neither, or pops rbp or rsp.
 */
static size_t pop_len(const uint8_t *code, size_t n, uint32_t *add_ret)
{
	*add_ret = 8;
	if (n >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x58)
		return 2;
	if (n >= 1 && (code[0] & 0xf8) == 0x58 && code[0] != 0x58 + RSP && code[0] != 0x58 + RBP)
		return 1;
	if (!STARTS(code, n, "\x48\x83\xc4"))
		return pop_mem_len(code, n);
	if (n < 4 || code[3] > 127)
		return 0;
	*add_ret = code[3];
	return 4;
}

size_t uni_x86_64_epilogue_step(const uint8_t *code, size_t n, uint32_t *add_ret, bool *ret_ret)
{
	size_t len;

	*add_ret = 0;
	*ret_ret = is_ret(code, n);
	if (*ret_ret)
		return code[0] == 0xf3 || code[0] == 0xf2 ? 2 : 1;
	len = pop_len(code, n, add_ret);
	if (len != 0)
		return len;
	*add_ret = 0;
	return harmless_len(code, n);
}

bool uni_x86_64_epilogue(const uint8_t *code, size_t n, uint32_t *offset_ret)
{
	uint32_t offset = 0, add;
	size_t pos = 0, len;
	bool ret;

	while (pos < n) {
		len = uni_x86_64_epilogue_step(code + pos, n - pos, &add, &ret);
		if (ret) {
			*offset_ret = offset;
			return true;
		}
		if (len == 0)
			return false;
		offset += add;
		pos += len;
	}
	return false;
}

/* Length of push reg or sub rsp, N, and what it takes off rsp; 0 if it is neither. */
static size_t push_len(const uint8_t *code, size_t n, uint32_t *sub_ret)
{
	*sub_ret = 8;
	if (n >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50)
		return 2;
	if (n >= 1 && (code[0] & 0xf8) == 0x50)
		return 1;
	if (STARTS(code, n, "\x48\x83\xec") && n >= 4 && code[3] <= 127) {
		*sub_ret = code[3];
		return 4;
	}
	if (!STARTS(code, n, "\x48\x81\xec") || n < 7 || code[6] != 0)
		return 0;
	*sub_ret = (uint32_t)code[3] | (uint32_t)code[4] << 8 | (uint32_t)code[5] << 16;
	return 7;
}

size_t uni_x86_64_push_step(const uint8_t *code, size_t n, uint32_t *sub_ret)
{
	size_t len = push_len(code, n, sub_ret);

	if (len != 0)
		return len;
	*sub_ret = 0;
	return harmless_len(code, n);
}

bool uni_x86_64_pushed(const uint8_t *code, size_t n, uint32_t *offset_ret)
{
	size_t pos = STARTS(code, n, "\xf3\x0f\x1e\xfa") ? 4 : 0, len;
	uint32_t sub;

	*offset_ret = 0;
	while (pos < n) {
		len = uni_x86_64_push_step(code + pos, n - pos, &sub);
		if (len == 0)
			return false;
		*offset_ret += sub;
		pos += len;
	}
	return true;
}

/*
 * One instruction of a stub, and what it takes off rsp; 0 if it is none. Xen writes
 *
 *   PV   push rcx; push r11; mov eax, N; syscall; pop r11; pop rcx; ret
 *   HVM  mov eax, N; vmcall or vmmcall; ret
 */
static size_t stub_step(const uint8_t *code, size_t n, int *sub_ret)
{
	size_t wide = n >= 2 && code[0] == 0x41 ? 1 : 0;
	uint8_t op = n > wide ? (uint8_t)(code[wide] & 0xf8) : 0;

	*sub_ret = 0;
	if (op == 0x50 || op == 0x58) {
		*sub_ret = op == 0x50 ? 8 : -8;
		return wide + 1;
	}
	if (n >= 5 && code[0] == 0xb8)
		return 5;
	if (STARTS(code, n, "\x0f\x05"))
		return 2;
	if (STARTS(code, n, "\x0f\x01\xc1") || STARTS(code, n, "\x0f\x01\xd9"))
		return 3;
	return 0;
}

bool uni_x86_64_stub(const uint8_t *code, size_t n, uint32_t *offset_ret)
{
	int offset = 0, sub;
	size_t pos = 0;

	while (pos < n) {
		size_t len = stub_step(code + pos, n - pos, &sub);

		if (len == 0)
			return false;
		pos += len;
		offset += sub;
	}
	if (offset < 0)
		return false;
	*offset_ret = (uint32_t)offset;
	return true;
}

bool uni_x86_64_frame_popped(const uint8_t *before, size_t n)
{
	if (n < 2)
		return false;
	if (before[n - 1] == 0xc9)
		return true;
	return before[n - 1] == 0x5d && before[n - 2] != 0x41; /* 41 5D is pop r13 */
}

/* pushf, after 0x66 and REX. */
bool uni_x86_64_stores_flags(const uint8_t *code, size_t n)
{
	size_t i = 0;

	while (i < n && (code[i] == 0x66 || (code[i] & 0xf0) == 0x40))
		i++;
	return i < n && code[i] == 0x9c;
}

bool uni_x86_64_clears_fp(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 1 < n && code[i] != 0x55; i++) {
		if ((code[i] == 0x31 || code[i] == 0x33) && code[i + 1] == 0xed)
			return true;
	}
	return false;
}

/* mov REG, %rsp, but for rbp and rsp; then call rel32 or call *REG. */
bool uni_x86_64_begins_stack(const uint8_t *code, size_t n)
{
	size_t at = n >= 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0;

	if (n < at + 3 || (code[at] | 4) != 0x4c || code[at + 1] != 0x89 ||
		(code[at + 2] & 0xc7) != 0xc4)
		return false;
	if (code[at] == 0x48 && ((code[at + 2] >> 3 & 7) == 4 || (code[at + 2] >> 3 & 7) == 5))
		return false;
	for (at += 3; at + 1 < n; at++) {
		if ((code[at] == 0xe8 && n - at >= 5) ||
			(code[at] == 0xff && (code[at + 1] & 0xf8) == 0xd0))
			return true;
	}
	return false;
}
