/* SPDX-License-Identifier: BSD-2-Clause */
/* The traced part of proctexts.c: compiled with a tracer's flags. */
#include <stddef.h>

int texts_open(const char *path, int flags);
long texts_write(int fd, const void *buf, size_t size);
int texts_any(const char *path);
int rules_work(long size, const char *path);
void rules_long(long size);
void rules_short(long size);
void rules_leaf(long size);

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

__attribute__((noinline)) void rules_leaf(long size)
{
	__asm__ volatile("" : : "r"(size) : "memory");
}

__attribute__((noinline)) void rules_short(long size)
{
	rules_leaf(size);
	rules_leaf(size + 1);
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) void rules_long(long size)
{
	rules_short(size);
	rules_leaf(size);
	__asm__ volatile("" : : : "memory");
}

/* Large ones take another way. */
__attribute__((noinline)) int rules_work(long size, const char *path)
{
	__asm__ volatile("" : : "r"(path) : "memory");
	if (size > 1000)
		rules_long(size);
	else
		rules_short(size);
	return (int)size / 2;
}
