/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracepoints as a Unikraft guest has them. Definitions are in a section that is not loaded,
 * records in uk_trace_buffer. When a record finds no room, the buffer is full for good. Written for
 * the lab from docs/formats/uk-trace.md.
 */
#ifndef LAB_POINT_H
#define LAB_POINT_H

#include <stddef.h>
#include <stdint.h>

#define LAB_POINT_BUFFER 65536

/* name, format, and of the arguments: "how many", "their bytes", "1 for a string each". */
#define LAB_POINT(name, format, nr, sizes, strings)                                         \
	__asm__(".pushsection .uk_tracepoints_list,\"\",%note\n.balign 32\n"                \
		"lab_point_" #name ":\n.long 0x65645054\n.long 9f - lab_point_" #name "\n"  \
		".quad lab_point_" #name "\n.byte " nr ", 2f - 1f, 3f - 2f\n" sizes strings \
		"1: .asciz \"" #name "\"\n2: .asciz \"" format "\"\n3: .balign 8\n9:\n"     \
		".popsection\n"                                                             \
		".pushsection .rodata,\"a\"\n.balign 8\nlab_cookie_" #name                  \
		": .quad lab_point_" #name "\n.popsection\n");                              \
	extern const uint64_t lab_cookie_##name

struct lab_point_arg {
	uint64_t v;
	const char *s; /* not NULL: a string, whatever v is */
	unsigned size;
};

#define LAB_INT(type, v)                                \
	{                                               \
		(uint64_t)(type)(v), NULL, sizeof(type) \
	}
#define LAB_TEXT(s)       \
	{                 \
		0, (s), 0 \
	}

/* lab_point(name, arguments...): 1 if it was recorded. */
#define lab_point(name, ...)                                                               \
	lab_point_record(lab_cookie_##name, (const struct lab_point_arg[]){ __VA_ARGS__ }, \
		sizeof((const struct lab_point_arg[]){ __VA_ARGS__ }) /                    \
			sizeof(struct lab_point_arg))

int lab_point_record(uint64_t cookie, const struct lab_point_arg *arg, unsigned nr);

#endif
