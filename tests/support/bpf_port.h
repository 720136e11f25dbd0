/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Made-up parts of the kernel for the programs that run there: a test compiles their logic as plain
 * C, on structures that it fills in. See src/backend/kvm/bpf/port.bpf.h.
 */
#ifndef UNI_TESTS_BPF_PORT_H
#define UNI_TESTS_BPF_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/kvm/bpf/abi.h"

#undef __always_inline
#undef __noinline
#define __noinline	static __attribute__((unused))
#define UNI_APART	static __attribute__((unused))
#define __always_inline inline __attribute__((unused))
#define SEC(name)
#define UNI_OPAQUE(x) ((void)(x))

/* Members and enumerators that the pretended kernel does not have, as the source spells them. */
static const char *bpf_absent[8];

static inline bool bpf_has(const char *what)
{
	for (size_t i = 0; i < sizeof(bpf_absent) / sizeof(bpf_absent[0]); i++) {
		if (bpf_absent[i] != NULL && strstr(what, bpf_absent[i]) != NULL)
			return false;
	}
	return true;
}

/* The compiler must not see what lies at p: members of kernels that are not pretended lie outside.
 */
static inline const void *bpf_hidden(const void *p)
{
	__asm__("" : "+r"(p));
	return p;
}

#define bpf_member(ptr, member) \
	((const uint8_t *)bpf_hidden(ptr) + offsetof(typeof(*(ptr)), member))
#define UNI_CORE(dst, ptr, member) \
	((ptr) == NULL ? -1 : (memcpy(&(dst), bpf_member(ptr, member), sizeof(dst)), 0))
#define UNI_PEEK(dst, ptr, member)                            \
	((ptr) == NULL ? (void)memset(&(dst), 0, sizeof(dst)) \
		       : (void)memcpy(&(dst), bpf_member(ptr, member), sizeof(dst)))
#define UNI_HAS(member)		   bpf_has(#member)
#define UNI_ENUM(type, value)	   ((unsigned)(value))
#define UNI_HAS_ENUM(type, value)  bpf_has(#value)
#define UNI_SIZEOF(type)	   sizeof(type)
#define UNI_OFFSETOF(type, member) offsetof(type, member)

#define bpf_loop(n, step, ctx, flags)                       \
	({                                                  \
		u32 n_ = (u32)(n), i_ = 0;                  \
                                                            \
		while (i_ < n_ && (step)(i_++, (ctx)) == 0) \
			;                                   \
		(long)i_;                                   \
	})

/* The VMM's memory is the test's own, where it says so. */
static const uint8_t *bpf_user;
static size_t bpf_user_size;
static uint64_t bpf_user_reads;

static inline long uni_read_user(void *dst, u32 size, u64 hva)
{
	u64 at = hva - (u64)(uintptr_t)bpf_user;

	bpf_user_reads++;
	if (at > bpf_user_size || size > bpf_user_size - at)
		return -14;
	memcpy(dst, bpf_user + at, size);
	return 0;
}

static inline long bpf_probe_read_kernel(void *dst, u32 size, const void *src)
{
	memcpy(dst, src, size);
	return 0;
}

static inline long bpf_probe_read_kernel_str(void *dst, u32 size, const void *src)
{
	size_t n = strnlen(src, size - 1);

	memcpy(dst, src, n);
	((char *)dst)[n] = '\0';
	return (long)n + 1;
}

#define bpf_core_read bpf_probe_read_kernel

struct task_struct;
static __attribute__((unused)) const struct task_struct *bpf_current; /* whoever reads the file */

static inline const struct task_struct *bpf_get_current_task_btf(void)
{
	return bpf_current;
}

static inline u64 bpf_ktime_get_ns(void)
{
	return 1000;
}

/* The output of an iterator. */
static uint8_t bpf_seq[65536];
static size_t bpf_seq_size;

struct seq_file;

static inline long bpf_seq_write(struct seq_file *seq, const void *data, u32 len)
{
	(void)seq;
	if (len > sizeof(bpf_seq) - bpf_seq_size)
		return -7;
	memcpy(bpf_seq + bpf_seq_size, data, len);
	bpf_seq_size += len;
	return 0;
}

/* The image's code; see maps.bpf.h. */
static const struct uni_bpf_text *bpf_text;
static size_t bpf_text_nr;

static inline const struct uni_bpf_text *uni_text_at(u32 guest, u32 at)
{
	(void)guest;
	return at < bpf_text_nr ? &bpf_text[at] : NULL;
}

static const struct uni_bpf_cfi *bpf_cfi;
static size_t bpf_cfi_nr;

static inline const struct uni_bpf_cfi *uni_cfi_at(u32 guest, u32 at)
{
	(void)guest;
	return at < bpf_cfi_nr ? &bpf_cfi[at] : NULL;
}

#endif
