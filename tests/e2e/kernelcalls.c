/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is in the kernel most of the time: for proc_kernel.sh. Each function makes its
 * system calls itself, so that its frame is the caller's for any unwinder. Prints "ready", and runs
 * until it is killed. With an argument, it also sleeps, and says so if a stop ended a sleep. Then
 * read_more() makes three times as many calls as read_zeros().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static char buffer[1 << 16];

static inline long call3(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

__attribute__((noinline)) static void read_zeros(int fd)
{
	(void)call3(SYS_read, fd, (long)buffer, sizeof(buffer));
	__asm__ volatile("");
}

__attribute__((noinline)) static void read_more(int fd)
{
	for (int i = 0; i < 3; i++)
		(void)call3(SYS_read, fd, (long)buffer, sizeof(buffer));
	__asm__ volatile("");
}

/* It lasts a millisecond, or until a stop. */
__attribute__((noinline)) static void doze(int ep)
{
	struct epoll_event none;
	register long timeout __asm__("r10") = 1;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(SYS_epoll_wait), "D"(ep), "S"(&none), "d"(1), "r"(timeout)
			 : "rcx", "r11", "memory");
	if (ret == -EINTR)
		(void)call3(SYS_write, STDOUT_FILENO, (long)"EINTR\n", 6);
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

static void run_with_sleeps(int fd)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	unsigned seed = 1;

	for (;;) {
		seed = seed * 1103515245u + 12345u;
		if (seed >> 25 == 0)
			doze(ep);
		else if (seed >> 30 == 1)
			read_zeros(fd);
		else if (seed >> 30 == 2)
			read_more(fd);
		else
			spin(seed >> 16 & 4095);
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
	(void)argv;
	if (argc > 1)
		run_with_sleeps(fd);
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
