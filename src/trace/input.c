/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/input.h"

#include <string.h>

#include "base/checked.h"
#include "trace/record.h"

/* Number of packets examined to distinguish a trace of calls only from one with returns. */
#define MODE_PACKETS 4

uint64_t uni_trace_offset(const struct uni_trace_input *in, unsigned cpu)
{
	const struct uni_trace_clock *a = &in->cpu[0].clock, *b = &in->cpu[cpu].clock;
	uint64_t hz = in->info.tsc_hz, error = uni_max(a->error_ns, b->error_ns);
	uint64_t cycles, both = (uint64_t)((__int128)b->tsc - a->tsc), off;
	uint64_t ns = b->ns >= a->ns ? b->ns - a->ns : a->ns - b->ns;

	if (cpu == 0 || hz < UNI_TRACE_HZ_MIN || error == UINT64_MAX)
		return 0;
	cycles = (uint64_t)((unsigned __int128)ns * hz / 1000000000);
	if (b->ns < a->ns)
		cycles = -cycles;
	/* Modulo 2^64, as the counters themselves. */
	off = cycles - both;
	ns = uni_trace_ns(uni_trace_rate(in), off >> 63 ? -off : off);
	return ns <= error || ns - error <= error ? 0 : off;
}

size_t uni_trace_packet_size(const struct uni_trace_sub *s)
{
	uint64_t bytes = s->packet_size / 8;

	if (s->ctf_magic != UNI_TRACE_CTF_MAGIC || s->packet_size % 64 != 0 ||
		bytes < UNI_TRACE_SUB_HEAD || bytes > UNI_TRACE_SUB_SIZE)
		return 0;
	return (size_t)bytes;
}

/* Bytes of the packet at data; 0: there is no valid packet. */
static size_t size_of(const struct uni_trace_sub *s, size_t left)
{
	size_t bytes = left < UNI_TRACE_SUB_HEAD ? 0 : uni_trace_packet_size(s);

	return bytes <= left ? bytes : 0;
}

static bool content_of(const struct uni_trace_input *in, const struct uni_trace_sub *s, size_t size,
	size_t *content_ret)
{
	uint64_t bytes = s->content_size / 8;

	if (s->content_size % 64 != 0 || bytes < UNI_TRACE_SUB_HEAD || bytes > size ||
		memcmp(s->uuid, in->info.uuid, sizeof(s->uuid)) != 0)
		return false;
	*content_ret = (size_t)bytes;
	return true;
}

/* Finds out from the headers of both packets how many events are missing between them. */
static void tell_lost(struct uni_trace_packet *p, const struct uni_trace_packet *prev)
{
	uint64_t before = prev != NULL ? prev->lost_total : 0;

	p->lost_total = uni_max(p->head->lost, before);
	p->words_after = p->head->words_before + (p->content - UNI_TRACE_SUB_HEAD) / 8;
	p->extra_after = p->head->extra_after;
	if (prev != NULL && p->head->words_before > prev->words_after)
		p->lapped = p->head->words_before - prev->words_after;
	if (prev != NULL && p->head->extra_before > prev->extra_after)
		p->lapped -= uni_min(p->lapped, p->head->extra_before - prev->extra_after);
	if (p->head->lost > before && p->head->lost - before > p->lapped)
		p->lost = p->head->lost - before - p->lapped;
}

int uni_trace_packet(const struct uni_trace_input *in, unsigned cpu, size_t offset,
	const struct uni_trace_packet *prev, struct uni_trace_packet *ret, uint64_t *damaged_ret)
{
	const struct uni_trace_stream *s = &in->cpu[cpu];
	const uint8_t *data = s->data;

	while (offset < s->size) {
		const void *at = data + offset;
		struct uni_trace_packet p = { .head = at };
		size_t size = size_of(p.head, s->size - offset);

		if (size != 0 && content_of(in, p.head, size, &p.content)) {
			p.next = offset + size;
			tell_lost(&p, prev);
			*ret = p;
			return 1;
		}
		if (size == 0)
			size = uni_min(s->size - offset, sizeof(uint64_t));
		*damaged_ret += size;
		offset += size;
	}
	return 0;
}

/* CPU 0's counter at this one's first record; UINT64_MAX: it has none. A packet may begin long
 * before: where the recording did. */
static uint64_t first_time(const struct uni_trace_input *in, unsigned cpu)
{
	struct uni_trace_packet p = { 0 };
	uint64_t damaged = 0;

	while (uni_trace_packet(in, cpu, p.next, NULL, &p, &damaged) != 0) {
		struct uni_trace_cursor c = uni_trace_records(&in->info, p.head, p.content);
		struct uni_trace_record rec;

		if (uni_trace_next(&c, &rec))
			return rec.time + uni_trace_offset(in, cpu);
	}
	return UINT64_MAX;
}

uint64_t uni_trace_begin_ns(const struct uni_trace_input *in)
{
	uint64_t begin = UINT64_MAX;

	for (unsigned cpu = 0; cpu < in->info.nr_cpus; cpu++)
		begin = uni_min(begin, first_time(in, cpu));
	return begin == UINT64_MAX
		       ? 0
		       : uni_trace_clock_ns(&in->cpu[0].clock, uni_trace_rate(in), begin);
}

/* A CPU's counter at its last record in the packet; 0: none. Records of the complete time do not
 * count: an idle CPU writes one when it notices, however late, that another CPU froze the rings. */
static uint64_t last_time(const struct uni_trace_input *in, const struct uni_trace_packet *p)
{
	struct uni_trace_cursor c = uni_trace_records(&in->info, p->head, p->content);
	struct uni_trace_record rec;
	uint64_t last = 0;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind != UNI_TRACE_KIND_SYNC)
			last = rec.time;
	}
	return last;
}

#define LAST 4 /* packets that are looked into for it, as a rule */

static uint64_t last_of_cpu(const struct uni_trace_input *in, unsigned cpu, bool all)
{
	struct uni_trace_packet p = { 0 }, last[LAST] = { { 0 } };
	uint64_t end = 0, damaged = 0;
	unsigned nr = 0;

	while (uni_trace_packet(in, cpu, p.next, NULL, &p, &damaged) != 0) {
		if (all)
			end = uni_max(end, last_time(in, &p));
		else if (p.content > UNI_TRACE_SUB_HEAD)
			last[nr++ % LAST] = p;
	}
	for (unsigned i = 0; i < uni_min(nr, (unsigned)LAST); i++)
		end = uni_max(end, last_time(in, &last[i]));
	return end == 0 && nr > LAST ? last_of_cpu(in, cpu, true) : end;
}

uint64_t uni_trace_end_ns(const struct uni_trace_input *in)
{
	uint64_t end = 0;

	for (unsigned cpu = 0; cpu < in->info.nr_cpus; cpu++) {
		uint64_t last = last_of_cpu(in, cpu, false);

		if (last != 0)
			end = uni_max(end, last + uni_trace_offset(in, cpu));
	}
	return end == 0 ? 0 : uni_trace_clock_ns(&in->cpu[0].clock, uni_trace_rate(in), end);
}

/* Does it have returns, or calls with an end? */
static bool has_ends(const struct uni_trace_input *in, const struct uni_trace_packet *p)
{
	const uint64_t *words = (const uint64_t *)(const void *)p->head;

	for (size_t i = UNI_TRACE_SUB_HEAD / 8; i < p->content / 8; i++) {
		uint8_t kind = in->info.kinds[words[i] >> 32 & 15];

		if (kind == UNI_TRACE_KIND_EXIT || kind == UNI_TRACE_KIND_LEAF)
			return true;
		if (kind == UNI_TRACE_KIND_SYNC)
			i += 2;
		else if (kind == UNI_TRACE_KIND_EXT)
			i += words[i] >> 36 & 0xfff;
	}
	return false;
}

enum uni_trace_mode uni_trace_mode_of(const struct uni_trace_input *in)
{
	uint64_t damaged = 0;

	if (in->mode != UNI_TRACE_MODE_AUTO)
		return in->mode;
	for (unsigned cpu = 0; cpu < in->info.nr_cpus; cpu++) {
		struct uni_trace_packet p = { 0 };

		for (unsigned n = 0; n < MODE_PACKETS; n++) {
			if (uni_trace_packet(in, cpu, p.next, NULL, &p, &damaged) == 0)
				break;
			if (has_ends(in, &p))
				return UNI_TRACE_MODE_GRAPH;
		}
	}
	return UNI_TRACE_MODE_FUNCTION;
}

int uni_trace_input_check(const struct uni_trace_input *in, struct uni_err *err)
{
	if (in->info.nr_cpus == 0 || in->info.nr_cpus > UNI_RING_CPUS_MAX)
		return uni_err_set(err, UNI_EINVAL, "a trace of %u CPUs (1 to %d are possible)",
			in->info.nr_cpus, UNI_RING_CPUS_MAX);
	for (unsigned cpu = 0; cpu < in->info.nr_cpus; cpu++) {
		if ((uintptr_t)in->cpu[cpu].data % 8 != 0)
			return uni_err_set(
				err, UNI_EINVAL, "the trace of CPU %u is not aligned", cpu);
	}
	return 0;
}
