/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of a function whose arguments are addresses of text (text.c). */
#include "hooks.inc"

	.text

function uni_trace_entry_text
	if_off	3f
	deeper	3f
	mov	(%rsp), %r11
	call	uni_trace_text_slowly
3:	ret
end uni_trace_entry_text

into_c uni_trace_text_slowly, uni_trace_slow_text

	.section .note.GNU-stack, "", @progbits
