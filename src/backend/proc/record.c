/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/proc/record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "backend/proc/proc.h"

#define NR_REGS_MAX 64
#define KERNEL_MAX  512 /* frames of the kernel; it makes at most perf_event_max_stack */

static void copy_out(const uint8_t *data, size_t nr_bytes, uint64_t at, uint8_t *out, size_t len)
{
	size_t pos = (size_t)(at & (nr_bytes - 1)), first = uni_min(len, nr_bytes - pos);

	memcpy(out, data + pos, first);
	memcpy(out + first, data, len - first);
}

size_t uni_proc_ring_take(const uint8_t *data, size_t nr_bytes, uint64_t tail, uint64_t head,
	uint8_t out[UNI_PROC_RECORD_MAX])
{
	uint64_t written = head - tail;
	struct perf_event_header h;

	if (written < sizeof(h) || written > nr_bytes)
		return 0;
	copy_out(data, nr_bytes, tail, (uint8_t *)&h, sizeof(h));
	if (h.size < sizeof(h) || h.size > written)
		return 0;
	/* Copies again, with the head that was checked: it cannot have grown meanwhile. */
	copy_out(data, nr_bytes, tail, out, h.size);
	memcpy(out, &h, sizeof(h));
	return h.size;
}

/* The chain: what follows PERF_CONTEXT_KERNEL is the kernel's. Records are aligned to 8 bytes. */
static void take_kernel(struct uni_cursor *c, struct uni_stream_raw *ret)
{
	uint64_t nr = uni_cursor_u64(c), i = 0;
	const void *at = nr <= KERNEL_MAX ? uni_cursor_take(c, nr * sizeof(uint64_t)) : NULL;
	const uint64_t *pc = at;

	if (pc == NULL || nr == 0 || pc[0] != PERF_CONTEXT_KERNEL) {
		c->failed |= nr > KERNEL_MAX;
		return;
	}
	for (i = 1; i < nr && pc[i] < PERF_CONTEXT_MAX;)
		i++;
	ret->kernel = pc + 1;
	ret->nr_kernel = (uint16_t)(i - 1);
}

/*
 * PERF_RECORD_SAMPLE: time, number and addresses of the chain, ABI and registers, size, stack,
 * bytes of the stack that are valid. A thread that has no memory left (it ends) has no registers.
 */
static bool parse_sample(struct uni_cursor *c, struct uni_stream_raw *ret)
{
	struct uni_stream_raw raw = { .weight = 1 };
	uint64_t value[NR_REGS_MAX], nr_bytes, good = 0, abi;

	raw.t_ns = uni_cursor_u64(c);
	take_kernel(c, &raw);
	abi = uni_cursor_u64(c);
	raw.regs.state = UNI_VCPU_RUNNING;
	if (abi != PERF_SAMPLE_REGS_ABI_64 &&
		(abi != PERF_SAMPLE_REGS_ABI_NONE || raw.nr_kernel == 0))
		return false;
	for (unsigned i = 0; abi == PERF_SAMPLE_REGS_ABI_64 && i < uni_proc_nr_perf_regs; i++)
		value[i] = uni_cursor_u64(c);
	nr_bytes = uni_cursor_u64(c);
	raw.stack = uni_cursor_take(c, nr_bytes);
	if (nr_bytes != 0)
		good = uni_cursor_u64(c);
	raw.stack_size = (size_t)uni_min(good, nr_bytes);
	if (c->failed)
		return false;
	if (abi == PERF_SAMPLE_REGS_ABI_64)
		uni_proc_perf_to_regs(value, &raw.regs);
	*ret = raw;
	return true;
}

enum uni_proc_record uni_proc_record_parse(
	const uint8_t *record, size_t size, struct uni_stream_raw *ret, uint64_t *lost_ret)
{
	struct uni_cursor c = uni_cursor_make(record, size);
	struct perf_event_header h;
	uint64_t lost;

	if (size < sizeof(h))
		return UNI_PROC_RECORD_OTHER;
	memcpy(&h, uni_cursor_take(&c, sizeof(h)), sizeof(h));
	if (h.type == PERF_RECORD_SAMPLE)
		return parse_sample(&c, ret) ? UNI_PROC_RECORD_SAMPLE : UNI_PROC_RECORD_BROKEN;
	if (h.type == PERF_RECORD_COMM && (h.misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
		return UNI_PROC_RECORD_EXEC;
	if (h.type != PERF_RECORD_LOST)
		return UNI_PROC_RECORD_OTHER;
	(void)uni_cursor_u64(&c); /* the event's number */
	lost = uni_cursor_u64(&c);
	if (c.failed)
		return UNI_PROC_RECORD_OTHER;
	*lost_ret = lost;
	return UNI_PROC_RECORD_LOST;
}
