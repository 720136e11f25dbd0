/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work that calls are timed on: recursion (13,529 calls), a recursive-descent JSON parser, and
 * quicksort with a callback. Each returns a sum, so that none can be left out.
 */
#include "calls_work.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(name)  JOIN(PREFIX, name)

static unsigned long fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

unsigned long NAME(fib)(void)
{
	return fib(19);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static const char text[] =
	"{\"name\":\"uniscope\",\"tags\":[\"trace\",\"guest\",\"ring\",[1,2,3,[4,5,[6]]]],"
	"\"sizes\":{\"record\":8,\"sub\":65536,\"head\":128},\"list\":[0,1,2,3,4,5,6,7,8,9,10],"
	"\"nested\":{\"a\":{\"b\":{\"c\":[true,false,null,{\"d\":1}]}}},\"empty\":[[],{},\"\"]}";

static const char *at;

static unsigned long value(void);

static void skip(void)
{
	while (*at == ' ' || *at == '\n')
		at++;
}

static int next_is(char c)
{
	skip();
	if (*at != c)
		return 0;
	at++;
	return 1;
}

static unsigned long string(void)
{
	unsigned long sum = 0;

	for (at++; *at != '"'; at++)
		sum = sum * 31 + (unsigned char)*at;
	at++;
	return sum;
}

static unsigned long number(void)
{
	unsigned long n = 0;

	while (*at >= '0' && *at <= '9')
		n = n * 10 + (unsigned long)(*at++ - '0');
	return n;
}

static unsigned long word(void)
{
	unsigned long n = 0;

	while (*at >= 'a' && *at <= 'z')
		n = n * 7 + (unsigned char)*at++;
	return n;
}

static unsigned long array(void)
{
	unsigned long sum = 1;

	at++;
	if (next_is(']'))
		return sum;
	do
		sum += value();
	while (next_is(','));
	next_is(']');
	return sum;
}

static unsigned long object(void)
{
	unsigned long sum = 2;

	at++;
	if (next_is('}'))
		return sum;
	do {
		skip();
		sum ^= string();
		next_is(':');
		sum += value();
	} while (next_is(','));
	next_is('}');
	return sum;
}

static unsigned long value(void)
{
	skip();
	switch (*at) {
	case '{':
		return object();
	case '[':
		return array();
	case '"':
		return string();
	case 't':
	case 'f':
	case 'n':
		return word();
	default:
		return number();
	}
}

unsigned long NAME(json)(void)
{
	unsigned long sum = 0;

	for (int i = 0; i < 40; i++) {
		at = text;
		sum += value();
	}
	return sum;
}

/* --- quicksort -------------------------------------------------------------------------------- */

static int ascending(const int *a, const int *b)
{
	return (*a > *b) - (*a < *b);
}

static void swap(int *a, int *b)
{
	int t = *a;

	*a = *b;
	*b = t;
}

static void quicksort(int *v, int nr, int (*compare)(const int *a, const int *b))
{
	int last = 0;

	if (nr < 2)
		return;
	swap(&v[0], &v[nr / 2]);
	for (int i = 1; i < nr; i++) {
		if (compare(&v[i], &v[0]) < 0)
			swap(&v[++last], &v[i]);
	}
	swap(&v[0], &v[last]);
	quicksort(v, last, compare);
	quicksort(v + last + 1, nr - last - 1, compare);
}

unsigned long NAME(sort)(void)
{
	static int v[1000];
	unsigned seed = 1;

	for (int i = 0; i < 1000; i++) {
		seed = seed * 1103515245u + 12345u;
		v[i] = (int)(seed >> 8);
	}
	quicksort(v, 1000, ascending);
	return (unsigned long)v[500];
}
