/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet layer of the gdb remote serial protocol: framing, checksums, escapes, run lengths.
 * Pure functions over (data, size); whatever the stub sends is hostile.
 */
#ifndef UNI_BACKEND_GDB_PACKET_H
#define UNI_BACKEND_GDB_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum uni_gdb_kind {
	UNI_GDB_MORE,	/* nothing whole there yet */
	UNI_GDB_ACK,	/* '+' */
	UNI_GDB_NACK,	/* '-' */
	UNI_GDB_PACKET, /* $...#xx with the right checksum */
	UNI_GDB_NOTIFY, /* %...#xx, never acknowledged */
	UNI_GDB_BAD,	/* $...#xx with a wrong checksum */
	UNI_GDB_JUNK,	/* bytes that begin nothing: skipped */
};

struct uni_gdb_item {
	enum uni_gdb_kind kind;
	const uint8_t *raw; /* borrowed: between '$' and '#', still escaped */
	size_t raw_size;
};

/*
 * Looks at the start of data; returns the bytes used up, 0 (and UNI_GDB_MORE) when more are
 * needed. Never looks past size.
 */
size_t uni_gdb_next(const uint8_t *data, size_t size, struct uni_gdb_item *ret);

/*
 * Undoes '}' escapes and '*' run lengths. 0, -UNI_EPROTO if they make no sense, -UNI_ERANGE if
 * the result is larger than cap: a short packet can stand for much, so cap decides.
 */
int uni_gdb_unescape(const uint8_t *raw, size_t raw_size, uint8_t *out, size_t cap, size_t *ret);

/* Appends $payload#xx at *pos; false, and nothing appended, if it does not fit. */
bool uni_gdb_frame(uint8_t *buf, size_t cap, size_t *pos, const char *payload);

/* Exactly `bytes` bytes from 2 * bytes hex digits; false if there are fewer or others. */
bool uni_gdb_unhex(const uint8_t *hex, size_t size, uint8_t *out, size_t bytes);

/* A hex number at *pos that ends at a non-digit; false if none or wider than 64 bits. */
bool uni_gdb_hex_u64(const uint8_t *text, size_t size, size_t *pos, uint64_t *ret);

/* A thread id: "2", "p1.2" (process kept in the text by the caller), "-1" is refused. */
struct uni_gdb_thread {
	char text[40]; /* as it goes into an Hg packet */
};

/*
 * One `m` reply of qfThreadInfo or qsThreadInfo ("m1,2", "l"): appends ids to ret from *nr on,
 * and counts on where ret is full. Returns 1 when the list has ended, 0 when more must be asked
 * for, -UNI_EPROTO for nonsense.
 */
int uni_gdb_threads(
	const uint8_t *reply, size_t size, struct uni_gdb_thread *ret, size_t cap, size_t *nr);

#endif
