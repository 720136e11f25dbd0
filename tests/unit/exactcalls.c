/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of calls: what QEMU's plugin writes, a reader gets. Both sides in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fake_time.h"
#include "plugin/plugin.h"
#include "recording/exact_calls.h"
#include "recording/folder.h"

#define NR_FUNCTIONS 4u
#define SUB_EVENTS   ((UNI_TRACE_SUB_SIZE - UNI_TRACE_SUB_HEAD) / 8 - 1)

struct plugin plugin;

static struct uni_exact_function known[NR_FUNCTIONS + 1] = {
	{ 0, 0 }, { 0xffffffff80001000, 0xffffffff80001010 },
	{ 0xffffffff80001010, 0xffffffff80001013 },
	{ 0xffffffff80001013, 0xffffffff80001020 }, /* not aligned */
	{ 0x7000, 0x7010 },			    /* elsewhere */
};
static char dir[64], file[128];
static struct stack stack;
static struct vcpu *v;
static struct uni_exact_calls *c;
static struct uni_tstream *out;
static struct uni_record_trace trace;
static int dir_fd = -1;

static void begin_folder(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/exactcalls.XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/calls", dir);
}

static bool host_times;

static void begin_qemu(void)
{
	const char *why = "";

	plugin = (struct plugin){ .mode = UNI_EXACT_TRACE, .max_depth = UINT32_MAX };
	plugin.functions = (struct functions){ .known = known, .nr_known = NR_FUNCTIONS };
	stack = (struct stack){ .id = 1 };
	v = &plugin.vcpu[0];
	v->stack = &stack;
	assert_int_equal(calls_open(file, 62, 1, host_times, &why), 0);
}

static void begin_plugin(void)
{
	begin_folder();
	begin_qemu();
}

static void begin_reader(void)
{
	static const uint8_t uuid[16];
	struct uni_err err = { 0 };

	assert_int_equal(uni_exact_calls_open(file, &c, &err), 0);
	assert_int_equal(uni_exact_calls_describe(c, &trace, &err), 0);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(dir_fd >= 0 && mkdirat(dir_fd, "guest-0", 0700) == 0);
	assert_int_equal(uni_tstream_create(dir_fd, 0, uuid, &trace.info, &out, &err), 0);
}

static void end_all(void)
{
	char command[128];

	uni_tstream_destroy(out);
	uni_exact_calls_close(c);
	uni_record_trace_deinit(&trace);
	out = NULL;
	c = NULL;
	if (dir_fd >= 0)
		(void)close(dir_fd);
	dir_fd = -1;
	free(plugin.entry);
	plugin.entry = NULL;
	(void)snprintf(command, sizeof(command), "%s/guest-0/events-vcpu0", dir);
	(void)unlink(command);
	(void)snprintf(command, sizeof(command), "%s/guest-0", dir);
	(void)rmdir(command);
	(void)unlink(file);
	(void)rmdir(dir);
}

/* A call and its return, each an instruction later. */
static void make_call(uint32_t function)
{
	bool shown = stack.shown;

	plugin.clock++;
	frame_show(v, function, 0);
	plugin.clock++;
	frame_close(v, &stack, shown);
}

static void make_calls(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		make_call(1);
}

/* Until the guest has to wait. Returns how many. */
static uint64_t make_many(void)
{
	uint64_t made = 0;

	for (; !v->ring.behind && made < SUB_EVENTS * UNI_EXACT_CALLS_SUBS; made++)
		make_call(1);
	return made;
}

static uint64_t poll_calls(void)
{
	struct uni_err err = { 0 };
	uint64_t nr;

	assert_int_equal(uni_exact_calls_poll(c, out, &nr, &err), 0);
	return nr;
}

static struct uni_record_trace_cpu end_calls(void)
{
	struct uni_record_trace_cpu ret = { 0 };
	struct uni_err err = { 0 };

	assert_int_equal(uni_exact_calls_end(c, out, &err), 0);
	uni_tstream_stats(out, 0, &ret);
	return ret;
}

/* Whole, in order, whatever the function's address is. */
static void all_arrive(void **state)
{
	struct uni_record_trace_cpu st;

	(void)state;
	begin_plugin();
	begin_reader();
	for (int i = 0; i < 300; i++) {
		make_calls(2000);
		make_call(2);
		make_call(3);
		make_call(4);
		assert_false(v->ring.behind);
		(void)poll_calls();
		plugin.clock += UINT64_C(1) << 31; /* times beyond 32 bits */
	}
	st = end_calls();
	assert_int_equal(st.events, 300 * 2 * 2003);
	/* Two more words, three more words, and a time of three words now and then. */
	assert_true(st.words - st.events >= 300 * (1 + 2));
	assert_true(st.words - st.events <= 300 * (1 + 2) + 160 * 3);
	assert_int_equal(uni_record_trace_lost(&st), 0);
	assert_int_equal(st.lost_words, 0);
	end_all();
}

/* A reader that does nothing: the guest waits, and what it then still records is not overwritten.
 */
static void guest_waits(void **state)
{
	uint64_t made, waited;
	struct uni_record_trace_cpu st;

	(void)state;
	begin_plugin();
	begin_reader();
	made = make_many();
	assert_true(made * 2 < SUB_EVENTS * UNI_EXACT_CALLS_SUBS);
	assert_true(made * 2 > SUB_EVENTS * (UNI_EXACT_CALLS_SUBS / 2));
	waited = fake_ns;
	calls_wait(&v->ring);
	assert_true(v->ring.behind);
	assert_true(fake_ns - waited >= 200000000 && fake_ns - waited < 500000000);
	(void)poll_calls();
	calls_wait(&v->ring);
	assert_false(v->ring.behind);
	/* Far more than there is room for: the newest ones are lost, and counted. */
	make_calls(SUB_EVENTS * UNI_EXACT_CALLS_SUBS);
	made += SUB_EVENTS * UNI_EXACT_CALLS_SUBS;
	st = end_calls();
	assert_true(st.lost > 0);
	assert_int_equal(st.lost_words, 0);
	assert_int_equal(st.events + st.lost, made * 2);
	end_all();
}

/* Without a reader the oldest ones go; a later one knows how many. The host's times are no events.
 */
static void no_reader_at(bool times)
{
	struct uni_record_trace_cpu st;

	host_times = times;
	begin_plugin();
	make_calls(SUB_EVENTS * UNI_EXACT_CALLS_SUBS);
	assert_false(v->ring.behind);
	begin_reader();
	st = end_calls();
	assert_true(st.events > SUB_EVENTS * (UNI_EXACT_CALLS_SUBS - 2));
	assert_int_equal(st.lost, 0);
	assert_int_equal(
		st.events + uni_record_trace_lost(&st), SUB_EVENTS * UNI_EXACT_CALLS_SUBS * 2);
	end_all();
	host_times = false;
}

static void no_reader(void **state)
{
	(void)state;
	no_reader_at(false);
	no_reader_at(true);
}

/* The one that the guest waits for dies: it goes on at once, and the next one knows what is
 * missing. */
static void reader_dies(void **state)
{
	struct uni_record_trace_cpu st;
	uint64_t made, then;
	struct uni_exact_calls *first = NULL;

	(void)state;
	begin_plugin();
	assert_int_equal(uni_exact_calls_open(file, &first, NULL), 0);
	assert_int_equal(uni_exact_calls_open(file, &c, NULL), -UNI_EBUSY);
	made = make_many();
	uni_exact_calls_close(first);
	then = fake_ns;
	calls_wait(&v->ring);
	assert_false(v->ring.behind);
	assert_true(fake_ns - then < 10000000);
	make_calls(SUB_EVENTS * UNI_EXACT_CALLS_SUBS);
	made += SUB_EVENTS * UNI_EXACT_CALLS_SUBS;
	assert_false(v->ring.behind);
	begin_reader();
	st = end_calls();
	assert_true(uni_record_trace_lost(&st) > 0);
	assert_int_equal(st.events + uni_record_trace_lost(&st), made * 2);
	end_all();
}

static void put(uint64_t at, const void *data, size_t size)
{
	int fd = open(file, O_WRONLY);

	assert_true(fd >= 0 && pwrite(fd, data, size, (off_t)at) == (ssize_t)size);
	(void)close(fd);
}

/* Neither side believes the other one. */
static void lies(void **state)
{
	static const uint64_t wrong[] = { UINT64_MAX, 1, UINT64_C(1) << 63, 77 };
	struct uni_record_trace_cpu st;
	struct uni_err err = { 0 };
	uint64_t nr;

	(void)state;
	begin_plugin();
	begin_reader();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		put(UNI_EXACT_CALLS_TAKEN, &wrong[i], sizeof(wrong[i]));
		make_calls(SUB_EVENTS * 16);
		calls_wait(&v->ring);
	}
	put(UNI_EXACT_CALLS_CPU, &wrong[0], sizeof(wrong[0])); /* wptr */
	assert_int_equal(uni_exact_calls_poll(c, out, &nr, &err), -UNI_EFORMAT);
	assert_int_equal(truncate(file, 100), 0);
	assert_true(uni_exact_calls_poll(c, out, &nr, &err) < 0);
	uni_tstream_stats(out, 0, &st);
	assert_int_equal(st.events, 0);
	uni_exact_calls_close(c);
	assert_true(uni_exact_calls_open(file, &c, &err) < 0);
	c = NULL;
	assert_true(uni_exact_calls_open(dir, &c, &err) < 0);
	c = NULL;
	end_all();
}

/* QEMU's lock ends with it. Its records are there still. */
static void qemu_ends(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	begin_plugin();
	begin_reader();
	assert_true(uni_exact_calls_goes_on(c));
	end_all();
	begin_folder();
	pid = fork();
	if (pid == 0) {
		begin_qemu();
		make_calls(3);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	begin_reader();
	assert_false(uni_exact_calls_goes_on(c));
	assert_int_equal(end_calls().events, 6);
	end_all();
}

/* Which calls are recorded at all. */
static void chosen(void **state)
{
	static uint8_t hidden[NR_FUNCTIONS + 1] = { 0, 0, 1, 0, 0 };
	bool shown[3], before;

	(void)state;
	begin_plugin();
	begin_reader();
	plugin.hidden = hidden;
	plugin.max_depth = 2;
	for (uint32_t i = 0; i < 3; i++) {
		shown[i] = stack.shown;
		frame_show(v, i + 1, 0); /* 1, 2 (hidden), 3 */
	}
	make_call(1); /* too deep */
	before = stack.shown;
	frame_show(v, NR_FUNCTIONS + 1, 0x5000); /* of no name */
	frame_close(v, &stack, before);
	for (uint32_t i = 3; i-- > 0;)
		frame_close(v, &stack, shown[i]);
	assert_int_equal(stack.open, 0);
	assert_int_equal(end_calls().events, 4);
	end_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrive),
		cmocka_unit_test(guest_waits),
		cmocka_unit_test(no_reader),
		cmocka_unit_test(reader_dies),
		cmocka_unit_test(lies),
		cmocka_unit_test(qemu_ends),
		cmocka_unit_test(chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
