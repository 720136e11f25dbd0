/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls: the table against this host's headers, arguments and results as text, -e. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "syscalls/log.h"
#include "syscalls/value.h"

/* Names, numbers and kinds. */
static void table(void **state)
{
	static const char known[] = "fFdubipszlxoOPMwASKhDTGHcCEXBarW";

	for (size_t i = 0; i < uni_sysc_nr; i++) {
		const struct uni_sysc_def *d = &uni_sysc_table[i];

		assert_ptr_equal(uni_sysc_by_name(d->name, strlen(d->name)), d);
		assert_true(d->x86_64 >= 0 || d->aarch64 >= 0);
		if (d->x86_64 >= 0)
			assert_ptr_equal(uni_sysc_by_number(EM_X86_64, (uint64_t)d->x86_64), d);
		if (d->aarch64 >= 0)
			assert_ptr_equal(uni_sysc_by_number(EM_AARCH64, (uint64_t)d->aarch64), d);
		assert_true(uni_sysc_nr_args(d) <= UNI_SYSC_ARGS_MAX);
		assert_int_equal(strspn(d->kinds, known), uni_sysc_nr_args(d));
		assert_non_null(strchr("dplzo?", uni_sysc_result_kind(d)));
	}
	assert_null(uni_sysc_by_name("ope", 3));
	assert_null(uni_sysc_by_name("opena", 5));
	assert_null(uni_sysc_by_number(EM_AARCH64, UINT64_MAX));
	/* aarch64's are those of <asm-generic/unistd.h> */
	assert_int_equal(uni_sysc_by_name("openat", 6)->aarch64, 56);
	assert_int_equal(uni_sysc_by_name("write", 5)->aarch64, 64);
	assert_int_equal(uni_sysc_by_name("exit_group", 10)->aarch64, 94);
	assert_int_equal(uni_sysc_by_name("mmap", 4)->aarch64, 222);
	assert_int_equal(uni_sysc_by_name("open", 4)->aarch64, -1);
	(void)state;
}

#if defined(__x86_64__)
static void host_numbers(void **state)
{
#define SAME(name) assert_int_equal(uni_sysc_by_name(#name, strlen(#name))->x86_64, SYS_##name)
	SAME(read);
	SAME(write);
	SAME(open);
	SAME(close);
	SAME(mmap);
	SAME(ioctl);
	SAME(socket);
	SAME(sendto);
	SAME(clone);
	SAME(fcntl);
	SAME(rename);
	SAME(futex);
	SAME(getdents64);
	SAME(epoll_ctl);
	SAME(openat);
	SAME(newfstatat);
	SAME(accept4);
	SAME(prlimit64);
	SAME(getrandom);
	SAME(statx);
	SAME(io_uring_setup);
	SAME(clone3);
	SAME(openat2);
	(void)state;
}
#endif

/* A guest's memory: two texts at 0x1000 and 0x2000, the second with no end in sight. */
static size_t read_memory(void *ctx, uint64_t va, void *buf, size_t cap)
{
	static const char text[] = "/etc/p\n\x01"
				   "7\"";

	(void)ctx;
	if (va == 0x1000) {
		memcpy(buf, text, sizeof(text) < cap ? sizeof(text) : cap);
		return sizeof(text) < cap ? sizeof(text) : cap;
	}
	if (va == 0x2000) {
		memset(buf, 'a', 10 < cap ? 10 : cap);
		return 10 < cap ? 10 : cap;
	}
	return 0;
}

static void arguments(void **state)
{
	static const struct {
		const char *name;
		uint64_t arg[6];
		const char *want;
	} all[] = {
		{ "open", { 0x1000, O_RDWR | O_CREAT | O_TRUNC, 0644 },
			"\"/etc/p\\n\\0017\\\"\", O_RDWR|O_CREAT|O_TRUNC, 0644" },
		{ "open", { 0x1000, 0, 0644 }, "\"/etc/p\\n\\0017\\\"\", O_RDONLY" },
		{ "open", { 0x2000, 1 | 0x80000000, 0 }, "0x2000, O_WRONLY|0x80000000" },
		{ "open", { 0x3000, 3 }, "0x3000, 0x3" },
		{ "openat", { (uint64_t)-100, 0, O_CLOEXEC | O_DIRECTORY },
			"AT_FDCWD, NULL, O_RDONLY|O_DIRECTORY|O_CLOEXEC" },
		{ "openat", { 7, 0, 020200000 | O_WRONLY, 0600 },
			"7, NULL, O_WRONLY|O_TMPFILE, 0600" },
		{ "read", { 0xffffffffffffffff, 0xffff800000001000, 64 },
			"-1, 0xffff800000001000, 64" },
		{ "write", { 1, 0x1000, 6 }, "1, \"/etc/p\", 6" },
		{ "write", { 1, 0x1000, 0 }, "1, 0x1000, 0" },
		{ "write", { 1, 0x2000, 100 }, "1, 0x2000, 100" },
		{ "write", { 1, 0x1000, 7 }, "1, \"/etc/p\\n\", 7" },
		{ "lseek", { 3, (uint64_t)-6, 2 }, "3, -6, SEEK_END" },
		{ "lseek", { 3, 0, 9 }, "3, 0, 9" },
		{ "mmap", { 0, 8192, 3, 0x22, 0xffffffff, 0 },
			"NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0" },
		{ "mprotect", { 0x1000, 4096, 0 }, "0x1000, 4096, PROT_NONE" },
		{ "access", { 0, 0 }, "NULL, F_OK" },
		{ "access", { 0, 5 }, "NULL, R_OK|X_OK" },
		{ "kill", { 1, 9 }, "1, SIGKILL" },
		{ "kill", { 1, 40 }, "1, 40" },
		{ "socket", { 2, 02000001, 0 }, "AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0" },
		{ "sendto", { 3, 0x1000, 4, 0x4040, 0, 0 },
			"3, \"/etc\", 4, MSG_DONTWAIT|MSG_NOSIGNAL, NULL, 0" },
		{ "shutdown", { 3, 2 }, "3, SHUT_RDWR" },
		{ "fcntl", { 3, 1, 99 }, "3, F_GETFD" },
		{ "fcntl", { 3, 2, 1 }, "3, F_SETFD, FD_CLOEXEC" },
		{ "fcntl", { 3, 4, O_NONBLOCK }, "3, F_SETFL, O_RDONLY|O_NONBLOCK" },
		{ "fcntl", { 3, 0, 10 }, "3, F_DUPFD, 10" },
		{ "futex", { 0x1000, 0x80, 1, 0, 0, 0 },
			"0x1000, FUTEX_WAIT|FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0" },
		{ "clone", { 0x3d0f00 | 17, 0, 0, 0, 0 },
			"SIGCHLD|CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|"
			"CLONE_SYSVSEM|CLONE_SETTLS|CLONE_PARENT_SETTID|CLONE_CHILD_CLEARTID, "
			"NULL, NULL, NULL, NULL" },
		{ "epoll_ctl", { 3, 1, 4, 0x10 }, "3, EPOLL_CTL_ADD, 4, 0x10" },
		{ "clock_gettime", { 1, 0x10 }, "CLOCK_MONOTONIC, 0x10" },
		{ "umask", { 022 }, "022" },
		{ "ioctl", { 1, 0x5401, 0x10 }, "1, 0x5401, 0x10" },
		{ "getpid", { 1, 2, 3 }, "" },
		{ "exit_group", { (uint64_t)-1 }, "-1" },
	};
	const struct uni_sysc_memory memory = { read_memory, NULL, 32 };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct uni_strbuf b;

		uni_strbuf_init(&b);
		uni_sysc_args(uni_sysc_by_name(all[i].name, strlen(all[i].name)), all[i].arg, 6,
			NULL, &memory, &b);
		assert_string_equal(b.s, all[i].want);
		uni_strbuf_deinit(&b);
	}
	(void)state;
}

static void texts(void **state)
{
	const uint64_t arg[6] = { 0x1000, 0x10, 3 };
	const struct uni_sysc_memory few = { read_memory, NULL, 4 };
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_sysc_args(uni_sysc_by_name("chdir", 5), arg, 6, NULL, &few, &b);
	assert_string_equal(b.s, "\"/etc\"...");
	uni_strbuf_reset(&b);
	uni_sysc_args(uni_sysc_by_name("chdir", 5), arg, 6, NULL, NULL, &b);
	assert_string_equal(b.s, "0x1000");
	uni_strbuf_reset(&b);
	uni_sysc_args(NULL, arg, 3, NULL, &few, &b);
	assert_string_equal(b.s, "0x1000, 0x10, 0x3");
	uni_strbuf_deinit(&b);
	(void)state;
}

static void results(void **state)
{
	const struct uni_sysc_def *open = uni_sysc_by_name("open", 4);
	const struct uni_sysc_def *lseek = uni_sysc_by_name("lseek", 5);
	int error = 0;

	/* A function that returns an int leaves anything in the register's upper half. */
	assert_int_equal(uni_sysc_result(open, 0xabcdef0100000003), 3);
	assert_int_equal(uni_sysc_result(open, 0xfffffffe), -2);
	assert_int_equal(uni_sysc_result(lseek, 0xfffffffe), 0xfffffffe);
	assert_int_equal(uni_sysc_result(lseek, (uint64_t)-2), -2);
	assert_true(uni_sysc_is_error(-2, &error));
	assert_int_equal(error, 2);
	assert_true(uni_sysc_is_error(-4095, &error));
	assert_false(uni_sysc_is_error(-4096, &error));
	assert_false(uni_sysc_is_error(0, &error));
	assert_string_equal(uni_sysc_error_name(2), "ENOENT");
	assert_null(uni_sysc_error_name(4000));
	assert_int_equal(uni_sysc_error_of("ENOENT", 6), 2);
	assert_int_equal(uni_sysc_error_of("EAFNOSUPPORT", 12), 97);
	assert_int_equal(uni_sysc_error_of("ENOEN", 5), -1);
	assert_int_equal(uni_sysc_error_of("ENOTHING", 8), -1);
	(void)state;
}

/* The calls that pass, from: open (file, desc), read (desc), socket (network), kill (signal,
 * process), syscall_999 (unknown). */
static void filters(void **state)
{
	static const char *const names[] = { "open", "read", "socket", "kill", "syscall_999" };
	static const struct {
		const char *expression, *want;
	} all[] = {
		{ "trace=open,kill", "10010" }, { "open", "10000" }, { "t=read", "01000" },
		{ "%file", "10000" }, { "file", "10000" }, { "trace=%desc", "11000" },
		{ "network,signal", "00110" }, { "%net", "00100" }, { "!open", "01111" },
		{ "trace=!%desc", "00111" }, { "/^(re|so)", "01100" },
		{ "trace=/open,kill", "10010" }, { "all", "11111" }, { "none", "00000" },
		{ "!all", "00000" }, { "!none", "11111" }, { "?nobody,read", "01000" },
		{ "?syscall_999", "00001" }, { "stat", "00000" }, /* the call, not the class */
	};
	static const char *const wrong[] = { "opne", "%nothing", "trace=open,", "abbrev=open", "/(",
		"status=late", "" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct uni_sysc_filter f = { 0 };
		struct uni_err err = { 0 };

		assert_int_equal(uni_sysc_filter_add(&f, "none", &err), 0); /* is replaced */
		assert_int_equal(uni_sysc_filter_add(&f, all[i].expression, &err), 0);
		for (size_t k = 0; k < 5; k++)
			assert_int_equal(uni_sysc_filter_name(&f, names[k]), all[i].want[k] == '1');
		uni_sysc_filter_deinit(&f);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct uni_sysc_filter f = { 0 };
		struct uni_err err = { 0 };

		assert_int_equal(uni_sysc_filter_add(&f, wrong[i], &err), -UNI_EUSAGE);
		assert_int_equal(err.code, UNI_EUSAGE);
		uni_sysc_filter_deinit(&f);
	}
	(void)state;
}

static void ends(void **state)
{
	struct uni_sysc_filter f = { 0 };

	assert_true(uni_sysc_filter_end(&f, UNI_SYSC_FAILED));
	assert_int_equal(uni_sysc_filter_add(&f, "status=failed,unfinished", NULL), 0);
	assert_true(uni_sysc_filter_end(&f, UNI_SYSC_FAILED));
	assert_true(uni_sysc_filter_end(&f, UNI_SYSC_OPEN));
	assert_false(uni_sysc_filter_end(&f, UNI_SYSC_OK));
	assert_true(uni_sysc_filter_name(&f, "open"));
	uni_sysc_filter_deinit(&f);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
#if defined(__x86_64__)
		cmocka_unit_test(host_numbers),
#endif
		cmocka_unit_test(arguments),
		cmocka_unit_test(texts),
		cmocka_unit_test(results),
		cmocka_unit_test(filters),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
