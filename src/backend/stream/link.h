/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and answers of the pull protocol (uniscope/stream.h). What was garbled or lost on the
 * way is asked again: every request may be made twice. All waits end.
 */
#ifndef UNI_BACKEND_STREAM_LINK_H
#define UNI_BACKEND_STREAM_LINK_H

#include <stdbool.h>

#include "backend/stream/line.h"
#include "uniscope/stream.h"

#define UNI_LINK_BODY (UNI_STREAM_BODY_MAX - UNI_STREAM_MAC_BYTES)

struct uni_link_stats {
	uint64_t frames, bad_bytes, stale, again; /* answers; noise; too late; asked once more */
};

struct uni_link {
	struct uni_line line; /* owned */
	uint32_t wait_ms;     /* without a byte: then it is asked again */
	unsigned tries;
	bool gone;	 /* closed, or it does not answer any more */
	char ended[128]; /* how; "" it did not */
	bool has_key, proved;
	uint8_t key[UNI_STREAM_KEY_BYTES];
	struct uni_stream_secrets secrets;
	uint32_t id;
	struct uni_link_stats stats;
	size_t rx_size;
	uint8_t rx[2 * (sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX)];
	uint8_t tx[sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX];
	uint8_t body[UNI_STREAM_BODY_MAX]; /* of the last answer */
	uint32_t body_size;
	uint16_t status;
};

/* Takes the line over. key: UNI_STREAM_KEY_BYTES or NULL. Says hello and proves the key. */
int uni_link_open(
	struct uni_link *l, const struct uni_line *line, const uint8_t *key, struct uni_err *err);
void uni_link_close(struct uni_link *l); /* says goodbye */

/*
 * 0 and the answer in l->body; or by its status: -UNI_EFAULT (NOT_HERE), -UNI_EMISMATCH (DIFFERS),
 * -UNI_ENOTSUP (CANNOT, UNKNOWN), -UNI_EPERM (NO_KEY); -UNI_EGONE.
 */
int uni_link_ask(struct uni_link *l, enum uni_stream_type type, const void *body, size_t size);
/* The same, where the answer has exactly so many bytes; else -UNI_EPROTO. */
int uni_link_ask_for(struct uni_link *l, enum uni_stream_type type, const void *body, size_t size,
	void *ret, size_t ret_size);
/* Places that are read one after the other, of any length, with as few requests as will do. */
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
