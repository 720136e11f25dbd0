/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One Python pickle (protocols 2 to 5) that holds an integer, a text, bytes, or one flat dictionary
 * of these. Everything else, above all what would call something, is refused.
 */
#ifndef UNI_FORMAT_UKTRACE_PICKLE_H
#define UNI_FORMAT_UKTRACE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"
#include "base/vec.h"

#define UNI_PICKLE_PAIRS_MAX 1024

enum uni_pickle_kind {
	UNI_PICKLE_NONE,
	UNI_PICKLE_INT,
	UNI_PICKLE_TEXT,
	UNI_PICKLE_BYTES,
	UNI_PICKLE_DICT,
	UNI_PICKLE_MARK,
};

struct uni_pickle_value {
	enum uni_pickle_kind kind;
	uint64_t v;
	const uint8_t *data; /* borrowed from the loaded data */
	size_t size;
};

struct uni_pickle_pair {
	struct uni_pickle_value key, value;
};

struct uni_pickle {
	struct uni_pickle_value result;
	UNI_VEC(struct uni_pickle_pair) pairs; /* of the dictionary, as they came */
	size_t used;			       /* bytes of the data */
	bool cut; /* the result is bytes, and the data ends before they, or their pickle, do */
};

/* ret needs no initialization and is to be freed whatever comes back. -UNI_EFORMAT, -UNI_ENOMEM */
int uni_pickle_load(const uint8_t *data, size_t size, struct uni_pickle *ret, struct uni_err *err);
void uni_pickle_free(struct uni_pickle *p);

/* Writing protocol 3, which every Python 3 reads. */
void uni_pickle_begin(struct uni_sink *out);
void uni_pickle_put_text(struct uni_sink *out, const char *s);
void uni_pickle_put_bytes(struct uni_sink *out, const uint8_t *data, size_t size);
void uni_pickle_end(struct uni_sink *out);

#endif
