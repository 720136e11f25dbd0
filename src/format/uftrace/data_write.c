/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uftrace/data_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"

#define BUFFERED_MAX ((size_t)64 << 20)
#define MAGIC	     5

struct uni_uftrace_task *uni_uftrace_task(struct uni_uftrace_data *d, uint32_t thread)
{
	while (thread >= d->tasks.nr) {
		struct uni_uftrace_task none = { 0 };

		uni_strbuf_init(&none.records);
		if (!uni_vec_push(&d->tasks, none))
			return NULL;
	}
	return &d->tasks.v[thread];
}

static int flush_task(struct uni_uftrace_data *d, uint32_t thread)
{
	struct uni_uftrace_task *t = &d->tasks.v[thread];
	_cleanup_close_ int fd = -1;
	char name[32];
	int r;

	if (t->records.len == 0)
		return 0;
	(void)snprintf(
		name, sizeof(name), "%lu.dat", (unsigned long)thread + UNI_UFTRACE_FIRST_TID);
	fd = uni_door_openat(
		d->dir_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : uni_write_full(fd, t->records.s, t->records.len);
	uni_strbuf_deinit(&t->records);
	if (r == 0)
		return 0;
	d->error = -r;
	return -UNI_EIO;
}

int uni_uftrace_flush(struct uni_uftrace_data *d)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < d->tasks.nr; i++)
		rc = flush_task(d, i);
	d->buffered = 0;
	return rc;
}

int uni_uftrace_put(struct uni_uftrace_data *d, uint32_t thread, enum uni_uftrace_type type,
	uint64_t ns, uint32_t depth, uint64_t address)
{
	struct uni_uftrace_task *t = uni_uftrace_task(d, thread);
	uint64_t what = (uint64_t)type | MAGIC << 3 | (uint64_t)depth << 6 | address << 16;
	uint8_t b[16];

	if (t == NULL)
		return -UNI_ENOMEM;
	if (!t->used)
		t->first_ns = ns;
	t->used = true;
	for (unsigned i = 0; i < 8; i++) {
		b[i] = (uint8_t)(ns >> 8 * i);
		b[8 + i] = (uint8_t)(what >> 8 * i);
	}
	uni_strbuf_add(&t->records, b, sizeof(b));
	if (uni_strbuf_failed(&t->records))
		return -UNI_ENOMEM;
	d->buffered += sizeof(b);
	return d->buffered >= BUFFERED_MAX ? uni_uftrace_flush(d) : 0;
}

void uni_uftrace_deinit(struct uni_uftrace_data *d)
{
	uni_vec_foreach (t, &d->tasks) {
		uni_strbuf_deinit(&t->records);
	}
	uni_vec_free(&d->tasks);
}
