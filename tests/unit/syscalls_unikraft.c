/* SPDX-License-Identifier: BSD-2-Clause */
/* Listings of Unikraft's strace option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>

#include "syscalls_made.h"

static void whole_lines(void **state)
{
	struct uni_sysc_log log;

	read_console("open(\"/f0\", O_RDONLY|O_CREAT) = fd:3\r\n"
		     "\x1b[0m\x1b[34mopen\x1b[0m(\"/nope\", O_RDONLY) = \x1b[31mNo such file or "
		     "directory (-2)\x1b[0m\r\n"
		     "close(fd:3) = OK\r\n"
		     "brk(NULL) = va:0x2000\r\n"
		     "getcwd(0x3, 0x1000, ...) = 0xb\r\n",
		EM_X86_64, &log);
	expect_print(&log, &plain,
		"open(\"/f0\", O_RDONLY|O_CREAT)           = 3\n"
		"open(\"/nope\", O_RDONLY)                 = -1 ENOENT (No such file or "
		"directory)\n"
		"close(fd:3)                             = 0\n"
		"brk(NULL)                               = 0x2000\n"
		"getcwd(0x3, 0x1000, ...)                = 0xb\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* The application prints to the same console. Those that are no calls look like one. */
static void behind_text(void **state)
{
	struct uni_sysc_log log;

	read_console("> read(3) = 5\n"
		     "> read(the manual, twice) = 5\n"
		     "obj->read(fd:1, x) = 5\n"
		     "5read(1) = 3\n"
		     "read(the manual) = 5\n"
		     "read(2 pages) = 5\n"
		     "write(Hello) = 5\n"
		     "close(3) = fine\n"
		     "[INFO] accept(conn) = 5\n"
		     "a getpid(1) = 0x1\n"
		     "getpid() = 0x1\n"
		     "prompt> open(\"/f(0) = 1\", O_RDONLY) = fd:3\n"
		     "round 12close(fd:3) = OK\n"
		     "Info: [shim] <c.c @ 146> open(\"/no\", O_RDONLY) = No such file or directory "
		     "(-2)\n"
		     "> fopen(x) = 5\n"
		     "> read(1, 2, 3) = 5 apples\n"
		     "> unread(x) = 5\n"
		     "> read(x) = five\n"
		     "> read(x) = a word (2)\n"
		     "> read(x) is 5\n",
		EM_X86_64, &log);
	assert_int_equal(log.other_lines, 16);
	expect_print(&log, &plain,
		"getpid()                                = 0x1\n"
		"open(\"/f(0) = 1\", O_RDONLY)             = 3\n"
		"close(fd:3)                             = 0\n"
		"open(\"/no\", O_RDONLY)                   = -1 ENOENT (No such file or "
		"directory)\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* Unikraft has no name for such a number. */
static void nameless(void **state)
{
	struct uni_sysc_log log;

	read_console("(0x1f, 0x2, ...) = Function not implemented (-38)\n"
		     "(0x1, y, ...) = 0x1\n"
		     "(0x1, 0x2) = 0x1\n"
		     "(0x1, 0x2, ...) = x\n"
		     "getpid() = 0x1\n"
		     "text (0x3, 0x4, ...) = Function not implemented (-38)\n",
		EM_X86_64, &log);
	assert_int_equal(log.other_lines, 3);
	expect_print(&log, &plain,
		"?(0x1f, 0x2, ...)                       = -1 ENOSYS (Function not implemented)\n"
		"getpid()                                = 0x1\n"
		"?(0x3, 0x4, ...)                        = -1 ENOSYS (Function not implemented)\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* A name has its colour, also one that is empty, and also behind text. */
static void colours(void **state)
{
	struct uni_sysc_log log;

	read_console("\x1b[34\x1b[0m(\x1b[36m0x1\x1b[0m, \x1b[36m0x2\x1b[0m, ...) = "
		     "\x1b[31mFunction not implemented (-38)\x1b[0m\r\n"
		     "my\x1b[34mclose\x1b[0m(fd:\x1b[36m3\x1b[0m) = \x1b[0mOK\x1b[0m\r\n"
		     "\x1b[",
		EM_X86_64, &log);
	expect_print(&log, &plain,
		"?(0x1, 0x2, ...)                        = -1 ENOSYS (Function not implemented)\n"
		"close(fd:3)                             = 0\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* A line of 253 bytes is cut there. Its result is not known. */
static void cut(void **state)
{
#define TEN   "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define LONG  "write(fd:1, \"" FIFTY FIFTY FIFTY FIFTY "..."
	struct uni_sysc_log log;

	read_console(LONG "\n"
			  "getpid() = 0x1\n" LONG "\n"
			  "open(\"" FIFTY FIFTY FIFTY FIFTY "...\n"
			  "open(x" FIFTY FIFTY FIFTY FIFTY "...\n"
			  "write(fd:1, \"...\n"
			  "wait " LONG "\n",
		EM_X86_64, &log);
	assert_int_equal(log.other_lines, 2);
	assert_int_equal(log.all.nr, 5);
	assert_int_equal(log.all.v[2].end, UNI_SYSC_NO_RESULT);
	assert_string_equal(uni_strtab_get(log.text, log.all.v[2].args),
		"fd:1, \"" FIFTY FIFTY FIFTY FIFTY "...");
	uni_sysc_log_deinit(&log);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_lines),
		cmocka_unit_test(behind_text),
		cmocka_unit_test(nameless),
		cmocka_unit_test(colours),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
