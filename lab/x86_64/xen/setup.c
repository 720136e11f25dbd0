/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up in order, as PV and as PVH guest, and the end. */
#include "lab.h"
#include "../cpu.h"
#include "xen.h"

#define NS_A_SECOND 1000000000ULL

extern char lab_pv_trap_entries[], hypercall_page[];

bool lab_xen_pv;
struct xen_shared_info lab_xen_shared __attribute__((aligned(4096)));
struct lab_cpu lab_cpus[LAB_MAX_CPUS] = { LAB_CPU_FIRST };

uint64_t lab_pv_setup(const struct xen_pv_start_info *info);

struct uni_trace_cpu *lab_trace_cpu(unsigned cpu)
{
	return (struct uni_trace_cpu *)lab_cpus[cpu].trace;
}

static void set_traps(void)
{
	static struct xen_trap_info traps[33];

	for (unsigned v = 0; v < 32; v++)
		traps[v] = (struct xen_trap_info){ .vector = (uint8_t)v,
			.cs = XEN_PV_CS,
			.address = (uint64_t)lab_pv_trap_entries + 32 * v };
	if (lab_hypercall(XEN_SET_TRAP_TABLE, (uint64_t)traps, 0, 0, 0) != 0)
		lab_fail("no trap table");
}

void lab_cpu_init(unsigned cpu)
{
	lab_cpus[cpu].id = cpu;
	if (!lab_xen_pv) {
		lab_wrmsr(MSR_GS_BASE, (uint64_t)&lab_cpus[cpu]);
		lab_trap_init_cpu(cpu);
		return;
	}
	lab_hypercall(XEN_SET_SEGMENT_BASE, XEN_SEGMENT_GS_KERNEL, (uint64_t)&lab_cpus[cpu], 0, 0);
	set_traps();
}

/* Xen tells how to turn cycles into nanoseconds. */
void lab_tsc_calibrate(void)
{
	const struct xen_vcpu_info *vcpu = &lab_xen_shared.vcpu[0];
	uint64_t hz = (NS_A_SECOND << 32) / vcpu->time.tsc_to_system_mul;

	lab_truth.tsc_hz =
		vcpu->time.tsc_shift < 0 ? hz << -vcpu->time.tsc_shift : hz >> vcpu->time.tsc_shift;
}

static uint64_t set_up_rest(void)
{
	lab_tsc_calibrate();
	lab_xen_event_init();
	lab_printf("\nlab: Xen, %s guest, root %lx\n", lab_xen_pv ? "PV" : "PVH", lab_truth.cr3);
	return lab_main_stack_init();
}

uint64_t lab_pv_setup(const struct xen_pv_start_info *info)
{
	uint64_t leaf = PTE_PRESENT | PTE_WRITE | PTE_NX;

	lab_xen_pv = true;
	lab_cpu_init(0);
	lab_truth_init();
	lab_cmdline_init(info->cmd_line);
	lab_xen_memory_init(info);
	lab_truth.cr3 = lab_xen_machine(lab_root_pa());
	lab_xen_console_init(
		lab_phys(lab_table_pa(info->console_mfn * LAB_PAGE_SIZE)), info->console_event);
	lab_xen_store_init(
		lab_phys(lab_table_pa(info->store_mfn * LAB_PAGE_SIZE)), info->store_event);
	if (lab_hypercall(XEN_UPDATE_VA_MAPPING, (uint64_t)&lab_xen_shared,
		    info->shared_info_ma | leaf, XEN_UVMF_INVLPG, 0) != 0)
		lab_fail("the shared page cannot be mapped");
	return set_up_rest();
}

/* The model-specific register by which the hypercall page is asked for; 0: this is not Xen. */
static uint32_t hypercall_msr(void)
{
	uint32_t a, b, c, d;

	for (uint32_t leaf = XEN_CPUID_FIRST; leaf <= XEN_CPUID_LAST; leaf += XEN_CPUID_STEP) {
		lab_cpuid(leaf, &a, &b, &c, &d);
		if (b != XEN_CPUID_SIGNATURE_B || c != XEN_CPUID_SIGNATURE_C ||
			d != XEN_CPUID_SIGNATURE_D)
			continue;
		lab_cpuid(leaf + 2, &a, &b, &c, &d);
		return b;
	}
	return 0;
}

static uint64_t hvm_param(uint32_t index)
{
	struct xen_hvm_param param = { .domid = XEN_DOMID_SELF, .index = index };

	if (lab_hypercall(XEN_HVM_OP, XEN_HVM_GET_PARAM, (uint64_t)&param, 0, 0) != 0)
		lab_fail("Xen has no such parameter");
	return param.value;
}

static void map_shared_info(void)
{
	struct xen_add_to_physmap map = { .domid = XEN_DOMID_SELF,
		.space = XEN_MAPSPACE_SHARED_INFO,
		.gpfn = ((uint64_t)&lab_xen_shared - LAB_IMAGE_OFFSET) / LAB_PAGE_SIZE };

	if (lab_hypercall(XEN_MEMORY_OP, XEN_MEMORY_ADD_TO_PHYSMAP, (uint64_t)&map, 0, 0) != 0)
		lab_fail("the shared page cannot be had");
}

uint64_t lab_setup(void)
{
	struct lab_boot_info info;
	uint32_t msr = hypercall_msr();

	if (!msr) {
		/* If somebody boots it by mistake: QEMU's isa-debug-exit. */
		lab_outl(0xf4, LAB_EXIT_FAIL);
		for (;;)
			lab_relax();
	}
	lab_wrmsr(msr, (uint64_t)hypercall_page - LAB_IMAGE_OFFSET);
	lab_cpu_init(0);
	lab_trap_init();
	lab_truth_init();
	lab_pvh_read(&info);
	lab_page_alloc_behind_image(&info);
	lab_paging_init(&info);
	map_shared_info();
	lab_map(LAB_XEN_CONSOLE, hvm_param(XEN_HVM_PARAM_CONSOLE_PFN) * LAB_PAGE_SIZE,
		PTE_WRITE | PTE_NX, 12);
	lab_xen_console_init((struct xen_console *)LAB_XEN_CONSOLE,
		(uint32_t)hvm_param(XEN_HVM_PARAM_CONSOLE_EVENT));
	lab_map(LAB_XEN_STORE, hvm_param(XEN_HVM_PARAM_STORE_PFN) * LAB_PAGE_SIZE,
		PTE_WRITE | PTE_NX, 12);
	lab_xen_store_init(
		(struct xen_store *)LAB_XEN_STORE, (uint32_t)hvm_param(XEN_HVM_PARAM_STORE_EVENT));
	return set_up_rest();
}

static _Noreturn void shut_down(uint32_t reason)
{
	for (;;)
		lab_hypercall(XEN_SCHED_OP, XEN_SCHED_SHUTDOWN, (uint64_t)&reason, 0, 0);
}

/* end=spin and end=block: the domain stays, its books are shut. */
LAB_FUNC static void end_spin(void)
{
	for (;;)
		lab_relax();
}

LAB_FUNC static void end_block(void)
{
	for (;;)
		lab_halt();
}

_Noreturn void lab_exit(unsigned code)
{
	static const struct {
		const char *name;
		uint32_t reason;
	} ends[] = { { "reboot", XEN_SHUTDOWN_REBOOT }, { "suspend", XEN_SHUTDOWN_SUSPEND },
		{ "crash", XEN_SHUTDOWN_CRASH }, { "watchdog", XEN_SHUTDOWN_WATCHDOG } };

	lab_printf("lab: end %x, %lu lines dropped\n", code, lab_xen_console_dropped());
	if (code != LAB_EXIT_OK)
		shut_down(XEN_SHUTDOWN_CRASH);
	if (lab_arg_is("end", "spin"))
		end_spin();
	if (lab_arg_is("end", "block"))
		end_block();
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (lab_arg_is("end", ends[i].name))
			shut_down(ends[i].reason);
	}
	shut_down(XEN_SHUTDOWN_POWEROFF);
}
