/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/call_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "recording/folder.h"

struct uni_tinput {
	struct uni_trace_input in;
	struct uni_trace_thread_name *thread;
	uint32_t nr;
	struct uni_trace_stream stream[]; /* nr */
};

static int map_stream(const struct uni_recording *rec, uint32_t guest, uint32_t cpu,
	struct uni_trace_stream *ret, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name;
	_cleanup_close_ int fd = -1;
	struct stat s;
	void *data;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/" UNI_SDIR_EVENTS, uni_recording_path(rec), guest, cpu);
	if (uni_strbuf_failed(&name))
		return uni_err_nomem(err);
	fd = uni_open_below(AT_FDCWD, name.s);
	if (fd < 0 && errno == ENOENT)
		return 0; /* this CPU made no call */
	if (fd < 0 && (errno == EINVAL || errno == ELOOP))
		return uni_err_set(err, UNI_EFORMAT, "%s is not a regular file", name.s);
	if (fd < 0 || fstat(fd, &s) != 0)
		return uni_err_set(err, UNI_EIO, "cannot read %s: %s", name.s, strerror(errno));
	if (s.st_size == 0)
		return 0;
	data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return uni_err_set(err, UNI_EIO, "cannot map %s: %s", name.s, strerror(errno));
	(void)madvise(data, (size_t)s.st_size, MADV_SEQUENTIAL);
	ret->data = data;
	ret->size = (size_t)s.st_size;
	return 0;
}

static enum uni_trace_mode mode_of(const struct uni_record_trace *t)
{
	if (strcmp(t->mode, "function") == 0)
		return UNI_TRACE_MODE_FUNCTION;
	return t->mode[0] == '\0' ? UNI_TRACE_MODE_AUTO : UNI_TRACE_MODE_GRAPH;
}

/* Switch records name threads by the address of the guest's structure for them. */
int uni_tinput_names(const struct uni_recorded_guest *g, struct uni_trace_thread_name **ret,
	struct uni_trace_input *in, struct uni_err *err)
{
	struct uni_trace_thread_name *thread;

	in->thread = NULL;
	in->nr_threads = 0;
	if (g->nr_thread == 0)
		return 0;
	thread = calloc(g->nr_thread, sizeof(*thread));
	if (thread == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < g->nr_thread; i++)
		thread[i] = (struct uni_trace_thread_name){ .id = g->thread[i].object,
			.number =
				g->thread[i].has_number ? g->thread[i].number : g->thread[i].object,
			.name = g->thread[i].name };
	*ret = thread;
	in->thread = thread;
	in->nr_threads = g->nr_thread;
	return 0;
}

void uni_tinput_describe(const struct uni_record_trace *trace, struct uni_trace_input *ret)
{
	ret->info = trace->info;
	ret->info.nr_cpus = trace->nr_cpus;
	ret->info.tsc_hz = trace->cpu[0].clock.hz;
	ret->mode = mode_of(trace);
}

struct uni_trace_clock uni_tinput_clock(const struct uni_record_clock *c)
{
	return (struct uni_trace_clock){ .tsc = c->cycles, .ns = c->ns, .error_ns = c->error_ns };
}

static int open_all(
	struct uni_tinput *t, const struct uni_recording *rec, uint32_t guest, struct uni_err *err)
{
	const struct uni_recorded_guest g = uni_recording_guest(rec, guest);
	const struct uni_record_trace *trace = &g.meta->trace;
	int rc = uni_tinput_names(&g, &t->thread, &t->in, err);

	uni_tinput_describe(trace, &t->in);
	t->in.cpu = t->stream;
	for (uint32_t i = 0; rc == 0 && i < trace->nr_cpus; i++) {
		t->stream[i].clock = uni_tinput_clock(&trace->cpu[i].clock);
		rc = map_stream(rec, guest, i, &t->stream[i], err);
	}
	return rc;
}

int uni_tinput_open(const struct uni_recording *rec, uint32_t guest, struct uni_tinput **ret,
	struct uni_err *err)
{
	const struct uni_record_trace *trace = &uni_recording_guest(rec, guest).meta->trace;
	struct uni_tinput *t;
	int rc;

	if (trace->nr_cpus == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s holds samples of this guest and no trace of its calls, threads or "
			"waits: uniscope trace record makes one",
			uni_recording_path(rec));
	t = calloc(1, sizeof(*t) + trace->nr_cpus * sizeof(t->stream[0]));
	if (t == NULL)
		return uni_err_nomem(err);
	t->nr = trace->nr_cpus;
	rc = open_all(t, rec, guest, err);
	if (rc != 0) {
		uni_tinput_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void uni_tinput_close(struct uni_tinput *t)
{
	for (uint32_t i = 0; t != NULL && i < t->nr; i++) {
		if (t->stream[i].size != 0)
			(void)munmap((void *)(uintptr_t)t->stream[i].data, t->stream[i].size);
	}
	if (t != NULL)
		free(t->thread);
	free(t);
}

const struct uni_trace_input *uni_tinput_get(const struct uni_tinput *t)
{
	return &t->in;
}

int uni_tinput_find(const struct uni_recording *rec, uint32_t *guest_ret, struct uni_err *err)
{
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		if (uni_recording_guest(rec, i).meta->trace.nr_cpus != 0) {
			*guest_ret = i;
			return 0;
		}
	}
	return uni_err_set(err, UNI_ENOENT,
		"%s holds samples and no trace of calls, threads or waits: uniscope trace record "
		"makes one (--threads for threads and waits)",
		uni_recording_path(rec));
}
