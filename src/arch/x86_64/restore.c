/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a switch between threads: pops, and a return (SDM volume 2: POP 58+r, RET C3). A
 * thread that has not run yet begins in code that also clears registers (XOR r, r: 31 /r). That
 * code returns into the thread's function, or into more such code.
 */
#include "arch/x86_64/x86_64.h"

#define CODE_MAX   64u /* bytes: six pops and a return take 11, clearing all registers 42 */
#define STEPS_MAX  32u
#define STAGES_MAX 3u

enum what { OTHER, POP, CLEAR, RET };

struct instr {
	enum what what;
	uint8_t len;
	uint8_t reg; /* DWARF number */
};

static struct instr decode_insn(const uint8_t *code, size_t n)
{
	bool rex = n >= 1 && (code[0] & 0xf0) == 0x40;
	uint8_t wide = rex ? code[0] & 15 : 0, at = rex ? 1 : 0, r, m;

	if (n < (size_t)at + 2)
		return (struct instr){ .what = n == 1 && code[0] == 0xc3 ? RET : OTHER, .len = 1 };
	if (code[at] == 0xc3 && !rex)
		return (struct instr){ RET, 1, 0 };
	if ((code[at] & 0xf8) == 0x58 && (wide & 6) == 0) {
		r = (uint8_t)((code[at] & 7) | (wide & 1) << 3);
		return (struct instr){ r != 4 ? POP : OTHER, (uint8_t)(at + 1),
			(uint8_t)uni_x86_64_dwarf(r) };
	}
	r = (uint8_t)((code[at + 1] >> 3 & 7) | (wide & 4) << 1);
	m = (uint8_t)((code[at + 1] & 7) | (wide & 1) << 3);
	if (code[at] == 0x31 && code[at + 1] >> 6 == 3 && r == m && r != 4)
		return (struct instr){ CLEAR, (uint8_t)(at + 2), (uint8_t)uni_x86_64_dwarf(r) };
	return (struct instr){ OTHER, 1, 0 };
}

static int pop_word(struct uni_as *as, struct uni_regs *regs, uint64_t *ret)
{
	int rc = uni_as_read_u64(as, uni_gva_of(regs->sp), ret);

	if (rc == 0) {
		regs->sp += 8;
		uni_regs_set(regs, UNI_X86_RSP, regs->sp);
	}
	return rc;
}

/*
 * Runs the code up to and with a return. 0: that was the end; 1: the code begins a thread, and may
 * go on.
 */
static int x86_restore_stage(struct uni_as *as, struct uni_regs *regs)
{
	uint8_t code[CODE_MAX];
	size_t n = uni_as_read_some(as, uni_gva_of(regs->pc), code, sizeof(code)), at = 0;
	int begins = 0;

	for (unsigned i = 0; i < STEPS_MAX; i++) {
		struct instr in = decode_insn(code + at, n - at);
		uint64_t word = 0;
		int rc = 0;

		if (at == n || in.what == OTHER)
			return 0;
		if (in.what != CLEAR)
			rc = pop_word(as, regs, &word);
		if (rc != 0)
			return rc;
		if (in.what == RET) {
			regs->pc = word;
			return begins;
		}
		at += in.len;
		regs->pc += in.len;
		begins |= in.what == CLEAR && in.reg != UNI_X86_RAX; /* rax may be a result */
		uni_regs_set(regs, in.reg, word);
	}
	return 0;
}

int uni_x86_64_restore(struct uni_as *as, struct uni_regs *regs)
{
	int rc = 1;

	for (unsigned i = 0; i < STAGES_MAX && rc == 1; i++)
		rc = x86_restore_stage(as, regs);
	return rc == 1 ? 0 : rc;
}
