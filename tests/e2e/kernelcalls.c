/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is in the kernel most of the time: for proc_kernel.py. Each function makes its
 * system calls itself, so that its frame is the caller's for any unwinder. Prints "ready", and runs
 * until it is killed. An argument "pipe" or "map" chooses other calls.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAPPED (64l << 10)
#define PIECE  1024

static char buffer[1 << 16];

static inline long call6(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = 0;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long call3(long nr, long a, long b, long c)
{
	return call6(nr, a, b, c, 0, 0);
}

__attribute__((noinline)) static void read_zeros(int fd)
{
	(void)call3(SYS_read, fd, (long)buffer, sizeof(buffer));
	__asm__ volatile("");
}

__attribute__((noinline)) static void look_up(int nr)
{
	for (int i = 0; i < nr; i++)
		(void)call3(SYS_access, (long)"/proc/self/there/is/no/such/file", F_OK, 0);
}

__attribute__((noinline)) static void spin(unsigned nr)
{
	for (volatile unsigned i = 0; i < nr; i++) {
	}
}

__attribute__((noinline)) static void put(int fd)
{
	(void)call3(SYS_write, fd, (long)buffer, PIECE);
	__asm__ volatile("");
}

__attribute__((noinline)) static void take(int fd)
{
	(void)call3(SYS_read, fd, (long)buffer, PIECE);
	__asm__ volatile("");
}

__attribute__((noinline)) static char *map_some(void)
{
	char *at = (char *)call6(
		SYS_mmap, 0, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	__asm__ volatile("");
	return at;
}

__attribute__((noinline)) static void touch(char *at, long bytes)
{
	for (long i = 0; i < bytes; i += 4096)
		at[i] = 1;
}

__attribute__((noinline)) static void unmap(char *at)
{
	(void)call3(SYS_munmap, (long)at, MAPPED, 0);
	__asm__ volatile("");
}

static _Noreturn void pipes(void)
{
	unsigned seed = 1;
	int fd[2];

	if (pipe(fd) != 0)
		_exit(1);
	for (;;) {
		seed = seed * 1103515245u + 12345u;
		put(fd[1]);
		spin(seed >> 20 & 1023);
		take(fd[0]);
		spin(seed >> 16 & 2047);
	}
}

static _Noreturn void maps(void)
{
	unsigned seed = 1;

	for (;;) {
		char *at = map_some();

		seed = seed * 1103515245u + 12345u;
		touch(at, MAPPED >> (seed >> 30));
		spin(seed >> 16 & 8191);
		unmap(at);
	}
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY);
	unsigned seed = 1;

	if (fd < 0)
		return 1;
	(void)puts("ready");
	(void)fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "pipe") == 0)
		pipes();
	if (argc > 1 && strcmp(argv[1], "map") == 0)
		maps();
	/* The order changes all the time, so no sampler is in step with it. */
	for (;;) {
		seed = seed * 1103515245u + 12345u;
		if (seed >> 30 == 0)
			read_zeros(fd);
		else if (seed >> 30 == 1)
			look_up((int)(seed >> 26 & 7));
		else
			spin(seed >> 16 & 8191);
	}
}
