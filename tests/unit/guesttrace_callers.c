/* SPDX-License-Identifier: BSD-2-Clause */
/* Mode callers: each call has the address that it was made from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "guesttrace.h"

#define ROUNDS	  5000
#define TRAP_FLAG 0x100
#define STEPS	  120 /* more instructions than the hook has */

/* Calls by the place that they were made from, within the test. */
struct callers {
	uint64_t calls, here, interrupt, odd, known_place, of_interrupt, of_odd;
};

int call_at_a_place(int n);
extern const char after_the_call[];

/* The call's last byte is at an odd address: less one, rounded down, is within it. */
__asm__(".text\n"
	".balign 16\n"
	".globl call_at_a_place, after_the_call\n"
	"call_at_a_place: sub $8, %rsp\n"
	"nop\n"
	"call work_interrupt\n"
	"after_the_call: add $8, %rsp\n"
	"ret\n");

/* The functions that make calls are small. The one that begins last before the call makes it. */
static bool is_in(uint32_t at, uintptr_t function, uintptr_t other)
{
	uint32_t from = at - (uint32_t)function;

	return from < 0x80 && from < at - (uint32_t)other;
}

static __attribute__((noinline, aligned(1024))) void make_calls(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		(void)work_interrupt(i);
		(void)work_odd(i);
		(void)call_at_a_place(i);
	}
}

static int count_callers(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	struct callers *to = arg;

	while (uni_trace_next(&c, &rec)) {
		uint64_t word = rec.nr != 0 ? rec.words[rec.nr - 1] : 0;
		uint32_t function = (uint32_t)word, at = UNI_TRACE_CALLER(word);

		if (rec.kind != UNI_TRACE_KIND_EXT)
			continue;
		assert_true(
			rec.cls == UNI_TRACE_CLASS_CALL || rec.cls == UNI_TRACE_CLASS_CALL_ARGS);
		assert_int_equal(at % 2, 0); /* bit 32 of its last word: it is no entry */
		to->calls++;
		to->here += is_in(at, (uintptr_t)make_calls, 0);
		to->interrupt += is_in(at, (uintptr_t)work_interrupt, (uintptr_t)work_odd);
		to->odd += is_in(at, (uintptr_t)work_odd, (uintptr_t)work_interrupt);
		to->known_place += at == (uint32_t)(uintptr_t)after_the_call - 2;
		/* Behind an ENDBR, if there is one. */
		to->of_interrupt += (function & ~4u) == (uint32_t)(uintptr_t)work_interrupt;
		to->of_odd += function - (uint32_t)(uintptr_t)work_odd <= 4 &&
			      (function - (uint32_t)(uintptr_t)work_odd) % 4 == 0;
	}
	return 0;
}

/* The hook writes it, and the slow way does, at the edges of sub-buffers. */
static void callers_are_told(void **state)
{
	void (*const entries[])(
		void) = { uni_trace_entry_caller, uni_trace_entry_any, uni_trace_entry_args };

	for (unsigned i = 0; i < 3; i++) {
		struct ring_memory m = trace_start(64, UNI_TRACE_STOP, work_skip_exit);
		struct callers got = { 0 };
		struct uni_ring *r;

		entry_hook = entries[i];
		uni_trace_set_mode(UNI_TRACE_CALLERS);
		make_calls();
		r = open_ring();
		assert_int_equal(uni_ring_drain(r, 0, count_callers, &got), 0);
		assert_int_equal(uni_ring_stats(r, 0)->lapped + cpu.lost, 0);
		assert_true(uni_ring_stats(r, 0)->packets > 2);
		assert_int_equal(got.calls, 8 * ROUNDS);
		assert_int_equal(got.here, 2 * ROUNDS);
		assert_int_equal(got.interrupt, 4 * ROUNDS);
		assert_int_equal(got.odd, ROUNDS);
		assert_int_equal(got.known_place, ROUNDS);
		assert_int_equal(got.of_interrupt, 2 * ROUNDS);
		assert_int_equal(got.of_odd, ROUNDS);
		uni_ring_close(r);
		trace_end(&m);
	}
}

/* Code that calls work_sum(), beyond the 4 GiB that have the traced functions. */
static void *far_code(void)
{
	static const uint8_t code[] = { 0x48, 0x83, 0xec, 0x08, /* sub $8, %rsp */
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, /* call work_sum */
		0x48, 0x83, 0xc4, 0x08, 0xc3 };
	const uint64_t to = (uint64_t)(uintptr_t)work_sum;
	uint8_t *at = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_true((uint64_t)(uintptr_t)at >> 32 != to >> 32);
	memcpy(at, code, sizeof(code));
	memcpy(at + 6, &to, sizeof(to));
	return at;
}

static int count_unknown(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;

	while (uni_trace_next(&c, &rec))
		*(unsigned *)arg +=
			rec.kind == UNI_TRACE_KIND_EXT && rec.words[rec.nr - 1] >> 32 == 0;
	return 0;
}

/* Its low half would be another function's. */
static void far_callers_are_unknown(void **state)
{
	void (*const entries[])(void) = { uni_trace_entry_caller, uni_trace_entry_args };
	void *code = far_code();
	long (*call)(void);

	memcpy(&call, &code, sizeof(call));
	for (unsigned i = 0; i < 2; i++) {
		struct ring_memory m = trace_start(8, UNI_TRACE_STOP, work_skip_exit);
		unsigned unknown = 0;
		struct uni_ring *r;

		entry_hook = entries[i];
		uni_trace_set_mode(UNI_TRACE_CALLERS);
		(void)call();
		r = open_ring();
		assert_int_equal(uni_ring_drain(r, 0, count_unknown, &unknown), 0);
		assert_int_equal(unknown, 1);
		uni_ring_close(r);
		trace_end(&m);
	}
	munmap(code, 4096);
}

static volatile int until_trap;

/* After each instruction while the flag is set. */
static void on_trap(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)si;
	(void)uc;
	if (--until_trap == 0)
		work_interrupt(3);
}

/* The call's record just fits into the sub-buffer. An interrupt comes at that instruction, whose
 * calls do not fit. The second word of each is no event. */
static void interrupted_at_the_edge(int instruction)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_STOP, work_skip_exit);
	const uint64_t edge = UNI_TRACE_SUB_SIZE - 8 - 16;
	struct uni_ring_now now;
	struct uni_ring *r;

	while ((cpu.wptr & (UNI_TRACE_SUB_SIZE - 1)) != edge)
		(void)work_sum(1, 2, 3, 4, 5, 6);
	entry_hook = uni_trace_entry_caller;
	until_trap = instruction;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
	(void)work_sum(1, 2, 3, 4, 5, 6);
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
	r = open_ring();
	assert_int_equal(uni_ring_now(r, 0, &now), 0);
	assert_true(now.whole);
	assert_int_equal(now.words - now.extra, work_calls);
	uni_ring_close(r);
	trace_end(&m);
}

static void second_words_are_counted(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &sa, NULL);
	for (int i = 1; i <= STEPS; i++)
		interrupted_at_the_edge(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_are_told),
		cmocka_unit_test(far_callers_are_unknown),
		cmocka_unit_test(second_words_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
