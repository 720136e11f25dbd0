/* SPDX-License-Identifier: BSD-2-Clause */
/* strace's -e: the system calls to print. */
#ifndef UNI_SYSCALLS_FILTER_H
#define UNI_SYSCALLS_FILTER_H

#include <regex.h>
#include <stdbool.h>

#include "base/err.h"
#include "syscalls/table.h"

#define UNI_SYSC_TERMS_MAX 64

struct uni_sysc_term {
	const char *name; /* borrowed, len bytes; NULL: a class or a regex */
	size_t len;
	unsigned classes;
	bool is_regex;
	regex_t regex;
};

/* A zeroed one lets everything pass. */
struct uni_sysc_filter {
	bool chosen, inverted;
	struct uni_sysc_term term[UNI_SYSC_TERMS_MAX];
	size_t nr;
	unsigned ends; /* 1 << enum uni_sysc_end that pass; 0: all */
};

/* "trace=open,close,%file,/^epoll", "file", "!network", "all", "none", "status=failed". Borrows the
 * expression. Each trace= replaces the one before it. */
int uni_sysc_filter_add(struct uni_sysc_filter *f, const char *expression, struct uni_err *err);
void uni_sysc_filter_deinit(struct uni_sysc_filter *f);
bool uni_sysc_filter_name(const struct uni_sysc_filter *f, const char *name);
bool uni_sysc_filter_end(const struct uni_sysc_filter *f, unsigned end);

#endif
