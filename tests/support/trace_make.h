/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of a trace as a guest writes them, made up. */
#ifndef TRACE_MAKE_H
#define TRACE_MAKE_H

#include <stdlib.h>
#include <string.h>

#include "trace/input.h"

#define MAKE_CPUS   4
#define MAKE_WINDOW 0xffffffff00000000ull
#define MAKE_WORDS  ((UNI_TRACE_SUB_SIZE - UNI_TRACE_SUB_HEAD) / 8 - 1)

struct make_cpu {
	uint64_t *v; /* words of all packets */
	size_t nr, cap;
	size_t packet; /* where the open one begins; SIZE_MAX: none is open */
	uint64_t now, words, seq, lost;
	uint32_t hi;
	uint32_t gaps; /* as struct uni_trace_sub */
};

struct make {
	struct uni_trace_input in;
	struct uni_trace_stream stream[MAKE_CPUS];
	struct make_cpu cpu[MAKE_CPUS];
	size_t packet_words; /* at most so many in one */
};

static inline void make_init(struct make *m, unsigned nr_cpus, uint64_t tsc_hz)
{
	static const uint8_t kinds[16] = { [UNI_TRACE_EXIT_UNALIGNED] = UNI_TRACE_KIND_EXIT,
		[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY,
		[UNI_TRACE_LEAF] = UNI_TRACE_KIND_LEAF,
		[UNI_TRACE_ENTRY_BRANCH] = UNI_TRACE_KIND_ENTRY,
		[UNI_TRACE_LEAF_BRANCH] = UNI_TRACE_KIND_LEAF,
		[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT,
		[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC,
		[UNI_TRACE_EXT] = UNI_TRACE_KIND_EXT };

	memset(m, 0, sizeof(*m));
	m->in.info = (struct uni_ring_info){ .nr_cpus = nr_cpus,
		.machine = 62,
		.text_window = MAKE_WINDOW,
		.tsc_hz = tsc_hz,
		.uuid = { 1, 2, 3 } };
	memcpy(m->in.info.kinds, kinds, sizeof(kinds));
	m->in.cpu = m->stream;
	m->packet_words = MAKE_WORDS;
	for (unsigned i = 0; i < MAKE_CPUS; i++)
		m->cpu[i].packet = SIZE_MAX;
}

static inline void make_word(struct make_cpu *c, uint64_t word)
{
	if (c->nr == c->cap) {
		c->cap = c->cap != 0 ? c->cap * 2 : 16384;
		c->v = realloc(c->v, c->cap * sizeof(*c->v));
		if (c->v == NULL)
			abort();
	}
	c->v[c->nr++] = word;
}

static inline struct uni_trace_sub *make_head(struct make_cpu *c)
{
	return (struct uni_trace_sub *)(void *)(c->v + c->packet);
}

static inline void make_close(struct make *m, unsigned cpu)
{
	struct make_cpu *c = &m->cpu[cpu];
	uint64_t bits = (c->nr - c->packet) * 64;

	if (c->packet == SIZE_MAX)
		return;
	make_head(c)->content_size = make_head(c)->packet_size = bits;
	make_head(c)->ts_end = c->now;
	make_head(c)->lost = c->lost;
	c->words += bits / 64 - UNI_TRACE_SUB_HEAD / 8;
	c->packet = SIZE_MAX;
}

/* Room for a record of so many words at this time. */
static inline void make_room(struct make *m, unsigned cpu, uint64_t time, size_t words)
{
	struct make_cpu *c = &m->cpu[cpu];
	struct uni_trace_sub *h;

	if (c->packet != SIZE_MAX &&
		c->nr - c->packet - UNI_TRACE_SUB_HEAD / 8 + words > m->packet_words)
		make_close(m, cpu);
	c->now = time;
	if (c->packet != SIZE_MAX)
		return;
	c->packet = c->nr;
	for (size_t i = 0; i < UNI_TRACE_SUB_HEAD / 8; i++)
		make_word(c, 0);
	h = make_head(c);
	*h = (struct uni_trace_sub){ .ctf_magic = UNI_TRACE_CTF_MAGIC,
		.ts_begin = time,
		.cpu = cpu,
		.words_before = c->words,
		.gaps = c->gaps };
	memcpy(h->uuid, m->in.info.uuid, sizeof(h->uuid));
	h->begin_seq = h->end_seq = h->packet_seq = ++c->seq;
	c->hi = (uint32_t)(time >> 32);
}

static inline void make_record(struct make *m, unsigned cpu, uint64_t time, uint32_t upper)
{
	struct make_cpu *c = &m->cpu[cpu];

	make_room(m, cpu, time, 4);
	if ((uint32_t)(time >> 32) != c->hi) {
		make_word(c, (uint32_t)time | (uint64_t)UNI_TRACE_SYNC << 32 | 2ull << 36);
		make_word(c, time);
		make_word(c, (uint64_t)(c->gaps & ~1u) << 32);
		c->hi = (uint32_t)(time >> 32);
	}
	make_word(c, (uint32_t)time | (uint64_t)upper << 32);
}

/* func: the lower half of its address, 16-aligned */
static inline void make_enter(struct make *m, unsigned cpu, uint64_t time, uint32_t func)
{
	make_record(m, cpu, time, func | UNI_TRACE_ENTRY);
}

static inline void make_exit(struct make *m, unsigned cpu, uint64_t time, uint32_t sp)
{
	make_record(m, cpu, time, (sp & ~15u) | UNI_TRACE_EXIT);
}

static inline void make_leaf(struct make *m, unsigned cpu, uint64_t time, uint32_t func)
{
	make_record(m, cpu, time, func | UNI_TRACE_LEAF);
}

static inline void make_ext(struct make *m, unsigned cpu, uint64_t time, unsigned cls,
	const uint64_t *words, unsigned nr)
{
	make_room(m, cpu, time, nr + 4);
	make_record(m, cpu, time, UNI_TRACE_EXT | nr << 4 | cls << 16);
	for (unsigned i = 0; i < nr; i++)
		make_word(&m->cpu[cpu], words[i]);
}

static inline void make_switch(
	struct make *m, unsigned cpu, uint64_t time, uint64_t prev, uint64_t next)
{
	const uint64_t words[3] = { prev, next, 1 };

	make_ext(m, cpu, time, UNI_TRACE_CLASS_SWITCH, words, 3);
}

/* The same, and that calls of `prev` are over. */
static inline void make_switch_over(
	struct make *m, unsigned cpu, uint64_t time, uint64_t prev, uint64_t next)
{
	const uint64_t words[3] = { prev, next, 1 | (uint64_t)UNI_TRACE_OVER << 32 };

	make_ext(m, cpu, time, UNI_TRACE_CLASS_SWITCH, words, 3);
}

/* The whole time, and that functions were switched if `gaps` (even) is another one. */
static inline void make_sync(struct make *m, unsigned cpu, uint64_t time, uint32_t gaps)
{
	make_record(m, cpu, time, UNI_TRACE_SYNC | 2u << 4);
	make_word(&m->cpu[cpu], time);
	make_word(&m->cpu[cpu], (uint64_t)gaps << 32);
	m->cpu[cpu].gaps = gaps | 1;
}

/* So many words were overwritten. */
static inline void make_lapped(struct make *m, unsigned cpu, uint64_t words)
{
	make_close(m, cpu);
	m->cpu[cpu].words += words;
	m->cpu[cpu].lost += words;
}

static inline struct uni_trace_input *make_input(struct make *m)
{
	for (unsigned i = 0; i < m->in.info.nr_cpus; i++) {
		make_close(m, i);
		m->stream[i].data = m->cpu[i].v;
		m->stream[i].size = m->cpu[i].nr * 8;
	}
	return &m->in;
}

static inline void make_deinit(struct make *m)
{
	for (unsigned i = 0; i < MAKE_CPUS; i++)
		free(m->cpu[i].v);
}

#endif
