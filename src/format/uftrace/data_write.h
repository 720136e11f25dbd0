/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the uftrace exporter: records of each task, gathered in memory and appended. */
#ifndef UNI_FORMAT_UFTRACE_DATA_WRITE_H
#define UNI_FORMAT_UFTRACE_DATA_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum uni_uftrace_type {
	UNI_UFTRACE_ENTRY,
	UNI_UFTRACE_EXIT,
	UNI_UFTRACE_LOST,
};

#define UNI_UFTRACE_DEPTH_MAX 1023 /* what its records have room for */

struct uni_uftrace_task {
	struct uni_strbuf records;
	uint64_t first_ns;
	uint32_t open; /* calls of it that are written and not left */
	bool used;
};

struct uni_uftrace_data {
	int dir_fd; /* borrowed */
	UNI_VEC(struct uni_uftrace_task) tasks;
	size_t buffered; /* bytes, of all */
	int error;	 /* errno of the first failure */
};

/* Task ids are the numbers of threads and this. */
#define UNI_UFTRACE_FIRST_TID 1000

/* NULL without memory. */
struct uni_uftrace_task *uni_uftrace_task(struct uni_uftrace_data *d, uint32_t thread);
/* 0, -UNI_ENOMEM, -UNI_EIO (d->error says more). */
int uni_uftrace_put(struct uni_uftrace_data *d, uint32_t thread, enum uni_uftrace_type type,
	uint64_t ns, uint32_t depth, uint64_t address);
int uni_uftrace_flush(struct uni_uftrace_data *d);
void uni_uftrace_deinit(struct uni_uftrace_data *d);

#endif
