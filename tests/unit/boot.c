/* SPDX-License-Identifier: BSD-2-Clause */
/* A booted guest that is looked after: what QEMU is asked, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/boot.h"
#include "backend/vmm/qmp.h"

/* A monitor in a process of its own. Its questions have these answers; then, the last again. */
static const char greeting[] = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n";
static const char halted[] = "{\"return\": \"RAX=0\\r\\nRIP=1000 RFL=00000002 [-------] CPL=0 II=0 "
			     "A20=1 SMM=0 HLT=1\\r\\n"
			     "CR0=80010033 CR2=0\\r\\n\"}\r\n";

#define STATUS(word, runs)                                                                       \
	"{\"return\": {\"status\": \"" word "\", \"singlestep\": false, \"running\": " runs "}}" \
	"\r\n"
#define DONE "{\"return\": {}}\r\n"
#define STOP "{\"event\": \"STOP\"}\r\n"

struct booted {
	char dir[32];
	struct sockaddr_un un;
	struct uni_qemu q;
	struct uni_boot b;
	pid_t monitor;
};

static void tell(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* answers: ends with NULL. The first two belong to qmp_capabilities and to cont. */
static pid_t start_monitor(int fd, const char *const *answers)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	fd = accept(fd, NULL, NULL);
	tell(fd, greeting);
	for (char c; recv(fd, &c, 1, 0) == 1;) {
		if (c != '\n')
			continue;
		tell(fd, *answers);
		if (answers[1] != NULL)
			answers++;
	}
	_exit(0);
}

static void begin(struct booted *t, const char *const *answers)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct uni_err err = { 0 };

	*t = (struct booted){ .dir = "/tmp/uni-boot-XXXXXX", .un = { .sun_family = AF_UNIX } };
	t->q.accel = "tcg";
	t->b = (struct uni_boot){ .q = &t->q, .name = "app", .look_ns = 1 };
	assert_non_null(mkdtemp(t->dir));
	(void)snprintf(t->un.sun_path, sizeof(t->un.sun_path), "%s/q", t->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&t->un, sizeof(t->un)), 0);
	assert_int_equal(listen(fd, 1), 0);
	t->monitor = t->q.pid = start_monitor(fd, answers);
	assert_int_equal(uni_qmp_open(t->un.sun_path, 10000, &t->q.qmp, &err), 0);
	(void)close(fd);
	assert_int_equal(uni_boot_begin(&t->b, &err), 0);
}

static void end(struct booted *t)
{
	uni_qmp_close(t->q.qmp);
	assert_int_equal(waitpid(t->monitor, NULL, 0), t->monitor);
	(void)unlink(t->un.sun_path);
	(void)rmdir(t->dir);
}

/* While a vCPU is about to stop for a sample, QEMU cannot tell its registers: it would wait. */
static void no_question_while_a_stop_is_late(void **state)
{
	static const char *const answers[] = { DONE, DONE, halted, NULL };
	struct booted t;

	begin(&t, answers);
	t.b.unsettled = true;
	assert_false(uni_boot_ended(&t.b));
	assert_true(t.b.look_ns == 1 && t.b.halted_key == 0);
	t.b.unsettled = false;
	assert_false(uni_boot_ended(&t.b)); /* the first look; the second would be sure */
	assert_true(t.b.look_ns != 1 && t.b.halted_key != 0);
	end(&t);
}

/* While the stub owes a sample's answer, the stop is ours, as long as it takes. */
static void a_stop_for_a_late_sample(void **state)
{
	static const char *const answers[] = { DONE, STOP DONE, STATUS("paused", "false"), NULL };
	struct booted t;

	begin(&t, answers);
	t.b.unsettled = true;
	assert_false(uni_boot_ended(&t.b));
	assert_true(t.b.stopped && !t.b.held);
	t.b.unsettled = false;
	assert_false(uni_boot_ended(&t.b));
	assert_true(t.b.stopped && t.b.held);
	end(&t);
}

/* QEMU had not read yet that the sample's stop is over. */
static void a_stop_that_is_over(void **state)
{
	static const char *const answers[] = { DONE, STOP DONE, STATUS("paused", "false"),
		STATUS("running", "true"), NULL };
	struct booted t;

	begin(&t, answers);
	assert_false(uni_boot_ended(&t.b));
	assert_true(t.b.stopped && !t.b.held);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_question_while_a_stop_is_late),
		cmocka_unit_test(a_stop_for_a_late_sample),
		cmocka_unit_test(a_stop_that_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
