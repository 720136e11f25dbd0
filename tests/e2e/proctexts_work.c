/* SPDX-License-Identifier: BSD-2-Clause */
/* The traced part of proctexts.c: compiled with a tracer's flags. */
#include <stddef.h>

int texts_open(const char *path, int flags);
long texts_write(int fd, const void *buf, size_t size);
int texts_any(const char *path);

__attribute__((noinline)) int texts_open(const char *path, int flags)
{
	__asm__ volatile("" : : "r"(path) : "memory");
	return flags + 3;
}

__attribute__((noinline)) long texts_write(int fd, const void *buf, size_t size)
{
	__asm__ volatile("" : : "r"(buf), "r"(fd) : "memory");
	return (long)size;
}

__attribute__((noinline)) int texts_any(const char *path)
{
	__asm__ volatile("" : : "r"(path) : "memory");
	return 0;
}
