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

/* A monitor in a process of its own. All questions have this answer: the vCPU rests for good. */
static const char greeting[] = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n";
static const char halted[] = "{\"return\": \"RAX=0\\r\\nRIP=1000 RFL=00000002 [-------] CPL=0 II=0 "
			     "A20=1 SMM=0 HLT=1\\r\\n"
			     "CR0=80010033 CR2=0\\r\\n\"}\r\n";

static pid_t start_monitor(int fd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	fd = accept(fd, NULL, NULL);
	(void)!send(fd, greeting, sizeof(greeting) - 1, MSG_NOSIGNAL);
	for (char c; recv(fd, &c, 1, 0) == 1;) {
		if (c == '\n')
			(void)!send(fd, halted, sizeof(halted) - 1, MSG_NOSIGNAL);
	}
	_exit(0);
}

/* While a vCPU is about to stop for a sample, QEMU cannot tell its registers: it would wait. */
static void no_question_while_a_stop_is_late(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/uni-boot-XXXXXX";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct uni_qemu q = { .accel = "tcg" };
	struct uni_boot b = { .q = &q, .name = "app", .look_ns = 1 };
	struct uni_err err = { 0 };
	pid_t monitor;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/q", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 1), 0);
	monitor = q.pid = start_monitor(fd);
	assert_int_equal(uni_qmp_open(un.sun_path, 10000, &q.qmp, &err), 0);

	b.unsettled = true;
	assert_false(uni_boot_ended(&b));
	assert_true(b.look_ns == 1 && b.halted_key == 0);
	b.unsettled = false;
	assert_false(uni_boot_ended(&b)); /* the first look; the second would be sure */
	assert_true(b.look_ns != 1 && b.halted_key != 0);

	uni_qmp_close(q.qmp);
	assert_int_equal(waitpid(monitor, NULL, 0), monitor);
	(void)close(fd);
	(void)unlink(un.sun_path);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_question_while_a_stop_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
