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
long vars_take(long used);
void vars_give(int level);

/* Variables that change with each call. */
struct {
	char pad;
	union {
		struct {
			short few;
			long used;
		};
	} heap;
	int wide[3];
} vars_state = { .heap.used = 1000 };
int vars_level;
unsigned char vars_byte = 250;

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

/* The argument and the value are what the variables are: then a tracer of arguments knows them,
 * too. */
__attribute__((noinline)) long vars_take(long used)
{
	vars_state.heap.used += used % 7 * 100 - 3;
	vars_byte++;
	vars_give(vars_level);
	__asm__ volatile("" : : : "memory");
	return vars_state.heap.used;
}

__attribute__((noinline)) void vars_give(int level)
{
	vars_level = level < 0 ? -level + 1 : -level - 1;
	vars_state.heap.few--;
}
