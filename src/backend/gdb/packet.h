/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet layer of the gdb remote serial protocol: framing, checksums, escapes, run lengths.
 * Pure functions over (data, size); all bytes from the stub are hostile.
 */
#ifndef UNI_BACKEND_GDB_PACKET_H
#define UNI_BACKEND_GDB_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum uni_gdb_kind {
	UNI_GDB_MORE,	/* nothing complete yet */
	UNI_GDB_ACK,	/* '+' */
	UNI_GDB_NACK,	/* '-' */
	UNI_GDB_PACKET, /* $...#xx with the right checksum */
	UNI_GDB_NOTIFY, /* %...#xx, never acknowledged */
	UNI_GDB_BAD,	/* $...#xx with a wrong checksum */
	UNI_GDB_JUNK,	/* bytes that do not begin an item: skipped */
};

struct uni_gdb_item {
	enum uni_gdb_kind kind;
	const uint8_t *raw; /* borrowed: between '$' and '#', still escaped */
	size_t raw_size;
};

/*
 * Looks at the start of data. Returns the bytes used up; 0 (and UNI_GDB_MORE) if more are needed.
 * Never looks past size.
 */
size_t uni_gdb_next(const uint8_t *data, size_t size, struct uni_gdb_item *ret);

/*
 * Undoes '}' escapes and '*' run lengths. Returns 0; -UNI_EPROTO: malformed; -UNI_ERANGE: the
 * result is larger than cap. A short packet can stand for many bytes, so cap is the limit.
 */
int uni_gdb_unescape(const uint8_t *raw, size_t raw_size, uint8_t *out, size_t cap, size_t *ret);

/* Appends $payload#xx at *pos. False if it does not fit; then nothing is appended. */
bool uni_gdb_frame(uint8_t *buf, size_t cap, size_t *pos, const char *payload);

/*
 * Converts 2 * bytes hex digits to `bytes` bytes; false if there are fewer digits, or other
 * characters.
 */
bool uni_gdb_unhex(const uint8_t *hex, size_t size, uint8_t *out, size_t bytes);

/* A hex number at *pos that ends at a non-digit; false: none, or wider than 64 bits. */
bool uni_gdb_hex_u64(const uint8_t *text, size_t size, size_t *pos, uint64_t *ret);

/* A thread id: "2", or "p1.2" (the caller keeps the process in the text); "-1" is refused. */
struct uni_gdb_thread {
	char text[40]; /* in the form for an Hg packet */
};

/*
 * Parses one `m` reply of qfThreadInfo or qsThreadInfo ("m1,2", "l"). Appends ids to ret from *nr
 * on, and only counts when ret is full. Returns 1: the list has ended; 0: request more;
 * -UNI_EPROTO: malformed.
 */
int uni_gdb_threads(
	const uint8_t *reply, size_t size, struct uni_gdb_thread *ret, size_t cap, size_t *nr);

#endif
