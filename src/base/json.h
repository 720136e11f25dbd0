/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streaming JSON writer (RFC 8259): it writes commas, nesting and escapes. Strings are escaped so
 * that the result is also safe inside an HTML <script>: '<', U+2028 and U+2029 too. (JSON is read
 * with libjansson.)
 */
#ifndef UNI_BASE_JSON_H
#define UNI_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sink.h"

#define UNI_JSON_DEPTH 32

struct uni_json {
	struct uni_sink *out; /* borrowed */
	unsigned depth;
	bool pretty; /* one member on each line, two spaces for each level */
	bool after_key;
	bool has_member[UNI_JSON_DEPTH + 1];
};

void uni_json_init(struct uni_json *j, struct uni_sink *out, bool pretty);
void uni_json_object(struct uni_json *j); /* { */
void uni_json_object_end(struct uni_json *j);
void uni_json_array(struct uni_json *j); /* [ */
void uni_json_array_end(struct uni_json *j);
void uni_json_key(struct uni_json *j, const char *key);
void uni_json_str(struct uni_json *j, const char *s); /* NULL writes null */
void uni_json_u64(struct uni_json *j, uint64_t v);
void uni_json_i64(struct uni_json *j, int64_t v);
void uni_json_double(struct uni_json *j, double v); /* not finite writes null */
void uni_json_bool(struct uni_json *j, bool v);
void uni_json_null(struct uni_json *j);
/* Addresses as "0x..." strings: JSON numbers lose bits above 2^53 in most readers. */
void uni_json_hex(struct uni_json *j, uint64_t v);

#define uni_json_kv(type, j, key, value)       \
	do {                                   \
		uni_json_key((j), (key));      \
		uni_json_##type((j), (value)); \
	} while (0)

#endif
