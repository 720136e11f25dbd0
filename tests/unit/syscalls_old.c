/* SPDX-License-Identifier: BSD-2-Clause */
/* Listings of Nanos before its strace klib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "syscalls_made.h"

/* Lines of Nanos 04a83823, the last one before its klib, with two CPUs. */
static void old_listings(void **state)
{
	_cleanup_strbuf_ struct uni_strbuf many;
	struct uni_sysc_log log;

	read_console("    2 set_robust_list\n"
		     "    2 set_robust_list syscall with head 0x4ca6a0\n"
		     "    2 direct return: 0, rsp 0x1\n"
		     "    2 syscall 334\n"
		     "    2 nosyscall 334\n"
		     "    2 openat\n"
		     "    2 \"/no where\" - not found\n"
		     "    2 direct return: -2, rsp 0x1\n"
		     "    2 newfstatat\n"
		     "    2 fd 1, stat 0x10\n"
		     "    2 st_ino 0, st_mode 0x2000, st_size 0\n"
		     "1 read\n"
		     "    2 direct return: 0, rsp 0x1\n"
		     "1 sleep interruptible (on \"pipe read\")\n"
		     "1 fd 3, too late\n"
		     "    2 rename\n"
		     "1 write\n"
		     "    2 rename \"/a\" \"/b\"\n"
		     "    2 direct return: 0, rsp 0x1\n"
		     "prompt> 1 direct return: 8, rsp 0x1\n"
		     "    2 invalid syscall 999\n"
		     "    2 symlinkat\n"
		     "    2 symlink 0x3 /a -> b\n"
		     "    2 direct return: 0, rsp 0x1\n"
		     "        3 [worker] read\n"
		     "        3 [worker]    read count 100\n"
		     "text        3 [worker] direct return: 100, rsp 0x1\n"
		     "    2 read\n"
		     "    2    read count 100\n"
		     "    2 direct return: 100, rsp 0x1\n"
		     "prompt> [main] write(1, 0x1, 8) = 8\n"
		     "1 direct return: 9, rsp 0x1\n"
		     "    2 unlink\n"
		     "    2 unlink \r\n"
		     "    2 direct return: -2, rsp 0x1\n"
		     "out    2 unlink\n"
		     "there are 2 read\n"
		     "of page    2 unlink /x\n"
		     "> >        3 [worker] close\n"
		     "    2 direct return: 0, rsp 0x1\n",
		EM_X86_64, &log);
	assert_int_equal(log.unknown, 1); /* it is not read's, which has ended before */
	expect_print(&log, &plain,
		"[pid 2] set_robust_list(syscall with head 0x4ca6a0) = 0\n"
		"[pid 2] rseq(...)                               = -1 ENOSYS (Function not "
		"implemented)\n"
		"[pid 2] openat(\"/no where\")                     = -1 ENOENT (No such file or "
		"directory)\n"
		"[pid 2] newfstatat(fd 1, stat 0x10)             = 0\n"
		"[pid 1] read(...)                               = ?\n"
		"[pid 2] rename(\"/a\" \"/b\")                       = 0\n"
		"[pid 1] write(...)                              = 8\n"
		"[pid 2] syscall_999(...)                        = -1 ENOSYS (Function not "
		"implemented)\n"
		"[pid 2] symlinkat(0x3 /a -> b)                  = 0\n"
		"[pid 3] read(...)                               = 100\n"
		"[pid 2] read(...)                               = 100\n"
		"[main] write(1, 0x1, 8)                        = 8\n"
		"[pid 2] unlink()                                = -1 ENOENT (No such file or "
		"directory)\n"
		"[pid 2] unlink(/x)                              = 0\n"
		"[pid 3] close(...)                              = ?\n");
	uni_sysc_log_deinit(&log);
	/* strace's number and address of a call are no thread. */
	read_console(
		"[   7] [00007f42286bb26f] close(1) = 0\n[ 231] [????????????????] exit(0) = ?\n",
		EM_X86_64, &log);
	assert_int_equal(log.all.nr, 2);
	assert_true(log.all.v[0].thread == 0 && log.all.v[1].thread == 0);
	uni_sysc_log_deinit(&log);
	/* Only in such a listing: other texts may end so. */
	read_console("text    2 read\n[1] close(1) = 0\n", EM_X86_64, &log);
	assert_int_equal(log.all.nr, 1);
	uni_sysc_log_deinit(&log);
	/* The result is that of the thread's last call, however many wait. */
	uni_strbuf_init(&many);
	for (unsigned i = 0; i < 3000; i++)
		uni_strbuf_addf(&many, "%u read\n", 10 + i % 1500);
	uni_strbuf_adds(&many, "    2 futex\n1 read\n1 write\n    2 direct return: 0, rsp 0x1\n"
			       "1 direct return: 5, rsp 0x1\n1 direct return: 7, rsp 0x1\n");
	assert_false(uni_strbuf_failed(&many));
	read_console(many.s, EM_X86_64, &log);
	assert_int_equal(log.all.nr, 3003);
	assert_int_equal(log.unknown, 1);
	for (size_t i = 0; i < log.all.nr; i++) {
		const struct uni_sysc_entry *e = &log.all.v[i];
		const char *name = uni_strtab_get(log.text, e->name);

		assert_int_equal(e->end, strcmp(name, "read") == 0 ? UNI_SYSC_OPEN : UNI_SYSC_OK);
		assert_int_equal(e->value, strcmp(name, "write") == 0 ? 5 : 0);
	}
	uni_sysc_log_deinit(&log);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_listings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
