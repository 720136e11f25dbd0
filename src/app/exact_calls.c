/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/exact_calls.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "recording/exact.h"
#include "recording/folder.h"

int uni_calls_session_open(struct uni_calls_session *c, const char *path, const char *only,
	struct uni_record_meta *meta, struct uni_err *err)
{
	int rc = uni_exact_calls_open(path, &c->calls, err);

	if (rc == 0)
		rc = uni_exact_calls_describe(c->calls, &c->trace, err);
	(void)snprintf(c->trace.only, sizeof(c->trace.only), "%s", only);
	if (rc == 0)
		meta->trace = c->trace; /* lent: the recorder copies it */
	return rc;
}

int uni_calls_session_begin(
	struct uni_calls_session *c, struct uni_recorder *rec, struct uni_err *err)
{
	return uni_recorder_trace(rec, 0, &c->out, err);
}

int uni_calls_session_take(struct uni_calls_session *c, uint64_t *nr_ret, struct uni_err *err)
{
	return uni_exact_calls_poll(c->calls, c->out, nr_ret, err);
}

void uni_calls_session_keep(struct uni_calls_session *c, const char *session, const char *counts)
{
	uint64_t bytes = uni_exact_room(counts);
	_cleanup_close_ int fd = -1;

	if (bytes <= c->room_bytes)
		return;
	bytes += bytes / 4;
	if (c->room_bytes == 0 && uni_sdir_open(session, &fd, NULL) == 0)
		c->room = uni_sdir_room(fd, bytes);
	else if (c->room_bytes == 0 || !uni_sdir_room_grow(c->room, c->room_bytes, bytes))
		return;
	if (c->room >= 0)
		c->room_bytes = bytes;
}

void uni_calls_session_give(struct uni_calls_session *c)
{
	if (c->room_bytes != 0)
		(void)close(c->room);
	c->room_bytes = 0;
}

int uni_calls_session_end(
	struct uni_calls_session *c, struct uni_recorder *rec, struct uni_err *err)
{
	int rc = uni_exact_calls_end(c->calls, c->out, err), rc2;

	for (uint32_t i = 0; i < c->trace.nr_cpus; i++)
		uni_tstream_stats(c->out, i, &c->trace.cpu[i]);
	uni_exact_calls_count(c->calls, &c->trace);
	rc2 = uni_recorder_set_trace(rec, 0, &c->trace, rc == 0 ? err : NULL);
	if (rc == 0)
		rc = rc2;
	if (rc == 0 && uni_tstream_errno(c->out) != 0)
		rc = uni_err_set(err, UNI_EIO,
			"some calls could not be written: %s; the missing part counts as lost",
			strerror(-uni_tstream_errno(c->out)));
	return rc;
}

void uni_calls_session_close(struct uni_calls_session *c)
{
	uni_calls_session_give(c);
	uni_exact_calls_close(c->calls);
	uni_record_trace_deinit(&c->trace);
	c->calls = NULL;
}

uint64_t uni_calls_session_events(const struct uni_calls_session *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->trace.nr_cpus; i++)
		sum += c->trace.cpu[i].events;
	return sum;
}

uint64_t uni_calls_session_bytes(const struct uni_calls_session *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->trace.nr_cpus; i++)
		sum += c->trace.cpu[i].packets * sizeof(struct uni_trace_sub) +
		       c->trace.cpu[i].words * 8;
	return sum;
}

uint64_t uni_calls_session_lost(const struct uni_calls_session *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->trace.nr_cpus; i++)
		sum += uni_record_trace_lost(&c->trace.cpu[i]);
	return sum;
}
