/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a switch between threads: pops, and a return (SDM volume 2: POP 58+r, RET C3). */
#include "arch/x86_64/x86_64.h"

#define CODE_MAX  32u /* bytes: six pops and a return take 11 */
#define STEPS_MAX 24u

/* As instructions number them, in the order of DWARF. */
static const uint8_t dwarf_of[8] = { UNI_X86_RAX, UNI_X86_RCX, UNI_X86_RDX, UNI_X86_RBX,
	UNI_X86_RSP, UNI_X86_RBP, UNI_X86_RSI, UNI_X86_RDI };

struct instr {
	uint8_t len; /* 0: none of those */
	bool is_ret;
	uint8_t reg; /* DWARF number of what is popped */
};

static struct instr decode(const uint8_t *code, size_t n)
{
	if (n >= 1 && code[0] == 0xc3)
		return (struct instr){ .len = 1, .is_ret = true };
	if (n >= 1 && (code[0] & 0xf8) == 0x58 && code[0] != 0x5c)
		return (struct instr){ .len = 1, .reg = dwarf_of[code[0] & 7] };
	if (n >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x58)
		return (struct instr){ .len = 2, .reg = (uint8_t)(UNI_X86_R8 + (code[1] & 7)) };
	return (struct instr){ 0 };
}

static int pop(struct uni_as *as, struct uni_regs *regs, uint64_t *ret)
{
	int rc = uni_as_read_u64(as, uni_gva_of(regs->sp), ret);

	if (rc == 0) {
		regs->sp += 8;
		uni_regs_set(regs, UNI_X86_RSP, regs->sp);
	}
	return rc;
}

int uni_x86_64_restore(struct uni_as *as, struct uni_regs *regs)
{
	uint8_t code[CODE_MAX];
	size_t n = uni_as_read_some(as, uni_gva_of(regs->pc), code, sizeof(code)), at = 0;

	for (unsigned i = 0; i < STEPS_MAX; i++) {
		struct instr in = decode(code + at, n - at);
		uint64_t word;
		int rc;

		if (in.len == 0)
			break;
		rc = pop(as, regs, &word);
		if (rc != 0)
			return rc;
		at += in.len;
		regs->pc += in.len;
		if (in.is_ret) {
			regs->pc = word;
			break;
		}
		uni_regs_set(regs, in.reg, word);
	}
	return 0;
}
