/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources of system calls, and the log of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "syscalls_made.h"
#include "ukt_make.h"

static void expect_summary(
	const struct uni_sysc_log *log, enum uni_sysc_order order, const char *want)
{
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_sysc_summary(log, order, out), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, want);
	uni_strbuf_deinit(&b);
}

/* --- calls of a trace ------------------------------------------------------------------------- */

static void read_calls(struct made *m, struct uni_sysc_log *log)
{
	const struct uni_timeline tl = { .ctx = m,
		.read = read_made,
		.func = func_name,
		.thread = thread_name,
		.words = words };

	m->given = false;
	assert_int_equal(uni_sysc_log_init(log, NULL), 0);
	assert_int_equal(uni_sysc_from_calls(&tl, &uni_sysc_prefixes, NULL, log), 0);
}

/* Calls within calls, Unikraft's two functions of one call, calls that never return. */
static void from_calls(void **state)
{
	static struct made m;
	struct uni_sysc_log log;
	const struct uni_sysc_print timed = { .column = 20, .duration = true, .relative = true };

	m.nr = 0;
	enter(&m, 1, HELPER, 0, 500, 1, 2, 3);
	enter(&m, 1, OPEN, 1, 1000, 0, 0102, 0644);
	leave(&m, 1, OPEN, 1, 3000, -2);
	enter(&m, 1, WRITEV, 1, 4000, 3, 0x1000, 2);
	enter(&m, 1, WRITE, 2, 4100, 3, 0x2000, 5);
	leave(&m, 1, WRITE, 2, 4200, 5);
	leave(&m, 1, WRITEV, 1, 5000, 5);
	enter(&m, 1, NOSUCH, 1, 5100, 0, 0, 0); /* not a call that anybody knows */
	leave(&m, 1, NOSUCH, 1, 5200, 0);
	leave(&m, 1, HELPER, 0, 5500, 0);
	enter(&m, 1, E_CLOSE, 0, 6000, 4, 0, 0);
	enter(&m, 1, R_CLOSE, 1, 6100, 4, 0, 0);
	leave(&m, 1, R_CLOSE, 1, 6200, -9);
	leave(&m, 1, E_CLOSE, 0, 7000, -1);
	enter(&m, 1, E_CLOSE, 0, 8000, 5, 0, 0);
	leave(&m, 1, E_CLOSE, 0, 9000, -1);	   /* which error, nobody tells */
	add(&m, UNI_CALL_ENTER, 1, OPEN, 0, 9100); /* traced without --args */
	add(&m, UNI_CALL_LEAVE, 1, OPEN, 0, 9200);
	enter(&m, 1, EXIT, 0, 10000, 1, 0, 0);
	add(&m, UNI_CALL_LEAVE, 1, EXIT, 0, 20000)->flags = UNI_CALL_CUT | UNI_CALL_OPEN;
	read_calls(&m, &log);
	expect_print(&log, &timed,
		"     0.000000 open(NULL, O_RDWR|O_CREAT, 0644) = -1 ENOENT (No such file or "
		"directory) <0.000002>\n"
		"     0.000003 writev(3, 0x1000, 2) = 5 <0.000001>\n"
		"     0.000002 close(4)            = -1 EBADF (Bad file descriptor) <0.000001>\n"
		"     0.000002 close(5)            = -1 <0.000001>\n"
		"     0.000001 open(...)           = ?\n"
		"     0.000000 exit_group(1)       = ?\n");
	expect_summary(&log, UNI_SYSC_BY_CALLS,
		"% time     seconds  usecs/call     calls    errors syscall\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		" 40.00    0.000002           1         2         2 close\n"
		" 40.00    0.000002           1         2         1 open\n"
		"  0.00    0.000000           0         1           exit_group\n"
		" 20.00    0.000001           1         1           writev\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"100.00    0.000005           0         6         3 total\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* Two threads in calls at once: lines in pieces. */
static void at_once(void **state)
{
	static struct made m;
	struct uni_sysc_log log;

	m.nr = 0;
	enter(&m, 1, OPEN, 0, 1000, 0, 0, 0);
	enter(&m, 9, E_CLOSE, 0, 2000, 3, 0, 0);
	leave(&m, 9, E_CLOSE, 0, 3000, 0);
	leave(&m, 1, OPEN, 0, 4000, 3);
	enter(&m, 9, WRITE, 0, 4000, 1, 0x1000, 2);
	enter(&m, 1, OPEN, 0, 5000, 0, 0, 0);
	leave(&m, 9, WRITE, 0, 6000, 2);
	read_calls(&m, &log);
	expect_print(&log, &plain,
		"[pid     1] open(NULL, O_RDONLY <unfinished ...>\n"
		"[named] close(3)                                = 0\n"
		"[pid     1] <... open resumed>)                     = 3\n"
		"[named] write(1, 0x1000, 2 <unfinished ...>\n"
		"[pid     1] open(NULL, O_RDONLY)                    = ?\n"
		"[named] <... write resumed>)                    = 2\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

static void function_names(void **state)
{
	static const struct uni_sysc_prefixes own = { { "k_", "" }, 2, false };
	static const struct {
		const char *function, *call;
		bool other;
	} all[] = {
		{ "uk_syscall_r_openat", "openat", false },
		{ "__uk_syscall_r_openat", "openat", false },
		{ "uk_syscall_e_openat", "openat", false },
		{ "sys_read", "read", true },
		{ "read", "read", true },
	};
	bool other;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct uni_sysc_def *d =
			uni_sysc_of_function(&uni_sysc_prefixes, all[i].function, &other);

		assert_string_equal(d->name, all[i].call);
		assert_int_equal(other, all[i].other);
	}
	assert_null(uni_sysc_of_function(&uni_sysc_prefixes, "uk_syscall_r_open.part.0", &other));
	assert_null(uni_sysc_of_function(&uni_sysc_prefixes, "helper", &other));
	assert_string_equal(uni_sysc_of_function(&own, "k_read", &other)->name, "read");
	assert_string_equal(uni_sysc_of_function(&own, "read", &other)->name, "read");
	assert_string_equal(uni_sysc_of_function(&own, "pread", &other)->name, "pread64");
	assert_string_equal(uni_sysc_of_function(&own, "k_pwrite", &other)->name, "pwrite64");
	assert_string_equal(uni_sysc_of_function(&own, "pselect", &other)->name, "pselect6");
	assert_null(uni_sysc_of_function(&own, "sys_read", &other));
	(void)state;
}

/* A C library's function counts where somebody asked for its arguments; and then what it calls of
 * the same name tells the error. */
static void library(void **state)
{
	static struct made m;
	struct uni_sysc_log log;

	m.nr = 0;
	enter(&m, 1, LIBC_OPEN, 0, 1000, 0, 0, 0);
	enter(&m, 1, OPEN, 1, 1100, 0, 0, 0);
	leave(&m, 1, OPEN, 1, 1200, -2);
	leave(&m, 1, LIBC_OPEN, 0, 1300, 0xffffffff);
	add(&m, UNI_CALL_ENTER, 1, LIBC_OPEN, 0, 2000); /* traced without --args */
	enter(&m, 1, OPEN, 1, 2100, 0, 0, 0);
	leave(&m, 1, OPEN, 1, 2200, 3);
	add(&m, UNI_CALL_LEAVE, 1, LIBC_OPEN, 0, 2300);
	read_calls(&m, &log);
	assert_int_equal(log.all.nr, 2);
	assert_int_equal(log.all.v[0].begin_ns, 1000);
	assert_int_equal(log.all.v[1].begin_ns, 2100);
	expect_print(&log, &plain,
		"open(NULL, O_RDONLY)                    = -1 ENOENT (No such file or directory)\n"
		"open(NULL, O_RDONLY)                    = 3\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* --- Unikraft's tracepoints ------------------------------------------------------------------- */

static struct ukt_bytes defs, buf;

static void put_int(uint64_t ns, uint64_t cookie, uint64_t v, size_t size)
{
	size_t at = ukt_begin(&buf, ns, cookie, 8);

	ukt_put(&buf, v, size);
	ukt_end(&buf, at);
}

static void from_tracepoints(void **state)
{
	const struct uni_ukt_file f = { .ptr_size = 8, .defs = defs.b, .buffer = buf.b };
	struct uni_ukt_file file = f;
	struct uni_sysc_log log;
	struct uni_ukt_trace t;
	size_t at;

	defs.n = buf.n = 0;
	ukt_define(&defs, 1, "trace_vfs_open", "\"%s\" %#x 0%0o", "s44", 8);
	ukt_define(&defs, 2, "trace_vfs_open_ret", "%d", "4", 8);
	ukt_define(&defs, 3, "trace_vfs_open_err", "%d", "4", 8);
	ukt_define(&defs, 4, "trace_vfs_write", "%p %#x %#x", "888", 8);
	ukt_define(&defs, 5, "trace_vfs_write_ret", "%#x", "8", 8);
	ukt_define(&defs, 6, "trace_vfs_writev", "%d", "4", 8);
	ukt_define(&defs, 7, "trace_vfs_writev_ret", "%d", "4", 8);
	ukt_define(&defs, 8, "trace_posix_socket_create", "%d %d %d", "444", 8);
	ukt_define(&defs, 9, "trace_posix_socket_create_err", "%d", "4", 8);
	ukt_define(&defs, 10, "app", "%d", "4", 8);
	put_int(10, 2, 3, 4); /* its beginning is not there */
	at = ukt_begin(&buf, 1000, 1, 8);
	ukt_string(&buf, "/a\"");
	ukt_put(&buf, 0102, 4);
	ukt_put(&buf, 0644, 4);
	ukt_end(&buf, at);
	put_int(1500, 10, 1, 4);
	put_int(2000, 2, 3, 4);
	at = ukt_begin(&buf, 3000, 1, 8);
	ukt_string(&buf, "/b");
	ukt_put(&buf, 0, 4);
	ukt_put(&buf, 0, 4);
	ukt_end(&buf, at);
	put_int(4000, 3, 2, 4);
	at = ukt_begin(&buf, 5000, 4, 8);
	ukt_put(&buf, 0xffff800000001000, 8);
	ukt_put(&buf, 0, 8);
	ukt_put(&buf, 11, 8);
	ukt_end(&buf, at);
	put_int(5100, 6, 1, 4); /* within it */
	put_int(5200, 7, 11, 4);
	put_int(6000, 5, 11, 8);
	at = ukt_begin(&buf, 7000, 8, 8);
	ukt_put(&buf, 2, 4);
	ukt_put(&buf, 1, 4);
	ukt_put(&buf, 0, 4);
	ukt_end(&buf, at);
	put_int(8000, 9, (uint32_t)-97, 4);
	file.defs_size = defs.n;
	file.buffer_size = buf.n;
	assert_int_equal(uni_ukt_trace_open(&file, &t, NULL), 0);
	assert_int_equal(uni_sysc_log_init(&log, NULL), 0);
	assert_int_equal(uni_sysc_from_tracepoints(&t, &log), 0);
	assert_int_equal(log.unknown, 1);
	expect_print(&log, &plain,
		"open(\"/a\\\"\", O_RDWR|O_CREAT, 0644)      = 3\n"
		"open(\"/b\", O_RDONLY)                    = -1 ENOENT (No such file or "
		"directory)\n"
		"write(0xffff800000001000, 0, 0xb)       = 11\n"
		"socket(AF_INET, SOCK_STREAM, 0)         = -1 EAFNOSUPPORT (Address family not "
		"supported by protocol)\n");
	uni_sysc_log_deinit(&log);
	uni_ukt_trace_close(&t);
	(void)state;
}

static void define_all(void)
{
	defs.n = buf.n = 0;
	ukt_define(&defs, 1, "trace_vfs_open", "\"%s\" %#x 0%0o", "s44", 8);
	ukt_define(&defs, 2, "trace_vfs_open_ret", "%d", "4", 8);
	ukt_define(&defs, 3, "trace_vfs_writev", "%p %#x %d", "884", 8);
	ukt_define(&defs, 4, "trace_vfs_pwritev", "%p %#x %#x %#x", "8848", 8);
	ukt_define(&defs, 5, "trace_vfs_pwritev_ret", "%#x", "8", 8);
	ukt_define(&defs, 6, "trace_vfs_close", "%d", "4", 8);
	ukt_define(&defs, 7, "trace_vfs_close_ret", "", "", 8);
	ukt_define(&defs, 8, "trace_posix_socket_accept", "%d %p %p", "488", 8);
	ukt_define(&defs, 9, "trace_posix_socket_accept_ret", "%d", "4", 8);
	ukt_define(&defs, 10, "trace_vfs_writev_ret", "%#x", "8", 8);
	ukt_define(&defs, 11, "trace_vfs_pwrite", "%p %#x %#x %#x", "8888", 8);
	ukt_define(&defs, 12, "trace_vfs_pwrite_ret", "%#x", "8", 8);
}

static void put_wide(uint64_t ns, uint64_t cookie, const char *widths)
{
	size_t at = ukt_begin(&buf, ns, cookie, 8);

	for (; *widths != '\0'; widths++)
		ukt_put(&buf, (uint64_t)(*widths - '0'), (size_t)(*widths - '0'));
	ukt_end(&buf, at);
}

/* A writev, which ends as pwritev does; a server that waits in accept while others make calls. */
static void tracepoints_of_threads(void **state)
{
	struct uni_ukt_file file = { .ptr_size = 8, .defs = defs.b, .buffer = buf.b };
	struct uni_sysc_log log;
	struct uni_ukt_trace t;

	define_all();
	put_wide(1000, 3, "884");
	put_int(1100, 5, 12, 8);
	put_wide(2000, 8, "488"); /* one thread waits */
	for (unsigned i = 0; i < 3; i++) {
		put_int(3000 + 100 * i, 6, 7 + i, 4);
		put_wide(3050 + 100 * i, 7, "");
	}
	put_wide(4000, 11, "8888");
	put_wide(4100, 4, "8848"); /* its own business */
	put_int(4200, 5, 8, 8);
	put_int(4300, 12, 8, 8);
	put_int(5000, 9, 5, 4);
	file.defs_size = defs.n;
	file.buffer_size = buf.n;
	assert_int_equal(uni_ukt_trace_open(&file, &t, NULL), 0);
	assert_int_equal(uni_sysc_log_init(&log, NULL), 0);
	assert_int_equal(uni_sysc_from_tracepoints(&t, &log), 0);
	assert_int_equal(log.unknown, 0);
	expect_print(&log, &plain,
		"writev(0x8, 0x8, 4)                     = 12\n"
		"accept(4, 0x8, 0x8 <unfinished ...>\n"
		"close(7)                                = 0\n"
		"close(8)                                = 0\n"
		"close(9)                                = 0\n"
		"pwrite64(0x8, 0x8, 0x8, 0x8)            = 8\n"
		"<... accept resumed>)                   = 5\n");
	uni_sysc_log_deinit(&log);
	uni_ukt_trace_close(&t);
	(void)state;
}

/* If a tracepoint says which thread runs: two threads are in the same call, and each has its own
 * result. */
static void tracepoints_switch(void **state)
{
	struct uni_ukt_file file = { .ptr_size = 8, .defs = defs.b, .buffer = buf.b };
	struct uni_sysc_log log;
	struct uni_ukt_trace t;

	define_all();
	ukt_define(&defs, 20, "sched_switch", "%d -> %d", "44", 8);
	put_int(1000, 6, 3, 4); /* before anybody told */
	put_wide(1100, 20, "44");
	put_int(1200, 6, 4, 4);
	buf.b[ukt_begin(&buf, 1300, 20, 8) + 4] = 8;
	ukt_put(&buf, 4, 4);
	ukt_put(&buf, 9, 4);
	put_wide(1400, 8, "488");
	put_wide(1500, 20, "44");
	put_wide(1600, 7, "");	/* of thread 4 */
	put_wide(1700, 7, "");	/* of who called before the first switch */
	put_int(1800, 9, 5, 4); /* thread 4 accepts nothing */
	file.defs_size = defs.n;
	file.buffer_size = buf.n;
	assert_int_equal(uni_ukt_trace_open(&file, &t, NULL), 0);
	assert_int_equal(uni_sysc_log_init(&log, NULL), 0);
	assert_int_equal(uni_sysc_from_tracepoints(&t, &log), 0);
	assert_int_equal(log.unknown, 1);
	expect_print(&log, &plain,
		"close(3 <unfinished ...>\n"
		"[pid 4] close(4 <unfinished ...>\n"
		"[pid 9] accept(4, 0x8, 0x8)                     = ?\n"
		"[pid 4] <... close resumed>)                    = 0\n"
		"<... close resumed>)                    = 0\n");
	uni_sysc_log_deinit(&log);
	uni_ukt_trace_close(&t);
	(void)state;
}

/* --- consoles --------------------------------------------------------------------------------- */

static void nanos(void **state)
{
	struct uni_sysc_log log;

	read_console("en1: assigned 10.0.2.15\r\n"
		     "[2] openat(AT_FDCWD, \"/etc/a) = b\", O_RDONLY|O_CLOEXEC) = -ENOENT\r\n"
		     "[2] mmap(NULL, 8192, 3, 34, -1, 0) = 0x7f0000001000\r\n"
		     "[2] futex(0x7f, FUTEX_WAIT, 0, NULL <unfinished ...>\r\n"
		     "[worker] write(1, \"hi\", 2) = 2\r\n"
		     "[2] <... futex resumed>) = -EAGAIN\r\n"
		     "[worker] read(3 <unfinished ...>\r\n"
		     "[2] syscall_231(0) = ?\r\n"
		     "[2] getpid() = -4000\r\n"
		     "[2] nosuch(1) = 0\r\n",
		EM_X86_64, &log);
	assert_int_equal(log.other_lines, 2);
	expect_print(&log, &plain,
		"[pid 2] openat(AT_FDCWD, \"/etc/a) = b\", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No "
		"such "
		"file or directory)\n"
		"[pid 2] mmap(NULL, 8192, 3, 34, -1, 0)          = 0x7f0000001000\n"
		"[pid 2] futex(0x7f, FUTEX_WAIT, 0, NULL)        = -1 EAGAIN (Resource temporarily "
		"unavailable)\n"
		"[worker] write(1, \"hi\", 2)                       = 2\n"
		"[worker] read(3)                                 = ?\n"
		"[pid 2] exit_group(0)                           = ?\n"
		"[pid 2] getpid()                                = -1 (errno 4000)\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* The additions of a resumed line; a line behind the application's output; calls that -e leaves
 * out.
 */
static void nanos_pieces(void **state)
{
	static const char text[] = "[2] fstat(3 <unfinished ...>\n"
				   "[3] read(4,  <unfinished ...>\n"
				   "[2] <... fstat resumed> [{st_mode=0100644}]) = 0\n"
				   "[3] <... read resumed>\"ab\", 2) = 2\n"
				   "prompt [x]> [2] write(1, \"[3] \", 4 <unfinished ...>\n"
				   "[3] [2] <... write resumed>) = 4\n"
				   "a[12] = [2] of(3) = 4\n"
				   "[4] <... futex resumed>) = 0\n";
	struct uni_sysc_filter filter = { 0 };
	struct uni_sysc_log log;

	read_console(text, EM_X86_64, &log);
	assert_int_equal(log.unknown, 1);
	assert_int_equal(log.other_lines, 1);
	expect_print(&log, &plain,
		"[pid 2] fstat(3, [{st_mode=0100644}])           = 0\n"
		"[pid 3] read(4, \"ab\", 2)                        = 2\n"
		"[pid 2] write(1, \"[3] \", 4)                     = 4\n");
	uni_sysc_log_deinit(&log);
	assert_int_equal(uni_sysc_filter_add(&filter, "trace=read", NULL), 0);
	assert_int_equal(uni_sysc_log_init(&log, &filter), 0);
	assert_int_equal(uni_sysc_from_console(text, strlen(text), EM_X86_64, &log), 0);
	assert_int_equal(log.all.nr, 1);
	assert_int_equal(log.unknown, 1); /* whose beginning is nowhere: it may have passed */
	uni_sysc_log_deinit(&log);
	uni_sysc_filter_deinit(&filter);
	(void)state;
}

/* Lines and a table of sums: what the guest summed up counts, once. */
static void nanos_summary(void **state)
{
	static const char text[] =
		"[2] read(3, 0x1, 2) = 2\n"
		"[2] getpid() = 2\n"
		"\n"
		"% time      seconds   usecs/call        calls       errors syscall           \n"
		"------ ------------ ------------ ------------ ------------ ------------------\n"
		" 66.66     2.000200          100           20              read              \n"
		" 33.33     0.000100           10           10            3 openat            \n"
		"------ ------------ ------------ ------------ ------------ ------------------\n"
		"100.00     2.000300                       30            3 total\n"
		"[2] close(3) = 0\n";
	struct uni_sysc_log log;

	read_console(text, EM_X86_64, &log);
	assert_int_equal(log.all.nr, 3);
	expect_summary(&log, UNI_SYSC_BY_TIME,
		"% time     seconds  usecs/call     calls    errors syscall\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"100.00    2.000200      100010        20           read\n"
		"  0.00    0.000100          10        10         3 openat\n"
		"  0.00    0.000000           0         1           close\n"
		"  0.00    0.000000           0         1           getpid\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"100.00    2.000300       62509        32         3 total\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

/* strace's own, and Nanos before its klib. */
static void others(void **state)
{
	struct uni_sysc_log log;

	read_console(
		"1234  close(3)                                = -1 EBADF (Bad file descriptor) "
		"<0.000012>\n"
		"exit_group(0)                           = ?\n"
		"1 mmap\n"
		"1 direct return: 0, rsp 0x7fff\n"
		"2 direct return: 0, rsp 0x7fff\n"
		"1 mmap\n"
		"1 mmap: addr 0x0, length 0x2000, prot 0x3, flags 0x22, fd -1, offset 0x0\n"
		"1    hint at 0x10000\n"
		"    2 openat\n"
		"    2 open: \"/etc/hosts\", flags 0, mode 0\n"
		"    2 open: a remark\n"
		"1 direct return: 484317986816, rsp 0x7fff\n"
		"    2 direct return: -2, rsp 0x7fff\n"
		"1 mmap: after its end\n"
		"1 [main] close\n"
		"1 [main] close: fd 3\n"
		"        3 [a worker] close\n"
		"1 [main] direct return: 0, rsp 0x7fff\n",
		EM_X86_64, &log);
	assert_int_equal(log.unknown, 1);
	expect_print(&log, &plain,
		"[pid 1234] close(3)                                = -1 EBADF (Bad file "
		"descriptor)\n"
		"exit_group(0)                           = ?\n"
		"[pid 1] mmap(...)                               = 0\n"
		"[pid 1] mmap(addr 0x0, length 0x2000, prot 0x3, flags 0x22, fd -1, offset 0x0) = "
		"484317986816\n"
		"[pid 2] openat(\"/etc/hosts\", flags 0, mode 0)   = -1 ENOENT (No such file or "
		"directory)\n"
		"[pid 1] close(fd 3)                             = 0\n"
		"[pid 3] close(...)                              = ?\n");
	uni_sysc_log_deinit(&log);
	read_console("12:34:56 getpid() = 7\n"
		     "12:34:56.789012 close(4) = 0\n"
		     "     0.000012 close(5) = 0\n"
		     "[pid 12] 1700000000.000250 close(6) = 0 <0.000125>\n",
		EM_X86_64, &log);
	assert_int_equal(log.other_lines, 0);
	assert_int_equal(log.all.nr, 4);
	assert_false(log.all.v[2].timed);
	assert_true(log.all.v[3].timed);
	assert_int_equal(log.all.v[3].begin_ns, 1700000000000250000);
	assert_int_equal(log.all.v[3].end_ns - log.all.v[3].begin_ns, 125000);
	uni_sysc_log_deinit(&log);
	/* The duration alone: the table sums it. */
	read_console("7 read(0,  <unfinished ...>\n"
		     "8 close(4) = 0 <0.000020>\n"
		     "7 <... read resumed>\"x\", 1) = 1 <0.000300>\n",
		EM_X86_64, &log);
	expect_print(&log, &(const struct uni_sysc_print){ .column = 24, .duration = true },
		"[pid 7] read(0, \"x\", 1)         = 1 <0.000300>\n"
		"[pid 8] close(4)                = 0 <0.000020>\n");
	expect_summary(&log, UNI_SYSC_BY_TIME,
		"% time     seconds  usecs/call     calls    errors syscall\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		" 93.75    0.000300         300         1           read\n"
		"  6.25    0.000020          20         1           close\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"100.00    0.000320         160         2           total\n");
	uni_sysc_log_deinit(&log);
	/* Calls without a time stay where they are. strace's own table is what counts. */
	read_console("7 getppid() = 1\n"
		     "7 1700000000.000100 read(0,  <unfinished ...>\n"
		     "8 1700000000.000200 close(4) = 0\n"
		     "8 getpid() = 8\n"
		     "7 1700000000.000400 <... read resumed>\"x\", 1) = 1\n"
		     "% time     seconds  usecs/call     calls    errors syscall\n"
		     "------ ----------- ----------- --------- --------- ----------------\n"
		     "100.00    0.000300         300         1           read\n"
		     "------ ----------- ----------- --------- --------- ----------------\n"
		     "100.00    0.000300         300         1           total\n",
		EM_X86_64, &log);
	expect_print(&log,
		&(const struct uni_sysc_print){
			.column = 24, .duration = true, .stamp = UNI_SYSC_EPOCH },
		"[pid 7] getppid()               = 1\n"
		"[pid 7] 1700000000.000100 read(0, \"x\", 1 <unfinished ...>\n"
		"[pid 8] 1700000000.000200 close(4)                = 0\n"
		"[pid 8] getpid()                = 8\n"
		"[pid 7] 1700000000.000400 <... read resumed>)     = 1\n");
	expect_summary(&log, UNI_SYSC_BY_NAME,
		"% time     seconds  usecs/call     calls    errors syscall\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"  0.00    0.000000           0         1           close\n"
		"  0.00    0.000000           0         1           getpid\n"
		"  0.00    0.000000           0         1           getppid\n"
		"100.00    0.000300         300         1           read\n"
		"------ ----------- ----------- --------- --------- ----------------\n"
		"100.00    0.000300          75         4           total\n");
	uni_sysc_log_deinit(&log);
	read_console("syscall_94(1) = ?\nsyscall_9999(1) = -38\n", EM_AARCH64, &log);
	expect_print(&log, &plain,
		"exit_group(1)                           = ?\n"
		"syscall_9999(1)                         = -1 ENOSYS (Function not implemented)\n");
	uni_sysc_log_deinit(&log);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_calls),
		cmocka_unit_test(at_once),
		cmocka_unit_test(function_names),
		cmocka_unit_test(library),
		cmocka_unit_test(from_tracepoints),
		cmocka_unit_test(tracepoints_of_threads),
		cmocka_unit_test(tracepoints_switch),
		cmocka_unit_test(nanos),
		cmocka_unit_test(nanos_pieces),
		cmocka_unit_test(nanos_summary),
		cmocka_unit_test(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
