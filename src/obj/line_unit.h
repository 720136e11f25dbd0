/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The head of one unit's line table (DWARF 5, 6.2.4; also versions 2 to 4): parameters of its
 * program, and its files. Strings are borrowed from the sections.
 */
#ifndef UNI_OBJ_LINE_UNIT_H
#define UNI_OBJ_LINE_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct uni_bytes {
	const uint8_t *p; /* NULL: there is no such section */
	size_t size;
};

struct uni_line_sections {
	struct uni_bytes line, line_str, str;
};

struct uni_line_file {
	const char *name, *dir; /* dir: NULL for the compiler's directory */
	const char *source;	/* its text, if the compiler put it there; else NULL or "" */
};

struct uni_line_unit {
	uint16_t version;
	uint8_t min_length, max_ops, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *nr_args;	     /* for the opcodes 1 to opcode_base - 1 */
	struct uni_line_file *files; /* by the numbers that the program and DW_AT_call_file use */
	size_t nr_files;
	struct uni_cursor program;
};

/* Opens the table at that offset of .debug_line. False: malformed, or out of memory. */
bool uni_line_unit_open(
	const struct uni_line_sections *from, uint64_t offset, struct uni_line_unit *ret);
void uni_line_unit_close(struct uni_line_unit *u); /* frees the files */

#endif
