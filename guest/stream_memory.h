/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by stream.c and stream_memory.c. */
#ifndef UNI_GUEST_STREAM_MEMORY_H
#define UNI_GUEST_STREAM_MEMORY_H

#include "uniscope/stream.h"

#define UNI_STREAM_HEAD ((uint32_t)sizeof(struct uni_stream_frame))

typedef uint64_t __attribute__((may_alias)) uni_stream_word;

/* Copies forward, which is also right if bytes move down. */
static inline void uni_stream_copy(void *to, const void *from, uint64_t size)
{
	volatile uint8_t *t = to;
	const volatile uint8_t *f = from;
	uint64_t i = 0;

	if (((uint64_t)to | (uint64_t)from) % 8 == 0) {
		for (; i + 8 <= size; i += 8)
			*(volatile uni_stream_word *)(t + i) =
				*(const volatile uni_stream_word *)(f + i);
	}
	for (; i < size; i++)
		t[i] = f[i];
}

static inline uint8_t *uni_stream_body_in(struct uni_stream *s)
{
	return s->in.bytes + UNI_STREAM_HEAD;
}

static inline uint8_t *uni_stream_body_out(struct uni_stream *s)
{
	return s->out.bytes + UNI_STREAM_HEAD;
}

/*
 * Requests that read the guest's memory, or write to it. `size` bytes of body came in; *size_ret is
 * the size of the answer. They return enum uni_stream_status.
 */
unsigned uni_stream_on_read(struct uni_stream *s, uint32_t size, uint32_t *size_ret);
unsigned uni_stream_on_patch(struct uni_stream *s, uint32_t size, uint32_t *size_ret);

#endif
