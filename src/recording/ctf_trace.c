/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/ctf_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

bool uni_record_trace_room(struct uni_record_trace *t, uint32_t nr_cpus)
{
	uni_record_trace_deinit(t);
	t->cpu = calloc(nr_cpus, sizeof(*t->cpu));
	t->nr_cpus = t->cpu != NULL ? nr_cpus : 0;
	return t->nr_cpus == nr_cpus;
}

bool uni_record_trace_copy(struct uni_record_trace *to, const struct uni_record_trace *from)
{
	struct uni_record_trace_cpu *cpu = NULL;

	if (from->nr_cpus != 0)
		cpu = calloc(from->nr_cpus, sizeof(*cpu));
	uni_record_trace_deinit(to);
	*to = *from;
	to->cpu = cpu;
	to->nr_cpus = cpu != NULL ? from->nr_cpus : 0;
	if (cpu != NULL)
		memcpy(cpu, from->cpu, from->nr_cpus * sizeof(*cpu));
	return to->nr_cpus == from->nr_cpus;
}

void uni_record_trace_deinit(struct uni_record_trace *t)
{
	free(t->cpu);
	t->cpu = NULL;
	t->nr_cpus = 0;
}

uint64_t uni_record_clock_ns(const struct uni_record_clock *c, uint64_t cycles)
{
	bool before = cycles < c->cycles;
	uint64_t n = before ? c->cycles - cycles : cycles - c->cycles;
	__uint128_t ns = (__uint128_t)n * UNI_NSEC_PER_SEC / uni_max(c->hz, 1u);

	if (before)
		return ns > c->ns ? 0 : c->ns - (uint64_t)ns;
	return ns > UINT64_MAX - c->ns ? UINT64_MAX : c->ns + (uint64_t)ns;
}

/*
 * A counter's zero in wall-clock time, as CTF wants it: seconds, and cycles on top. A counter that
 * claims to be older than 1970 begins there.
 */
static void put_clock(struct uni_strbuf *out, unsigned cpu, const struct uni_record_clock *c,
	uint64_t realtime_offset_ns)
{
	uint64_t hz = uni_max(c->hz, 1u), whole = c->cycles / hz;
	__uint128_t then_ns = (__uint128_t)c->ns + realtime_offset_ns, then;
	uint64_t s = (uint64_t)(then_ns / UNI_NSEC_PER_SEC), cycles;

	/* In cycles: the parts of both times below a second. */
	then = (__uint128_t)(uint64_t)(then_ns % UNI_NSEC_PER_SEC) * hz / UNI_NSEC_PER_SEC;
	cycles = (uint64_t)then;
	if (cycles < c->cycles % hz) {
		cycles += hz;
		whole++;
	}
	cycles -= c->cycles % hz;
	if (s < whole) {
		s = 0;
		cycles = 0;
	} else {
		s -= whole;
	}
	uni_strbuf_addf(out,
		"clock {\n\tname = \"tsc%u\";\n\tdescription = \"time-stamp counter of guest CPU "
		"%u; "
		"relation to the host's clock: %s\";\n\tfreq = %" PRIu64 ";\n",
		cpu, cpu, c->source[0] != '\0' ? c->source : "none", hz);
	if (c->error_ns != UINT64_MAX)
		uni_strbuf_addf(out, "\tprecision = %" PRIu64 "; /* cycles */\n",
			(uint64_t)uni_min((__uint128_t)c->error_ns * hz / UNI_NSEC_PER_SEC + 1,
				(__uint128_t)INT64_MAX));
	uni_strbuf_addf(out,
		"\toffset_s = %" PRIu64 ";\n\toffset = %" PRIu64 ";\n\tabsolute = TRUE;\n};\n", s,
		cycles);
}

static void put_stream(struct uni_strbuf *out, unsigned cpu)
{
	uni_strbuf_addf(out,
		"typealias integer { size = 32; align = 8; signed = false; "
		"map = clock.tsc%u.value; } := tsc%u_low_t;\n"
		"typealias integer { size = 64; align = 8; signed = false; "
		"map = clock.tsc%u.value; } := tsc%u_t;\n",
		cpu, cpu, cpu, cpu);
	uni_strbuf_addf(out,
		"stream {\n\tid = %u;\n\tpacket.context := struct {\n"
		"\t\ttsc%u_t timestamp_begin;\n\t\ttsc%u_t timestamp_end;\n"
		"\t\tuint64_t content_size; /* bits */\n\t\tuint64_t packet_size;\n"
		"\t\tuint64_t packet_seq_num;\n\t\tuint64_t events_discarded;\n"
		"\t\tuint32_t cpu_id;\n\t\tuint32_t reserved;\n"
		"\t\tuint64_t guest_seq; /* the guest's number of the sub-buffer */\n"
		"\t\tuint64_t guest_seq_end;\n"
		"\t\tuint64_t words_before; /* that this CPU wrote before it */\n"
		"\t\tuint64_t extra_before; /* of these words: no events */\n"
		"\t\tuint64_t extra_after; /* and before the next packet, if nothing is missing "
		"*/\n"
		"\t\tuint64_t gaps; /* another one: functions were switched meanwhile */\n"
		"\t};\n",
		UNI_CTF_EVENTS + cpu, cpu, cpu);
	uni_strbuf_addf(out,
		"\tevent.header := struct {\n\t\ttsc%u_low_t timestamp;\n"
		"\t\tinteger { size = 4; align = 1; signed = false; } id;\n\t} align(8);\n};\n",
		cpu);
}

static const char *const kind_names[] = {
	[UNI_TRACE_KIND_ENTRY] = "entry",
	[UNI_TRACE_KIND_EXIT] = "exit",
	[UNI_TRACE_KIND_LEAF] = "leaf",
	[UNI_TRACE_KIND_CALL] = "call",
};

/* Every id has an event: readers give up at one that has none. */
static void put_event(struct uni_strbuf *out, unsigned cpu, unsigned id, uint8_t kind)
{
	uni_strbuf_addf(out, "event {\n\tid = %u;\n\tstream_id = %u;\n", id, UNI_CTF_EVENTS + cpu);
	switch (kind) {
	case UNI_TRACE_KIND_SYNC:
		/* The last member but one sets the clock: the 32 bits of other events wrap. */
		uni_strbuf_addf(out,
			"\tname = \"sync\";\n\tfields := struct {\n"
			"\t\tinteger { size = 28; align = 1; signed = false; } words;\n"
			"\t\tinteger { size = 64; align = 1; signed = false; map = "
			"clock.tsc%u.value; } time;\n"
			"\t\tinteger { size = 64; align = 1; signed = false; } epoch;\n\t};\n};\n",
			cpu);
		break;
	case UNI_TRACE_KIND_EXT:
		uni_strbuf_addf(out,
			"\tname = \"extended\";\n\tfields := struct {\n"
			"\t\tinteger { size = 12; align = 1; signed = false; } words;\n"
			"\t\tenum : integer { size = 16; align = 1; signed = false; } {\n"
			"\t\t\t\"entry\" = %d, \"switch\" = %d, \"entry_args\" = %d, "
			"\"exit_value\" = %d,\n"
			"\t\t\t\"call\" = %d, \"call_args\" = %d, \"user\" = %d ... 65535\n"
			"\t\t} class;\n"
			"\t\tinteger { size = 64; align = 1; signed = false; base = 16; } "
			"word[words];\n\t};\n};\n",
			UNI_TRACE_CLASS_ENTRY, UNI_TRACE_CLASS_SWITCH, UNI_TRACE_CLASS_ENTRY_ARGS,
			UNI_TRACE_CLASS_EXIT_VALUE, UNI_TRACE_CLASS_CALL, UNI_TRACE_CLASS_CALL_ARGS,
			UNI_TRACE_CLASS_USER);
		break;
	default:
		/* The function's address >> 4 for entries and leaves, the stack pointer >> 4 for
		 * exits. */
		uni_strbuf_addf(out,
			"\tname = \"%s\";\n\tfields := struct {\n"
			"\t\tinteger { size = 28; align = 1; signed = false; base = 16; } %s;\n"
			"\t};\n};\n",
			kind < uni_array_len(kind_names) && kind_names[kind] != NULL
				? kind_names[kind]
				: "unknown",
			kind == UNI_TRACE_KIND_EXIT ? "stack" : "function");
		break;
	}
}

void uni_ctf_metadata_trace(
	struct uni_strbuf *out, const struct uni_record_trace *trace, uint64_t realtime_offset_ns)
{
	uni_strbuf_adds(
		out, "\n/* Function calls. One file a CPU of the guest: events-vcpuN. */\n");
	for (unsigned cpu = 0; cpu < trace->nr_cpus; cpu++) {
		put_clock(out, cpu, &trace->cpu[cpu].clock, realtime_offset_ns);
		put_stream(out, cpu);
		for (unsigned id = 0; id < sizeof(trace->info.kinds); id++)
			put_event(out, cpu, id, trace->info.kinds[id]);
	}
}

uint64_t uni_ctf_trace_begin(const struct uni_ctf_trace_state *st, const struct uni_trace_sub *from)
{
	return from->ts_begin < UNI_CTF_TIME_MAX ? uni_max(from->ts_begin, st->end) : st->end;
}

void uni_ctf_trace_header(struct uni_ctf_trace_state *st, const struct uni_trace_sub *from,
	size_t content, uint64_t end, bool closed, const uint8_t uuid[16], uint32_t cpu,
	struct uni_trace_sub *ret)
{
	uint64_t words = (content - UNI_TRACE_SUB_HEAD) / 8, missed = 0, overwritten;

	if (st->guest_seq != 0 && from->words_before > st->next_words)
		missed = from->words_before - st->next_words;
	missed = uni_min(missed, UNI_CTF_LOST_MAX - st->lost_words);
	if (from->extra_before > st->next_extra)
		st->lost_extra += uni_min(missed, from->extra_before - st->next_extra);
	st->lost_words += missed;
	overwritten = st->lost_words - uni_min(st->lost_extra, st->lost_words);
	if (from->lost > st->base_lost)
		st->lost = uni_max(st->lost, uni_min(from->lost - st->base_lost, UNI_CTF_LOST_MAX));
	/* A number that the guest skipped is no missing packet. */
	if (missed != 0 && from->begin_seq > st->guest_seq)
		st->seq += from->begin_seq - st->guest_seq - 1;
	*ret = (struct uni_trace_sub){ .ctf_magic = UNI_TRACE_CTF_MAGIC,
		.stream_id = UNI_CTF_EVENTS + cpu,
		.ts_begin = uni_ctf_trace_begin(st, from),
		.content_size = (uint64_t)content * 8,
		.packet_size = (uint64_t)content * 8,
		.packet_seq = st->seq++,
		.lost = overwritten + st->lost,
		.cpu = cpu,
		.begin_seq = from->begin_seq,
		.end_seq = from->end_seq,
		.words_before = from->words_before,
		.extra_before = from->extra_before,
		.extra_after = from->extra_after,
		.gaps = from->gaps };
	memcpy(ret->uuid, uuid, sizeof(ret->uuid));
	ret->ts_end = uni_max(end, ret->ts_begin);
	if (closed && from->ts_end < UNI_CTF_TIME_MAX)
		ret->ts_end = uni_max(ret->ts_end, from->ts_end);
	st->guest_seq = from->begin_seq;
	st->next_words = from->words_before + words;
	st->next_extra = from->extra_after;
	st->end = ret->ts_end;
}
