/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line to a stub: bytes out, packets in, acknowledgements, events. Every wait has a deadline.
 * One request, one reply, in order; stop packets ("T05...") that come in between are events.
 */
#ifndef UNI_BACKEND_GDB_LINK_H
#define UNI_BACKEND_GDB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/gdb/packet.h"

#define UNI_GDB_RX_MAX	  65536
#define UNI_GDB_TX_MAX	  16384
#define UNI_GDB_REPLY_MAX 65536

struct uni_gdb_link {
	int fd; /* non-blocking; owned */
	/*
	 * QEMU takes the '$' of the next packet for the acknowledgement of its last one, and takes
	 * a '+' that it does not wait for as a reason to stop a running guest: there '+' is sent
	 * only by uni_gdb_link_settle(), once for the last packet.
	 */
	bool implicit_ack;
	bool ack_due;	    /* the last packet that came is not acknowledged yet */
	bool stopped_event; /* a stop packet came since this was last cleared */
	bool acked;	    /* a '+' came since this was last cleared */
	bool gone;	    /* closed by the stub, or it said that the guest ended */
	uint8_t rx[UNI_GDB_RX_MAX];
	size_t rx_at, rx_end;
	uint8_t tx[UNI_GDB_TX_MAX];
	size_t tx_size;
	bool tx_full;
	uint8_t reply[UNI_GDB_REPLY_MAX + 1]; /* unescaped; NUL behind it */
	size_t reply_size;
};

void uni_gdb_link_init(struct uni_gdb_link *l, int fd);
void uni_gdb_link_close(struct uni_gdb_link *l);

/* Queue for the next send; what does not fit makes that send fail. */
void uni_gdb_link_packet(struct uni_gdb_link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void uni_gdb_link_byte(struct uni_gdb_link *l, uint8_t byte);

/* 0, -UNI_EGONE, -UNI_ETIMEDOUT, -UNI_EPROTO. */
int uni_gdb_link_send(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Waits for the next reply, into l->reply. 0, -UNI_EGONE, -UNI_ETIMEDOUT, -UNI_EPROTO. */
int uni_gdb_link_reply(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Sends what is queued and waits for one reply. */
int uni_gdb_link_ask(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Waits for l->stopped_event. */
int uni_gdb_link_stopped(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Takes what has come without waiting: events, acknowledgements; replies are dropped. */
int uni_gdb_link_idle(struct uni_gdb_link *l);

/* Before the line falls silent: acknowledges the last packet if that is due. */
int uni_gdb_link_settle(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Forgets everything received and queued: before a resynchronization. */
void uni_gdb_link_reset(struct uni_gdb_link *l);

/* Is the reply this text? Does it begin so? */
bool uni_gdb_reply_is(const struct uni_gdb_link *l, const char *text);
bool uni_gdb_reply_starts(const struct uni_gdb_link *l, const char *text);

#endif
