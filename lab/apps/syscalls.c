/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small layer of system calls, named as Unikraft names its own. It counts them:
 * lab_traced.calls[0] has the calls of each function, and behind them the errors of each.
 * Tracepoints in Unikraft's layout (lab_point.h) also record each call, and count in the last two.
 * hold=1: when all is done, stays to be looked at.
 */
#include "lab.h"
#include "lab_point.h"
#include "lab_traced.h"

const char lab_app_name[] = "syscalls";

struct lab_traced lab_traced;

enum {
	OPEN,
	READ,
	WRITE,
	WRITEV,
	CLOSE,
	LSEEK,
	MMAP,
	SOCKET,
	E_OPEN,
	E_SOCKET,
	E_CLOSE,
	POINTS,
	POINTS_LOST,
	NR
};

static const char *const names[NR] = { "uk_syscall_r_open", "uk_syscall_r_read",
	"uk_syscall_r_write", "uk_syscall_r_writev", "__uk_syscall_r_close", "uk_syscall_r_lseek",
	"uk_syscall_r_mmap", "uk_syscall_r_socket", "error open", "error socket", "error close",
	"points", "points lost" };

#define ENOENT	     2
#define EBADF	     9
#define EAFNOSUPPORT 97

LAB_POINT(trace_vfs_open, "\\\"%s\\\" %#x 0%0o", "3", ".byte 8, 4, 4\n", ".byte 1, 0, 0\n");
LAB_POINT(trace_vfs_open_ret, "%d", "1", ".byte 4\n", ".byte 0\n");
LAB_POINT(trace_vfs_open_err, "%d", "1", ".byte 4\n", ".byte 0\n");
LAB_POINT(trace_vfs_lseek, "%d %#x %d", "3", ".byte 4, 8, 4\n", ".byte 0, 0, 0\n");
LAB_POINT(trace_vfs_lseek_ret, "%#x", "1", ".byte 8\n", ".byte 0\n");
LAB_POINT(lab_widths, "%hhd %hu %d %lu %s %p %c %x", "8", ".byte 1, 2, 4, 8, 8, 8, 1, 4\n",
	".byte 0, 0, 0, 0, 1, 0, 0, 0\n");
LAB_POINT(lab_round, "round %u", "1", ".byte 4\n", ".byte 0\n");
LAB_POINT(lab_nothing, "nothing", "0", "", "");

static long position, length;

/* A compiler that sees that an argument is not used passes anything. */
#define USED(v) __asm__ volatile("" : : "r"(v))

static void count(unsigned fn)
{
	lab_traced.calls[0][fn]++;
}

static void told(int recorded)
{
	count(recorded ? POINTS : POINTS_LOST);
}

/* Functions that nothing else in this file may call by another name or inline. */
long uk_syscall_r_open(const char *path, long flags, long mode);
long uk_syscall_r_read(long fd, void *buf, unsigned long size);
long uk_syscall_r_write(long fd, const void *buf, unsigned long size);
long uk_syscall_r_writev(long fd, const void *vec, long nr);
long uk_syscall_r_lseek(long fd, long offset, long whence);
long uk_syscall_r_mmap(
	void *at, unsigned long size, long prot, long flags, long fd, unsigned long offset);
long uk_syscall_r_socket(long domain, long type, long protocol);
long __uk_syscall_r_close(long fd);
long uk_syscall_e_close(long fd);

LAB_FUNC long uk_syscall_r_open(const char *path, long flags, long mode)
{
	bool found = lab_strcmp(path, "/nonexistent") != 0;

	count(OPEN);
	told(lab_point(
		trace_vfs_open, LAB_TEXT(path), LAB_INT(int32_t, flags), LAB_INT(uint32_t, mode)));
	if (!found) {
		count(E_OPEN);
		told(lab_point(trace_vfs_open_err, LAB_INT(int32_t, ENOENT)));
		return -ENOENT;
	}
	told(lab_point(trace_vfs_open_ret, LAB_INT(int32_t, 3)));
	position = length = 0;
	return 3;
}

LAB_FUNC long uk_syscall_r_read(long fd, void *buf, unsigned long size)
{
	count(READ);
	USED(fd);
	memset(buf, 'x', size < 11 ? size : 11);
	return length - position;
}

LAB_FUNC long uk_syscall_r_write(long fd, const void *buf, unsigned long size)
{
	count(WRITE);
	USED(fd);
	USED(buf);
	position += (long)size;
	length = position;
	return (long)size;
}

struct vec {
	const void *base;
	unsigned long size;
};

/* Calls another one's function, as a system's own code may: not a system call of the program. */
LAB_FUNC long uk_syscall_r_writev(long fd, const void *vec, long nr)
{
	const struct vec *v = vec;
	long sum = 0;

	count(WRITEV);
	for (long i = 0; i < nr; i++)
		sum += uk_syscall_r_write(fd, v[i].base, v[i].size);
	return sum;
}

LAB_FUNC long uk_syscall_r_lseek(long fd, long offset, long whence)
{
	count(LSEEK);
	told(lab_point(trace_vfs_lseek, LAB_INT(int32_t, fd), LAB_INT(uint64_t, offset),
		LAB_INT(int32_t, whence)));
	position = whence == 2 ? length + offset : offset;
	told(lab_point(trace_vfs_lseek_ret, LAB_INT(uint64_t, position)));
	return position;
}

LAB_FUNC long uk_syscall_r_mmap(
	void *at, unsigned long size, long prot, long flags, long fd, unsigned long offset)
{
	count(MMAP);
	USED(at);
	USED(prot);
	USED(flags);
	USED(fd);
	USED(offset);
	return 0x7f0000400000 + (long)size;
}

LAB_FUNC long uk_syscall_r_socket(long domain, long type, long protocol)
{
	count(SOCKET);
	USED(domain);
	USED(type);
	USED(protocol);
	count(E_SOCKET);
	return -EAFNOSUPPORT;
}

LAB_FUNC long __uk_syscall_r_close(long fd)
{
	count(CLOSE);
	if (fd != 3) {
		count(E_CLOSE);
		return -EBADF;
	}
	return 0;
}

/* For the program: -1 and errno. */
LAB_FUNC long uk_syscall_e_close(long fd)
{
	long ret = __uk_syscall_r_close(fd);

	return ret < 0 ? -1 : ret;
}

/* For architectures whose devices this app does not know. */
__attribute__((weak)) void *lab_device(void)
{
	return (void *)0x20;
}

#ifdef __x86_64__
/* A kernel's entry for system calls, where the registers are, under the name that Nanos has. */
__asm__(".pushsection .text\n"
	".globl syscall_enter\n"
	".type syscall_enter, @function\n"
	"syscall_enter:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size syscall_enter, . - syscall_enter\n"
	".popsection");

static void enter(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;

	__asm__ volatile("call syscall_enter"
			 :
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "memory");
}
#else
#define enter(...) ((void)0)
#endif

#define ENTER(nr, a, b, c) enter(nr, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), 0, 0, 0)

/* No tracer may read these: an unmapped page, a number that is no address, a device, and bytes
 * behind the end of a stack. */
static void write_what_cannot_be_read(uint64_t n)
{
	uint64_t low, high;
	void *at;

	lab_main_stack(&low, &high);
	at = n % 4 == 0	  ? (void *)0x10
	     : n % 4 == 1 ? (void *)0x8123456789abcdef
	     : n % 4 == 2 ? lab_device()
			  : (void *)(high - 4);
	ENTER(1, 5, at, 16);
	uk_syscall_r_write(5, at, 16);
}

LAB_FUNC static void one_round(uint64_t n)
{
	static const struct vec vec[2] = { { "hello", 5 }, { " world", 6 } };
	/* A path that lies in two pages, and a text that is elsewhere next time. */
	static char pages[2 * 4096] __attribute__((aligned(4096)));
	char *path = pages + 4096 - 5, buf[64], text[16];

	told(lab_point(lab_round, LAB_INT(uint32_t, n)));
	write_what_cannot_be_read(n);
	memcpy(path, "/data/file", 11);
	ENTER(2, path, 02 | 0100, 0644);
	uk_syscall_r_open(path, 02 | 0100, 0644);
	memset(path, 'x', 11);
	ENTER(20, 3, vec, 2);
	uk_syscall_r_writev(3, vec, 2);
	memcpy(text, "\ttext\n", 6);
	ENTER(1, 3, text, 6);
	uk_syscall_r_write(3, text, 6);
	memset(text, 'x', 6);
	ENTER(8, 3, -6, 2);
	uk_syscall_r_lseek(3, -6, 2);
	ENTER(0, 3, buf, sizeof(buf));
	uk_syscall_r_read(3, buf, sizeof(buf));
	ENTER(3, 3, 0, 0);
	uk_syscall_e_close(3);
	ENTER(3, 4, 0, 0);
	uk_syscall_e_close(4);
	ENTER(2, "/nonexistent", 0, 0);
	uk_syscall_r_open("/nonexistent", 0, 0);
	enter(9, 0, 8192, 3, 0x22, (uint64_t)-1, 0);
	uk_syscall_r_mmap(NULL, 8192, 3, 0x22, -1, 0);
	ENTER(41, 2, 1 | 02000000, 0);
	uk_syscall_r_socket(2, 1 | 02000000, 0);
}

LAB_FUNC static void rounds(void)
{
	uint64_t nr = lab_rounds(50);

	for (uint64_t i = 0; i < nr && !lab_stop(); i++) {
		one_round(i);
		lab_traced.rounds++;
		lab_heartbeat();
	}
}

static void begin(void)
{
	for (unsigned i = 0; i < NR; i++)
		memcpy(lab_traced.name[i], names[i], lab_strlen(names[i]) + 1);
	lab_traced.total_size = sizeof(lab_traced);
	lab_traced.nr_fns = NR;
	lab_traced.nr_cpus = 1;
	lab_traced.state = LAB_TRACED_RUNNING;
	LAB_BARRIER();
	lab_traced.magic = LAB_TRACED_MAGIC;
	told(lab_point(lab_widths, LAB_INT(uint8_t, -5), LAB_INT(uint16_t, 65535),
		LAB_INT(uint32_t, -123456), LAB_INT(uint64_t, 0xfeedfacecafebeef),
		LAB_TEXT("a text"), LAB_INT(uint64_t, 0x1234), LAB_INT(uint8_t, 'x'),
		LAB_INT(uint32_t, -1)));
	told(lab_point_record(lab_cookie_lab_nothing, NULL, 0));
}

LAB_FUNC void app_main(void)
{
	if (!lab_traced.magic)
		begin();
	rounds();
}

void app_finish(void)
{
	lab_traced.state = LAB_TRACED_DONE;
	lab_printf("syscalls: %lu rounds, %lu tracepoints\n", lab_traced.rounds,
		lab_traced.calls[0][POINTS]);
	lab_hold();
}
