/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/exact_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/io.h"
#include "trace/ring.h"
#include "uniscope/exact.h"

struct uni_exact_calls {
	int fd;
	struct uni_ring *ring;
	struct uni_tstream *out; /* during a call */
};

/* The file may be cut off at any moment: a mapping would be a signal then. */
static int read_file(void *ctx, uint64_t at, void *buf, size_t len)
{
	const struct uni_exact_calls *c = ctx;

	if (at > INT64_MAX - len)
		return -UNI_ERANGE;
	for (size_t have = 0; have < len;) {
		ssize_t n = pread(c->fd, (char *)buf + have, len - have, (off_t)(at + have));

		if (n == 0)
			return -UNI_ERANGE;
		if (n < 0 && errno != EINTR)
			return -UNI_EIO;
		have += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static struct flock lock_of(off_t byte)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
	};
}

static int lock_reader(const struct uni_exact_calls *c, const char *path, struct uni_err *err)
{
	struct flock l = lock_of(UNI_EXACT_LOCK_OF_READER);

	if (fcntl(c->fd, F_OFD_SETLK, &l) == 0)
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return uni_err_set(err, UNI_EBUSY, "%s: another program reads the calls", path);
	return uni_err_set(err, UNI_EIO, "cannot lock %s: %s", path, strerror(errno));
}

int uni_exact_calls_open(const char *path, struct uni_exact_calls **ret, struct uni_err *err)
{
	struct uni_exact_calls *c = calloc(1, sizeof(*c));
	struct uni_ring_source source = { .read = read_file, .ctx = c };
	int rc;

	if (c == NULL)
		return uni_err_nomem(err);
	c->fd = uni_open_shared(path);
	if (c->fd < 0)
		rc = uni_err_set(err, errno == ENOENT ? UNI_ENOENT : UNI_EIO, "cannot open %s: %s",
			path, strerror(errno));
	else
		rc = lock_reader(c, path, err);
	if (rc == 0)
		rc = uni_ring_open(&source, 0, &c->ring, err);
	if (rc == 0 && uni_ring_info(c->ring)->nr_cpus > UNI_EXACT_CALLS_CPUS)
		rc = uni_err_set(err, UNI_EFORMAT, "%s: too many vCPUs", path);
	if (rc != 0) {
		uni_exact_calls_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void uni_exact_calls_close(struct uni_exact_calls *c)
{
	if (c == NULL)
		return;
	uni_ring_close(c->ring);
	if (c->fd >= 0)
		(void)close(c->fd);
	free(c);
}

int uni_exact_calls_describe(
	const struct uni_exact_calls *c, struct uni_record_trace *ret, struct uni_err *err)
{
	*ret = (struct uni_record_trace){ .info = *uni_ring_info(c->ring) };
	if (!uni_record_trace_room(ret, ret->info.nr_cpus))
		return uni_err_nomem(err);
	(void)snprintf(ret->mode, sizeof(ret->mode), "graph");
	for (uint32_t i = 0; i < ret->nr_cpus; i++) {
		struct uni_record_trace_cpu *cpu = &ret->cpu[i];

		cpu->nr_subs = uni_ring_nr_subs(c->ring, i);
		cpu->clock = (struct uni_record_clock){
			.hz = UNI_EXACT_CALLS_HZ, .error_ns = UINT64_MAX, .source = "instructions"
		};
	}
	return 0;
}

void uni_exact_calls_count(const struct uni_exact_calls *c, struct uni_record_trace *ret)
{
	for (uint32_t i = 0; i < ret->nr_cpus; i++) {
		const struct uni_ring_stats *st = uni_ring_stats(c->ring, i);

		ret->cpu[i].lapped = st->lapped;
		ret->cpu[i].torn = st->torn;
	}
}

/* Once it is taken, it may be overwritten. */
static int take_packet(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct uni_exact_calls *c = arg;
	uint64_t taken = packet->begin_seq;
	int rc = uni_tstream_put(c->out, cpu, packet, content);
	ssize_t n = pwrite(
		c->fd, &taken, sizeof(taken), (off_t)(UNI_EXACT_CALLS_TAKEN + cpu * sizeof(taken)));

	return rc != 0 ? rc : n == (ssize_t)sizeof(taken) ? 0 : -UNI_EIO;
}

static int calls_failed(int rc, struct uni_err *err)
{
	return uni_err_set(err, (enum uni_errcode) - rc, "the calls of QEMU cannot be read: %s",
		uni_strerror(rc));
}

int uni_exact_calls_poll(
	struct uni_exact_calls *c, struct uni_tstream *out, uint64_t *nr_ret, struct uni_err *err)
{
	int rc = 0;

	*nr_ret = 0;
	c->out = out;
	for (uint32_t i = 0; rc == 0 && i < uni_ring_info(c->ring)->nr_cpus; i++) {
		uint64_t before = uni_ring_stats(c->ring, i)->packets;

		rc = uni_ring_poll(c->ring, i, take_packet, c);
		*nr_ret += uni_ring_stats(c->ring, i)->packets - before;
	}
	return rc == 0 ? 0 : calls_failed(rc, err);
}

int uni_exact_calls_end(struct uni_exact_calls *c, struct uni_tstream *out, struct uni_err *err)
{
	int rc = 0;

	c->out = out;
	for (uint32_t i = 0; rc == 0 && i < uni_ring_info(c->ring)->nr_cpus; i++) {
		struct uni_ring_now now = { 0 };

		rc = uni_ring_drain(c->ring, i, take_packet, c);
		if (rc == 0)
			rc = uni_ring_now(c->ring, i, &now);
		if (rc == 0)
			uni_tstream_end(out, i, now.lost, now.words, now.extra);
	}
	return rc == 0 ? 0 : calls_failed(rc, err);
}

bool uni_exact_calls_goes_on(const struct uni_exact_calls *c)
{
	struct flock l = lock_of(UNI_EXACT_LOCK_OF_QEMU);

	return fcntl(c->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}
