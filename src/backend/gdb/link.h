/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to a stub: bytes out, packets in, acknowledgements, events. Every wait has a
 * deadline. One request gets one reply, in order. Stop packets ("T05...") that arrive in between
 * are events.
 */
#ifndef UNI_BACKEND_GDB_LINK_H
#define UNI_BACKEND_GDB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/gdb/packet.h"

#define UNI_GDB_RX_MAX	  65536
#define UNI_GDB_TX_MAX	  16384
#define UNI_GDB_SENT_MAX  640 /* one packet of it */
#define UNI_GDB_REPLY_MAX 65536
#define UNI_GDB_OUT_MAX	  65536
#define UNI_GDB_TRAP	  5 /* the signal of a breakpoint, and of a step */

struct uni_gdb_link {
	int fd; /* non-blocking; owned */
	/*
	 * For QEMU. It takes the '$' of the next packet as the acknowledgement of its last packet.
	 * It takes an unexpected '+' as a reason to stop a running guest. So '+' is only sent by
	 * uni_gdb_link_settle(), once, for the last packet.
	 */
	bool implicit_ack;
	bool ack_due;	    /* the last packet from the stub is not acknowledged yet */
	bool stopped_event; /* a stop packet arrived since this was last cleared */
	uint8_t signal;	    /* of the last stop packet: UNI_GDB_TRAP, 2 for a pause, ... */
	bool acked;	    /* a '+' arrived since this was last cleared */
	bool gone;	    /* closed by the stub, or the stub said that the guest ended */
	uint8_t rx[UNI_GDB_RX_MAX];
	size_t rx_at, rx_end;
	uint8_t tx[UNI_GDB_TX_MAX];
	size_t tx_size;
	bool tx_full;
	uint8_t reply[UNI_GDB_REPLY_MAX + 1]; /* unescaped; followed by a NUL */
	size_t reply_size;
	char output[UNI_GDB_OUT_MAX + 1]; /* text of its monitor; what does not fit is dropped */
	size_t output_size;		  /* set to 0 before a command */
};

void uni_gdb_link_init(struct uni_gdb_link *l, int fd);
void uni_gdb_link_close(struct uni_gdb_link *l);

/* Queues a packet for the next send. If it does not fit, that send fails. */
void uni_gdb_link_packet(struct uni_gdb_link *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void uni_gdb_link_byte(struct uni_gdb_link *l, uint8_t byte);

/* 0, -UNI_EGONE, -UNI_ETIMEDOUT, -UNI_EPROTO. */
int uni_gdb_link_send(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Waits for the next reply, into l->reply. 0, -UNI_EGONE, -UNI_ETIMEDOUT, -UNI_EPROTO. */
int uni_gdb_link_reply(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Sends all queued packets and waits for one reply. */
int uni_gdb_link_ask(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Waits for l->stopped_event. */
int uni_gdb_link_stopped(struct uni_gdb_link *l, uint64_t deadline_ns);
/* Until a '+' arrives: the stub has read the last packet. */
int uni_gdb_link_acked(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Takes all received items without waiting: events and acknowledgements. Drops replies. */
int uni_gdb_link_idle(struct uni_gdb_link *l);

/* Call before a longer silence: acknowledges the last packet, if that is due. */
int uni_gdb_link_settle(struct uni_gdb_link *l, uint64_t deadline_ns);

/* Forgets all received and queued bytes, before a resynchronization. */
void uni_gdb_link_reset(struct uni_gdb_link *l);

/* Is the reply this text? Does it start with this text? */
bool uni_gdb_reply_is(const struct uni_gdb_link *l, const char *text);
bool uni_gdb_reply_starts(const struct uni_gdb_link *l, const char *text);

#endif
