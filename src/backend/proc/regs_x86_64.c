/* SPDX-License-Identifier: BSD-2-Clause */
#include <asm/perf_regs.h>
#include <asm/unistd.h>
#include <string.h>
#include <sys/user.h>

#include "base/checked.h"
#include "backend/proc/proc.h"

/* perf's numbers, rising, and ours. */
static const struct {
	uint8_t perf, dwarf;
} order[] = {
	{ PERF_REG_X86_AX, UNI_X86_RAX },
	{ PERF_REG_X86_BX, UNI_X86_RBX },
	{ PERF_REG_X86_CX, UNI_X86_RCX },
	{ PERF_REG_X86_DX, UNI_X86_RDX },
	{ PERF_REG_X86_SI, UNI_X86_RSI },
	{ PERF_REG_X86_DI, UNI_X86_RDI },
	{ PERF_REG_X86_BP, UNI_X86_RBP },
	{ PERF_REG_X86_SP, UNI_X86_RSP },
	{ PERF_REG_X86_IP, UNI_X86_RIP },
	{ PERF_REG_X86_R8, UNI_X86_R8 },
	{ PERF_REG_X86_R9, UNI_X86_R9 },
	{ PERF_REG_X86_R10, UNI_X86_R10 },
	{ PERF_REG_X86_R11, UNI_X86_R11 },
	{ PERF_REG_X86_R12, UNI_X86_R12 },
	{ PERF_REG_X86_R13, UNI_X86_R13 },
	{ PERF_REG_X86_R14, UNI_X86_R14 },
	{ PERF_REG_X86_R15, UNI_X86_R15 },
};

#define BIT(n) (1ull << PERF_REG_X86_##n)

const uint64_t uni_proc_perf_regs = BIT(AX) | BIT(BX) | BIT(CX) | BIT(DX) | BIT(SI) | BIT(DI) |
				    BIT(BP) | BIT(SP) | BIT(IP) | BIT(R8) | BIT(R9) | BIT(R10) |
				    BIT(R11) | BIT(R12) | BIT(R13) | BIT(R14) | BIT(R15);
const unsigned uni_proc_nr_perf_regs = uni_array_len(order);

static void finish_thread_regs(struct uni_regs *r)
{
	r->state = UNI_VCPU_RUNNING;
	r->pc_valid = uni_regs_get(r, UNI_X86_RIP, &r->pc);
	r->sp_valid = uni_regs_get(r, UNI_X86_RSP, &r->sp);
}

void uni_proc_perf_to_regs(const uint64_t *value, struct uni_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < uni_array_len(order); i++)
		uni_regs_set(ret, order[i].dwarf, value[i]);
	finish_thread_regs(ret);
}

void uni_proc_ptrace_to_regs(const struct user_regs_struct *u, struct uni_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	uni_regs_set(ret, UNI_X86_RAX, u->rax);
	uni_regs_set(ret, UNI_X86_RDX, u->rdx);
	uni_regs_set(ret, UNI_X86_RCX, u->rcx);
	uni_regs_set(ret, UNI_X86_RBX, u->rbx);
	uni_regs_set(ret, UNI_X86_RSI, u->rsi);
	uni_regs_set(ret, UNI_X86_RDI, u->rdi);
	uni_regs_set(ret, UNI_X86_RBP, u->rbp);
	uni_regs_set(ret, UNI_X86_RSP, u->rsp);
	uni_regs_set(ret, UNI_X86_R8, u->r8);
	uni_regs_set(ret, UNI_X86_R9, u->r9);
	uni_regs_set(ret, UNI_X86_R10, u->r10);
	uni_regs_set(ret, UNI_X86_R11, u->r11);
	uni_regs_set(ret, UNI_X86_R12, u->r12);
	uni_regs_set(ret, UNI_X86_R13, u->r13);
	uni_regs_set(ret, UNI_X86_R14, u->r14);
	uni_regs_set(ret, UNI_X86_R15, u->r15);
	uni_regs_set(ret, UNI_X86_RIP, u->rip);
	finish_thread_regs(ret);
	ret->in_kernel = (int64_t)u->orig_rax >= 0; /* an interrupt leaves -1 there */
}

/*
 * signal(7), "Interruption of system calls and library functions by stop signals". With those of
 * sockets, only if the socket has a time limit.
 */
bool uni_proc_call_notices(long nr)
{
	static const short calls[] = { __NR_epoll_wait, __NR_epoll_pwait, __NR_epoll_pwait2,
		__NR_semop, __NR_semtimedop, __NR_rt_sigtimedwait, __NR_io_getevents,
		__NR_io_pgetevents, __NR_io_uring_enter, __NR_read, __NR_readv, __NR_write,
		__NR_writev, __NR_accept, __NR_accept4, __NR_connect, __NR_recvfrom, __NR_recvmsg,
		__NR_recvmmsg, __NR_sendto, __NR_sendmsg, __NR_sendmmsg };

	for (size_t i = 0; i < uni_array_len(calls); i++) {
		if (calls[i] == nr)
			return true;
	}
	return false;
}
