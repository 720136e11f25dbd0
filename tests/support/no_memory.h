/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that runs out: of a program that is linked with -Wl,--wrap for these four functions. One
 * allocation fails, those behind it succeed.
 */
#ifndef NO_MEMORY_H
#define NO_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

static uint64_t no_memory_in; /* allocations until one fails; 0: none does */

/* Is it this one? */
static inline int no_memory_now(void)
{
	return no_memory_in != 0 && --no_memory_in == 0;
}

/* The nr-th allocation from now on fails, 1 is the next. */
static inline void no_memory_begin(uint64_t nr)
{
	no_memory_in = nr;
}

/* Did one fail? From now on none does. */
static inline int no_memory_end(void)
{
	int failed = no_memory_in == 0;

	no_memory_in = 0;
	return failed;
}

void *__wrap_malloc(size_t size)
{
	return no_memory_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return no_memory_now() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return no_memory_now() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *ret = __wrap_malloc(size);

	return ret != NULL ? memcpy(ret, text, size) : NULL;
}

#endif
