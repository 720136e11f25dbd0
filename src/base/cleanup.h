/* SPDX-License-Identifier: BSD-2-Clause */
/* Scope-bound release: `_cleanup_free_ char *s = ...;`. Never mixed with an out: label. */
#ifndef UNI_BASE_CLEANUP_H
#define UNI_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void uni_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void uni_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void uni_cleanup_fclose(FILE **f)
{
	if (*f != NULL)
		(void)fclose(*f);
}

#define _cleanup_free_	 _cleanup_(uni_cleanup_free)
#define _cleanup_close_	 _cleanup_(uni_cleanup_close)
#define _cleanup_fclose_ _cleanup_(uni_cleanup_fclose)

/* Hands ownership out of a _cleanup_ variable: `*ret = uni_take(p);` */
#define uni_take(p)                        \
	({                                 \
		__typeof__(p) take_ = (p); \
		(p) = NULL;                \
		take_;                     \
	})

/* The same for a descriptor: `st->fd = uni_take_fd(&fd);` */
static inline int uni_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
