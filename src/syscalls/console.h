/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of reading a console's output. */
#ifndef UNI_SYSCALLS_CONSOLE_H
#define UNI_SYSCALLS_CONSOLE_H

#include "syscalls/log.h"
#include "syscalls/table.h"

#define UNI_SYSC_LINE_BYTES 8192

/* A call with an unfinished line: a thread has one at a time. */
struct uni_sysc_pending {
	uint32_t thread, entry; /* entry UINT32_MAX: -e leaves it out */
	bool fresh;		/* no line of the thread since */
};

struct uni_sysc_console {
	struct uni_sysc_log *log;
	unsigned machine;
	bool old;      /* lines of Nanos before its klib were there */
	bool blank;    /* the line had blanks at its end */
	bool in_table; /* lines are those of a table of sums */
	bool rows;     /* after its rule */
	uint64_t ns;   /* of the line, since 1970; 0: unknown */
	UNI_VEC(struct uni_sysc_pending) pending;
	char line[UNI_SYSC_LINE_BYTES];
};

/* The call with that name, or of "syscall_N"; *name_ret: text of the log. False: an unknown name.
 */
bool uni_sysc_find_call(struct uni_sysc_console *c, const char *s, size_t len,
	const struct uni_sysc_def **def_ret, uint32_t *name_ret);
/* The unfinished call of this thread; NULL: there is none. */
struct uni_sysc_pending *uni_sysc_pending(struct uni_sysc_console *c, uint32_t thread);
/* The thread's last one has ended without a word, as of a call of Nanos that had to wait. */
int uni_sysc_add_unfinished(struct uni_sysc_console *c, const struct uni_sysc_entry *e);
/* Gives the result to the thread's call. *e_ret: its entry; NULL: there is none, or it is left out.
 */
int uni_sysc_end_pending(struct uni_sysc_console *c, uint32_t thread, const char *result,
	struct uni_sysc_entry **e_ret);

/* ")   = RESULT" from the right; NULL: there is none. */
char *uni_sysc_find_result(char *s, char **close_ret);

/* unikraft.c. Is it what Unikraft prints behind "="? */
bool uni_sysc_unikraft_result(const char *s);
/* Takes a call without a name, and a line that was cut. */
int uni_sysc_unikraft_line(struct uni_sysc_console *c, const char *s, bool *was_ret);
/* The beginning of Unikraft's line behind text that was printed without a newline; NULL: there is
 * none. */
char *uni_sysc_unikraft_behind_text(struct uni_sysc_console *c);

/* oldnanos.c: takes a line "1 mmap", "1 mmap: addr ..", "1 direct return: 0, rsp 0x7f..". */
int uni_sysc_old_style(struct uni_sysc_console *c, uint32_t thread, const char *s, bool *was_ret);
/* The beginning of such a line behind text that was printed without a newline; NULL: there is none.
 */
char *uni_sysc_old_behind_text(struct uni_sysc_console *c);

#endif
