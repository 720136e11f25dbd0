/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/vmms.h"

#include <string.h>

#include "base/checked.h"

static const struct uni_vmm_opt qemu_opts[] = {
	{ "name", UNI_VMM_NAME },
	{ "kernel", UNI_VMM_IMAGE },
	{ "bios", UNI_VMM_SKIP },
	{ "m", UNI_VMM_MEM_MIB },
	{ "smp", UNI_VMM_CPUS },
	{ "accel", UNI_VMM_ACCEL },
	{ "machine", UNI_VMM_MACHINE },
	{ "M", UNI_VMM_MACHINE },
	{ "enable-kvm", UNI_VMM_FLAG_KVM },
	{ "append", UNI_VMM_SKIP },
	{ "initrd", UNI_VMM_SKIP },
	{ "readconfig", UNI_VMM_OPAQUE },
	{ "gdb", UNI_VMM_GDB },
	{ "s", UNI_VMM_FLAG_GDB },
	{ "qmp", UNI_VMM_QMP },
	{ "qmp-pretty", UNI_VMM_QMP },
	{ "plugin", UNI_VMM_PLUGIN },
	{ "chardev", UNI_VMM_SKIP }, /* for these two see find_monitor() */
	{ "mon", UNI_VMM_SKIP },
};
static const struct uni_vmm_opt firecracker_opts[] = {
	{ "config-file", UNI_VMM_CONFIG },
	{ "id", UNI_VMM_ID },
	{ "api-sock", UNI_VMM_API },
	{ "no-api", UNI_VMM_FLAG_NO_API },
};
static const struct uni_vmm_opt ch_opts[] = {
	{ "kernel", UNI_VMM_IMAGE },
	{ "firmware", UNI_VMM_FIRMWARE },
	{ "memory", UNI_VMM_MEM },
	{ "cpus", UNI_VMM_CPUS },
	{ "platform", UNI_VMM_PLATFORM },
	{ "cmdline", UNI_VMM_SKIP },
	{ "api-socket", UNI_VMM_API },
};
/* Lists the options without a value; all others are taken to have a value. */
static const struct uni_vmm_opt crosvm_opts[] = {
	{ "m", UNI_VMM_MEM_MIB },
	{ "mem", UNI_VMM_MEM_MIB },
	{ "c", UNI_VMM_CPUS },
	{ "cpus", UNI_VMM_CPUS },
	{ "name", UNI_VMM_ID },
	{ "bios", UNI_VMM_FIRMWARE },
	{ "cfg", UNI_VMM_OPAQUE },
	{ "protected-vm", UNI_VMM_FLAG_HIDDEN },
	{ "protected-vm-without-firmware", UNI_VMM_FLAG_HIDDEN },
	{ "extended-status", UNI_VMM_FLAG },
	{ "no-syslog", UNI_VMM_FLAG },
	{ "balloon-page-reporting", UNI_VMM_FLAG },
	{ "delay-rt", UNI_VMM_FLAG },
	{ "disable-sandbox", UNI_VMM_FLAG },
	{ "disable-virtio-intx", UNI_VMM_FLAG },
	{ "enable-fw-cfg", UNI_VMM_FLAG },
	{ "enable-hwp", UNI_VMM_FLAG },
	{ "enable-pnp-data", UNI_VMM_FLAG },
	{ "force-calibrated-tsc-leaf", UNI_VMM_FLAG },
	{ "force-s2idle", UNI_VMM_FLAG },
	{ "s2idle", UNI_VMM_FLAG },
	{ "host-cpu-topology", UNI_VMM_FLAG },
	{ "hugepages", UNI_VMM_FLAG },
	{ "itmt", UNI_VMM_FLAG },
	{ "lock-guest-memory", UNI_VMM_FLAG },
	{ "no-balloon", UNI_VMM_FLAG },
	{ "no-i8042", UNI_VMM_FLAG },
	{ "no-legacy", UNI_VMM_FLAG },
	{ "no-pmu", UNI_VMM_FLAG },
	{ "no-rng", UNI_VMM_FLAG },
	{ "no-rtc", UNI_VMM_FLAG },
	{ "no-smt", UNI_VMM_FLAG },
	{ "no-usb", UNI_VMM_FLAG },
	{ "per-vm-core-scheduling", UNI_VMM_FLAG },
	{ "privileged-vm", UNI_VMM_FLAG },
	{ "seccomp-log-failures", UNI_VMM_FLAG },
	{ "split-irqchip", UNI_VMM_FLAG },
	{ "strict-balloon", UNI_VMM_FLAG },
	{ "unmap-guest-memory-on-fork", UNI_VMM_FLAG },
	{ "usb", UNI_VMM_FLAG },
	{ "virt-cpufreq", UNI_VMM_FLAG },
};
static const struct uni_vmm_opt kvmtool_opts[] = {
	{ "k", UNI_VMM_IMAGE },
	{ "kernel", UNI_VMM_IMAGE },
	{ "f", UNI_VMM_FIRMWARE },
	{ "firmware", UNI_VMM_FIRMWARE },
	{ "m", UNI_VMM_MEM_MIB },
	{ "mem", UNI_VMM_MEM_MIB },
	{ "c", UNI_VMM_CPUS },
	{ "cpus", UNI_VMM_CPUS },
	{ "name", UNI_VMM_ID },
	{ "sdl", UNI_VMM_FLAG },
	{ "gtk", UNI_VMM_FLAG },
	{ "vnc", UNI_VMM_FLAG },
	{ "balloon", UNI_VMM_FLAG },
	{ "rng", UNI_VMM_FLAG },
	{ "nodefaults", UNI_VMM_FLAG },
	{ "no-dhcp", UNI_VMM_FLAG },
	{ "debug", UNI_VMM_FLAG },
	{ "debug-single-step", UNI_VMM_FLAG },
	{ "debug-nodelay", UNI_VMM_FLAG },
	{ "virtio-legacy", UNI_VMM_FLAG },
};
static const struct uni_vmm_opt solo5_opts[] = {
	{ "mem", UNI_VMM_MEM_MIB },
};

#define OPTS(t) .opts = (t), .nr_opts = uni_array_len(t)
static const struct uni_vmm_kind kinds[] = {
	{ "qemu", "qemu-system-", "", OPTS(qemu_opts), .mem_mib = 128, .cpus = 1 },
	{ "qemu", "qemu-kvm", "kvm", OPTS(qemu_opts), .mem_mib = 128, .cpus = 1 },
	{ "firecracker", "firecracker", "kvm", OPTS(firecracker_opts),
		.api = "/run/firecracker.socket", .mem_mib = 128, .cpus = 1 },
	{ "cloud-hypervisor", "cloud-hypervisor", "kvm", OPTS(ch_opts), .mem_mib = 512, .cpus = 1 },
	{ "crosvm", "crosvm", "kvm", OPTS(crosvm_opts), UNI_VMM_POS_BEHIND, .values = true,
		.mem_mib = 256, .cpus = 1 },
	{ "kvmtool", "lkvm", "kvm", OPTS(kvmtool_opts), UNI_VMM_POS_BEHIND, .values = true },
	{ "kvmtool", "kvmtool", "kvm", OPTS(kvmtool_opts), UNI_VMM_POS_BEHIND, .values = true },
	{ "solo5-hvt", "solo5-hvt", "kvm", OPTS(solo5_opts), UNI_VMM_POS_FIRST, .mem_mib = 512,
		.cpus = 1 },
	{ "solo5-spt", "solo5-spt", "process", OPTS(solo5_opts), UNI_VMM_POS_FIRST, .mem_mib = 512,
		.cpus = 1 },
};

const struct uni_vmm_kind *uni_vmm_kind_of(const char *exe)
{
	const char *slash = strrchr(exe, '/');
	const char *base = slash != NULL ? slash + 1 : exe;

	for (size_t i = 0; i < uni_array_len(kinds); i++) {
		if (strncmp(base, kinds[i].exe, strlen(kinds[i].exe)) == 0)
			return &kinds[i];
	}
	return NULL;
}
