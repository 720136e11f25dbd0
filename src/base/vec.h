/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growing arrays: UNI_VEC(T) makes a struct with the members `T *v; size_t nr, cap;`, and
 * uni_vec_grow() grows it. Plain data, so that loops over it stay plain C.
 */
#ifndef UNI_BASE_VEC_H
#define UNI_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define UNI_VEC(T)              \
	struct {                \
		T *v;           \
		size_t nr, cap; \
	}

/* Makes room for `extra` more elements of `size` bytes; false when memory or size_t runs out. */
static inline bool uni_vec_grow_(void **v, size_t nr, size_t *cap, size_t extra, size_t size)
{
	size_t bytes, n = *cap < 8 ? 8 : *cap;
	void *p;

	/* nr <= *cap always, so this difference cannot wrap. */
	if (extra <= *cap - nr)
		return true;
	while (extra > n - nr) {
		if (__builtin_add_overflow(n, n / 2, &n))
			return false;
	}
	if (__builtin_mul_overflow(n, size, &bytes))
		return false;
	p = realloc(*v, bytes);
	if (p == NULL)
		return false;
	*v = p;
	*cap = n;
	return true;
}

/* The same without room to spare, for arrays that will not grow any more. */
static inline bool uni_vec_grow_to_(void **v, size_t nr, size_t *cap, size_t extra, size_t size)
{
	size_t bytes, n;
	void *p;

	if (extra <= *cap - nr)
		return true;
	if (__builtin_add_overflow(nr, extra, &n) || __builtin_mul_overflow(n, size, &bytes))
		return false;
	p = realloc(*v, bytes);
	if (p == NULL)
		return false;
	*v = p;
	*cap = n;
	return true;
}

#define uni_vec_grow_to(vec, extra) \
	uni_vec_grow_to_((void **)&(vec)->v, (vec)->nr, &(vec)->cap, (extra), sizeof(*(vec)->v))

#define uni_vec_grow(vec, extra) \
	uni_vec_grow_((void **)&(vec)->v, (vec)->nr, &(vec)->cap, (extra), sizeof(*(vec)->v))

/* Appends one element. As an expression: false when out of memory. */
#define uni_vec_push(vec, elem) \
	(uni_vec_grow((vec), 1) ? ((vec)->v[(vec)->nr++] = (elem), true) : false)

#define uni_vec_free(vec)                   \
	do {                                \
		free((vec)->v);             \
		(vec)->v = NULL;            \
		(vec)->nr = (vec)->cap = 0; \
	} while (0)

#define uni_vec_foreach(p, vec) \
	for (typeof((vec)->v) p = (vec)->v; p != NULL && p < (vec)->v + (vec)->nr; p++)

#endif
