/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of Xen's interface to dom0 that have not changed since Xen 4.7, in our own words. These
 * are the multicall (public/xen.h), the frame of a domctl, the domctls that we use
 * (public/domctl.h), and the begin of one sysctl (public/sysctl.h). Only the interface versions of
 * domctl and sysctl change with each release; see call.h.
 */
#ifndef UNI_BACKEND_XEN_ABI_H
#define UNI_BACKEND_XEN_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define UNI_XEN_NR_MULTICALL 13u /* __HYPERVISOR_multicall */
#define UNI_XEN_NR_SYSCTL    35u /* __HYPERVISOR_sysctl */
#define UNI_XEN_NR_DOMCTL    36u /* __HYPERVISOR_domctl */

enum uni_xen_domctl_cmd { /* XEN_DOMCTL_* */
	UNI_XEN_PAUSE = 3,
	UNI_XEN_UNPAUSE = 4,
	UNI_XEN_INFO = 5,
	UNI_XEN_VCPU_CONTEXT = 13,
	UNI_XEN_VCPU_INFO = 14,
	UNI_XEN_ADDRESS_SIZE = 36, /* of a PV domain */
	UNI_XEN_TSC_INFO = 59,	   /* x86 */
};

enum uni_xen_info_flags { /* XEN_DOMINF_* */
	UNI_XEN_INFO_DYING = 1u << 0,
	UNI_XEN_INFO_HVM = 1u << 1, /* PVH as well */
	UNI_XEN_INFO_SHUTDOWN = 1u << 2,
	UNI_XEN_INFO_PAUSED = 1u << 3,
	UNI_XEN_INFO_REASON_SHIFT = 16, /* 8 bits, enum uni_xen_reason */
};

enum uni_xen_reason { /* SHUTDOWN_*, public/sched.h */
	UNI_XEN_POWEROFF = 0,
	UNI_XEN_REBOOT = 1,
	UNI_XEN_SUSPEND = 2, /* saved or migrated */
	UNI_XEN_CRASH = 3,
	UNI_XEN_WATCHDOG = 4,
};

/*
 * The begin of struct xen_domctl_getdomaininfo, unchanged since 4.5. The rest differs, and is not
 * used.
 */
struct uni_xen_abi_info {
	uint16_t domain; /* echoed; if the layout differs, another domain's number or garbage */
	uint16_t pad;
	uint32_t flags;
	uint64_t tot_pages, max_pages, outstanding_pages, shr_pages, paged_pages;
	uint64_t shared_info_frame, cpu_time;
	uint32_t nr_online_vcpus, max_vcpu_id, ssidref;
	uint8_t handle[16];
};

/* struct xen_domctl_vcpucontext */
struct uni_xen_abi_vcpu {
	uint32_t vcpu;
	uint32_t pad;
	uint64_t context; /* pointer */
};

/* struct xen_domctl_getvcpuinfo */
struct uni_xen_abi_vcpu_info {
	uint32_t vcpu;
	uint8_t online, blocked, running, pad;
	uint64_t cpu_time;
	uint32_t cpu;
};

enum { UNI_XEN_TSC_NATIVE = 2 }; /* TSC_MODE_NEVER_EMULATE */

/* struct xen_domctl_tsc_info */
struct uni_xen_abi_tsc {
	uint32_t mode, khz, incarnation, pad;
	uint64_t elapsed_ns;
};

/* struct xen_domctl: its union has 128 bytes */
struct uni_xen_domctl {
	uint32_t cmd, interface_version;
	uint16_t domain;
	uint16_t pad[3];
	union {
		struct uni_xen_abi_info info;
		struct uni_xen_abi_vcpu vcpu;
		struct uni_xen_abi_vcpu_info vcpu_info;
		struct uni_xen_abi_tsc tsc;
		uint32_t address_size;
		uint8_t bytes[256]; /* more than any release has */
	} u;
};

enum { UNI_XEN_PHYSINFO = 3 }; /* XEN_SYSCTL_physinfo */

/* struct xen_sysctl with the begin of struct xen_sysctl_physinfo; its union has 128 bytes */
struct uni_xen_sysctl {
	uint32_t cmd, interface_version;
	union {
		struct {
			uint32_t threads_per_core, cores_per_socket, nr_cpus, max_cpu_id;
			uint32_t nr_nodes, max_node_id;
			uint32_t cpu_khz; /* of the time stamp counter */
		} physinfo;
		uint64_t words[32]; /* more than any release has */
	} u;
};

/* struct multicall_entry */
struct uni_xen_multicall {
	uint64_t op, result; /* result: Xen's negative errno, which is the same as Linux's */
	uint64_t args[6];
};

static_assert(offsetof(struct uni_xen_domctl, u) == 16, "domctl");
static_assert(offsetof(struct uni_xen_abi_vcpu, context) == 8, "vcpucontext");
static_assert(offsetof(struct uni_xen_abi_vcpu_info, blocked) == 5, "getvcpuinfo");
static_assert(offsetof(struct uni_xen_abi_info, tot_pages) == 8, "getdomaininfo");
static_assert(offsetof(struct uni_xen_abi_info, nr_online_vcpus) == 64, "getdomaininfo");
static_assert(offsetof(struct uni_xen_abi_info, handle) == 76, "getdomaininfo");
static_assert(sizeof(struct uni_xen_sysctl) <= sizeof(struct uni_xen_domctl), "one buffer");
static_assert(offsetof(struct uni_xen_sysctl, u.physinfo.cpu_khz) == 32, "physinfo");
static_assert(sizeof(struct uni_xen_multicall) == 64, "multicall_entry");

#endif
