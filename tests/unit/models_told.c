/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that a guest tells the tracer of: who waits, from the table of what is open. usage:
 * test-models-told FOLDER-OF-IMAGES */
#include "models.h"
#include "uniscope/promise.h"

#define PLACE(i) (sizeof(struct uni_trace_promises) + (i) * sizeof(struct uni_trace_promise))

/* The threads that a guest tells the tracer of. */
static void told_threads(void **state)
{
	const struct uni_guest_thread *t;
	struct bench b;
	int rc;

	assert_true(load(&b, "tracer-gcc", &rc));
	assert_int_equal(rc, 0);
	assert_false(uni_model_has_stacks(b.model));
	open_guest(&b);
	t = b.list->v;
	walk(&b, 1);
	assert_int_equal(b.list->nr, 3);
	assert_int_equal(b.list->cut, UNI_THREADS_WHOLE);
	assert_string_equal(t[0].name, "tcp\xef\xbf\xbd");
	assert_true(t[0].number == 2 && t[0].state == UNI_THREAD_BLOCKED && t[0].vcpu == -1);
	assert_string_equal(t[0].wait_name, "arp reply");
	assert_string_equal(t[1].name, "netif");
	assert_true(t[1].state == UNI_THREAD_UNKNOWN && t[1].wait_on == 0);
	assert_string_equal(t[2].wait_name, "a promise"); /* that the table does not have */
	expect_no_short_list(&b, 3);
	expect_unread_list(&b);
	/* It is being changed, or had no room. */
	put64(&b, "table", 0, 16 | 1ull << 32);
	walk(&b, 1);
	assert_int_equal(b.list->cut, UNI_THREADS_MORE);
	/* Full, so that no free place ends a search. */
	put64(&b, "table", 0, 16);
	for (unsigned i = 0; i < 16; i++) {
		if (*at(&b, "table", PLACE(i)) == 0xff)
			put64(&b, "table", PLACE(i), 1000);
	}
	walk(&b, 1);
	assert_int_equal(b.list->nr, 3);
	/* No size, no power of two, and not in memory. */
	for (unsigned i = 0; i < 3; i++) {
		put64(&b, "table", 0, (const uint64_t[]){ 0, 12, 1u << 16 }[i]);
		walk(&b, 1);
		assert_true(i == 2 ? b.list->nr >= 3 : b.list->nr == 0);
	}
	assert_int_equal(b.list->cut, UNI_THREADS_FAULT);
	put64(&b, "uni_trace_head", offsetof(struct uni_trace_head, promises), UINT64_MAX - 40);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 0);
	assert_int_equal(b.list->cut, UNI_THREADS_FAULT);
	/* A guest that has kept none. */
	put64(&b, "uni_trace_head", offsetof(struct uni_trace_head, promises), 0);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 0);
	assert_int_equal(b.list->cut, UNI_THREADS_WHOLE);
	close_bench(&b);
}

/* A sleep has a name of the port's own. Other waits are no sleeps. */
static void told_sleeps(void **state)
{
	static const struct {
		const char *name;
		uint8_t state;
	} of[] = { { "sleep 2000 us", UNI_THREAD_SLEEPING }, { "sleep 0 us", UNI_THREAD_SLEEPING },
		{ "sleep us", UNI_THREAD_BLOCKED }, { "sleep  us", UNI_THREAD_BLOCKED },
		{ "sleep 20 ms", UNI_THREAD_BLOCKED }, { "sleeper", UNI_THREAD_BLOCKED } };
	struct bench b;
	int rc;

	assert_true(load(&b, "tracer-gcc", &rc));
	open_guest(&b);
	for (size_t i = 0; i < uni_array_len(of); i++) {
		char *name = (char *)at(
			&b, "table", PLACE(3) + offsetof(struct uni_trace_promise, name));

		(void)snprintf(name, 24, "%s", of[i].name);
		walk(&b, 1);
		assert_string_equal(b.list->v[0].wait_name, of[i].name);
		assert_int_equal(b.list->v[0].state, of[i].state);
	}
	close_bench(&b);
}

/* The one that the table says got a CPU last, unless it waits, or is no thread. */
static void thread_that_runs(void **state)
{
	const struct uni_guest_thread *t;
	struct bench b;
	int rc;

	assert_true(load(&b, "tracer-gcc", &rc));
	open_guest(&b);
	t = b.list->v;
	put64(&b, "table", offsetof(struct uni_trace_promises, running), 1);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 3);
	assert_string_equal(t[1].name, "netif");
	assert_true(t[1].state == UNI_THREAD_RUNNING && t[1].vcpu == 0);
	assert_true(t[0].vcpu == -1 && t[2].vcpu == -1);
	/* It keeps the CPU while it waits in a call of its host: nobody else can run. */
	b.regs[0].state = UNI_VCPU_HALTED;
	walk(&b, 1);
	assert_true(t[1].state == UNI_THREAD_RUNNING && t[1].vcpu == 0);
	b.regs[0].state = UNI_VCPU_RUNNING;
	/* One that waits, one that is not there, none, and what an older guest says. */
	for (unsigned i = 0; i < 4; i++) {
		put64(&b, "table", offsetof(struct uni_trace_promises, running),
			(const uint64_t[]){ 2, 50, UNI_PROMISE_NOBODY, 0 }[i]);
		walk(&b, 1);
		assert_int_equal(b.list->nr, 3);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(t[k].vcpu, -1);
	}
	/* A thing with a name may run, too. With several CPUs nobody knows where. */
	put64(&b, "table", offsetof(struct uni_trace_promises, running), 7);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 4);
	assert_string_equal(t[3].name, "arp reply");
	assert_int_equal(t[3].vcpu, 0);
	put64(&b, "uni_trace_head", offsetof(struct uni_trace_head, nr_cpus) & ~7ull, 2ull << 32);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 3);
	close_bench(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_threads),
		cmocka_unit_test(told_sleeps),
		cmocka_unit_test(thread_that_runs),
	};

	if (argc != 2)
		return 2;
	images = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
