/* SPDX-License-Identifier: BSD-2-Clause */
/* A test's results as it goes: one line of TAP for each check. For one file of a program. */
#ifndef UNI_TESTS_E2E_TAP_H
#define UNI_TESTS_E2E_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned nr_checks, nr_failed;

static bool check(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool check(bool ok, const char *fmt, ...)
{
	va_list ap;

	nr_checks++;
	nr_failed += !ok;
	(void)printf("%sok %u - ", ok ? "" : "not ", nr_checks);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)printf("\n");
	(void)fflush(stdout);
	return ok;
}

#ifdef CAN_PY
/*
 * Can the host do that part, by the trial of tests/support/can.py? Otherwise all of the program is
 * skipped, or has failed if UNISCOPE_MUST names the part: call it first.
 */
static inline void need(const char *part)
{
	int status = 0;
	pid_t pid;

	(void)printf("# %s: ", part);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)execlp("python3", "python3", CAN_PY, part, (char *)NULL);
		_exit(2);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		status = -1;
	if (status == 0) {
		(void)printf("can be used\n");
		return;
	}
	if (status != -1 && WEXITSTATUS(status) == 77) {
		(void)printf("1..0 # SKIP %s cannot be used here\n", part);
		exit(0);
	}
	(void)printf("Bail out! %s cannot be used, and must\n", part);
	exit(1);
}
#else
/* In a lab, which has each part and no Python: the program tries, and its checks fail. */
static inline void need(const char *part)
{
	(void)printf("# %s: must be there\n", part);
}
#endif

#endif
