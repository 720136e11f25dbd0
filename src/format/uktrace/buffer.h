/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records in Unikraft's trace buffer (uk_trace_buffer), one after the other. Two CPUs that
 * write at once, or an interrupt in between, leave invalid bytes. Then reading goes on at the next
 * record whose length matches its tracepoint's arguments.
 */
#ifndef UNI_FORMAT_UKTRACE_BUFFER_H
#define UNI_FORMAT_UKTRACE_BUFFER_H

#include "base/strbuf.h"
#include "format/uktrace/defs.h"

struct uni_ukt_value {
	uint64_t v;	  /* of an integer, not extended */
	const uint8_t *s; /* of a string: s_len bytes as the guest wrote them; borrowed */
	uint8_t s_len;
};

struct uni_ukt_record {
	uint64_t ns; /* the guest's monotonic clock */
	uint64_t cookie;
	const struct uni_ukt_def *def; /* NULL: no tracepoint that is known has this cookie */
	uint32_t size;		       /* bytes of the arguments */
	struct uni_ukt_value arg[UNI_UKT_ARGS_MAX];
};

struct uni_ukt_stats {
	uint64_t records;
	uint64_t unknown; /* of these: of no known tracepoint */
	uint64_t damaged; /* bytes that are no records */
	uint64_t gaps;	  /* times that reading had to skip bytes */
};

struct uni_ukt_reader {
	const uint8_t *data; /* borrowed */
	size_t size, pos;
	const struct uni_ukt_defs *defs;
	uint64_t bias;	   /* of the image: cookies in the buffer minus those in the definitions */
	unsigned ptr_size; /* 4 or 8: bytes of a cookie in the guest */
	struct uni_ukt_stats stats;
};

/* Both are borrowed. */
struct uni_ukt_reader uni_ukt_reader_make(const void *data, size_t size,
	const struct uni_ukt_defs *defs, unsigned ptr_size, uint64_t bias);
/* False at the end. Texts in *ret borrow the data. */
bool uni_ukt_next(struct uni_ukt_reader *r, struct uni_ukt_record *ret);

/* Bytes of a record before its arguments. */
size_t uni_ukt_head_size(unsigned ptr_size);

/*
 * The record's message as printf() would have made it in the guest, cleaned. Integers have their
 * recorded width and the sign that the conversion says. An argument without a conversion follows in
 * hex; a conversion without an argument is "?".
 */
void uni_ukt_format(const struct uni_ukt_record *r, struct uni_strbuf *out);

/* Of the conversion for argument i: is it signed, and to which base is it shown? */
struct uni_ukt_shape {
	bool is_signed, pointer;
	unsigned base;
};
struct uni_ukt_shape uni_ukt_shape(const struct uni_ukt_def *def, unsigned i);

/* The integer as a signed one, by its width. */
int64_t uni_ukt_signed(const struct uni_ukt_def *def, unsigned i, uint64_t v);

#endif
