/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few differences between the kernel and a unit test: the logic in guest.bpf.h and chain.bpf.h
 * is compiled for both. A test defines UNI_BPF_PORT as the header with its own version.
 */
#ifndef UNI_BACKEND_KVM_BPF_PORT_BPF_H
#define UNI_BACKEND_KVM_BPF_PORT_BPF_H

#ifdef __bpf__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#define true 1
#define false 0
#define bool _Bool
#define NULL ((void *)0)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* Numbers of the system call's interface, linux/bpf.h. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_ANY = 0,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_F_INNER_MAP = 1 << 12,
	BPF_RB_NO_WAKEUP = 1 << 0,
};

/* Reads a member of a kernel structure; not 0: it is not readable. */
#define UNI_CORE(dst, ptr, member) bpf_core_read(&(dst), sizeof(dst), &(ptr)->member)
#define UNI_HAS(member)		   bpf_core_field_exists(member)
#define UNI_ENUM(type, value)	   bpf_core_enum_value(type, value)
#define UNI_HAS_ENUM(type, value)  bpf_core_enum_value_exists(type, value)
#define UNI_SIZEOF(type)	   bpf_core_type_size(type)
#define UNI_OFFSETOF(type, member) bpf_core_field_offset(type, member)

/*
 * A member of a kernel structure, or 0 if it is not readable. A call to read memory costs as much
 * as many instructions. Since Linux 6.2 a program can cast the address to a type, and load
 * directly; faults are still caught. The type must belong to the kernel proper, as KVM's types do
 * not if KVM is a module. It must begin with a number of 8 bytes.
 */
#ifdef UNI_BPF_NO_CASTS
#define UNI_PEEK(dst, ptr, member)                                                 \
	do {                                                                       \
		const void *at_ = __builtin_preserve_access_index(&(ptr)->member); \
                                                                                   \
		if (bpf_probe_read_kernel(&(dst), sizeof(dst), at_) != 0)          \
			(dst) = 0;                                                 \
	} while (0)
#else
enum special_kfunc_type { KF_bpf_rdonly_cast = 1 };
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __weak;
struct pt_regs;

#define UNI_PEEK(dst, ptr, member)                                                           \
	do {                                                                                 \
		const void *at_ = __builtin_preserve_access_index(&(ptr)->member);           \
                                                                                             \
		if (bpf_core_enum_value_exists(enum special_kfunc_type, KF_bpf_rdonly_cast)) \
			(dst) = *(const volatile typeof(dst) *)bpf_rdonly_cast(              \
				at_, bpf_core_type_id_kernel(struct pt_regs));               \
		else if (bpf_probe_read_kernel(&(dst), sizeof(dst), at_) != 0)               \
			(dst) = 0;                                                           \
	} while (0)
#endif

/* Reads memory of the VMM, which is the current process. */
static __always_inline long uni_read_user(void *dst, u32 size, u64 hva)
{
	return bpf_probe_read_user(dst, size, (const void *)hva);
}

/*
 * A function with a stack of its own, which is freed when it returns. Linux 6.1 gives a program's
 * deepest chain of calls 512 bytes, and counts at least 32 for each frame. Unlike with __noinline
 * alone, its arguments may point to anything.
 */
#define UNI_APART static __noinline __attribute__((unused))

/* Keeps the compiler from using facts that the verifier cannot derive. */
#define UNI_OPAQUE(x) asm volatile("" : "+r"(x))

#else
#include UNI_BPF_PORT
#endif

#endif
