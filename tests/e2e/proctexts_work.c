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
/* Elements that change with each call, among some that do not. */
long vars_grid[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
short vars_list[5] = { 10, 20, 30, 40, 50 };
struct {
	char pad;
	struct {
		unsigned char n;
		int v[2];
	} cell[4];
} vars_pool = { .cell = { { 60, { 61, 62 } }, { 63, { 64, 65 } }, { 66, { 67, 68 } },
			{ 69, { 70, 71 } } } };

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
	vars_grid[1][1] += 1000;
	vars_list[4] -= 77;
	vars_pool.cell[2].n += 99;
	vars_pool.cell[3].v[1] -= 100000;
}
