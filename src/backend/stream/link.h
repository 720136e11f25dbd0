/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and replies of the pull protocol (uniscope/stream.h). After a damaged or lost reply, the
 * request is sent again: every request may be sent twice. All waits end.
 */
#ifndef UNI_BACKEND_STREAM_LINK_H
#define UNI_BACKEND_STREAM_LINK_H

#include <stdbool.h>

#include "backend/stream/line.h"
#include "uniscope/stream.h"

#define UNI_LINK_BODY (UNI_STREAM_BODY_MAX - UNI_STREAM_MAC_BYTES)

struct uni_link_stats {
	uint64_t frames, bad_bytes, stale,
		again; /* replies; noise; too late; requests sent again */
};

struct uni_link {
	struct uni_line line; /* owned */
	uint32_t wait_ms;     /* time without a byte, after which the request is sent again */
	unsigned tries;
	bool gone;	 /* closed, or the guest does not reply any more */
	char ended[128]; /* how it ended; "": it has not */
	bool has_key, proved;
	uint8_t key[UNI_STREAM_KEY_BYTES];
	struct uni_stream_secrets secrets;
	uint32_t id;
	struct uni_link_stats stats;
	size_t rx_size;
	uint8_t rx[2 * (sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX)];
	uint8_t tx[sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX];
	uint8_t body[UNI_STREAM_BODY_MAX]; /* of the last reply */
	uint32_t body_size;
	uint16_t status;
};

/* Takes over the line. key: UNI_STREAM_KEY_BYTES or NULL. Sends hello and proves the key. */
int uni_link_open(
	struct uni_link *l, const struct uni_line *line, const uint8_t *key, struct uni_err *err);
void uni_link_close(struct uni_link *l); /* says goodbye */

/*
 * Returns 0, and the reply in l->body. Otherwise by the reply's status: -UNI_EFAULT (NOT_HERE),
 * -UNI_EMISMATCH (DIFFERS), -UNI_ENOTSUP (CANNOT, UNKNOWN), -UNI_EPERM (NO_KEY); or -UNI_EGONE.
 */
int uni_link_ask(struct uni_link *l, enum uni_stream_type type, const void *body, size_t size);
/* The same for a reply of exactly ret_size bytes; otherwise -UNI_EPROTO. */
int uni_link_ask_for(struct uni_link *l, enum uni_stream_type type, const void *body, size_t size,
	void *ret, size_t ret_size);
/* Places of any length, read one after the other, with as few requests as possible. */
struct uni_link_range {
	uint64_t va;
	void *buf;
	size_t size;
};
int uni_link_read_all(struct uni_link *l, const struct uni_link_range *r, size_t nr);
int uni_link_read(struct uni_link *l, uint64_t va, void *buf, size_t size);

/* Reads the key's file: 32 hexadecimal digits. */
int uni_link_key(const char *path, uint8_t ret[UNI_STREAM_KEY_BYTES], struct uni_err *err);

#endif
