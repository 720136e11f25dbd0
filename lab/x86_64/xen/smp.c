/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting a further vCPU. Xen puts it where we like, on the tables that we have. */
#include "lab.h"
#include "../cpu.h"
#include "xen.h"

extern char lab_pv_ap_start[], lab_pvh_ap_start[];

static int64_t initialise_pv(unsigned cpu, uint64_t stack_top)
{
	static struct xen_pv_context context;

	memset(&context, 0, sizeof(context));
	context.flags = XEN_PV_IN_KERNEL;
	context.regs.rip = (uint64_t)lab_pv_ap_start;
	context.regs.rsp = context.kernel_sp = stack_top;
	context.regs.cs = XEN_PV_CS;
	context.regs.ss = context.kernel_ss = XEN_PV_SS;
	context.gs_base_kernel = LAB_EARLY_GS;
	context.ctrlreg[3] = lab_xen_machine(lab_root_pa());
	return lab_hypercall(XEN_VCPU_OP, XEN_VCPU_INITIALISE, cpu, (uint64_t)&context, 0);
}

static int64_t initialise_pvh(unsigned cpu, uint64_t stack_top)
{
	struct xen_hvm_context context = {
		.mode = XEN_HVM_VCPU_MODE_64,
		.rsp = stack_top,
		.rip = (uint64_t)lab_pvh_ap_start,
		.rflags = 2,
		.cr3 = lab_root_pa(),
		.efer = lab_rdmsr(MSR_EFER),
	};

	__asm__ volatile("movq %%cr0, %0" : "=r"(context.cr0));
	__asm__ volatile("movq %%cr4, %0" : "=r"(context.cr4));
	return lab_hypercall(XEN_VCPU_OP, XEN_VCPU_INITIALISE, cpu, (uint64_t)&context, 0);
}

bool lab_vcpu_start(unsigned cpu, uint64_t stack_top, unsigned attempt)
{
	volatile uint64_t *online = &lab_truth.cpu[cpu].online;

	if (attempt)
		return true; /* it will come: when depends on who else wants the CPU */
	if ((lab_xen_pv ? initialise_pv(cpu, stack_top) : initialise_pvh(cpu, stack_top)) != 0)
		return false;
	if (lab_hypercall(XEN_VCPU_OP, XEN_VCPU_UP, cpu, 0, 0) != 0)
		lab_fail("a vCPU does not start");
	for (unsigned turn = 0; turn < 100000 && !*online; turn++)
		lab_hypercall(XEN_SCHED_OP, XEN_SCHED_YIELD, 0, 0, 0);
	return true;
}

void lab_vcpu_park(void)
{
	for (;;)
		lab_hypercall(XEN_VCPU_OP, XEN_VCPU_DOWN, lab_cpu_id(), 0, 0);
}
