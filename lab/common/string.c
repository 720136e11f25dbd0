/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that compilers call themselves, and little more. */
#include "lab.h"

void *memcpy(void *dst, const void *src, size_t size)
{
	lab_copy(dst, src, size);
	return dst;
}

void *memset(void *dst, int c, size_t size)
{
	lab_fill(dst, c, size);
	return dst;
}

void *memmove(void *dst, const void *src, size_t size)
{
	char *d = dst;
	const char *s = src;

	if (d <= s || d >= s + size)
		return memcpy(dst, src, size);
	while (size--)
		d[size] = s[size];
	return dst;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < size; i++) {
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}

size_t lab_strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

int lab_strcmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}
