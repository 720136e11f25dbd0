/* SPDX-License-Identifier: BSD-2-Clause */
/* Linux' system calls, which unikernels implement, too: numbers, the kinds of their arguments, and
 * the classes of `strace -e`. Written from the manual's section 2. */
#ifndef UNI_SYSCALLS_TABLE_H
#define UNI_SYSCALLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNI_SYSC_ARGS_MAX 6

enum uni_sysc_class {
	UNI_SYSC_FILE = 1 << 0,
	UNI_SYSC_DESC = 1 << 1,
	UNI_SYSC_MEMORY = 1 << 2,
	UNI_SYSC_PROCESS = 1 << 3,
	UNI_SYSC_SIGNAL = 1 << 4,
	UNI_SYSC_NETWORK = 1 << 5,
	UNI_SYSC_IPC = 1 << 6,
	UNI_SYSC_CREDS = 1 << 7,
	UNI_SYSC_CLOCK = 1 << 8,
	UNI_SYSC_STAT = 1 << 9,
};

struct uni_sysc_def {
	const char *name;
	int16_t x86_64, aarch64; /* numbers; -1: not there */
	uint16_t classes;	 /* enum uni_sysc_class */
	/* A letter for each argument (syscalls/value.c), then optionally ':' and the format of the
	 * result. p is an address, l and z are 64 bits, o is octal, ? means none; otherwise it is
	 * an int. */
	const char *kinds;
};

extern const struct uni_sysc_def uni_sysc_table[];
extern const size_t uni_sysc_nr;

/* NULL: none has this name. */
const struct uni_sysc_def *uni_sysc_by_name(const char *name, size_t len);
/* machine: EM_X86_64 or EM_AARCH64. NULL: no call has this number. */
const struct uni_sysc_def *uni_sysc_by_number(unsigned machine, uint64_t nr);
/* The class of that name ("file", "net", ...), 0: there is none. */
unsigned uni_sysc_class_of(const char *name, size_t len);
/* Letters of kinds before the ':'. */
unsigned uni_sysc_nr_args(const struct uni_sysc_def *def);
/* The letter after the ':'; 'd' if there is none. */
char uni_sysc_result_kind(const struct uni_sysc_def *def);

#endif
