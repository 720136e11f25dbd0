/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing byte string, always NUL-terminated. Allocation failure is sticky: appends after it do
 * nothing, and uni_strbuf_failed() says so once at the end instead of after every call.
 */
#ifndef UNI_BASE_STRBUF_H
#define UNI_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uni_strbuf {
	char *s;    /* never NULL: points to a static empty string at first */
	size_t len; /* without the NUL */
	size_t cap;
	bool failed;
};

void uni_strbuf_init(struct uni_strbuf *b);
void uni_strbuf_deinit(struct uni_strbuf *b); /* usable again afterwards */
void uni_strbuf_reset(struct uni_strbuf *b);  /* length 0, memory kept */
void uni_strbuf_add(struct uni_strbuf *b, const void *data, size_t len);
void uni_strbuf_adds(struct uni_strbuf *b, const char *s);
void uni_strbuf_addc(struct uni_strbuf *b, char c);
void uni_strbuf_addf(struct uni_strbuf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "text"..., with other characters escaped as in C: at most `max` bytes of it. */
void uni_strbuf_quote(struct uni_strbuf *b, const void *text, size_t len, size_t max);
bool uni_strbuf_reserve(struct uni_strbuf *b, size_t extra);
static inline bool uni_strbuf_failed(const struct uni_strbuf *b)
{
	return b->failed;
}
/* Owned by the caller, free() it; NULL if an allocation failed. The buffer is empty afterwards. */
char *uni_strbuf_detach(struct uni_strbuf *b);

#define _cleanup_strbuf_ __attribute__((cleanup(uni_strbuf_deinit)))

#endif
