/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of Xen's interface that a guest needs, written down after the public headers in Xen's
 * xen/include/public. They are xen.h, arch-x86/xen.h, arch-x86/xen-x86_64.h, arch-x86/cpuid.h,
 * elfnote.h, sched.h, vcpu.h, memory.h, event_channel.h, callback.h, grant_table.h, io/console.h,
 * io/xs_wire.h, hvm/params.h, hvm/hvm_op.h and hvm/hvm_vcpu.h. Read by C and by the assembler.
 */
#ifndef LAB_XEN_ABI_H
#define LAB_XEN_ABI_H

/* ELF notes, name "Xen". */
#define XEN_NOTE_ENTRY		1
#define XEN_NOTE_HYPERCALL_PAGE 2
#define XEN_NOTE_VIRT_BASE	3
#define XEN_NOTE_PADDR_OFFSET	4
#define XEN_NOTE_XEN_VERSION	5
#define XEN_NOTE_GUEST_OS	6
#define XEN_NOTE_LOADER		8

/* Numbers of hypercalls; the stub of number n is at 32 * n in the hypercall page. */
#define XEN_MMU_UPDATE	      1
#define XEN_SET_TRAP_TABLE    0
#define XEN_MEMORY_OP	      12
#define XEN_UPDATE_VA_MAPPING 14
#define XEN_VERSION	      17
#define XEN_GRANT_TABLE_OP    20
#define XEN_IRET	      23
#define XEN_VCPU_OP	      24
#define XEN_SET_SEGMENT_BASE  25
#define XEN_MMUEXT_OP	      26
#define XEN_SCHED_OP	      29
#define XEN_CALLBACK_OP	      30
#define XEN_EVENT_CHANNEL_OP  32
#define XEN_HVM_OP	      34

#define XEN_SCHED_YIELD	   0
#define XEN_SCHED_BLOCK	   1
#define XEN_SCHED_SHUTDOWN 2

#define XEN_SHUTDOWN_POWEROFF 0
#define XEN_SHUTDOWN_REBOOT   1
#define XEN_SHUTDOWN_SUSPEND  2
#define XEN_SHUTDOWN_CRASH    3
#define XEN_SHUTDOWN_WATCHDOG 4

#define XEN_VCPU_INITIALISE	      0
#define XEN_VCPU_UP		      1
#define XEN_VCPU_DOWN		      2
#define XEN_VCPU_STOP_PERIODIC_TIMER  7
#define XEN_VCPU_SET_SINGLESHOT_TIMER 8

#define XEN_EVENT_BIND_VIRQ	1
#define XEN_EVENT_SEND		4
#define XEN_EVENT_UNMASK	9
#define XEN_VIRQ_TIMER		0
#define XEN_CALLBACK_REGISTER	0
#define XEN_CALLBACK_TYPE_EVENT 0
#define XEN_SEGMENT_GS_KERNEL	2
#define XEN_MMUEXT_INVLPG_LOCAL 7
#define XEN_UVMF_INVLPG		2
#define XEN_DOMID_SELF		0x7ff0

#define XEN_MEMORY_ADD_TO_PHYSMAP 7
#define XEN_MAPSPACE_SHARED_INFO  0
#define XEN_MAPSPACE_GRANT_TABLE  1

#define XEN_GRANT_SETUP_TABLE 2
#define XEN_GRANT_ACCESS      1
#define XEN_GRANT_READ_ONLY   4
#define XEN_GRANT_FIRST_FREE  8 /* those before are the toolstack's */
#define XEN_STORE_READ	      2
#define XEN_STORE_WRITE	      11
#define XEN_STORE_SET_PERMS   14

#define XEN_HVM_SET_PARAM	    0
#define XEN_HVM_GET_PARAM	    1
#define XEN_HVM_PARAM_CALLBACK	    0
#define XEN_HVM_PARAM_STORE_PFN	    1
#define XEN_HVM_PARAM_STORE_EVENT   2
#define XEN_HVM_PARAM_CONSOLE_PFN   17
#define XEN_HVM_PARAM_CONSOLE_EVENT 18
#define XEN_HVM_CALLBACK_BY_VECTOR  (2ULL << 56)
#define XEN_HVM_VCPU_MODE_64	    1

#define XEN_CPUID_FIRST	      0x40000000
#define XEN_CPUID_LAST	      0x4000ff00
#define XEN_CPUID_STEP	      0x100
#define XEN_CPUID_SIGNATURE_B 0x566e6558
#define XEN_CPUID_SIGNATURE_C 0x65584d4d
#define XEN_CPUID_SIGNATURE_D 0x4d4d566e

/* Flat segments of PV guests: ring 3, where also their kernels run. */
#define XEN_PV_CS	       0xe033
#define XEN_PV_SS	       0xe02b
#define XEN_PV_MACHINE_TO_PHYS 0xffff800000000000
#define XEN_PV_IN_KERNEL       (1 << 2)

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct xen_pv_start_info {
	char magic[32];
	uint64_t nr_pages, shared_info_ma;
	uint32_t flags, pad0;
	uint64_t store_mfn;
	uint32_t store_event, pad1;
	uint64_t console_mfn;
	uint32_t console_event, pad2;
	uint64_t pt_base, nr_pt_frames, mfn_list; /* virtual addresses */
	uint64_t mod_start, mod_len;
	char cmd_line[1024];
};

_Static_assert(offsetof(struct xen_pv_start_info, pt_base) == 88, "layout");

struct xen_vcpu_info {
	uint8_t upcall_pending, upcall_mask, pad[6];
	uint64_t pending_sel;
	uint64_t cr2, pad1;
	struct {
		uint32_t version, pad0;
		uint64_t tsc_timestamp, system_time;
		uint32_t tsc_to_system_mul;
		int8_t tsc_shift;
		uint8_t flags, pad1[2];
	} time;
};

_Static_assert(sizeof(struct xen_vcpu_info) == 64, "layout");

struct xen_shared_info {
	struct xen_vcpu_info vcpu[32];
	uint64_t event_pending[64], event_mask[64];
	uint8_t rest_of_page[4096 - 32 * 64 - 2 * 512];
};

_Static_assert(sizeof(struct xen_shared_info) == 4096, "layout");

struct xen_console {
	char in[1024], out[2048];
	uint32_t in_cons, in_prod, out_cons, out_prod;
};

struct xen_store {
	char request[1024], reply[1024];
	uint32_t request_cons, request_prod, reply_cons, reply_prod;
};

struct xen_store_head {
	uint32_t type, request, transaction, length;
};

struct xen_grant {
	uint16_t flags, domid;
	uint32_t frame;
};

struct xen_grant_setup {
	uint16_t domid, pad0;
	uint32_t nr_frames;
	int16_t status, pad1[3];
	uint64_t frames; /* where they go */
};

_Static_assert(sizeof(struct xen_grant_setup) == 24, "layout");

struct xen_mmu_update {
	uint64_t ptr, val; /* machine address of the entry */
};

struct xen_mmuext_op {
	uint32_t cmd, pad;
	uint64_t arg1, arg2;
};

struct xen_trap_info {
	uint8_t vector, flags;
	uint16_t cs;
	uint32_t pad;
	uint64_t address;
};

struct xen_pv_regs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	uint32_t error_code, entry_vector;
	uint64_t rip, cs, rflags, rsp, ss, es, ds, fs, gs;
};

/* VCPUOP_initialise of a PV vCPU. */
struct xen_pv_context {
	uint8_t fpu[512];
	uint64_t flags;
	struct xen_pv_regs regs;
	struct xen_trap_info traps[256];
	uint64_t ldt_base, ldt_ents, gdt_frames[16], gdt_ents;
	uint64_t kernel_ss, kernel_sp, ctrlreg[8], debugreg[8];
	uint64_t event_callback, failsafe_callback, syscall_callback, vm_assist;
	uint64_t fs_base, gs_base_kernel, gs_base_user;
};

_Static_assert(sizeof(struct xen_pv_context) == 5168, "layout");

/* The same of a PVH vCPU that starts in 64-bit mode. */
struct xen_hvm_context {
	uint32_t mode, pad;
	uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, rip, rflags, cr0, cr3, cr4, efer;
	uint64_t room[2]; /* the 32-bit form is longer */
};

struct xen_add_to_physmap {
	uint16_t domid, size;
	uint32_t space;
	uint64_t idx, gpfn;
};

struct xen_hvm_param {
	uint16_t domid, pad;
	uint32_t index;
	uint64_t value;
};

struct xen_bind_virq {
	uint32_t virq, vcpu, port;
};

struct xen_singleshot {
	uint64_t timeout_ns; /* system time */
	uint32_t flags, pad;
};

struct xen_callback {
	uint16_t type, flags;
	uint32_t pad;
	uint64_t address;
};
#endif

#endif
