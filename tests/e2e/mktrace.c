/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mktrace PATH EVENTS CPUS MODE [SEED]: a session with about so many function events, for tests of
 * its readers and for benchmarks. MODE "graph" or "lite": threads that wander over the CPUs and
 * call at random, with losses here and there. "function": calls only. "work": one thread of one CPU
 * that runs fib, a parser and a sort. "slow": the same, and each call of compare takes 6 ns more.
 * "promises": promises that make, wait for and resolve others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/trace_make.h"
#include "base/checked.h"
#include "base/text.h"
#include "obj/usym.h"
#include "recording/recording.h"
#include "recording/ring_stream.h"
#include "uniscope/promise.h"

#define FUNCS	   300
#define THREADS	   9
#define DEPTH	   60
#define OPEN	   64	      /* promises at a time */
#define FLUSH	   (1u << 20) /* words of a CPU that are kept in memory */
#define STACK_TOP  0x7f0000u
#define ADDRESS(i) (UNI_NAMES_BASE + (uint32_t)(i)*UNI_NAMES_STEP)

struct thread {
	uint32_t func[DEPTH], sp[DEPTH];
	unsigned depth;
	int cpu; /* that it runs on; -1: none */
};

struct maker {
	struct make m;
	struct thread thread[THREADS];
	struct uni_tstream *out;
	uint64_t now, events, random;
	uint64_t samples;	       /* besides, one function deep */
	uint64_t open[OPEN], promises; /* ids; the last one */
	unsigned cpus;
	bool lite, slow;
};

static uint32_t rnd(struct maker *k, uint32_t below)
{
	k->random ^= k->random << 13;
	k->random ^= k->random >> 7;
	k->random ^= k->random << 17;
	return (uint32_t)(k->random >> 20) % below;
}

/* Writes finished packets to the session. */
static void put_out(struct maker *k, unsigned cpu)
{
	struct make_cpu *c = &k->m.cpu[cpu];
	size_t at = 0;

	make_close(&k->m, cpu);
	while (at < c->nr) {
		const struct uni_trace_sub *s = (const void *)(c->v + at);

		(void)uni_tstream_put(k->out, cpu, s, s->content_size / 8);
		at += s->packet_size / 64;
	}
	c->nr = 0;
}

static void tick(struct maker *k, unsigned cpu, uint32_t most)
{
	k->now += 1 + rnd(k, most);
	if (k->m.cpu[cpu].nr > FLUSH)
		put_out(k, cpu);
	k->events++;
}

static struct thread *on(struct maker *k, unsigned cpu)
{
	for (unsigned i = 0; i < THREADS; i++) {
		if (k->thread[i].cpu == (int)cpu)
			return &k->thread[i];
	}
	return NULL;
}

static void call(struct maker *k, unsigned cpu, struct thread *t)
{
	uint32_t func = rnd(k, FUNCS) * rnd(k, FUNCS) / FUNCS;
	uint32_t sp = t->depth == 0 ? STACK_TOP + (uint32_t)(t - k->thread) * 0x10000
				    : t->sp[t->depth - 1] - 16 - t->func[t->depth - 1] % 7 * 16;

	make_enter(&k->m, cpu, k->now, ADDRESS(func));
	t->func[t->depth] = func;
	t->sp[t->depth++] = sp;
}

static void switch_thread(struct maker *k, unsigned cpu, struct thread *t)
{
	struct thread *to = &k->thread[rnd(k, THREADS)];

	if (to->cpu >= 0)
		return;
	make_switch(&k->m, cpu, k->now, 1000 + (uint64_t)(t - k->thread),
		1000 + (uint64_t)(to - k->thread));
	t->cpu = -1;
	to->cpu = (int)cpu;
}

/* Packets that were overwritten, or events that found no room, and what the threads did meanwhile.
 */
static void lapse(struct maker *k, unsigned cpu, struct thread *t)
{
	struct make_cpu *c = &k->m.cpu[cpu];
	uint32_t missing = 100 + rnd(k, 1000);

	if (rnd(k, 2) == 0) {
		make_close(&k->m, cpu);
		c->words += missing;
	} else {
		c->lost += missing;
		make_close(&k->m, cpu);
	}
	t->depth = 0;
	k->now += 100000;
}

static void step(struct maker *k)
{
	unsigned cpu = rnd(k, k->cpus), dice = rnd(k, 1000);
	struct thread *t = on(k, cpu);

	tick(k, cpu, dice == 999 ? 0x200000 : 200);
	if (dice < 15)
		switch_thread(k, cpu, t);
	else if (dice == 20 && rnd(k, 6) == 0)
		lapse(k, cpu, t);
	else if (k->lite && dice < 250)
		make_leaf(&k->m, cpu, k->now, ADDRESS(rnd(k, FUNCS)));
	else if (t->depth == 0 || (t->depth < DEPTH && dice < 620))
		call(k, cpu, t);
	else
		make_exit(&k->m, cpu, k->now, t->sp[--t->depth]);
}

static void functions_only(struct maker *k)
{
	tick(k, 0, 100);
	make_enter(&k->m, 0, k->now, ADDRESS(rnd(k, FUNCS)));
}

/* --- promises --------------------------------------------------------------------------------- */

static void tell(struct maker *k, unsigned cpu, unsigned kind, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t words[4] = { a, b, c };

	tick(k, cpu, 200);
	make_ext(&k->m, cpu, k->now, UNI_TRACE_CLASS_USER + kind, words,
		kind == UNI_PROMISE_SWITCH   ? 2
		: kind == UNI_PROMISE_CREATE ? 4
					     : 3);
}

/* The promise on this CPU resolves one and makes another in its place, or waits. */
static void promises_only(struct maker *k)
{
	unsigned cpu = rnd(k, k->cpus), slot = rnd(k, OPEN), dice = rnd(k, 100);
	uint64_t self = k->open[rnd(k, OPEN)], *it = &k->open[slot];

	tell(k, cpu, UNI_PROMISE_SWITCH, self, 0, 0);
	if (dice < 30) {
		tell(k, cpu, UNI_PROMISE_TRY_READ, self, *it, 0);
		tell(k, cpu, UNI_PROMISE_SWITCH, UNI_PROMISE_NOBODY, 0, 0);
	} else if (dice < 60) {
		tell(k, cpu, UNI_PROMISE_RESOLVE, self, *it, 0);
		*it = OPEN + ++k->promises;
		tell(k, cpu, UNI_PROMISE_CREATE, self, *it, UNI_PROMISE_TASK + rnd(k, 4));
		/* "load" and a letter */
		if (rnd(k, 4) == 0)
			tell(k, cpu, UNI_PROMISE_LABEL, *it,
				0x2064616f6cull | (uint64_t)('a' + rnd(k, 26)) << 40, 0);
	}
}

/* --- work ------------------------------------------------------------------------------------- */

enum { FIB, VALUE, OBJECT, ARRAY, STRING, NUMBER, SORT, COMPARE };

#define IN(f, sp)                                         \
	do {                                              \
		tick(k, 0, 40);                           \
		make_enter(&k->m, 0, k->now, ADDRESS(f)); \
	} while (0)
#define OUT(f, sp)                                 \
	do {                                       \
		tick(k, 0, 40);                    \
		make_exit(&k->m, 0, k->now, (sp)); \
	} while (0)

static void fib(struct maker *k, int n, uint32_t sp)
{
	IN(FIB, sp);
	if (n >= 2) {
		fib(k, n - 1, sp - 48);
		fib(k, n - 2, sp - 48);
	}
	OUT(FIB, sp);
}

static void value(struct maker *k, int depth, uint32_t sp)
{
	uint32_t what = depth == 0 ? 2 + rnd(k, 2) : rnd(k, 4), n = 2 + rnd(k, 5);

	IN(VALUE, sp);
	IN(OBJECT + what, sp - 32);
	for (uint32_t i = 0; what < 2 && i < n; i++) {
		if (what == 0) {
			IN(STRING, sp - 96);
			OUT(STRING, sp - 96);
		}
		value(k, depth - 1, sp - 96);
	}
	OUT(OBJECT + what, sp - 32);
	OUT(VALUE, sp);
}

static void sort(struct maker *k, uint32_t n, uint32_t sp)
{
	uint32_t left = n > 1 ? rnd(k, n) : 0;

	IN(SORT, sp);
	for (uint32_t i = 1; i < n; i++) {
		IN(COMPARE, sp - 64);
		k->now += k->slow ? 6 : 0;
		OUT(COMPARE, sp - 64);
	}
	if (n > 1) {
		sort(k, left, sp - 64);
		sort(k, n - 1 - left, sp - 64);
	}
	OUT(SORT, sp);
}

static bool is_work(const char *mode)
{
	return strcmp(mode, "work") == 0 || strcmp(mode, "slow") == 0;
}

static void work(struct maker *k)
{
	fib(k, 16, STACK_TOP);
	value(k, 6, STACK_TOP);
	sort(k, 300, STACK_TOP);
}

static void make_all(struct maker *k, uint64_t events, const char *mode)
{
	for (unsigned i = 0; i < THREADS; i++)
		k->thread[i].cpu = i < k->cpus ? (int)i : -1;
	for (unsigned i = 0; i < OPEN; i++)
		k->open[i] = 1 + i; /* older than the trace */
	k->now = 0xfff00000;
	k->lite = strcmp(mode, "lite") == 0;
	k->slow = strcmp(mode, "slow") == 0;
	while (k->events < events) {
		if (is_work(mode))
			work(k);
		else if (strcmp(mode, "function") == 0)
			functions_only(k);
		else if (strcmp(mode, "promises") == 0)
			promises_only(k);
		else
			step(k);
	}
	for (unsigned cpu = 0; cpu < k->cpus; cpu++)
		put_out(k, cpu);
}

static int add_names(struct uni_recorder *r, bool is_work, struct uni_err *err)
{
	static const char *const names[] = { "fib", "value", "object", "array", "string", "number",
		"sort", "compare" };
	static char text[FUNCS][16];
	const char *name[FUNCS];
	struct uni_symtab *symtab;
	int rc;

	for (size_t i = 0; i < FUNCS; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "fn_%zu", i);
		name[i] = is_work && i < uni_array_len(names) ? names[i] : text[i];
	}
	rc = uni_symtab_of_names("mktrace", name, FUNCS, &symtab, err);
	if (rc == 0) {
		rc = uni_recorder_add_symtab(r, 0, symtab, err);
		uni_symtab_destroy(symtab);
	}
	return rc;
}

static void put_sample(struct uni_recorder *r, unsigned cpus, uint64_t i)
{
	static const uint8_t flags[1];
	const uint64_t pc[1] = { i % FUNCS };
	const struct uni_sample s = { .t_ns = 5000000000 + i * 1000,
		.weight = 1,
		.vcpu = (uint32_t)(i % cpus),
		.nr = 1,
		.pc = pc,
		.flags = flags };

	uni_recorder_sample(r, &s);
}

static int write_all(
	struct maker *k, const char *path, uint64_t events, const char *mode, struct uni_err *err)
{
	struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	const struct uni_record_stats stats = { .samples = k->samples };
	const struct uni_guest_result result = { .stats = &stats };
	struct uni_recorder *r;
	int rc;

	if (meta == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	meta->nr_vcpus = k->cpus;
	if (!uni_record_trace_room(&meta->trace, k->cpus))
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	meta->trace.info = k->m.in.info;
	(void)snprintf(
		meta->trace.mode, sizeof(meta->trace.mode), "%s", is_work(mode) ? "graph" : mode);
	for (unsigned i = 0; i < k->cpus; i++)
		meta->trace.cpu[i].clock = (struct uni_record_clock){
			.cycles = 1000, .ns = 5000000000, .hz = 1000000000, .source = "none"
		};
	rc = uni_recorder_create(path, meta, true, &r, err);
	if (rc == 0)
		rc = add_names(r, is_work(mode), err);
	if (rc == 0)
		rc = uni_recorder_trace(r, 0, &k->out, err);
	if (rc == 0) {
		make_all(k, events, mode);
		for (unsigned i = 0; i < k->cpus; i++)
			uni_tstream_stats(k->out, i, &meta->trace.cpu[i]);
		rc = uni_recorder_set_trace(r, 0, &meta->trace, err);
	}
	for (uint64_t i = 0; rc == 0 && i < k->samples; i++)
		put_sample(r, k->cpus, i);
	if (rc == 0)
		rc = uni_recorder_close(r, &result, 1, err);
	uni_record_trace_deinit(&meta->trace);
	free(meta);
	return rc;
}

int main(int argc, char **argv)
{
	struct maker *k = calloc(1, sizeof(*k));
	struct uni_err err = { 0 };
	uint64_t events, cpus;

	if (k == NULL || argc < 5 || argc > 7 || !uni_parse_u64(argv[2], &events) ||
		!uni_parse_u64(argv[3], &cpus) || cpus == 0 || cpus > MAKE_CPUS ||
		(argc >= 6 && !uni_parse_u64(argv[5], &k->random)) ||
		(argc == 7 && !uni_parse_u64(argv[6], &k->samples))) {
		(void)fprintf(stderr, "usage: mktrace PATH EVENTS CPUS MODE [SEED [SAMPLES]]\n");
		return 2;
	}
	k->random += 0x9e3779b97f4a7c15;
	k->cpus = (unsigned)cpus;
	make_init(&k->m, k->cpus, 1000000000);
	k->m.in.info.text_window = 0;
	(void)write_all(k, argv[1], events, argv[4], &err);
	make_deinit(&k->m);
	free(k);
	if (err.code != 0)
		(void)fprintf(stderr, "mktrace: %s\n", err.msg);
	return err.code != 0;
}
