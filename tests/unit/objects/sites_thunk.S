/* SPDX-License-Identifier: BSD-2-Clause */
	.text
	.weak	__x86_return_thunk
	.type	__x86_return_thunk, @function
__x86_return_thunk:
	ret
	int3
	.size	__x86_return_thunk, . - __x86_return_thunk

	.globl	__fentry__
	.type	__fentry__, @function
__fentry__:
	ret
	.size	__fentry__, . - __fentry__

	.section .note.GNU-stack, "", @progbits
