/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

/* The linker gives these names: __wrap_X is called for X, __real_X is the C library's X (ld(1),
 * --wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t nr, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t nr, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **text, const char *form, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **text, int flag, const char *form, ...)
	__attribute__((format(printf, 3, 4)));

static atomic_bool lacked;

bool uni_memory_lacked(void)
{
	return atomic_load_explicit(&lacked, memory_order_relaxed);
}

static void *passed_on(void *p)
{
	if (p == NULL)
		atomic_store_explicit(&lacked, true, memory_order_relaxed);
	return p;
}

void *__wrap_malloc(size_t size)
{
	return passed_on(__real_malloc(size));
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return passed_on(__real_calloc(nr, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	void *ret = __real_realloc(p, size);

	return size != 0 ? passed_on(ret) : ret; /* of no size: p is freed, and that is all */
}

void *__wrap_reallocarray(void *p, size_t nr, size_t size)
{
	void *ret = __real_reallocarray(p, nr, size);

	return nr != 0 && size != 0 ? passed_on(ret) : ret;
}

char *__wrap_strdup(const char *s)
{
	return passed_on(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
	return passed_on(__real_strndup(s, n));
}

__attribute__((format(printf, 2, 0))) static int print_text(
	char **text, const char *form, va_list args)
{
	int ret = vasprintf(text, form, args);

	(void)passed_on(ret < 0 ? NULL : *text);
	return ret;
}

int __wrap_asprintf(char **text, const char *form, ...)
{
	va_list args;
	int ret;

	va_start(args, form);
	ret = print_text(text, form, args);
	va_end(args);
	return ret;
}

/* With FORTIFY, asprintf() is this. */
int __wrap___asprintf_chk(char **text, int flag, const char *form, ...)
{
	va_list args;
	int ret;

	va_start(args, form);
	ret = print_text(text, form, args);
	va_end(args);
	return ret;
}
