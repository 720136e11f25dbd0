/* SPDX-License-Identifier: BSD-2-Clause */
/* An image with Unikraft's trace buffer and one tracepoint, in sections that are not loaded. */
char uk_trace_buffer[256];
unsigned long uk_trace_buffer_free = sizeof(uk_trace_buffer);
char *uk_trace_buffer_writep = uk_trace_buffer;

#ifdef AS_CLANG /* which takes all of what Unikraft writes for the name */
#define SECTION(name) ".pushsection \"" name ",\\\"\\\",@note#\",\"\",%note\n"
#else
#define SECTION(name) ".pushsection " name ",\"\",%note\n"
#endif

__asm__(SECTION(".uk_tracepoints_list") ".balign 32\n"
					"tp: .long 0x65645054\n.long 9f - tp\n.quad tp\n.byte 1, "
					"3, 3\n.byte 4\n.byte 0\n"
					".asciz \"tp\"\n.asciz \"%d\"\n.balign "
					"8\n9:\n.popsection\n" SECTION(
						".uk_trace_keyvals") ".asciz \"other = 7\"\n.asciz "
								     "\"format_version = "
								     "1\"\n.popsection\n");

void _start(void);
void _start(void)
{
	for (;;)
		;
}
