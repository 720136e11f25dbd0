/* SPDX-License-Identifier: BSD-2-Clause */
/* A test's results as it goes: one line of TAP for each check. For one file of a program. */
#ifndef UNI_TESTS_E2E_TAP_H
#define UNI_TESTS_E2E_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

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

#endif
