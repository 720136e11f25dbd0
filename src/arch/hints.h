/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an image tells about unwinding its code, as plain data: made by obj/, used by unwind/ and
 * by targets that unwind in the kernel, neither of which knows ELF.
 *
 * The frameless map: GCC never sets up the frame pointer in functions that need no stack, even
 * with -fno-omit-frame-pointer, so there [rbp+8] is the caller's caller. Each function is listed
 * with how it begins.
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
	const struct uni_unwind_hints *next; /* of another image of the same guest, or NULL */
	uint64_t stubs; /* GVA of a page of stubs that the hypervisor wrote, where has_stubs */
	bool has_stubs;
};

/* Those, from h on, of the image whose hull of code holds pc; NULL: none. h may be NULL. */
const struct uni_unwind_hints *uni_hints_of(const struct uni_unwind_hints *h, uint64_t pc);
/* Is pc in a page of stubs, of any of the images? */
bool uni_hints_in_stubs(const struct uni_unwind_hints *h, uint64_t pc);
/* The function that holds pc, in any of the images, or NULL. */
const struct uni_func_hint *uni_hints_find(const struct uni_unwind_hints *h, uint64_t pc);
/* Code that keeps no frame pointers: most of it, by size, is in functions that set up none. */
bool uni_hints_frameless(const struct uni_unwind_hints *h);
/*
 * Does a frame pointer of 0 at pc mean that this is the outermost frame, and not that the code
 * keeps a number in that register? It does if the function at pc made it so, or if the one that was
 * called from there (an address of it; 0: there is none) keeps frame pointers. Code of which
 * nothing is known is believed to.
 */
bool uni_hints_is_end(const struct uni_unwind_hints *h, uint64_t callee, uint64_t pc);

#endif
