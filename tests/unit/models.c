/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The models of guests' threads over memory that is the data of objects/guest_*.c, as several
 * compilers lay it out and describe it. usage: test-models FOLDER-OF-IMAGES
 */
#include "models.h"

static void expect(const struct bench *b, uint32_t i, const char *object, const char *name,
	enum uni_thread_state state, int vcpu)
{
	const struct uni_guest_thread *t = &b->list->v[i];

	assert_true(i < b->list->nr);
	assert_int_equal(t->object, address(b, object));
	assert_string_equal(t->name, name);
	assert_int_equal(t->state, state);
	assert_int_equal(t->vcpu, vcpu);
}

/* All that a switch leaves on the stack of objects/guest_{unikraft,minios}.c was taken off. */
static void expect_restored(const struct bench *b, uint32_t i)
{
	static const struct {
		unsigned reg;
		uint64_t value;
	} saved[] = { { UNI_X86_R15, 15 }, { UNI_X86_R14, 14 }, { UNI_X86_R13, 13 },
		{ UNI_X86_R12, 12 }, { UNI_X86_RBX, 3 }, { UNI_X86_RBP, 6 } };
	const struct uni_regs *r = &b->list->v[i].regs;
	uint64_t v;

	assert_int_equal(r->pc, address(b, "called_from"));
	assert_int_equal(r->sp, address(b, "stack_waits") + 56);
	for (size_t k = 0; k < uni_array_len(saved); k++) {
		assert_true(uni_regs_get(r, saved[k].reg, &v));
		assert_int_equal(v, saved[k].value);
	}
	assert_true(uni_regs_get(r, UNI_X86_RSP, &v) && v == r->sp);
	assert_false(uni_regs_get(r, UNI_X86_RAX, &v));
	assert_true(uni_regs_get_sys(r, 2, &v) && v == 0x77);
}

/* has_idle: its scheduler has an idle thread that we can tell from others. */
static void check_unikraft(struct bench *b, bool has_idle)
{
	const struct uni_regs *r;
	struct uni_guest_thread t;
	uint64_t v;

	walk(b, 2);
	assert_int_equal(b->list->nr, 5 + has_idle);
	assert_int_equal(b->list->cut, UNI_THREADS_WHOLE);
	expect(b, 0, "runs", "runs", UNI_THREAD_RUNNING, 0);
	expect(b, 1, "waits", "waits\xef\xbf\xbdwith\xef\xbf\xbd[0m", UNI_THREAD_BLOCKED, -1);
	expect(b, 2, "sleeps", "", UNI_THREAD_WAITING, -1); /* it may also poll */
	expect(b, 3, "exited", "exited", UNI_THREAD_EXITED, -1);
	expect(b, 4, "starts", "starts", UNI_THREAD_READY, -1);
	if (has_idle) {
		assert_string_equal(b->list->v[5].name, "idle");
		assert_int_equal(b->list->v[5].state, UNI_THREAD_IDLE);
	}
	expect_restored(b, 1);
	/* One that has not run yet begins in its function. */
	r = &b->list->v[4].regs;
	assert_int_equal(r->pc, address(b, "_start"));
	assert_int_equal(r->sp, address(b, "stack_starts") + 24);
	assert_true(uni_regs_get(r, UNI_X86_RDI, &v) && v == 77);
	assert_true(uni_regs_get(r, UNI_X86_R9, &v) && v == 0);
	assert_true(uni_regs_get(r, UNI_X86_RBX, &v) && v == 0);
	assert_true(uni_regs_get(r, UNI_X86_RBP, &v) && v == 0);
	assert_int_equal(uni_model_current(b->model, b->as, b->regs, 0, &t), 0);
	assert_string_equal(t.name, "runs");
	assert_int_equal(uni_model_current(b->model, b->as, b->regs, 1, &t), -UNI_ENOENT);
	assert_int_equal(uni_model_current(b->model, b->as, b->regs, 2, &t), -UNI_ENOENT);
}

static void unikraft(void **state)
{
	static const char *const names[] = { "unikraft-gcc", "unikraft-clang", "unikraft-old" };
	unsigned seen = 0;

	for (size_t i = 0; i < uni_array_len(names); i++) {
		struct bench b;
		int rc;

		if (!load(&b, names[i], &rc))
			continue;
		assert_int_equal(rc, 0);
		assert_string_equal(uni_model_name(b.img), "unikraft");
		assert_true(uni_model_wants_debug(b.img));
		open_guest(&b);
		check_unikraft(&b, strcmp(names[i], "unikraft-old") != 0);
		close_bench(&b);
		seen++;
	}
	assert_true(seen >= 2);
}

static void unknown_versions_say_so(void **state)
{
	struct bench b;
	int rc;

	assert_true(load(&b, "unikraft-new", &rc));
	assert_int_equal(rc, -UNI_ENOTSUP);
	assert_non_null(strstr(b.err.msg, "version of Unikraft is not known"));
	assert_non_null(strstr(b.err.msg, "struct uk_thread with name"));
	assert_null(b.model);
	b.err = (struct uni_err){ 0 };
	rc = uni_model_open(&(struct uni_model_from){ .img = b.img }, &b.model, &b.err);
	assert_int_equal(rc, -UNI_ENOTSUP);
	assert_non_null(strstr(b.err.msg, "without debug data"));
	close_bench(&b);
	/* A guest that nobody knows. */
	assert_true(load(&b, "inline-gcc-5", &rc));
	assert_int_equal(rc, -UNI_ENOENT);
	assert_non_null(strstr(b.err.msg, "no model knows this guest"));
	assert_null(uni_model_name(b.img));
	close_bench(&b);
}

/* Lists as a guest may have them that is broken, or wants to break us. */
static void hostile_lists(void **state)
{
	struct bench b;
	uint64_t next;
	int rc;

	assert_true(load(&b, "unikraft-gcc", &rc));
	open_guest(&b);
	next = offset_of(&b, "uk_thread", "thread_list.tqe_next");
	/* Back to the second. */
	put64(&b, "exited", next, address(&b, "waits"));
	walk(&b, 1);
	assert_int_equal(b.list->cut, UNI_THREADS_LOOP);
	expect(&b, 3, "exited", "exited", UNI_THREAD_EXITED, -1);
	/* To itself. */
	put64(&b, "runs", next, address(&b, "runs"));
	walk(&b, 1);
	assert_int_equal(b.list->cut, UNI_THREADS_LOOP);
	/* The other scheduler's are still had. */
	assert_int_equal(b.list->nr, 3);
	/* Into nowhere, and to the end of everything. */
	put64(&b, "runs", next, 0x10);
	walk(&b, 1);
	assert_int_equal(b.list->cut, UNI_THREADS_FAULT);
	put64(&b, "runs", next, UINT64_MAX - 3);
	walk(&b, 1);
	assert_int_equal(b.list->cut, UNI_THREADS_FAULT);
	assert_int_equal(b.list->v[0].vcpu, 0);
	/* Schedulers that lead to each other. */
	put64(&b, "coop", offset_of(&b, "schedcoop", "sched") + offset_of(&b, "uk_sched", "next"),
		address(&b, "sched_one"));
	b.reads = 0;
	walk(&b, 1);
	assert_true(b.reads < 20);
	/* The current thread of a CPU is nowhere. */
	put64(&b, "__uk_sched_thread_current", 0, 0x1234);
	walk(&b, 1);
	assert_int_equal(b.list->v[0].vcpu, -1);
	assert_int_equal(b.list->v[0].state, UNI_THREAD_READY);
	put64(&b, "uk_sched_head", 0, 0x8);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 0);
	close_bench(&b);
}

static void more_threads_than_room(void **state)
{
	struct bench b;
	int rc;

	assert_true(load(&b, "unikraft-gcc", &rc));
	open_guest(&b);
	free(b.list);
	b.list = uni_thread_list_create(2);
	walk(&b, 1);
	assert_int_equal(b.list->nr, 2);
	assert_int_equal(b.list->cut, UNI_THREADS_MORE);
	assert_non_null(uni_threads_cut_text(b.list->cut));
	close_bench(&b);
}

static void minios(void **state)
{
	static const char *const names[] = { "minios-gcc", "minios-clang", "minios-noidle" };

	for (size_t i = 0; i < uni_array_len(names); i++) {
		struct uni_guest_thread t;
		struct bench b;
		int rc;

		if (!load(&b, names[i], &rc))
			continue;
		assert_int_equal(rc, 0);
		open_guest(&b);
		b.regs[0].sp = address(&b, "stack_runs") + 0x3a8;
		walk(&b, 1);
		assert_int_equal(b.list->nr, 3);
		expect(&b, 0, "idle", "Idle",
			strcmp(names[i], "minios-noidle") != 0 ? UNI_THREAD_IDLE
							       : UNI_THREAD_WAITING,
			-1);
		expect(&b, 1, "waits", "waits", UNI_THREAD_BLOCKED, -1);
		expect(&b, 2, "runs", "runs", UNI_THREAD_RUNNING, 0);
		expect_restored(&b, 1);
		assert_int_equal(uni_model_current(b.model, b.as, b.regs, 0, &t), 0);
		assert_string_equal(t.name, "runs");
		/* An event interrupts it: the vCPU is on a stack that is no thread's. */
		b.regs[0].sp = address(&b, "stack_events") + 2047 * 8;
		walk(&b, 1);
		expect(&b, 2, "runs", "runs", UNI_THREAD_RUNNING, 0);
		b.regs[0].sp -= 0x200;
		assert_int_equal(uni_model_current(b.model, b.as, b.regs, 0, &t), 0);
		assert_string_equal(t.name, "runs");
		b.regs[0].sp = address(&b, "stack_runs") + 0x3a8;
		/* Its scheduler waits for something to run on the stack of whom it blocked last. */
		*at(&b, "runs", offset_of(&b, "thread", "flags")) = 0;
		walk(&b, 1);
		expect(&b, 2, "runs", "runs", UNI_THREAD_BLOCKED, 0);
		/* On a stack that is nobody's. */
		b.regs[0].sp = b.start + (16u << 20);
		walk(&b, 1);
		assert_int_equal(b.list->v[2].vcpu, -1);
		close_bench(&b);
	}
}

static void nanos(void **state)
{
	static const char *const names[] = { "nanos-gcc", "nanos-clang" };

	for (size_t i = 0; i < uni_array_len(names); i++) {
		const struct uni_guest_thread *t;
		struct bench b;
		uint64_t v;
		int rc;

		if (!load(&b, names[i], &rc))
			continue;
		assert_int_equal(rc, 0);
		open_guest(&b);
		b.regs[1].pc_valid = true;
		/* In the vector, CPU 0 is the first behind `start`. */
		walk(&b, 1);
		assert_int_equal(b.list->nr, 4);
		assert_int_equal(b.list->cut, UNI_THREADS_WHOLE);
		expect(&b, 0, "first", "first", UNI_THREAD_BLOCKED, -1);
		expect(&b, 1, "second", "second", UNI_THREAD_BLOCKED, -1);
		expect(&b, 2, "third", "0123456789abcdef", UNI_THREAD_READY, -1);
		expect(&b, 3, "fourth", "", UNI_THREAD_RUNNING, 0);
		t = &b.list->v[0];
		assert_true(t->has_number && t->number == 1);
		assert_string_equal(t->wait_name, "pipe read");
		assert_int_equal(t->wait_on, address(&b, "queue"));
		assert_int_equal(t->regs.pc, address(&b, "waiting_at"));
		assert_int_equal(t->regs.sp, 0x7000);
		assert_true(uni_regs_get(&t->regs, UNI_X86_R12, &v) && v == 12);
		assert_int_equal(b.list->v[1].wait_on, 0);
		/* It polls: the queue is its own. A sleep is another state. */
		*at(&b, "of_first", offset_of(&b, "syscall_context", "call")) = 7;
		walk(&b, 1);
		expect(&b, 0, "first", "first", UNI_THREAD_BLOCKED, -1);
		assert_string_equal(b.list->v[0].wait_name, "poll");
		*at(&b, "of_first", offset_of(&b, "syscall_context", "call")) = 230;
		walk(&b, 1);
		expect(&b, 0, "first", "first", UNI_THREAD_SLEEPING, -1);
		assert_string_equal(b.list->v[0].wait_name, "clock_nanosleep");
		*at(&b, "of_first", offset_of(&b, "syscall_context", "call")) = 232;
		walk(&b, 1);
		expect(&b, 0, "first", "first", UNI_THREAD_BLOCKED, -1);
		assert_string_equal(b.list->v[0].wait_name, "epoll_wait");
		/* The kernel's own process has one that has nowhere to go on: it is left out. */
		put64(&b, "third", offset_of(&b, "thread", "context.frame") + 16 * 8, 0);
		walk(&b, 1);
		assert_int_equal(b.list->nr, 3);
		expect(&b, 2, "fourth", "", UNI_THREAD_RUNNING, 0);
		/* A tree whose branches grow together, and one that is as deep as it likes. */
		put64(&b, "third", offset_of(&b, "thread", "n") + 8,
			address(&b, "second") + offset_of(&b, "thread", "n"));
		walk(&b, 1);
		assert_int_equal(b.list->cut, UNI_THREADS_LOOP);
		close_bench(&b);
	}
}

static void lists_not_read_to_their_ends(void **state)
{
	static const struct {
		const char *name;
		uint32_t nr;
	} of[] = { { "unikraft-gcc", 6 }, { "minios-gcc", 3 }, { "nanos-gcc", 4 } };

	for (size_t i = 0; i < uni_array_len(of); i++) {
		struct bench b;
		int rc;

		assert_true(load(&b, of[i].name, &rc));
		open_guest(&b);
		expect_no_short_list(&b, of[i].nr);
		expect_unread_list(&b);
		close_bench(&b);
	}
}

static void members(void **state)
{
	struct uni_member m[3] = { { .path = "uc.kc.context.frame" }, { .path = "t" },
		{ .path = "uc.nothing", .optional = true } };
	const char *missing = "";
	struct bench b;
	int rc;

	assert_true(load(&b, "nanos-gcc", &rc));
	assert_int_equal(uni_debug_members(b.debug, "syscall_context", m, 3, NULL), 0);
	assert_true(m[0].found && m[0].offset == 0 && m[0].size == 31 * 8);
	assert_true(m[1].found && m[1].offset == 41 * 8 && m[1].size == 8);
	assert_false(m[2].found);
	m[2].optional = false;
	assert_int_equal(
		uni_debug_members(b.debug, "syscall_context", m, 3, &missing), -UNI_ENOENT);
	assert_string_equal(missing, "uc.nothing");
	assert_false(m[0].found);
	assert_int_equal(uni_debug_members(b.debug, "no_such", m, 3, &missing), -UNI_ENOENT);
	assert_null(missing);
	/* Through a pointer there is no offset. */
	m[0].path = "t.tid";
	assert_int_equal(
		uni_debug_members(b.debug, "syscall_context", m, 1, &missing), -UNI_ENOENT);
	close_bench(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unikraft),
		cmocka_unit_test(unknown_versions_say_so),
		cmocka_unit_test(hostile_lists),
		cmocka_unit_test(more_threads_than_room),
		cmocka_unit_test(minios),
		cmocka_unit_test(nanos),
		cmocka_unit_test(lists_not_read_to_their_ends),
		cmocka_unit_test(members),
	};

	if (argc != 2)
		return 2;
	images = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
