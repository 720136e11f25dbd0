/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VMM that does not reply any more, because somebody stopped it or its host is busy. We must not
 * wait for it, and must not fill its socket. So it gets one request. Later, before any other
 * exchange, we check whether the reply has arrived.
 */
#include "base/clock.h"
#include "backend/gdb/breaks.h"
#include "backend/gdb/stub.h"

#define SEND_NS	  (100 * UNI_NSEC_PER_MSEC)
#define SETTLE_NS UNI_NSEC_PER_SEC
#define LONG_NS	  (3600 * UNI_NSEC_PER_SEC)

static void ask_if_alive(struct uni_gdb_stub *s)
{
	(void)uni_gdb_link_idle(&s->link);
	uni_gdb_link_reset(&s->link);
	uni_gdb_link_byte(&s->link, 0x03);
	uni_gdb_link_byte(&s->link, '+');
	uni_gdb_link_packet(&s->link, "qC");
	(void)uni_gdb_link_send(&s->link, uni_now_ns() + SEND_NS);
}

void uni_gdb_stub_silence(struct uni_gdb_stub *s)
{
	ask_if_alive(s);
	/* The guest is stopped, or will be. But we do not hold it, as we cannot resume it now. */
	if (s->state != UNI_GDB_PAUSED)
		s->state = UNI_GDB_RUNNING;
	s->silent = true;
}

/* The reply to this request, after the replies to all earlier ones. */
static int hear_answer(struct uni_gdb_stub *s, uint64_t until_ns)
{
	int rc;

	do {
		rc = uni_gdb_link_reply(&s->link, until_ns);
	} while (rc == 0 && !uni_gdb_reply_starts(&s->link, "QC"));
	return rc;
}

int uni_gdb_stub_listen(struct uni_gdb_stub *s, uint64_t wait_ns)
{
	int rc;

	if (!s->silent)
		return 0;
	rc = hear_answer(s, uni_now_ns() + wait_ns);
	if (rc == -UNI_EGONE) {
		s->state = UNI_GDB_LOST;
		uni_gdb_link_close(&s->link);
	}
	if (rc != 0)
		return rc == -UNI_EGONE ? rc : -UNI_EAGAIN;
	s->silent = false;
	/* It may have been silent in the middle of a step: none of them is left. */
	if (uni_gdb_breaks_remove_all(s) != 0) {
		uni_gdb_stub_silence(s);
		return -UNI_EAGAIN;
	}
	if (s->state == UNI_GDB_PAUSED && !s->link.stopped_event)
		return uni_gdb_link_settle(&s->link, uni_now_ns() + SETTLE_NS);
	s->state = UNI_GDB_HELD;
	return uni_gdb_stub_resume(s);
}

void uni_gdb_stub_await(struct uni_gdb_stub *s)
{
	int rc;

	ask_if_alive(s);
	do {
		rc = hear_answer(s, uni_now_ns() + LONG_NS);
	} while (rc != 0 && rc != -UNI_EGONE);
}
