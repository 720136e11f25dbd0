/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/x86_64/x86_64.h"

#include "base/checked.h"

static const char *const reg_names[UNI_X86_NR_REGS] = {
	[UNI_X86_RAX] = "rax",
	[UNI_X86_RDX] = "rdx",
	[UNI_X86_RCX] = "rcx",
	[UNI_X86_RBX] = "rbx",
	[UNI_X86_RSI] = "rsi",
	[UNI_X86_RDI] = "rdi",
	[UNI_X86_RBP] = "rbp",
	[UNI_X86_RSP] = "rsp",
	[UNI_X86_R8] = "r8",
	[UNI_X86_R9] = "r9",
	[UNI_X86_R10] = "r10",
	[UNI_X86_R11] = "r11",
	[UNI_X86_R12] = "r12",
	[UNI_X86_R13] = "r13",
	[UNI_X86_R14] = "r14",
	[UNI_X86_R15] = "r15",
	[UNI_X86_RIP] = "rip",
};

static const char *const sys_names[UNI_SYS_MAX] = {
	[UNI_X86_CR0] = "cr0",
	[UNI_X86_CR3] = "cr3",
	[UNI_X86_CR4] = "cr4",
	[UNI_X86_EFER] = "efer",
	[UNI_X86_RFLAGS] = "rflags",
	[UNI_X86_CS] = "cs",
	[UNI_X86_FS_BASE] = "fs_base",
	[UNI_X86_GS_BASE] = "gs_base",
};

/* QEMU's own order (gdb-xml/i386-64bit.xml), for clients that read no target description. */
#define GPR(off, reg)                                       \
	{                                                   \
		.offset = (off), .size = 8, .number = (reg) \
	}
#define SYS(off, bytes, reg)                                                   \
	{                                                                      \
		.offset = (off), .size = (bytes), .sys = true, .number = (reg) \
	}

static const struct uni_gdb_reg gdb_regs[] = {
	GPR(0, UNI_X86_RAX),
	GPR(8, UNI_X86_RBX),
	GPR(16, UNI_X86_RCX),
	GPR(24, UNI_X86_RDX),
	GPR(32, UNI_X86_RSI),
	GPR(40, UNI_X86_RDI),
	GPR(48, UNI_X86_RBP),
	GPR(56, UNI_X86_RSP),
	GPR(64, UNI_X86_R8),
	GPR(72, UNI_X86_R9),
	GPR(80, UNI_X86_R10),
	GPR(88, UNI_X86_R11),
	GPR(96, UNI_X86_R12),
	GPR(104, UNI_X86_R13),
	GPR(112, UNI_X86_R14),
	GPR(120, UNI_X86_R15),
	GPR(128, UNI_X86_RIP),
	SYS(136, 4, UNI_X86_RFLAGS),
	SYS(140, 4, UNI_X86_CS), /* then ss, ds, es, fs, gs */
	SYS(164, 8, UNI_X86_FS_BASE),
	SYS(172, 8, UNI_X86_GS_BASE), /* then k_gs_base */
	SYS(188, 8, UNI_X86_CR0),     /* then cr2 */
	SYS(204, 8, UNI_X86_CR3),
	SYS(212, 8, UNI_X86_CR4), /* then cr8 */
	SYS(228, 8, UNI_X86_EFER),
};

/*
 * A vCPU that waits for its first start-up interrupt is at the reset vector, in real mode. QEMU may
 * call it halted, or (with KVM) running.
 */
static bool never_started(const struct uni_regs *regs)
{
	uint64_t cr0;

	return uni_regs_get_sys(regs, UNI_X86_CR0, &cr0) && (cr0 & 1) == 0 && regs->pc == 0xfff0;
}

/* hlt with interrupts off: only an NMI or a reset ends it. */
static bool may_wake(const struct uni_regs *regs)
{
	uint64_t flags;

	return !uni_regs_get_sys(regs, UNI_X86_RFLAGS, &flags) || (flags & 1u << 9) != 0;
}

unsigned uni_x86_64_dwarf(unsigned enc)
{
	static const uint8_t low[] = { UNI_X86_RAX, UNI_X86_RCX, UNI_X86_RDX, UNI_X86_RBX,
		UNI_X86_RSP, UNI_X86_RBP, UNI_X86_RSI, UNI_X86_RDI };

	return enc < 8 ? low[enc] : UNI_X86_R8 + enc - 8;
}

const struct uni_arch uni_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = 62, /* EM_X86_64 */
	.pc_hole = true,
	.word = 8,
	.call_bytes = 5,
	.insn = 1,
	.nr_regs = UNI_X86_NR_REGS,
	.fp_reg = UNI_X86_RBP,
	.sp_reg = UNI_X86_RSP,
	.pc_reg = UNI_X86_RIP,
	.callee_saved = 1u << UNI_X86_RBX | 1u << UNI_X86_RBP | 1u << UNI_X86_RSP |
			1u << UNI_X86_R12 | 1u << UNI_X86_R13 | 1u << UNI_X86_R14 |
			1u << UNI_X86_R15,
	.reg_names = reg_names,
	.sys_names = sys_names,
	.gdb_regs = gdb_regs,
	.nr_gdb_regs = uni_array_len(gdb_regs),
	.gdb_g_size = 608, /* with x87 and SSE registers, which are not looked at */
	.paging = uni_x86_64_paging,
	.never_started = never_started,
	.may_wake = may_wake,
	.sets_frame = uni_x86_64_sets_frame,
	.after_call = uni_x86_64_after_call,
	.insn_size = uni_x86_64_insn_size,
	.branch = uni_x86_64_branch,
	.has_returned = uni_x86_64_has_returned,
	.clears_fp = uni_x86_64_clears_fp,
	.stores_flags = uni_x86_64_stores_flags,
	.begins_stack = uni_x86_64_begins_stack,
	.fp_step = uni_x86_64_fp_step,
	.epilogue = uni_x86_64_epilogue,
	.ahead = uni_x86_64_ahead,
	.takes_stack = uni_x86_64_takes_stack,
	.find_stack = uni_x86_64_find_stack,
	.leaf_rules = uni_x86_64_leaf_rules,
	.restore = uni_x86_64_restore,
	.strip = uni_arch_keep_pc,
};
