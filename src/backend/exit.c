/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/exit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* KVM_EXIT_* (Documentation/virt/kvm/api.rst, struct kvm_run), those of x86 and arm64. */
static const char *const kvm_names[] = {
	[0] = "unknown",
	[1] = "exception",
	[2] = "io",
	[3] = "hypercall",
	[4] = "debug",
	[5] = "hlt",
	[6] = "mmio",
	[7] = "interrupt-window",
	[8] = "shutdown",
	[9] = "fail-entry",
	[10] = "signal",
	[11] = "set-tpr",
	[12] = "tpr-access",
	[16] = "nmi",
	[17] = "internal-error",
	[24] = "system-event",
	[26] = "ioapic-eoi",
	[27] = "hyperv",
	[28] = "no-syndrome",
	[29] = "rdmsr",
	[30] = "wrmsr",
	[31] = "dirty-ring-full",
	[32] = "ap-reset-hold",
	[33] = "bus-lock",
	[34] = "xen",
	[37] = "notify",
	[39] = "memory-fault",
	[40] = "tdx",
};

/* SDM volume 3, appendix C, table C-1. */
static const char *const vmx_names[] = {
	[0] = "exception",
	[1] = "interrupt",
	[2] = "triple-fault",
	[3] = "init",
	[4] = "startup-ipi",
	[5] = "io-smi",
	[6] = "smi",
	[7] = "interrupt-window",
	[8] = "nmi-window",
	[9] = "task-switch",
	[10] = "cpuid",
	[11] = "getsec",
	[12] = "hlt",
	[13] = "invd",
	[14] = "invlpg",
	[15] = "rdpmc",
	[16] = "rdtsc",
	[17] = "rsm",
	[18] = "hypercall",
	[19] = "vmclear",
	[20] = "vmlaunch",
	[21] = "vmptrld",
	[22] = "vmptrst",
	[23] = "vmread",
	[24] = "vmresume",
	[25] = "vmwrite",
	[26] = "vmxoff",
	[27] = "vmxon",
	[28] = "cr-access",
	[29] = "dr-access",
	[30] = "io",
	[31] = "rdmsr",
	[32] = "wrmsr",
	[33] = "fail-entry-state",
	[34] = "fail-entry-msr",
	[36] = "mwait",
	[37] = "monitor-trap",
	[39] = "monitor",
	[40] = "pause",
	[41] = "fail-entry-machine-check",
	[43] = "tpr-threshold",
	[44] = "apic-access",
	[45] = "eoi",
	[46] = "gdtr-idtr",
	[47] = "ldtr-tr",
	[48] = "ept-violation",
	[49] = "ept-misconfig",
	[50] = "invept",
	[51] = "rdtscp",
	[52] = "preemption-timer",
	[53] = "invvpid",
	[54] = "wbinvd",
	[55] = "xsetbv",
	[56] = "apic-write",
	[57] = "rdrand",
	[58] = "invpcid",
	[59] = "vmfunc",
	[60] = "encls",
	[61] = "rdseed",
	[62] = "page-log-full",
	[63] = "xsaves",
	[64] = "xrstors",
	[65] = "pconfig",
	[66] = "spp",
	[67] = "umwait",
	[68] = "tpause",
	[69] = "loadiwkey",
	[70] = "enclv",
	[72] = "enqcmd",
	[73] = "enqcmds",
	[74] = "bus-lock",
	[75] = "notify",
	[76] = "seamcall",
	[77] = "tdcall",
	[78] = "rdmsrlist",
	[79] = "wrmsrlist",
	[84] = "rdmsr",
	[85] = "wrmsr",
};

/*
 * APM volume 2, appendix C, from 0x60 on; the numbers below are register accesses and exceptions.
 */
#define SVM_FIRST 0x60u
static const char *const svm_names[] = {
	[0x60 - SVM_FIRST] = "interrupt",
	[0x61 - SVM_FIRST] = "nmi",
	[0x62 - SVM_FIRST] = "smi",
	[0x63 - SVM_FIRST] = "init",
	[0x64 - SVM_FIRST] = "interrupt-window",
	[0x65 - SVM_FIRST] = "cr-access",
	[0x66 - SVM_FIRST] = "gdtr-idtr",
	[0x67 - SVM_FIRST] = "gdtr-idtr",
	[0x68 - SVM_FIRST] = "ldtr-tr",
	[0x69 - SVM_FIRST] = "ldtr-tr",
	[0x6a - SVM_FIRST] = "gdtr-idtr",
	[0x6b - SVM_FIRST] = "gdtr-idtr",
	[0x6c - SVM_FIRST] = "ldtr-tr",
	[0x6d - SVM_FIRST] = "ldtr-tr",
	[0x6e - SVM_FIRST] = "rdtsc",
	[0x6f - SVM_FIRST] = "rdpmc",
	[0x70 - SVM_FIRST] = "pushf",
	[0x71 - SVM_FIRST] = "popf",
	[0x72 - SVM_FIRST] = "cpuid",
	[0x73 - SVM_FIRST] = "rsm",
	[0x74 - SVM_FIRST] = "iret",
	[0x75 - SVM_FIRST] = "software-interrupt",
	[0x76 - SVM_FIRST] = "invd",
	[0x77 - SVM_FIRST] = "pause",
	[0x78 - SVM_FIRST] = "hlt",
	[0x79 - SVM_FIRST] = "invlpg",
	[0x7a - SVM_FIRST] = "invlpga",
	[0x7b - SVM_FIRST] = "io",
	[0x7c - SVM_FIRST] = "msr",
	[0x7d - SVM_FIRST] = "task-switch",
	[0x7e - SVM_FIRST] = "ferr-freeze",
	[0x7f - SVM_FIRST] = "shutdown",
	[0x80 - SVM_FIRST] = "vmrun",
	[0x81 - SVM_FIRST] = "hypercall",
	[0x82 - SVM_FIRST] = "vmload",
	[0x83 - SVM_FIRST] = "vmsave",
	[0x84 - SVM_FIRST] = "stgi",
	[0x85 - SVM_FIRST] = "clgi",
	[0x86 - SVM_FIRST] = "skinit",
	[0x87 - SVM_FIRST] = "rdtscp",
	[0x88 - SVM_FIRST] = "icebp",
	[0x89 - SVM_FIRST] = "wbinvd",
	[0x8a - SVM_FIRST] = "monitor",
	[0x8b - SVM_FIRST] = "mwait",
	[0x8c - SVM_FIRST] = "mwait",
	[0x8d - SVM_FIRST] = "xsetbv",
	[0x8e - SVM_FIRST] = "rdpru",
	[0x8f - SVM_FIRST] = "efer-write",
	[0xa0 - SVM_FIRST] = "invlpgb",
	[0xa1 - SVM_FIRST] = "invlpgb",
	[0xa2 - SVM_FIRST] = "invpcid",
	[0xa3 - SVM_FIRST] = "mcommit",
	[0xa4 - SVM_FIRST] = "tlbsync",
	[0xa5 - SVM_FIRST] = "bus-lock",
	[0xa6 - SVM_FIRST] = "idle-hlt",
};

/* Arm ARM, ESR_EL2.EC. */
static const char *const arm_names[] = {
	[0x00] = "unknown",
	[0x01] = "wfx",
	[0x03] = "cp15",
	[0x07] = "fp",
	[0x11] = "svc32",
	[0x12] = "hvc32",
	[0x13] = "smc32",
	[0x15] = "svc",
	[0x16] = "hypercall",
	[0x17] = "smc",
	[0x18] = "sysreg",
	[0x19] = "sve",
	[0x20] = "instruction-abort",
	[0x24] = "data-abort",
	[0x2f] = "serror",
	[0x30] = "breakpoint",
	[0x32] = "single-step",
	[0x34] = "watchpoint",
	[0x3c] = "brk",
};

static const char *pick_name(const char *const *names, size_t nr, uint32_t i)
{
	return i < nr ? names[i] : NULL;
}

static const char *svm_name(uint32_t reason)
{
	switch (reason) {
	case 0x400:
		return "npf";
	case 0x401:
		return "avic-ipi";
	case 0x402:
		return "avic-noaccel";
	case 0x403:
		return "vmgexit";
	case UINT32_MAX:
		return "fail-entry-state";
	default:
		break;
	}
	if (reason < 0x20 || uni_range_has(0x90, 0x10, reason))
		return "cr-access";
	if (reason < 0x40)
		return "dr-access";
	if (reason < SVM_FIRST)
		return "exception";
	return pick_name(svm_names, uni_array_len(svm_names), reason - SVM_FIRST);
}

const char *uni_exit_reason_name(uint8_t isa, uint32_t reason)
{
	switch (isa) {
	case UNI_EXIT_ISA_KVM:
		return pick_name(kvm_names, uni_array_len(kvm_names), reason);
	case UNI_EXIT_ISA_VMX:
		return pick_name(vmx_names, uni_array_len(vmx_names), reason);
	case UNI_EXIT_ISA_SVM:
		return svm_name(reason);
	case UNI_EXIT_ISA_ARM:
		return pick_name(arm_names, uni_array_len(arm_names), reason);
	default:
		return NULL;
	}
}

const char *uni_exit_isa_name(uint8_t isa)
{
	static const char *const names[] = { "KVM", "VMX", "SVM", "ARM" };

	_Static_assert(sizeof(names) / sizeof(names[0]) == UNI_EXIT_ISA_NR, "all of them");
	return isa < UNI_EXIT_ISA_NR ? names[isa] : "?";
}

const char *uni_exit_info_name(uint8_t kind)
{
	static const char *const names[] = { "none", "port", "mmio", "hypercall", "msr" };

	_Static_assert(sizeof(names) / sizeof(names[0]) == UNI_EXIT_INFO_NR, "all of them");
	return kind < UNI_EXIT_INFO_NR ? names[kind] : "?";
}

const char *uni_exit_access_name(uint8_t access)
{
	static const char *const names[] = { "", "read", "write" };

	_Static_assert(sizeof(names) / sizeof(names[0]) == UNI_EXIT_ACCESS_NR, "all of them");
	return access < UNI_EXIT_ACCESS_NR ? names[access] : "?";
}

bool uni_exit_is_halt(uint8_t isa, uint32_t reason)
{
	switch (isa) {
	case UNI_EXIT_ISA_KVM:
		return reason == 5;
	case UNI_EXIT_ISA_VMX:
		return reason == 12 || reason == 36 || reason == 67 || reason == 68;
	case UNI_EXIT_ISA_SVM:
		return reason == 0x78 || reason == 0x8b || reason == 0x8c || reason == 0xa6;
	case UNI_EXIT_ISA_ARM:
		return reason == 1;
	default:
		return false;
	}
}

/* A port access needs its direction; rdmsr and wrmsr have it in their names. */
static const char *access_word(const struct uni_stream_exit *e)
{
	bool read = e->access == UNI_EXIT_ACCESS_READ;

	if (e->access == UNI_EXIT_ACCESS_NONE || e->access >= UNI_EXIT_ACCESS_NR)
		return "";
	switch (e->info_kind) {
	case UNI_EXIT_INFO_PORT:
		return read ? " in" : " out";
	case UNI_EXIT_INFO_MMIO:
		return read ? " read" : " write";
	case UNI_EXIT_INFO_MSR:
		if (e->isa == UNI_EXIT_ISA_SVM)
			return read ? " read" : " write";
		return "";
	default:
		return "";
	}
}

/* Solo5's enum hvt_hypercall (include/hvt_abi.h), ABI version 2: port 0x500 + n; "" for others. */
static const char *port_name(const struct uni_stream_exit *e, const char *vmm)
{
	static const char *const names[] = { [1] = " (walltime)",
		[2] = " (puts)",
		[3] = " (poll)",
		[4] = " (block_write)",
		[5] = " (block_read)",
		[6] = " (net_write)",
		[7] = " (net_read)",
		[8] = " (halt)" };

	if (strcmp(vmm, "solo5-hvt") != 0 || e->info_kind != UNI_EXIT_INFO_PORT ||
		e->access != UNI_EXIT_ACCESS_WRITE || e->info <= 0x500 ||
		e->info - 0x500 >= uni_array_len(names))
		return "";
	return names[e->info - 0x500];
}

void uni_exit_label(const struct uni_stream_exit *e, const char *vmm, char ret[UNI_EXIT_LABEL_MAX])
{
	const char *name = uni_exit_reason_name(e->isa, e->reason);
	char unnamed[32], info[32] = "";

	(void)snprintf(
		unnamed, sizeof(unnamed), "%s-0x%" PRIx32, uni_exit_isa_name(e->isa), e->reason);
	if (e->info_kind == UNI_EXIT_INFO_HYPERCALL)
		(void)snprintf(info, sizeof(info), " %" PRIu64, e->info);
	else if (e->info_kind != UNI_EXIT_INFO_NONE)
		(void)snprintf(info, sizeof(info), " 0x%" PRIx64, e->info);
	(void)snprintf(ret, UNI_EXIT_LABEL_MAX, "%s%s%s%s", name != NULL ? name : unnamed,
		access_word(e), info, port_name(e, vmm));
}

bool uni_exit_is_sound(const struct uni_stream_exit *e, size_t max_chain)
{
	return e->isa < UNI_EXIT_ISA_NR && e->info_kind < UNI_EXIT_INFO_NR &&
	       e->access < UNI_EXIT_ACCESS_NR && e->nr <= max_chain &&
	       (e->nr == 0 || e->pc != NULL);
}
