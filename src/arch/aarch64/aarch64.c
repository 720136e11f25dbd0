/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/aarch64/aarch64.h"

#include "base/checked.h"

static const char *const reg_names[UNI_A64_NR_REGS] = { "x0", "x1", "x2", "x3", "x4", "x5", "x6",
	"x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
	"x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp", "pc" };

static const char *const sys_names[UNI_SYS_MAX] = {
	[UNI_A64_SCTLR] = "sctlr",
	[UNI_A64_TTBR0] = "ttbr0",
	[UNI_A64_TTBR1] = "ttbr1",
	[UNI_A64_TCR] = "tcr",
	[UNI_A64_PSTATE] = "pstate",
};

/* gdb's feature org.gnu.gdb.aarch64.core: x0 to x30, sp, pc, then cpsr of 4 bytes. */
#define GPR(reg)                                                \
	{                                                       \
		.offset = 8 * (reg), .size = 8, .number = (reg) \
	}

static const struct uni_gdb_reg gdb_regs[] = {
	GPR(0),
	GPR(1),
	GPR(2),
	GPR(3),
	GPR(4),
	GPR(5),
	GPR(6),
	GPR(7),
	GPR(8),
	GPR(9),
	GPR(10),
	GPR(11),
	GPR(12),
	GPR(13),
	GPR(14),
	GPR(15),
	GPR(16),
	GPR(17),
	GPR(18),
	GPR(19),
	GPR(20),
	GPR(21),
	GPR(22),
	GPR(23),
	GPR(24),
	GPR(25),
	GPR(26),
	GPR(27),
	GPR(28),
	GPR(UNI_A64_FP),
	GPR(UNI_A64_LR),
	GPR(UNI_A64_SP),
	GPR(UNI_A64_PC),
	{ .offset = 264, .size = 4, .sys = true, .number = UNI_A64_PSTATE },
};

/* Not in a `g` reply; these are QEMU's names. */
static const struct uni_gdb_named gdb_named[] = {
	{ "SCTLR", UNI_A64_SCTLR },
	{ "SCTLR_EL1", UNI_A64_SCTLR },
	{ "TTBR0_EL1", UNI_A64_TTBR0 },
	{ "TTBR1_EL1", UNI_A64_TTBR1 },
	{ "TCR_EL1", UNI_A64_TCR },
};

/*
 * Pointer authentication keeps its code in the bits above the address; tags are there, too. Bit 55
 * is left out: it still says in which half the address is.
 */
static uint64_t strip_pac(const struct uni_regs *regs, uint64_t pc)
{
	uint64_t above = UINT64_MAX << uni_aarch64_va_bits(regs, pc);

	return (pc >> 55 & 1) != 0 ? pc | above : pc & ~above;
}

/* A vCPU that was never switched on has the registers of its reset. */
static bool never_started(const struct uni_regs *regs)
{
	uint64_t sctlr, any = regs->sp;

	if (!uni_regs_get_sys(regs, UNI_A64_SCTLR, &sctlr) || (sctlr & 1) != 0)
		return false;
	for (unsigned i = 0; i <= UNI_A64_LR; i++)
		any |= regs->r[i];
	return any == 0;
}

const struct uni_arch uni_arch_aarch64 = {
	.name = "aarch64",
	.elf_machine = 183, /* EM_AARCH64 */
	.word = 8,
	.call_bytes = UNI_A64_INSN,
	.insn = UNI_A64_INSN,
	.nr_regs = UNI_A64_NR_REGS,
	.fp_reg = UNI_A64_FP,
	.sp_reg = UNI_A64_SP,
	.pc_reg = UNI_A64_PC,
	.callee_saved = 0xfff80000, /* x19 to x30, sp */
	.reg_names = reg_names,
	.sys_names = sys_names,
	.gdb_regs = gdb_regs,
	.nr_gdb_regs = uni_array_len(gdb_regs),
	.gdb_g_size = 268,
	.gdb_named = gdb_named,
	.nr_gdb_named = uni_array_len(gdb_named),
	.paging = uni_aarch64_paging,
	.never_started = never_started,
	.sets_frame = uni_aarch64_sets_frame,
	.after_call = uni_aarch64_after_call,
	.branch = uni_aarch64_branch,
	.has_returned = uni_aarch64_has_returned,
	.clears_fp = uni_aarch64_clears_fp,
	.fp_step = uni_aarch64_fp_step,
	.restore = uni_aarch64_restore,
	.strip = strip_pac,
};
