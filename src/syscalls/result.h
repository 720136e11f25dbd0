/* SPDX-License-Identifier: BSD-2-Clause */
/* The text after the "=" of a system call on a console, as Nanos, Unikraft and strace print it. */
#ifndef UNI_SYSCALLS_RESULT_H
#define UNI_SYSCALLS_RESULT_H

#include "syscalls/log.h"

/* A text of the log, without characters that a terminal would act on. Like uni_sysc_log_text(). */
uint32_t uni_sysc_clean_text(struct uni_sysc_log *log, const char *s, size_t len);
bool uni_sysc_parse_int(const char *s, size_t len, int64_t *ret);
/* Sets how the call ended, and its value or the text that is shown instead. */
void uni_sysc_parse_result(struct uni_sysc_log *log, const char *s, struct uni_sysc_entry *e);

#endif
