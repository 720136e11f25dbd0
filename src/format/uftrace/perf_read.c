/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf-cpuN.dat: records as perf_event_open(2) describes them, without a file header. They are of a
 * dummy event with sample_id_all and the sample type TID | TIME, so each ends in thread and time:
 *
 * 	u32 type | u16 misc | u16 size | ... | u32 pid | u32 tid | u64 ns
 *
 * The times are of the clock that the records of calls have.
 */
#include <stdlib.h>

#include "base/cursor.h"
#include "format/uftrace/data_read.h"

#define HEADER_BYTES 8
#define SAMPLE_BYTES 16

#define SWITCH_OUT	   (1u << 13) /* in misc */
#define SWITCH_OUT_PREEMPT (1u << 14)

enum record { COMM = 3, EXIT = 4, FORK = 7, SWITCH = 14 };

static bool is_known(uint32_t type)
{
	return type == COMM || type == EXIT || type == FORK || type == SWITCH;
}

static enum uni_uftrace_what what_of(uint32_t type, uint16_t misc)
{
	if (type != SWITCH)
		return UNI_UFTRACE_ALIVE;
	if ((misc & SWITCH_OUT) == 0)
		return UNI_UFTRACE_IN;
	return (misc & SWITCH_OUT_PREEMPT) != 0 ? UNI_UFTRACE_PREEMPTED : UNI_UFTRACE_OUT;
}

/* u32 pid | u32 ppid | u32 tid | u32 ptid | u64 ns; a fork ends in its parent. */
static void of_task(struct uni_cursor body, struct uni_uftrace_event *e)
{
	(void)uni_cursor_take(&body, 8);
	e->tid = uni_cursor_u32(&body);
	(void)uni_cursor_u32(&body);
	e->ns = uni_cursor_u64(&body);
}

bool uni_uftrace_perf(
	struct uni_uftrace_events *events, const char *data, size_t size, uint64_t *damaged)
{
	struct uni_cursor in = uni_cursor_make(data, size);

	while (uni_cursor_left(&in) != 0) {
		uint32_t type = uni_cursor_u32(&in);
		uint16_t misc = uni_cursor_u16(&in), bytes = uni_cursor_u16(&in);
		size_t len = bytes < HEADER_BYTES ? 0 : (size_t)bytes - HEADER_BYTES;
		const uint8_t *body = uni_cursor_take(&in, len);
		struct uni_uftrace_event e = { .what = (uint8_t)what_of(type, misc) };
		struct uni_cursor end;

		if (body == NULL || bytes < HEADER_BYTES) {
			++*damaged; /* the next one cannot be found */
			return true;
		}
		if (!is_known(type) || len < SAMPLE_BYTES)
			continue;
		end = uni_cursor_make(body + len - SAMPLE_BYTES, SAMPLE_BYTES);
		(void)uni_cursor_u32(&end);
		e.tid = uni_cursor_u32(&end);
		e.ns = uni_cursor_u64(&end);
		if (type == FORK || type == EXIT)
			of_task(uni_cursor_make(body, len), &e);
		if (!uni_vec_push(&events->all, e))
			return false;
	}
	return true;
}

/* By thread, then by time; a thread that leaves one CPU comes to another later. */
static int event_order(const void *a, const void *b)
{
	const struct uni_uftrace_event *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (int)y->what - (int)x->what;
}

void uni_uftrace_events_sort(struct uni_uftrace_events *events)
{
	if (events->all.nr != 0)
		qsort(events->all.v, events->all.nr, sizeof(events->all.v[0]), event_order);
}

size_t uni_uftrace_events_of(const struct uni_uftrace_events *events, uint32_t tid)
{
	size_t lo = 0, hi = events->all.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (events->all.v[mid].tid < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
