/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is in the kernel most of the time: for proc_kernel.sh. Each function makes its
 * system calls itself, so that its frame is the caller's for any unwinder. Prints "ready", and runs
 * until it is killed.
 */
#include <fcntl.h>
#include <stdio.h>
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

int main(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	unsigned seed = 1;

	if (fd < 0)
		return 1;
	(void)puts("ready");
	(void)fflush(stdout);
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
