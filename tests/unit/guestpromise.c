/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's thread events as a native program. Its calls write them, and the host's reader reads
 * each as it was written, interrupted anywhere or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "promise/record.h"
#include "trace/ring.h"
#include "uniscope/promise.h"
#include "uniscope/trace.h"

#define ARCH_SET_GS 0x1001
#define TRAP_FLAG   0x100

static struct uni_trace_cpu cpu __attribute__((aligned(64)));
static void *memory;
static size_t memory_size;
static const struct uni_ring_info *info;

static int read_self(void *ctx, uint64_t va, void *buf, size_t len)
{
	(void)ctx;
	memcpy(buf, (const void *)va, len);
	return 0;
}

static const struct uni_ring_source self = { read_self, NULL };

static void begin(unsigned subs)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };

	memory_size = ((size_t)subs + 1) * UNI_TRACE_SUB_SIZE;
	memory = mmap(NULL, memory_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(&cpu, 0, sizeof(cpu));
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu), 0);
	assert_int_equal(
		uni_trace_init(memory, memory_size, 1, cpus, UNI_TRACE_OVERWRITE, 1000000000), 0);
	uni_trace_head.control.promises = 1;
}

struct seen {
	struct uni_promise_event e[64];
	char text[64][UNI_PROMISE_TEXT + 8];
	size_t nr, kept;
	uint64_t last, backwards, other;
	uint64_t by_kind[UNI_PE_NR];
};

static int take(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	struct seen *seen = arg;

	while (uni_trace_next(&c, &rec)) {
		struct uni_promise_event e;

		seen->backwards += rec.time < seen->last;
		seen->last = rec.time;
		if (rec.kind != UNI_TRACE_KIND_EXT ||
			!uni_promise_of_record(rec.cls, rec.words, rec.nr, nr, rec.time, 1.0, &e)) {
			seen->other += rec.kind != UNI_TRACE_KIND_SYNC;
			continue;
		}
		seen->nr++;
		seen->by_kind[e.kind]++;
		if (seen->kept == 64)
			continue;
		memcpy(seen->text[seen->kept], e.text == NULL ? "" : e.text, e.text_len);
		seen->e[seen->kept++] = e;
	}
	assert_true(c.at == c.end);
	return 0;
}

static struct seen *finish(void)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	struct uni_ring *r = NULL;
	struct uni_err err = { 0 };

	assert_non_null(seen);
	uni_trace_head.control.promises = 0;
	assert_int_equal(uni_ring_open(&self, (uint64_t)&uni_trace_head, &r, &err), 0);
	info = uni_ring_info(r);
	assert_int_equal(uni_ring_drain(r, 0, take, seen), 0);
	assert_int_equal(uni_ring_stats(r, 0)->guest_lost, 0);
	uni_ring_close(r);
	munmap(memory, memory_size);
	assert_int_equal(seen->backwards, 0);
	assert_int_equal(seen->other, 0);
	return seen;
}

static void each_call(void **state)
{
	static char long_name[300];
	struct seen *s;
	size_t i = 0;

	(void)state;
	memset(long_name, 'n', sizeof(long_name) - 1);
	begin(4);
	uni_promise_create(UNI_PROMISE_NOBODY, 0xffffffff80001000, UNI_PROMISE_TASK);
	uni_promise_named_condition(7, 8, "arp reply");
	uni_promise_read(1, 2);
	uni_promise_try_read(3, 4);
	uni_promise_read_later(5, 6);
	uni_promise_resolve(7, 8);
	uni_promise_fail(9, 10, "Timeout");
	uni_promise_become(11, 12);
	uni_promise_signal(13, 14);
	uni_promise_notify(UNI_PROMISE_NOBODY, 15);
	uni_promise_switch(UNI_PROMISE_NOBODY);
	uni_promise_counter(16, "bytes", -5);
	uni_promise_increase(17, "packets", 3);
	uni_promise_should_resolve(18);
	uni_promise_hiatus(UNI_PROMISE_SUSPEND);
	uni_promise_resume();
	uni_promise_gc(1234);
	uni_promise_label(19, long_name);
	uni_promise_label(20, "");
	s = finish();
	assert_int_equal(s->nr, 20);
	assert_int_equal(s->e[i].kind, UNI_PE_CREATE);
	assert_int_equal(s->e[i].thread, UNI_PROMISE_NOBODY);
	assert_int_equal(s->e[i].other, 0xffffffff80001000);
	assert_int_equal(s->e[i++].type, UNI_PROMISE_TASK);
	assert_int_equal(s->e[i++].type, UNI_PROMISE_TYPE_CONDITION);
	assert_int_equal(s->e[i].kind, UNI_PE_LABEL);
	assert_int_equal(s->e[i].thread, 8);
	assert_string_equal(s->text[i++], "arp reply");
	for (unsigned k = 0; k < 4; k++) {
		static const uint8_t kinds[] = { UNI_PE_READ, UNI_PE_TRY_READ, UNI_PE_READ_LATER,
			UNI_PE_RESOLVE };

		assert_int_equal(s->e[i].kind, kinds[k]);
		assert_int_equal(s->e[i].thread, 1 + 2 * k);
		assert_int_equal(s->e[i++].other, 2 + 2 * k);
	}
	assert_int_equal(s->e[i].kind, UNI_PE_FAIL);
	assert_int_equal(s->e[i].other, 10);
	assert_string_equal(s->text[i++], "Timeout");
	assert_int_equal(s->e[i].kind, UNI_PE_BECOME);
	assert_int_equal(s->e[i++].other, 12);
	assert_int_equal(s->e[i].kind, UNI_PE_SIGNAL);
	assert_int_equal(s->e[i++].thread, 13);
	assert_int_equal(s->e[i].kind, UNI_PE_NOTIFY);
	assert_int_equal(s->e[i].thread, UNI_PROMISE_NOBODY);
	assert_int_equal(s->e[i++].other, 15);
	assert_int_equal(s->e[i].kind, UNI_PE_SWITCH);
	assert_int_equal(s->e[i++].thread, UNI_PROMISE_NOBODY);
	assert_int_equal(s->e[i].value, -5);
	assert_string_equal(s->text[i++], "bytes");
	assert_int_equal(s->e[i].kind, UNI_PE_INCREASE);
	assert_int_equal(s->e[i++].value, 3);
	assert_int_equal(s->e[i++].kind, UNI_PE_SHOULD_RESOLVE);
	assert_int_equal(s->e[i].kind, UNI_PE_HIATUS);
	assert_int_equal(s->e[i++].value, UNI_HIATUS_SUSPEND);
	assert_int_equal(s->e[i++].kind, UNI_PE_RESUME);
	assert_int_equal(s->e[i].kind, UNI_PE_GC);
	assert_int_equal(s->e[i++].value, 1234);
	assert_int_equal(strlen(s->text[i++]), UNI_PROMISE_TEXT);
	assert_int_equal(s->e[i].thread, 20);
	assert_int_equal(s->e[i].text_len, 0);
	free(s);
}

static void nothing_while_off(void **state)
{
	struct seen *s;

	(void)state;
	begin(4);
	uni_trace_head.control.promises = 0;
	uni_promise_switch(1);
	uni_promise_named_wait(1, 2, "x");
	s = finish();
	assert_int_equal(s->nr, 0);
	free(s);
}

#define IDS 24 /* more than there is room for */

/* The expected contents of the table, by the plainest means. */
struct expected {
	bool open;
	uint64_t waits_for;
	uint32_t type;
} expected[IDS];

static unsigned is_as_expected(const struct uni_trace_promises *t)
{
	const struct uni_trace_promise *at = (const void *)(t + 1);
	unsigned nr = 0, open = 0;

	for (uint32_t i = 0; i < t->room; i++) {
		if (at[i].id == UNI_PROMISE_NOBODY)
			continue;
		nr++;
		assert_in_range(at[i].id, 100, 100 + IDS - 1);
		assert_true(expected[at[i].id - 100].open);
		assert_int_equal(at[i].waits_for, expected[at[i].id - 100].waits_for);
		assert_int_equal(at[i].type, expected[at[i].id - 100].type);
	}
	for (unsigned i = 0; i < IDS; i++)
		open += expected[i].open;
	assert_int_equal(nr, t->used);
	assert_int_equal(nr, open);
	return open;
}

/* While nothing is recorded: what is open, and what it waits for. */
static void table_of_what_is_open(void **state)
{
	static _Alignas(64) uint8_t
		room[sizeof(struct uni_trace_promises) + 16 * sizeof(struct uni_trace_promise)];
	const struct uni_trace_promises *t = (const void *)room;
	uint64_t random = 1;
	struct seen *s;

	(void)state;
	begin(4);
	uni_trace_head.control.promises = 0;
	assert_int_equal(uni_promise_keep(room, sizeof(room) - 1), -1);
	assert_int_equal(uni_promise_keep(room, sizeof(room)), 0);
	assert_int_equal(t->room, 16);
	memset(expected, 0, sizeof(expected));
	for (unsigned n = 0; n < 20000; n++) {
		uint64_t a, b;

		random = random * 6364136223846793005u + 1442695040888963407u;
		a = (random >> 33) % IDS;
		b = (random >> 45) % IDS;
		if (!expected[a].open) {
			if (t->used >= 12)
				continue;
			uni_promise_create(1, 100 + a, UNI_PROMISE_TASK);
			expected[a] =
				(struct expected){ true, UNI_PROMISE_NOBODY, UNI_PROMISE_TASK };
		} else if (n % 3 == 0) {
			uni_promise_resolve(1, 100 + a);
			expected[a].open = false;
		} else if (n % 3 == 1 && expected[b].open) {
			uni_promise_try_read(100 + a, 100 + b);
			expected[a].waits_for = 100 + b;
		} else {
			uni_promise_switch(100 + a);
			expected[a].waits_for = UNI_PROMISE_NOBODY;
		}
		if (n % 16 == 0)
			(void)is_as_expected(t);
	}
	assert_true(is_as_expected(t) > 4);
	assert_int_equal(t->missed, 0);
	/* An entry that finds no room is counted, and so is a change that comes while the table is
	 * changed. */
	for (unsigned i = 0; i < IDS; i++)
		uni_promise_create(1, 1000 + i, UNI_PROMISE_TASK);
	assert_int_equal(t->used, 12);
	assert_true(t->missed >= IDS - 12);
	((struct uni_trace_promises *)(uintptr_t)t)->busy = 1;
	random = t->missed;
	uni_promise_switch(1);
	assert_int_equal(t->missed, random + 1);
	s = finish();
	assert_int_equal(s->nr, 0);
	free(s);
}

static const struct uni_trace_promise *place_of(const struct uni_trace_promises *t, uint64_t id)
{
	const struct uni_trace_promise *p = (const void *)(t + 1);

	for (uint32_t i = 0; i < t->room; i++) {
		if (p[i].id == id)
			return &p[i];
	}
	return NULL;
}

/* The last one to get a CPU, by what it is now. */
static void table_of_who_runs(void **state)
{
	static _Alignas(64) uint8_t
		room[sizeof(struct uni_trace_promises) + 16 * sizeof(struct uni_trace_promise)];
	const struct uni_trace_promises *t = (const void *)room;

	(void)state;
	begin(4);
	uni_trace_head.control.promises = 0;
	assert_int_equal(uni_promise_keep(room, sizeof(room)), 0);
	assert_true(t->running == 0);
	uni_promise_named(UNI_PROMISE_NOBODY, 1, UNI_PROMISE_THREAD, "one");
	uni_promise_named(UNI_PROMISE_NOBODY, 2, UNI_PROMISE_THREAD, "two");
	uni_promise_switch(1);
	assert_int_equal(t->running, 1);
	uni_promise_hiatus(UNI_PROMISE_WAIT_FOR_WORK);
	assert_true(t->running == UNI_PROMISE_NOBODY);
	uni_promise_resume();
	assert_true(t->running == UNI_PROMISE_NOBODY);
	uni_promise_switch(2);
	assert_int_equal(t->running, 2);
	uni_promise_become(2, 3);
	assert_int_equal(t->running, 3);
	uni_promise_resolve(3, 1);
	assert_int_equal(t->running, 3);
	uni_promise_resolve(3, 3);
	assert_true(t->running == UNI_PROMISE_NOBODY);
	free(finish());
}

/* A lock waits for its owner; whoever waits for it does so until it has it. */
static void table_of_locks(void **state)
{
	static _Alignas(64) uint8_t
		room[sizeof(struct uni_trace_promises) + 16 * sizeof(struct uni_trace_promise)];
	const struct uni_trace_promises *t = (const void *)room;
	struct seen *s;

	(void)state;
	begin(4);
	uni_trace_head.control.promises = 0;
	assert_int_equal(uni_promise_keep(room, sizeof(room)), 0);
	uni_promise_named(1, 1, UNI_PROMISE_THREAD, "one");
	uni_promise_named(1, 2, UNI_PROMISE_THREAD, "two");
	uni_promise_label(2, "says what it does");
	uni_promise_named_lock(1, 10, "disk");
	uni_promise_lock_taken(1, 10);
	assert_int_equal(place_of(t, 10)->waits_for, 1);
	assert_int_equal(place_of(t, 10)->type, UNI_PROMISE_LOCK);
	uni_promise_lock_wait(2, 10);
	uni_promise_switch(1);
	uni_promise_switch(2); /* woken for nothing */
	assert_int_equal(place_of(t, 2)->waits_for, 10);
	uni_promise_lock_given_back(10);
	assert_int_equal(place_of(t, 10)->waits_for, UNI_PROMISE_NOBODY);
	uni_promise_lock_taken(2, 10);
	assert_int_equal(place_of(t, 2)->waits_for, UNI_PROMISE_NOBODY);
	assert_int_equal(place_of(t, 10)->waits_for, 2);
	assert_string_equal(place_of(t, 2)->name, "two"); /* the first one, as in a recording */
	/* Without a name or a waiter a lock has a place while it is held. */
	for (unsigned i = 0; i < 1000; i++) {
		uni_promise_lock_taken(1, 100 + i);
		assert_int_equal(place_of(t, 100 + i)->waits_for, 1);
		uni_promise_lock_given_back(100 + i);
	}
	assert_int_equal(t->used, 3);
	assert_int_equal(t->missed, 0);
	/* Its owner ends, and another one takes it all the same. */
	assert_int_equal(place_of(t, 10)->flags & UNI_TRACE_PROMISE_ORPHAN, 0);
	uni_promise_resolve(2, 2);
	assert_int_not_equal(place_of(t, 10)->flags & UNI_TRACE_PROMISE_ORPHAN, 0);
	assert_int_equal(place_of(t, 10)->waits_for, 2);
	uni_promise_lock_taken(1, 10);
	assert_int_equal(place_of(t, 10)->flags & UNI_TRACE_PROMISE_ORPHAN, 0);
	/* The owner becomes another one, and is still the owner. */
	uni_promise_create(1, 3, UNI_PROMISE_THREAD);
	uni_promise_become(1, 3);
	assert_int_equal(place_of(t, 10)->waits_for, 3);
	uni_promise_resolve(3, 1);
	assert_int_not_equal(place_of(t, 10)->flags & UNI_TRACE_PROMISE_ORPHAN, 0);
	uni_promise_resolve(2, 10);
	assert_null(place_of(t, 10));
	s = finish();
	assert_int_equal(s->nr, 0);
	free(s);
}

/* Whoever waits for a promise that has become another one waits for that one. */
static void table_of_what_became(void **state)
{
	static _Alignas(64) uint8_t
		room[sizeof(struct uni_trace_promises) + 16 * sizeof(struct uni_trace_promise)];
	const struct uni_trace_promises *t = (const void *)room;

	(void)state;
	begin(4);
	uni_trace_head.control.promises = 0;
	assert_int_equal(uni_promise_keep(room, sizeof(room)), 0);
	uni_promise_named(UNI_PROMISE_NOBODY, 1, UNI_PROMISE_THREAD, "one");
	uni_promise_create(1, 400, UNI_PROMISE_TASK);
	uni_promise_create(1, 401, UNI_PROMISE_TASK);
	uni_promise_read_later(401, 1);
	uni_promise_become(400, 401);
	uni_promise_try_read(1, 400);
	assert_int_equal(place_of(t, 1)->waits_for, 401);
	assert_int_equal(place_of(t, 401)->waits_for, 1);
	assert_null(place_of(t, 400));
	/* Through others; some of them were not heard of before. */
	for (unsigned i = 401; i < 440; i++)
		uni_promise_become(i, i + 1);
	uni_promise_switch(1);
	uni_promise_try_read(1, 400);
	assert_int_equal(place_of(t, 1)->waits_for, 440);
	/* Back to itself: it does not change. */
	uni_promise_become(440, 405);
	assert_non_null(place_of(t, 440));
	uni_promise_resolve(1, 402);
	assert_null(place_of(t, 440));
	/* The same id, made anew. */
	uni_promise_create(1, 400, UNI_PROMISE_TASK);
	uni_promise_switch(1);
	uni_promise_try_read(1, 400);
	assert_int_equal(place_of(t, 1)->waits_for, 400);
	assert_int_equal(t->missed, 0);
	/* There are too many to keep: that is told, if one of them is waited for. */
	for (unsigned i = 1000; i < 4000; i++) {
		uni_promise_create(1, i, UNI_PROMISE_TASK);
		uni_promise_become(i, 400);
	}
	assert_int_equal(t->missed, 0);
	uni_promise_try_read(1, 1000);
	assert_int_equal(t->missed, 1);
	free(finish());
}

static volatile uint64_t nested, steps;

static void trap(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	(void)uc;
	/* In turn at every instruction; but not within each try of one event, or it never ends. */
	if (++steps % 53 == 0) {
		nested++;
		uni_promise_resolve(100, steps);
	}
}

static void single_step(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

/* Interrupted at every instruction, at the edges of sub-buffers too: each is there, in order. */
static void interrupted(void **state)
{
	struct sigaction sa = { .sa_sigaction = trap, .sa_flags = SA_SIGINFO }, old;
	struct seen *s;
	uint64_t nr = 0;

	(void)state;
	nested = steps = 0;
	begin(32);
	sigaction(SIGTRAP, &sa, &old);
	for (unsigned i = 0; i < 1000; i++) {
		single_step(1);
		uni_promise_switch(i);
		uni_promise_create(1, i, UNI_PROMISE_BIND);
		single_step(0);
		nr++;
	}
	sigaction(SIGTRAP, &old, NULL);
	s = finish();
	assert_true(nested > 500);
	assert_int_equal(s->by_kind[UNI_PE_SWITCH], nr);
	assert_int_equal(s->by_kind[UNI_PE_CREATE], nr);
	assert_int_equal(s->by_kind[UNI_PE_RESOLVE], nested);
	free(s);
}

static void nonsense(void **state)
{
	const uint64_t words[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	struct uni_promise_event e;

	(void)state;
	for (unsigned cls = 0; cls < 0x10000; cls++) {
		assert_false(uni_promise_of_record((uint16_t)cls, words, 1, 0, 0, 1.0, &e));
		for (unsigned nr = 2; nr <= 4; nr++) {
			if (!uni_promise_of_record((uint16_t)cls, words, nr, 0, 0, 1e9, &e))
				continue;
			assert_true(e.kind < UNI_PE_NR);
			assert_true(e.text_len <= nr * 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call),
		cmocka_unit_test(nothing_while_off),
		cmocka_unit_test(table_of_what_is_open),
		cmocka_unit_test(table_of_who_runs),
		cmocka_unit_test(table_of_locks),
		cmocka_unit_test(table_of_what_became),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests_name("guestpromise", tests, NULL, NULL);
}
