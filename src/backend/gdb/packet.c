/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/packet.h"

#include <string.h>

#include "base/checked.h"
#include "base/err.h"
#include "base/text.h"

static size_t next_packet(const uint8_t *data, size_t size, struct uni_gdb_item *ret)
{
	const uint8_t *hash = memchr(data + 1, '#', size - 1);
	size_t len;
	uint8_t sum = 0;
	int hi, lo;

	if (hash == NULL || size - (size_t)(hash - data) < 3)
		return 0;
	len = (size_t)(hash - data) - 1;
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + data[1 + i]);
	hi = uni_hex_digit(hash[1]);
	lo = uni_hex_digit(hash[2]);
	ret->raw = data + 1;
	ret->raw_size = len;
	if (hi < 0 || lo < 0 || (hi << 4 | lo) != sum)
		ret->kind = UNI_GDB_BAD;
	else
		ret->kind = data[0] == '%' ? UNI_GDB_NOTIFY : UNI_GDB_PACKET;
	return len + 4;
}

static bool begins_item(uint8_t c)
{
	return c == '+' || c == '-' || c == '$' || c == '%';
}

size_t uni_gdb_next(const uint8_t *data, size_t size, struct uni_gdb_item *ret)
{
	size_t n = 0;

	*ret = (struct uni_gdb_item){ .kind = UNI_GDB_MORE };
	if (size == 0)
		return 0;
	if (data[0] == '+' || data[0] == '-') {
		ret->kind = data[0] == '+' ? UNI_GDB_ACK : UNI_GDB_NACK;
		return 1;
	}
	if (data[0] == '$' || data[0] == '%')
		return next_packet(data, size, ret);
	ret->kind = UNI_GDB_JUNK;
	while (n < size && !begins_item(data[n]))
		n++;
	return n;
}

/* "c*n" stands for c and n - 29 more of it. */
static int expand_run(uint8_t count, uint8_t *out, size_t cap, size_t *len)
{
	size_t n;

	if (*len == 0 || count < 32 || count > 126)
		return -UNI_EPROTO;
	n = (size_t)count - 29;
	if (n > cap - *len)
		return -UNI_ERANGE;
	memset(out + *len, out[*len - 1], n);
	*len += n;
	return 0;
}

int uni_gdb_unescape(const uint8_t *raw, size_t raw_size, uint8_t *out, size_t cap, size_t *ret)
{
	size_t len = 0;

	for (size_t i = 0; i < raw_size; i++) {
		uint8_t c = raw[i];

		if ((c == '*' || c == '}') && ++i == raw_size)
			return -UNI_EPROTO;
		if (c == '*') {
			int rc = expand_run(raw[i], out, cap, &len);

			if (rc != 0)
				return rc;
			continue;
		}
		if (len == cap)
			return -UNI_ERANGE;
		out[len++] = c == '}' ? raw[i] ^ 0x20 : c;
	}
	*ret = len;
	return 0;
}

bool uni_gdb_frame(uint8_t *buf, size_t cap, size_t *pos, const char *payload)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(payload), at = *pos;
	uint8_t sum = 0;

	if (at > cap || cap - at < 4 || len > cap - at - 4)
		return false;
	buf[at++] = '$';
	for (size_t i = 0; i < len; i++) {
		buf[at++] = (uint8_t)payload[i];
		sum = (uint8_t)(sum + (uint8_t)payload[i]);
	}
	buf[at++] = '#';
	buf[at++] = (uint8_t)digits[sum >> 4];
	buf[at++] = (uint8_t)digits[sum & 15];
	*pos = at;
	return true;
}

bool uni_gdb_unhex(const uint8_t *hex, size_t size, uint8_t *out, size_t bytes)
{
	if (size / 2 < bytes)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		int hi = uni_hex_digit(hex[2 * i]), lo = uni_hex_digit(hex[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return true;
}

bool uni_gdb_hex_u64(const uint8_t *text, size_t size, size_t *pos, uint64_t *ret)
{
	size_t i = *pos;
	uint64_t v = 0;

	while (i < size && uni_hex_digit(text[i]) >= 0) {
		if (v >> 60 != 0)
			return false;
		v = v << 4 | (uint64_t)uni_hex_digit(text[i++]);
	}
	if (i == *pos)
		return false;
	*pos = i;
	*ret = v;
	return true;
}

/* "p1.2" or "2"; anything else would let a stub put its own bytes into our packets. */
static bool thread_ok(const uint8_t *text, size_t size)
{
	size_t pos = 0;
	uint64_t v;

	if (size > 0 && text[0] == 'p') {
		pos = 1;
		if (!uni_gdb_hex_u64(text, size, &pos, &v) || pos == size || text[pos++] != '.')
			return false;
	}
	return uni_gdb_hex_u64(text, size, &pos, &v) && pos == size;
}

int uni_gdb_threads(
	const uint8_t *reply, size_t size, struct uni_gdb_thread *ret, size_t cap, size_t *nr)
{
	size_t pos = 1;

	if (size == 1 && reply[0] == 'l')
		return 1;
	if (size < 2 || reply[0] != 'm')
		return -UNI_EPROTO;
	while (pos < size) {
		const uint8_t *comma = memchr(reply + pos, ',', size - pos);
		size_t len = comma != NULL ? (size_t)(comma - reply) - pos : size - pos;

		if (len >= sizeof(ret->text) || !thread_ok(reply + pos, len))
			return -UNI_EPROTO;
		if (*nr < cap) {
			memset(&ret[*nr], 0, sizeof(ret[*nr]));
			memcpy(ret[*nr].text, reply + pos, len);
		}
		(*nr)++;
		pos += len + 1;
	}
	return 0;
}
