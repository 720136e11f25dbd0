/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/stream/link.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"
#include "base/clock.h"

#define HEAD	sizeof(struct uni_stream_frame)
#define WAIT_MS 2000
#define TRIES	4
#define ASK_MS	60000 /* limit for a reply that arrives very slowly */

static int lose_link(struct uni_link *l, const char *how)
{
	if (!l->gone)
		(void)snprintf(l->ended, sizeof(l->ended), "%s", how);
	l->gone = true;
	return -UNI_EGONE;
}

/* --- out -------------------------------------------------------------------------------------- */

static size_t seal_frame(
	struct uni_link *l, enum uni_stream_type type, const void *body, size_t size)
{
	struct uni_stream_frame f = { .magic = UNI_STREAM_MAGIC,
		.id = ++l->id,
		.type = (uint16_t)type,
		.size = (uint32_t)(size + (l->proved ? UNI_STREAM_MAC_BYTES : 0)) };
	uint8_t *to = l->tx + HEAD;

	if (size != 0)
		memcpy(to, body, size);
	if (l->proved)
		uni_stream_mac(l->secrets.to_guest, &f, to, to + size);
	f.crc = uni_stream_frame_crc(&f, to);
	memcpy(l->tx, &f, HEAD);
	return HEAD + f.size;
}

static int send_all(struct uni_link *l, const void *data, size_t size)
{
	uint64_t until = uni_now_ns() + l->wait_ms * UNI_NSEC_PER_MSEC;
	int rc = l->line.ops->send(l->line.ctx, data, size, until);

	return rc == -UNI_EGONE ? lose_link(l, "the stream was closed") : rc;
}

/*
 * If a frame was cut, the guest waits for its rest. This sends as many bytes as the longest frame
 * may lack, so that the guest sees an invalid frame.
 */
static int fill_up(struct uni_link *l)
{
	static const uint8_t zero[HEAD + UNI_STREAM_BODY_MAX];

	return send_all(l, zero, sizeof(zero));
}

/* --- in --------------------------------------------------------------------------------------- */

static void drop_bytes(struct uni_link *l, size_t n)
{
	l->rx_size -= n;
	memmove(l->rx, l->rx + n, l->rx_size);
}

/* Skips bytes at the front that begin no frame. */
static void pass_over(struct uni_link *l)
{
	static const uint32_t magic = UNI_STREAM_MAGIC;
	size_t at = 1;

	while (at < l->rx_size &&
		memcmp(l->rx + at, &magic, uni_min(l->rx_size - at, sizeof(magic))) != 0)
		at++;
	l->stats.bad_bytes += at;
	drop_bytes(l, at);
}

/* Skips noise as it arrives, so that the rest may be a frame. */
static void pass_noise(struct uni_link *l)
{
	static const uint32_t magic = UNI_STREAM_MAGIC;

	if (l->rx_size != 0 && memcmp(l->rx, &magic, uni_min(l->rx_size, sizeof(magic))) != 0)
		pass_over(l);
}

/* Takes the complete frame at the front. False: it is not complete yet. */
static bool next_frame(struct uni_link *l, struct uni_stream_frame *ret)
{
	pass_noise(l);
	while (l->rx_size >= HEAD) {
		memcpy(ret, l->rx, HEAD);
		if (ret->magic == UNI_STREAM_MAGIC && ret->size <= UNI_STREAM_BODY_MAX) {
			if (l->rx_size - HEAD < ret->size)
				return false;
			if (ret->crc == uni_stream_frame_crc(ret, l->rx + HEAD))
				return true;
		}
		pass_over(l);
	}
	return false;
}

/* Only somebody with the key can have made it. */
static bool is_sealed(const struct uni_link *l, const struct uni_stream_frame *f)
{
	const uint8_t *body = l->rx + HEAD;
	uint8_t mac[UNI_STREAM_MAC_BYTES];

	if (!l->proved)
		return true;
	if (f->size < sizeof(mac))
		return false;
	uni_stream_mac(l->secrets.to_host, f, body, mac);
	return uni_stream_same(mac, body + f->size - sizeof(mac), sizeof(mac)) != 0;
}

/* Takes the frame out. Returns whether it is the reply. */
static bool take_frame(
	struct uni_link *l, const struct uni_stream_frame *f, enum uni_stream_type type)
{
	bool ours = f->id == l->id && f->type == type && is_sealed(l, f);
	uint32_t mac = l->proved ? UNI_STREAM_MAC_BYTES : 0;

	if (ours) {
		l->body_size = f->size - mac;
		memcpy(l->body, l->rx + HEAD, l->body_size);
		l->status = f->status;
		l->stats.frames++;
	} else {
		l->stats.stale++;
	}
	drop_bytes(l, HEAD + f->size);
	return ours;
}

/* Returns 0; -UNI_ETIMEDOUT: for a while nothing arrived that may be a frame; -UNI_EGONE. */
static int get_answer(struct uni_link *l, enum uni_stream_type type, uint64_t give_up)
{
	uint64_t until = uni_now_ns() + l->wait_ms * UNI_NSEC_PER_MSEC;
	struct uni_stream_frame f;

	for (;;) {
		bool sense = false;
		int n;

		while (next_frame(l, &f)) {
			sense = true;
			if (take_frame(l, &f, type))
				return 0;
		}
		if (sense || l->rx_size != 0)
			until = uni_now_ns() + l->wait_ms * UNI_NSEC_PER_MSEC;
		if (uni_now_ns() >= uni_min(until, give_up))
			return -UNI_ETIMEDOUT;
		n = l->line.ops->receive(
			l->line.ctx, l->rx + l->rx_size, sizeof(l->rx) - l->rx_size, until);
		if (n < 0)
			return n == -UNI_EGONE ? lose_link(l, "the stream was closed") : n;
		l->rx_size += (size_t)n;
	}
}

static int status_code(uint16_t status)
{
	switch (status) {
	case UNI_STREAM_OK:
		return 0;
	case UNI_STREAM_NOT_HERE:
		return -UNI_EFAULT;
	case UNI_STREAM_DIFFERS:
		return -UNI_EMISMATCH;
	case UNI_STREAM_NO_KEY:
		return -UNI_EPERM;
	default:
		return -UNI_ENOTSUP;
	}
}

int uni_link_ask(struct uni_link *l, enum uni_stream_type type, const void *body, size_t size)
{
	uint64_t noise = l->stats.bad_bytes;
	uint64_t give_up = uni_now_ns() + ASK_MS * UNI_NSEC_PER_MSEC;

	if (l->gone)
		return -UNI_EGONE;
	if (size > UNI_LINK_BODY)
		return -UNI_EINVAL;
	for (unsigned i = 0; i < l->tries; i++) {
		int rc = i > 1 ? fill_up(l) : 0;

		l->stats.again += i != 0;
		if (rc == 0)
			rc = send_all(l, l->tx, seal_frame(l, type, body, size));
		if (rc == 0)
			rc = get_answer(l, type, give_up);
		if (rc == 0)
			return status_code(l->status);
		if (rc != -UNI_ETIMEDOUT)
			return rc;
	}
	return lose_link(l, noise != l->stats.bad_bytes
				    ? "what the guest sends makes no sense any more"
				    : "the guest does not answer any more");
}

int uni_link_ask_for(struct uni_link *l, enum uni_stream_type type, const void *body, size_t size,
	void *ret, size_t ret_size)
{
	int rc = uni_link_ask(l, type, body, size);

	if (rc == 0 && l->body_size != ret_size)
		return -UNI_EPROTO;
	if (rc == 0)
		memcpy(ret, l->body, ret_size);
	return rc;
}

/* How far reading has come: range i, byte `at`. */
struct place {
	size_t i, at;
};

/* Sends one request from `from` on; *to_ret: the place where it ends. */
static int read_some(struct uni_link *l, const struct uni_link_range *r, size_t nr,
	struct place from, struct place *to_ret)
{
	struct uni_stream_read body[UNI_STREAM_READ_MAX];
	struct place p = from;
	size_t n = 0, total = 0, done = 0;
	int rc;

	while (p.i < nr && n < uni_array_len(body) && total < UNI_LINK_BODY) {
		size_t size = uni_min(r[p.i].size - p.at, UNI_LINK_BODY - total);

		if (size != 0)
			body[n++] = (struct uni_stream_read){ .va = r[p.i].va + p.at,
				.size = (uint32_t)size };
		total += size;
		p.at += size;
		if (p.at == r[p.i].size)
			p = (struct place){ p.i + 1, 0 };
	}
	*to_ret = p;
	rc = n != 0 ? uni_link_ask(l, UNI_STREAM_READ, body, n * sizeof(body[0])) : 0;
	if (rc != 0)
		return rc;
	if (n != 0 && l->body_size != total)
		return -UNI_EPROTO;
	for (p = from; done < total; p = (struct place){ p.i + 1, 0 }) {
		size_t size = uni_min(r[p.i].size - p.at, total - done);

		memcpy((uint8_t *)r[p.i].buf + p.at, l->body + done, size);
		done += size;
	}
	return 0;
}

int uni_link_read_all(struct uni_link *l, const struct uni_link_range *r, size_t nr)
{
	struct place at = { 0, 0 };
	int rc = 0;

	while (rc == 0 && at.i < nr)
		rc = read_some(l, r, nr, at, &at);
	return rc;
}

int uni_link_read(struct uni_link *l, uint64_t va, void *buf, size_t size)
{
	return uni_link_read_all(l, &(struct uni_link_range){ va, buf, size }, 1);
}

/* --- begin and end ---------------------------------------------------------------------------- */

static int say_hello(struct uni_link *l, struct uni_stream_hello *ret, struct uni_err *err)
{
	struct uni_stream_hello h = { .version = UNI_STREAM_VERSION, .oldest = UNI_STREAM_VERSION };
	int rc;

	if (getrandom(h.nonce, sizeof(h.nonce), 0) != (ssize_t)sizeof(h.nonce))
		return uni_err_set(err, UNI_EIO, "stream: no random numbers to be had");
	rc = uni_link_ask_for(l, UNI_STREAM_HELLO, &h, sizeof(h), ret, sizeof(*ret));
	if (rc == -UNI_ENOTSUP && l->status == UNI_STREAM_VERSIONS)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: the guest speaks another version of the protocol than %d",
			l->line.text, UNI_STREAM_VERSION);
	if (rc == 0 && ret->version != UNI_STREAM_VERSION)
		rc = -UNI_EPROTO;
	if (rc == -UNI_EGONE && !l->stats.frames)
		return uni_err_set(err, UNI_ETIMEDOUT,
			"%s: no answer: the guest has to serve its tracer there "
			"(uni_stream_init, " UNI_GUEST_README
			"), and nobody else may be connected%s%s",
			l->line.text, l->stats.bad_bytes != 0 ? "; these bytes are none: " : "",
			l->stats.bad_bytes != 0 ? l->ended : "");
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"%s: the guest's hello cannot be understood: %s", l->line.text,
			uni_strerror(rc));
	if (l->has_key)
		uni_stream_derive(l->key, h.nonce, ret->nonce, &l->secrets);
	return 0;
}

static int prove_key(struct uni_link *l, struct uni_err *err)
{
	uint8_t proof[UNI_STREAM_PROOF];
	int rc = uni_link_ask_for(
		l, UNI_STREAM_PROVE, l->secrets.host_proof, UNI_STREAM_PROOF, proof, sizeof(proof));

	if (rc == -UNI_EPERM)
		return uni_err_set(err, UNI_EPERM, "%s: the guest has another key", l->line.text);
	if (rc == 0 && !uni_stream_same(proof, l->secrets.guest_proof, sizeof(proof)))
		return uni_err_set(
			err, UNI_EPERM, "%s: the peer does not know the key", l->line.text);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc, "%s: the key cannot be proved: %s",
			l->line.text, uni_strerror(rc));
	l->proved = true;
	return 0;
}

int uni_link_open(
	struct uni_link *l, const struct uni_line *line, const uint8_t *key, struct uni_err *err)
{
	struct uni_stream_hello hello = { 0 };
	int rc;

	memset(l, 0, sizeof(*l));
	l->line = *line;
	l->wait_ms = WAIT_MS;
	l->tries = TRIES;
	l->has_key = key != NULL;
	if (key != NULL)
		memcpy(l->key, key, sizeof(l->key));
	rc = say_hello(l, &hello, err);
	if (rc == 0 && (hello.flags & UNI_STREAM_WANTS_KEY) != 0 && key == NULL)
		rc = uni_err_set(err, UNI_EPERM,
			"%s: the guest wants a key: add ,key=FILE to the target", l->line.text);
	if (rc == 0 && (hello.flags & UNI_STREAM_WANTS_KEY) == 0 && key != NULL)
		rc = uni_err_set(err, UNI_EPERM,
			"%s: the peer does not ask for the key, so it may be "
			"anybody: leave out key= to trust it",
			l->line.text);
	if (rc == 0 && key != NULL)
		rc = prove_key(l, err);
	if (rc != 0)
		uni_link_close(l);
	return rc;
}

void uni_link_close(struct uni_link *l)
{
	if (l->line.ops != NULL && !l->gone) {
		l->tries = 1;
		(void)uni_link_ask(l, UNI_STREAM_BYE, NULL, 0);
	}
	uni_line_close(&l->line);
	l->gone = true;
}
