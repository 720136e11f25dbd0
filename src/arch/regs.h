/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A vCPU's registers, independent of the architecture: general registers have DWARF numbers
 * (psABI).
 */
#ifndef UNI_ARCH_REGS_H
#define UNI_ARCH_REGS_H

#include <stdbool.h>
#include <stdint.h>

#define UNI_REG_MAX  40
#define UNI_SYS_MAX  8
#define UNI_MORE_MAX 16

enum uni_vcpu_state {
	UNI_VCPU_RUNNING, /* on a host CPU or ready to be on one: the registers are of this moment
			   */
	UNI_VCPU_HALTED,  /* waits for an interrupt: the registers are of its last exit, and still
			     true */
	UNI_VCPU_OFFLINE, /* not started, or removed: no registers */
	UNI_VCPU_UNKNOWN, /* could not be read this time */
	/*
	 * Only targets that look from the kernel can tell these apart. The registers are of the
	 * last exit.
	 */
	UNI_VCPU_KVM,	 /* the host's KVM works for it */
	UNI_VCPU_VMM,	 /* its thread runs in the VMM */
	UNI_VCPU_STOLEN, /* ready to run, but the host runs something else. Also of a vCPU that has
			    not run since the last sample (sampling/ran.h) */
	/* For a guest's thread that was on no vCPU (record --threads). */
	UNI_OFF_CPU_READY,    /* it could run */
	UNI_OFF_CPU_BLOCKED,  /* until another thread or an interrupt wakes it */
	UNI_OFF_CPU_SLEEPING, /* until some time */
	UNI_OFF_CPU_WAITING,  /* until it is woken, or until some time */
	UNI_VCPU_STATE_NR
};

static inline bool uni_state_is_off_cpu(unsigned state)
{
	return state >= UNI_OFF_CPU_READY && state <= UNI_OFF_CPU_WAITING;
}

/* Lower-case word for reports and files: "running", ... */
const char *uni_vcpu_state_name(unsigned state);

struct uni_regs {
	uint64_t valid; /* bit n: r[n] is known; pc, sp, sys[] have bits below */
	uint64_t r[UNI_REG_MAX];
	uint64_t pc, sp;
	uint64_t sys[UNI_SYS_MAX]; /* by enum of the architecture */
	uint8_t sys_valid;	   /* bit n: sys[n] is known */
	uint8_t state;		   /* enum uni_vcpu_state */
	bool pc_valid, sp_valid;
	bool in_kernel; /* a process that ran in a system call: these are its registers there */
};

/* Registers that are only shown; the profiler does not need them. */
struct uni_more_regs {
	uint32_t valid; /* bit n: v[n] is known */
	uint64_t v[UNI_MORE_MAX];
};

static inline void uni_more_regs_set(struct uni_more_regs *m, unsigned reg, uint64_t value)
{
	m->v[reg] = value;
	m->valid |= 1u << reg;
}

/* x86_64: DWARF register numbers, System V psABI figure 3.36. */
enum uni_x86_64_reg {
	UNI_X86_RAX,
	UNI_X86_RDX,
	UNI_X86_RCX,
	UNI_X86_RBX,
	UNI_X86_RSI,
	UNI_X86_RDI,
	UNI_X86_RBP,
	UNI_X86_RSP,
	UNI_X86_R8,
	UNI_X86_R9,
	UNI_X86_R10,
	UNI_X86_R11,
	UNI_X86_R12,
	UNI_X86_R13,
	UNI_X86_R14,
	UNI_X86_R15,
	UNI_X86_RIP,
	UNI_X86_NR_REGS,
};

enum uni_x86_64_sys {
	UNI_X86_CR0,
	UNI_X86_CR3,
	UNI_X86_CR4,
	UNI_X86_EFER,
	UNI_X86_RFLAGS,
	UNI_X86_CS,
	UNI_X86_FS_BASE,
	UNI_X86_GS_BASE,
};

/* x86_64: registers that are only shown to the user. */
enum uni_x86_64_more {
	UNI_X86_SS,
	UNI_X86_DS,
	UNI_X86_ES,
	UNI_X86_FS,
	UNI_X86_GS,
	UNI_X86_GS_BASE_OTHER, /* the base that swapgs would load */
	UNI_X86_CR2,
	UNI_X86_DR0, /* to DR7 */
	UNI_X86_DR7 = UNI_X86_DR0 + 7,
	UNI_X86_NR_MORE,
};

/* aarch64: DWARF for the Arm 64-bit Architecture, table 1: x0..x30, sp 31. */
enum uni_aarch64_reg {
	UNI_A64_X0 = 0,
	UNI_A64_FP = 29,
	UNI_A64_LR = 30,
	UNI_A64_SP = 31,
	UNI_A64_PC = 32,
	UNI_A64_NR_REGS,
};

enum uni_aarch64_sys {
	UNI_A64_SCTLR,
	UNI_A64_TTBR0,
	UNI_A64_TTBR1,
	UNI_A64_TCR,
	UNI_A64_PSTATE,
};

static inline void uni_regs_set(struct uni_regs *regs, unsigned reg, uint64_t value)
{
	regs->r[reg] = value;
	regs->valid |= 1ull << reg;
}

static inline bool uni_regs_get(const struct uni_regs *regs, unsigned reg, uint64_t *ret)
{
	if (reg >= UNI_REG_MAX || (regs->valid >> reg & 1) == 0)
		return false;
	*ret = regs->r[reg];
	return true;
}

static inline void uni_regs_set_sys(struct uni_regs *regs, unsigned sys, uint64_t value)
{
	regs->sys[sys] = value;
	regs->sys_valid |= (uint8_t)(1u << sys);
}

static inline bool uni_regs_get_sys(const struct uni_regs *regs, unsigned sys, uint64_t *ret)
{
	if (sys >= UNI_SYS_MAX || (regs->sys_valid >> sys & 1) == 0)
		return false;
	*ret = regs->sys[sys];
	return true;
}

#endif
