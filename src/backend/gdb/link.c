/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/err.h"

#define IDLE_MAX 64 /* receptions in a row without a request */

void uni_gdb_link_init(struct uni_gdb_link *l, int fd)
{
	memset(l, 0, sizeof(*l));
	l->fd = fd;
}

void uni_gdb_link_close(struct uni_gdb_link *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
	l->gone = true;
}

void uni_gdb_link_reset(struct uni_gdb_link *l)
{
	l->rx_at = l->rx_end = l->tx_size = 0;
	l->tx_full = l->ack_due = l->stopped_event = l->acked = false;
	l->signal = 0;
}

void uni_gdb_link_byte(struct uni_gdb_link *l, uint8_t byte)
{
	if (l->tx_size < sizeof(l->tx))
		l->tx[l->tx_size++] = byte;
	else
		l->tx_full = true;
}

void uni_gdb_link_packet(struct uni_gdb_link *l, const char *fmt, ...)
{
	char payload[UNI_GDB_SENT_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(payload, sizeof(payload), fmt, ap);
	va_end(ap);
	if (l->ack_due && !l->implicit_ack)
		uni_gdb_link_byte(l, '+');
	l->ack_due = false;
	if (n < 0 || (size_t)n >= sizeof(payload) ||
		!uni_gdb_frame(l->tx, sizeof(l->tx), &l->tx_size, payload))
		l->tx_full = true;
}

int uni_gdb_link_send(struct uni_gdb_link *l, uint64_t deadline_ns)
{
	size_t done = 0;

	if (l->gone)
		return -UNI_EGONE;
	if (l->tx_full) {
		l->tx_size = 0;
		l->tx_full = false;
		return -UNI_EPROTO;
	}
	while (done < l->tx_size) {
		ssize_t n = send(l->fd, l->tx + done, l->tx_size - done, MSG_NOSIGNAL);
		int rc = 0;

		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EAGAIN)
			rc = uni_wait_fd(l->fd, POLLOUT, deadline_ns);
		else if (errno != EINTR)
			rc = -UNI_EGONE;
		if (rc != 0) {
			l->gone = l->gone || rc == -UNI_EGONE;
			l->tx_size = 0;
			return rc;
		}
	}
	l->tx_size = 0;
	return 0;
}

/* Returns 0: received bytes; or -UNI_EAGAIN: there are none. */
static int receive_bytes(struct uni_gdb_link *l)
{
	ssize_t n;

	if (l->rx_at != 0) {
		memmove(l->rx, l->rx + l->rx_at, l->rx_end - l->rx_at);
		l->rx_end -= l->rx_at;
		l->rx_at = 0;
	}
	if (l->rx_end == sizeof(l->rx))
		return -UNI_EPROTO; /* a packet that never ends */
	do {
		n = recv(l->fd, l->rx + l->rx_end, sizeof(l->rx) - l->rx_end, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		l->rx_end += (size_t)n;
		return 0;
	}
	if (n < 0 && errno == EAGAIN)
		return -UNI_EAGAIN;
	l->gone = true;
	return -UNI_EGONE;
}

enum packet_role { ROLE_REPLY, ROLE_STOP, ROLE_END, ROLE_OUTPUT };

/*
 * Stop packets continue with at least two hex digits, which distinguishes them from feature names.
 */
static enum packet_role role_of(const struct uni_gdb_link *l)
{
	uint64_t v;
	size_t pos = 1;
	bool number = l->reply_size > 1 && uni_gdb_hex_u64(l->reply, l->reply_size, &pos, &v);

	if (l->reply_size == 0)
		return ROLE_REPLY;
	switch (l->reply[0]) {
	case 'T':
	case 'S':
		return number && pos >= 3 ? ROLE_STOP : ROLE_REPLY;
	case 'W':
	case 'X':
		return number ? ROLE_END : ROLE_REPLY;
	case 'O':
		return uni_gdb_reply_is(l, "OK") ? ROLE_REPLY : ROLE_OUTPUT;
	default:
		return ROLE_REPLY;
	}
}

static void take_output(struct uni_gdb_link *l)
{
	size_t len = (l->reply_size - 1) / 2;

	if (len <= UNI_GDB_OUT_MAX - l->output_size &&
		uni_gdb_unhex(l->reply + 1, len * 2, (uint8_t *)l->output + l->output_size, len))
		l->output_size += len;
}

/* "T05thread:01;" or "S05"; role_of() has seen that there are two digits. */
static void note_stop_packet(struct uni_gdb_link *l)
{
	l->stopped_event = uni_gdb_unhex(l->reply + 1, l->reply_size - 1, &l->signal, 1);
}

static int take_packet(struct uni_gdb_link *l, const struct uni_gdb_item *item, bool *reply_ret)
{
	int rc = uni_gdb_unescape(
		item->raw, item->raw_size, l->reply, UNI_GDB_REPLY_MAX, &l->reply_size);

	if (rc != 0)
		return -UNI_EPROTO;
	l->reply[l->reply_size] = '\0';
	if (l->ack_due && !l->implicit_ack)
		uni_gdb_link_byte(l, '+'); /* acknowledges the packet before */
	l->ack_due = true;
	switch (role_of(l)) {
	case ROLE_STOP:
		note_stop_packet(l);
		return 0;
	case ROLE_END:
		l->gone = true;
		return -UNI_EGONE;
	case ROLE_OUTPUT:
		take_output(l);
		return 0;
	default:
		*reply_ret = true;
		return 0;
	}
}

/* Takes one item out of the buffer. 0; -UNI_EAGAIN: none is complete; -UNI_EPROTO; -UNI_EGONE. */
static int take_item(struct uni_gdb_link *l, bool *reply_ret)
{
	struct uni_gdb_item item;
	size_t used = uni_gdb_next(l->rx + l->rx_at, l->rx_end - l->rx_at, &item);

	*reply_ret = false;
	l->rx_at += used;
	switch (item.kind) {
	case UNI_GDB_MORE:
		return -UNI_EAGAIN;
	case UNI_GDB_ACK:
		l->acked = true;
		return 0;
	case UNI_GDB_PACKET:
		return take_packet(l, &item, reply_ret);
	case UNI_GDB_NACK:
	case UNI_GDB_BAD:
		/* Sockets do not flip bits: one side is wrong, and the caller resynchronizes. */
		return -UNI_EPROTO;
	default:
		return 0;
	}
}

/* Takes items up to a reply (or, with a flag, until this is set). */
static int pump_items(struct uni_gdb_link *l, const bool *flag, uint64_t deadline_ns)
{
	bool is_reply = false;

	while (!l->gone) {
		int rc = take_item(l, &is_reply);

		if (rc == -UNI_EAGAIN) {
			rc = receive_bytes(l);
			if (rc == -UNI_EAGAIN)
				rc = uni_wait_fd(l->fd, POLLIN, deadline_ns);
			else if (rc == 0 && uni_now_ns() >= deadline_ns)
				rc = -UNI_ETIMEDOUT; /* it keeps sending junk */
		}
		if (rc != 0 || (flag != NULL ? *flag : is_reply))
			return rc;
	}
	return -UNI_EGONE;
}

int uni_gdb_link_reply(struct uni_gdb_link *l, uint64_t deadline_ns)
{
	return pump_items(l, NULL, deadline_ns);
}

int uni_gdb_link_stopped(struct uni_gdb_link *l, uint64_t deadline_ns)
{
	return l->stopped_event ? 0 : pump_items(l, &l->stopped_event, deadline_ns);
}

int uni_gdb_link_acked(struct uni_gdb_link *l, uint64_t deadline_ns)
{
	return l->acked ? 0 : pump_items(l, &l->acked, deadline_ns);
}

int uni_gdb_link_ask(struct uni_gdb_link *l, uint64_t deadline_ns)
{
	int rc = uni_gdb_link_send(l, deadline_ns);

	return rc != 0 ? rc : uni_gdb_link_reply(l, deadline_ns);
}

int uni_gdb_link_idle(struct uni_gdb_link *l)
{
	size_t nr = 0;

	if (l->gone)
		return -UNI_EGONE;
	for (;;) {
		bool is_reply;
		int rc = take_item(l, &is_reply);

		if (rc == -UNI_EAGAIN) {
			rc = receive_bytes(l);
			/* A flood: there was no request. */
			if (rc == 0 && ++nr > IDLE_MAX)
				return -UNI_EPROTO;
		}
		if (rc == -UNI_EAGAIN)
			return 0;
		if (rc != 0)
			return rc;
	}
}

int uni_gdb_link_settle(struct uni_gdb_link *l, uint64_t deadline_ns)
{
	if (l->ack_due)
		uni_gdb_link_byte(l, '+');
	l->ack_due = false;
	return l->tx_size != 0 ? uni_gdb_link_send(l, deadline_ns) : 0;
}

bool uni_gdb_reply_is(const struct uni_gdb_link *l, const char *text)
{
	return l->reply_size == strlen(text) && memcmp(l->reply, text, l->reply_size) == 0;
}

bool uni_gdb_reply_starts(const struct uni_gdb_link *l, const char *text)
{
	size_t n = strlen(text);

	return l->reply_size >= n && memcmp(l->reply, text, n) == 0;
}
