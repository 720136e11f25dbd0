/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/follow_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "recording/folder.h"
#include "recording/call_input.h"

#define ROOM (UINT64_C(64) << 30) /* of addresses, a CPU: so large a file may become */

struct stream {
	int fd;	      /* -1: not there yet */
	void *data;   /* mapped once, beyond its end: data that was read stays in place */
	uint64_t end; /* CPU 0's counter: of the last packet */
	bool has_end;
};

struct uni_tfollow {
	const struct uni_recording *rec;
	uint32_t guest;
	uint64_t patience_ns;
	struct uni_trace_input in;
	struct uni_trace_thread_name *thread;
	struct uni_trace_stream *cpu; /* of each CPU, as the next */
	struct stream *stream;
};

int uni_tfollow_open(const struct uni_recording *rec, uint32_t guest, uint64_t patience_ns,
	struct uni_tfollow **ret, struct uni_err *err)
{
	const struct uni_record_trace *trace = &uni_recording_guest(rec, guest).meta->trace;
	struct uni_tfollow *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return uni_err_nomem(err);
	f->rec = rec;
	f->guest = guest;
	f->patience_ns = patience_ns;
	f->in.live = true;
	f->cpu = calloc(trace->nr_cpus, sizeof(*f->cpu));
	f->stream = calloc(trace->nr_cpus, sizeof(*f->stream));
	if (f->cpu == NULL || f->stream == NULL) {
		uni_tfollow_close(f);
		return uni_err_nomem(err);
	}
	f->in.cpu = f->cpu;
	uni_tinput_describe(trace, &f->in);
	for (uint32_t i = 0; i < f->in.info.nr_cpus; i++) {
		f->stream[i].fd = -1;
		f->cpu[i].clock = uni_tinput_clock(&trace->cpu[i].clock);
	}
	if (f->in.mode == UNI_TRACE_MODE_AUTO) {
		uni_tfollow_close(f);
		return uni_err_set(err, UNI_ENOTSUP, "which calls have an end is not known yet");
	}
	*ret = f;
	return 0;
}

void uni_tfollow_close(struct uni_tfollow *f)
{
	for (uint32_t i = 0; f != NULL && i < f->in.info.nr_cpus; i++) {
		if (f->stream[i].data != NULL)
			(void)munmap(f->stream[i].data, ROOM);
		if (f->stream[i].fd >= 0)
			(void)close(f->stream[i].fd);
	}
	if (f != NULL) {
		free(f->thread);
		free(f->cpu);
		free(f->stream);
	}
	free(f);
}

const struct uni_trace_input *uni_tfollow_input(const struct uni_tfollow *f)
{
	return &f->in;
}

static int open_stream(struct uni_tfollow *f, uint32_t cpu, struct uni_err *err)
{
	struct stream *s = &f->stream[cpu];
	_cleanup_strbuf_ struct uni_strbuf name;
	void *data;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/" UNI_SDIR_EVENTS, uni_recording_path(f->rec), f->guest, cpu);
	if (uni_strbuf_failed(&name))
		return uni_err_nomem(err);
	s->fd = uni_open_below(AT_FDCWD, name.s);
	if (s->fd < 0 && errno == ENOENT)
		return 0;
	if (s->fd < 0)
		return uni_err_set(err, UNI_EIO, "cannot read %s: %s", name.s,
			errno == EINVAL ? "not a regular file" : strerror(errno));
	data = mmap(NULL, ROOM, PROT_READ, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
	if (data == MAP_FAILED)
		return uni_err_set(err, UNI_ENOTSUP, "cannot map %s: %s", name.s, strerror(errno));
	s->data = data;
	f->cpu[cpu].data = data;
	return 0;
}

/* Up to the end of the last complete packet. Invalid data is left to the reader, as in a whole
 * file. */
static int take_packets(struct uni_tfollow *f, uint32_t cpu, struct uni_err *err)
{
	struct uni_trace_stream *to = &f->cpu[cpu];
	struct stream *s = &f->stream[cpu];
	uint64_t offset = uni_trace_offset(&f->in, cpu);
	struct stat st;
	size_t left;

	if (s->fd < 0 || fstat(s->fd, &st) != 0)
		return 0;
	if ((uint64_t)st.st_size > ROOM || (uint64_t)st.st_size < to->size)
		return uni_err_set(err, UNI_ENOTSUP, "a stream of CPU %u cannot be followed", cpu);
	while ((left = (size_t)st.st_size - to->size) >= UNI_TRACE_SUB_HEAD) {
		const struct uni_trace_sub *head =
			(const void *)((const uint8_t *)s->data + to->size);
		size_t size = uni_trace_packet_size(head);

		if (size > left)
			break;
		to->size += size != 0 ? size : sizeof(uint64_t);
		if (size == 0)
			continue;
		s->end =
			s->has_end ? uni_max(s->end, head->ts_end + offset) : head->ts_end + offset;
		s->has_end = true;
	}
	return 0;
}

static int take_names(struct uni_tfollow *f, struct uni_err *err)
{
	const struct uni_recorded_guest g = uni_recording_guest(f->rec, f->guest);

	free(f->thread);
	f->thread = NULL;
	return uni_tinput_names(&g, &f->thread, &f->in, err);
}

static uint64_t known_until(const struct uni_tfollow *f)
{
	const struct uni_trace_rate rate = uni_trace_rate(&f->in);
	uint64_t newest = 0, until = UINT64_MAX;

	if (f->in.info.nr_cpus == 1)
		return UINT64_MAX;
	for (uint32_t i = 0; i < f->in.info.nr_cpus; i++)
		newest = f->stream[i].has_end ? uni_max(newest, f->stream[i].end) : newest;
	for (uint32_t i = 0; i < f->in.info.nr_cpus; i++) {
		uint64_t end = f->stream[i].has_end ? f->stream[i].end : 0;

		if (uni_trace_ns(rate, newest - end) <= f->patience_ns)
			until = uni_min(until, end - uni_min(end, (uint64_t)1));
	}
	return until;
}

int uni_tfollow_look(struct uni_tfollow *f, uint64_t *until_ret, struct uni_err *err)
{
	int rc = take_names(f, err);

	for (uint32_t i = 0; rc == 0 && i < f->in.info.nr_cpus; i++) {
		if (f->stream[i].fd < 0)
			rc = open_stream(f, i, err);
		if (rc == 0)
			rc = take_packets(f, i, err);
	}
	*until_ret = known_until(f);
	return rc;
}
