// SPDX-License-Identifier: BSD-2-Clause
/* Each allocation of the C library notes that it gave nothing. */
#include "cli/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG = 256 << 20 };

static char *text; /* so long that there is no room for a second one */
static volatile size_t too_much = SIZE_MAX / 2, some = 8;

static void *take_malloc(void)
{
	return malloc(too_much);
}

static void *take_calloc(void)
{
	return calloc(some, too_much / some);
}

static void *take_realloc(void)
{
	return realloc(NULL, too_much);
}

static void *take_reallocarray(void)
{
	return reallocarray(NULL, some, too_much / some);
}

static void *take_strdup(void)
{
	return strdup(text);
}

static void *take_strndup(void)
{
	return strndup(text, LONG);
}

static void *take_asprintf(void)
{
	char *ret = NULL;

	return asprintf(&ret, "%s", text) < 0 ? NULL : ret;
}

static void *(*const takes[])(void) = { take_malloc, take_calloc, take_realloc, take_reallocarray,
	take_strdup, take_strndup, take_asprintf };

/* In a process of its own: 0 if the lack was noted. */
static int lack(void *(*take)(void))
{
	const struct rlimit room = { 384 << 20, 384 << 20 };
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (setrlimit(RLIMIT_AS, &room) != 0 || uni_memory_lacked())
			_exit(2);
		_exit(take() != NULL ? 3 : !uni_memory_lacked());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void each_lack_is_noted(void **state)
{
	text = malloc(LONG);
	assert_non_null(text);
	memset(text, 'x', LONG - 1);
	text[LONG - 1] = '\0';
	for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
		assert_int_equal(lack(takes[i]), 0);
	free(text);
}

static void enough_is_no_lack(void **state)
{
	volatile size_t none = 0;
	char *copy = strdup("text"), *more = realloc(copy, 100), *printed = NULL;

	assert_non_null(more);
	assert_int_equal(asprintf(&printed, "%s and %d", more, 1), 10);
	assert_string_equal(printed, "text and 1");
	assert_null(realloc(malloc(some), none));
	assert_null(reallocarray(malloc(some), none, some));
	assert_false(uni_memory_lacked());
	free(more);
	free(printed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enough_is_no_lack),
		cmocka_unit_test(each_lack_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
