/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The image's code in the kernel side's form: bytes, rules of arch/leaf.h, function starts, and
 * unwind rows.
 */
#ifndef UNI_BACKEND_KVM_BPF_TEXT_H
#define UNI_BACKEND_KVM_BPF_TEXT_H

#include <stdbool.h>

#include "arch/arch.h"
#include "base/err.h"
#include "base/vec.h"
#include "backend/kvm/bpf/abi.h"

#define UNI_KVM_TEXT_MAX (32u << 20) /* bytes of code */

/* Copies the existing bytes at gva in the guest; leaves the rest of buf unchanged. */
struct uni_kvm_code {
	void (*read)(void *ctx, uint64_t gva, void *buf, size_t len);
	void *ctx;
};

/* Code of a function that is on another stack there than its caller. */
struct uni_kvm_place {
	uint64_t start, size;
	uint64_t func; /* start of the function */
};

/* Behind a call of such a function, or of any by a pointer (func 0). */
struct uni_kvm_call {
	uint64_t func, pc;
};

struct uni_kvm_taken {
	UNI_VEC(struct uni_kvm_place) places;
	UNI_VEC(struct uni_kvm_call) calls; /* by rising pc */
};

/* The contents of a guest's maps. */
struct uni_kvm_text {
	struct uni_bpf_text *text;
	struct uni_bpf_cfi *cfi; /* NULL: the image has frame pointers, or no unwind rows */
	size_t nr, nr_cfi, cap_cfi;
	struct uni_kvm_taken taken;
};

/* Returns 0, -UNI_ENOMEM, -UNI_ENOTSUP. Pure, except for code->read(). */
int uni_kvm_text_make(const struct uni_arch *arch, const struct uni_unwind_hints *hints,
	const struct uni_kvm_code *code, struct uni_kvm_text *ret, struct uni_err *err);
void uni_kvm_text_free(struct uni_kvm_text *t);

/*
 * Is this caller only likely to be one? The frame before is on another stack, and the caller did
 * not call its function. C code may have raised an exception, or this is a handler. `at` is an
 * interrupted pc, or one less than a return address.
 */
bool uni_kvm_taken_is_guess(const struct uni_kvm_taken *t, uint64_t at, uint64_t caller);
void uni_kvm_taken_free(struct uni_kvm_taken *t);

/* Adds unwind rows; make() does so for images whose functions mostly set up no frame. */
int uni_kvm_text_add_cfi(
	struct uni_kvm_text *t, const struct uni_arch *arch, const struct uni_unwind_hints *hints);

#endif
