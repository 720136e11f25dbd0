/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls added up by function and by thread (or CPU): counts and times. */
#ifndef UNI_PROFILE_CALLTABLE_H
#define UNI_PROFILE_CALLTABLE_H

#include "base/strtab.h"
#include "base/vec.h"
#include "trace/timeline.h"

struct uni_call_cell {
	uint32_t name;	/* string */
	uint64_t where; /* number of the thread or CPU */
	uint64_t calls;
	uint64_t ns, self_ns; /* saturate */
};

struct uni_call_table {
	struct uni_strtab *names;
	struct uni_strtab *keys;
	UNI_VEC(struct uni_call_cell) cells; /* in the order in which they came up */
};

int uni_call_table_init(struct uni_call_table *t);    /* -UNI_ENOMEM */
void uni_call_table_deinit(struct uni_call_table *t); /* also of zeros */
/* Adds call to the cell of the function `name`; ignores call->name. -UNI_ENOMEM. */
int uni_call_table_add(
	struct uni_call_table *t, const char *name, size_t len, const struct uni_call_cell *call);
/* The calls that returned, of a timeline that is read to its end. -UNI_ENOMEM. */
int uni_call_table_read(struct uni_call_table *t, const struct uni_timeline *tl, bool by_cpu);
/* One cell a function, whatever the thread; where is 0. -UNI_ENOMEM. */
int uni_call_table_merge(const struct uni_call_table *t, struct uni_call_table *ret);
/* By thread, then most self time first, then by name. */
void uni_call_table_sort(struct uni_call_table *t);
static inline const char *uni_call_table_name(
	const struct uni_call_table *t, const struct uni_call_cell *c)
{
	return uni_strtab_get(t->names, c->name);
}

#endif
