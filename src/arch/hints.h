/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image's hints for unwinding its code, as plain data. obj/ makes it; unwind/ uses it, and
 * so do targets that unwind in the kernel. Neither knows ELF.
 *
 * The frameless map: GCC never sets up the frame pointer in functions that need no stack, even with
 * -fno-omit-frame-pointer. There, [rbp+8] is the return address of the caller. So each function is
 * listed with how it begins.
 */
#ifndef UNI_ARCH_HINTS_H
#define UNI_ARCH_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uni_cfi_table;

enum uni_func_flags {
	UNI_FUNC_FRAMELESS = 1u << 0, /* does not begin by setting up a frame pointer */
	UNI_FUNC_ENTRY = 1u << 1,     /* an entry point: nobody called it, chains end here */
	UNI_FUNC_CLEARS_FP = 1u << 2, /* sets the frame pointer to 0, to mark the end */
	UNI_FUNC_CALLED = 1u << 3,    /* other code of the image calls it directly */
};

struct uni_func_hint {
	uint64_t start; /* GVA (already biased) */
	uint32_t size;	/* bytes */
	uint32_t flags; /* enum uni_func_flags */
};

#define UNI_STUBS_BYTES 4096u
#define UNI_STUB_BYTES	32u

struct uni_unwind_hints {
	const struct uni_func_hint *func; /* sorted by start, not overlapping; borrowed */
	size_t nr_funcs;
	uint64_t text_start, text_size;	     /* hull of all code of the image, GVA */
	const struct uni_cfi_table *cfi;     /* arch/cfi.h; NULL: the image has none. Borrowed */
	const struct uni_unwind_hints *next; /* the next image of the same guest, or NULL */
	uint64_t stubs; /* GVA of a page of stubs that the hypervisor wrote, if has_stubs */
	bool has_stubs;
};

/* The hints, from h on, of the image whose hull has pc; NULL: none. h may be NULL. */
const struct uni_unwind_hints *uni_hints_of(const struct uni_unwind_hints *h, uint64_t pc);
/* Is pc in a page of stubs, of any of the images? */
bool uni_hints_in_stubs(const struct uni_unwind_hints *h, uint64_t pc);
/* The function that holds pc, in any of the images, or NULL. */
const struct uni_func_hint *uni_hints_find(const struct uni_unwind_hints *h, uint64_t pc);
/* Does the code keep no frame pointers, that is: do most functions, by size, set up none? */
bool uni_hints_frameless(const struct uni_unwind_hints *h);
/*
 * Does a frame pointer of 0 at pc mean that this is the outermost frame? Otherwise the code keeps a
 * number in that register. It does if the function at pc set it to 0, or if the function that it
 * called keeps frame pointers. `callee` is an address of the latter (0: there is none). A function
 * of which nothing is known is taken to keep them.
 */
bool uni_hints_is_end(const struct uni_unwind_hints *h, uint64_t callee, uint64_t pc);
/*
 * Does a return address of 0, by the rows of pc, mean that this is the outermost frame? A function
 * that others call has callers, so there the rows may be wrong.
 */
bool uni_hints_is_first(const struct uni_unwind_hints *h, uint64_t pc);

#endif
