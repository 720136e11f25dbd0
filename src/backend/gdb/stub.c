/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/stub.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/gdb/breaks.h"
#include "backend/gdb/question.h"
#include "backend/gdb/regs.h"

#define ANSWER_NS   UNI_NSEC_PER_SEC
#define AGAIN_NS    (500 * UNI_NSEC_PER_MSEC) /* one more try, before it counts as silent */
#define MUTE_NS	    (100 * UNI_NSEC_PER_MSEC)
#define READ_BATCH  8	 /* m packets that are sent together */
#define READ_MAX    2048 /* bytes of one m packet */
#define INTERRUPT   0x03
#define RECOVER_MAX 3

static uint64_t deadline_in(uint64_t ns)
{
	return uni_now_ns() + ns;
}

/*
 * QEMU handles its input byte by byte, and handles 0x03 before it looks at the next byte. So the
 * stop and the requests can be sent together. That saves one wake-up of each side while the guest
 * is stopped.
 */
static void queue_stop(struct uni_gdb_stub *s)
{
	if (s->state == UNI_GDB_HELD)
		return;
	s->link.stopped_event = false;
	uni_gdb_link_byte(&s->link, INTERRUPT);
}

/* If the guest was already paused, QEMU answers the requests, but sends no stop packet. */
static void note_stop(struct uni_gdb_stub *s)
{
	if (s->state != UNI_GDB_HELD)
		s->state = s->link.stopped_event ? UNI_GDB_HELD : UNI_GDB_PAUSED;
}

/* Stops the guest. For QEMU it only queues the stop; uni_gdb_link_send() must follow. */
static int stop_guest(struct uni_gdb_stub *s)
{
	uint64_t until = deadline_in(ANSWER_NS);
	int rc;

	if (s->qemu) {
		queue_stop(s);
		return 0;
	}
	if (s->state != UNI_GDB_RUNNING)
		return 0;
	queue_stop(s);
	rc = uni_gdb_link_send(&s->link, until);
	if (rc == 0)
		rc = uni_gdb_link_stopped(&s->link, until);
	if (rc == 0)
		s->state = UNI_GDB_HELD;
	return rc;
}

static int send_resume(struct uni_gdb_stub *s)
{
	int rc;

	s->link.stopped_event = s->link.acked = false;
	uni_gdb_link_packet(&s->link, "%s", s->vcont ? "vCont;c" : "c");
	rc = uni_gdb_link_send(&s->link, deadline_in(ANSWER_NS));
	if (rc == 0)
		s->state = UNI_GDB_RUNNING;
	return rc;
}

/* Sends a request to which only a stopped, listening QEMU replies in this way. */
static int resynchronize_stub(struct uni_gdb_stub *s)
{
	int rc = -UNI_EPROTO;

	for (int i = 0; i < RECOVER_MAX && rc != 0 && rc != -UNI_EGONE; i++) {
		uint64_t until = deadline_in(ANSWER_NS);

		(void)uni_gdb_link_idle(&s->link);
		uni_gdb_link_reset(&s->link);
		uni_gdb_link_byte(&s->link, INTERRUPT);
		uni_gdb_link_byte(&s->link, '+');
		uni_gdb_link_packet(&s->link, "qC");
		rc = uni_gdb_link_send(&s->link, until);
		while (rc == 0) {
			rc = uni_gdb_link_reply(&s->link, until);
			if (rc == 0 && uni_gdb_reply_starts(&s->link, "QC"))
				return 0;
		}
	}
	return rc;
}

/* For a stub that is not QEMU: it has stopped by now, or never will. */
static int generic_reset(struct uni_gdb_stub *s)
{
	int rc;

	(void)uni_gdb_link_idle(&s->link);
	uni_gdb_link_reset(&s->link);
	uni_gdb_link_byte(&s->link, INTERRUPT);
	rc = uni_gdb_link_send(&s->link, deadline_in(ANSWER_NS));
	if (rc != 0)
		return rc;
	(void)uni_gdb_link_stopped(&s->link, deadline_in(ANSWER_NS / 2));
	uni_gdb_link_byte(&s->link, '+');
	s->link.ack_due = false;
	return send_resume(s);
}

int uni_gdb_stub_reset(struct uni_gdb_stub *s)
{
	bool was_paused = s->state == UNI_GDB_PAUSED;
	int rc;

	if (!s->qemu)
		return was_paused ? 0 : generic_reset(s);
	rc = resynchronize_stub(s);
	if (rc == 0)
		rc = uni_gdb_breaks_remove_all(s);
	if (rc != 0)
		return rc;
	if (was_paused && !s->link.stopped_event)
		return uni_gdb_link_settle(&s->link, deadline_in(ANSWER_NS));
	return send_resume(s);
}

/*
 * Call it after a failure in the middle of an exchange: it is unknown whether the guest runs.
 * Brings the connection to a known state and resumes the guest, or gives the stub up. Returns the
 * caller's return value.
 */
int uni_gdb_stub_recover(struct uni_gdb_stub *s, int rc)
{
	if (rc == -UNI_EGONE || s->link.gone) {
		s->state = UNI_GDB_LOST;
		uni_gdb_link_close(&s->link);
		return -UNI_EGONE;
	}
	if (rc == -UNI_ETIMEDOUT && s->qemu) {
		uni_gdb_stub_silence(s);
		rc = uni_gdb_stub_listen(s, AGAIN_NS);
		return rc != 0 ? rc : -UNI_EAGAIN;
	}
	if (uni_gdb_stub_reset(s) == 0)
		return -UNI_EAGAIN;
	uni_gdb_stub_leave(s);
	return -UNI_EIO;
}

int uni_gdb_stub_resume(struct uni_gdb_stub *s)
{
	int rc;

	if (s->state != UNI_GDB_HELD)
		return s->state == UNI_GDB_LOST ? -UNI_EGONE : 0;
	rc = send_resume(s);
	return rc != 0 ? uni_gdb_stub_recover(s, rc) : 0;
}

static int all_regs(struct uni_gdb_stub *s, const struct uni_vcpuset *set, struct uni_regs *ret)
{
	uint64_t until = deadline_in(ANSWER_NS);
	int rc = stop_guest(s), bad = 0;
	size_t n = 0;

	if (rc == 0 && s->qemu) {
		for (int i = 0; i < s->nr_threads; i++) {
			if (uni_vcpuset_has(set, (uint32_t)i))
				uni_gdb_question_queue(s, i);
		}
		rc = uni_gdb_link_send(&s->link, until);
	}
	for (int i = 0; i < s->nr_threads && rc == 0; i++) {
		if (!uni_vcpuset_has(set, (uint32_t)i))
			continue;
		rc = uni_gdb_question_answer(s, i, until, &ret[n++]);
		if (rc == -UNI_EAGAIN) {
			bad = rc;
			rc = 0;
		}
	}
	if (rc != 0)
		return rc;
	note_stop(s);
	return bad;
}

int uni_gdb_stub_snap(struct uni_gdb_stub *s, const struct uni_vcpuset *set, struct uni_regs *ret)
{
	int rc;

	if (s->state == UNI_GDB_LOST)
		return -UNI_EGONE;
	rc = uni_gdb_stub_listen(s, 0);
	if (rc != 0)
		return rc;
	rc = all_regs(s, set, ret);
	if (rc == -UNI_EAGAIN) {
		int resumed = uni_gdb_stub_resume(s);

		return resumed != 0 ? resumed : rc;
	}
	if (rc != 0)
		return uni_gdb_stub_recover(s, rc);
	/*
	 * Somebody else may resume a guest that we must not resume: leave no acknowledgement due.
	 */
	if (s->state == UNI_GDB_PAUSED)
		(void)uni_gdb_link_settle(&s->link, deadline_in(ANSWER_NS));
	return 0;
}

static size_t chunk_size(const struct uni_gdb_stub *s, size_t left)
{
	size_t max = s->qemu ? s->packet_max / 2 : (s->packet_max - 8) / 2;

	max = uni_min(max, (size_t)READ_MAX);
	return uni_min(left, max);
}

/* Returns 0, -UNI_EFAULT, or an error of the connection. */
static int take_bytes(struct uni_gdb_stub *s, uint8_t *out, size_t len, uint64_t until)
{
	int rc = s->qemu ? uni_gdb_link_reply(&s->link, until) : uni_gdb_link_ask(&s->link, until);

	if (rc != 0)
		return rc;
	/* "E14" is an error; bytes always are pairs of digits. */
	if (s->link.reply_size != len * 2 || !uni_gdb_unhex(s->link.reply, len * 2, out, len))
		return -UNI_EFAULT;
	return 0;
}

/* Reads up to READ_BATCH packets of bytes; *done_ret is how much was requested. */
static int read_batch(
	struct uni_gdb_stub *s, uint64_t addr, uint8_t *out, size_t len, size_t *done_ret)
{
	uint64_t until = deadline_in(ANSWER_NS);
	size_t at = 0, part[READ_BATCH];
	int nr = 0, bad = 0, rc = 0;

	while (nr < (s->qemu ? READ_BATCH : 1) && at < len) {
		part[nr] = chunk_size(s, len - at);
		uni_gdb_link_packet(&s->link, "m%" PRIx64 ",%zx", addr + at, part[nr]);
		at += part[nr++];
	}
	*done_ret = at;
	at = 0;
	if (s->qemu)
		rc = uni_gdb_link_send(&s->link, until);
	for (int i = 0; i < nr && rc == 0; i++) {
		rc = take_bytes(s, out + at, part[i], until);
		at += part[i];
		if (rc == -UNI_EFAULT) {
			bad = rc;
			rc = 0;
		}
	}
	return rc != 0 ? rc : bad;
}

/* The first read switches QEMU to physical memory; it stays so until we leave. */
int uni_gdb_stub_physical(struct uni_gdb_stub *s)
{
	int rc;

	if (!s->want_phys || s->phys)
		return 0;
	uni_gdb_link_packet(&s->link, "Qqemu.PhyMemMode:1");
	rc = uni_gdb_link_ask(&s->link, deadline_in(ANSWER_NS));
	if (rc != 0)
		return rc;
	note_stop(s);
	s->phys = uni_gdb_reply_is(&s->link, "OK");
	return s->phys ? 0 : -UNI_EPROTO;
}

int uni_gdb_stub_read(struct uni_gdb_stub *s, uint64_t addr, void *buf, size_t len)
{
	bool held = s->state == UNI_GDB_HELD;
	uint8_t *out = buf;
	int rc, resumed;

	if (s->state == UNI_GDB_LOST)
		return -UNI_EGONE;
	if (len == 0)
		return 0;
	rc = uni_gdb_stub_listen(s, 0);
	if (rc != 0)
		return rc;
	rc = stop_guest(s);
	if (rc == 0)
		rc = uni_gdb_stub_physical(s);
	while (rc == 0 && len != 0) {
		size_t done;

		rc = read_batch(s, addr, out, len, &done);
		if (rc == 0 || rc == -UNI_EFAULT)
			note_stop(s);
		addr += done;
		out += done;
		len -= done;
	}
	if (rc != 0 && rc != -UNI_EFAULT)
		return uni_gdb_stub_recover(s, rc);
	if (s->state == UNI_GDB_PAUSED)
		(void)uni_gdb_link_settle(&s->link, deadline_in(ANSWER_NS));
	resumed = held ? 0 : uni_gdb_stub_resume(s);
	return resumed != 0 ? resumed : rc;
}

int uni_gdb_stub_idle(struct uni_gdb_stub *s)
{
	int rc;

	if (s->state == UNI_GDB_LOST)
		return -UNI_EGONE;
	if (s->silent)
		return uni_gdb_stub_listen(s, 0);
	rc = uni_gdb_link_idle(&s->link);
	if (rc != 0)
		return uni_gdb_stub_recover(s, rc);
	if (!s->link.stopped_event)
		return 0;
	if (s->link.signal == UNI_GDB_TRAP && uni_gdb_breaks_any(s->breaks)) {
		s->link.stopped_event = false;
		s->state = UNI_GDB_HELD;
		return 0;
	}
	if (s->state != UNI_GDB_RUNNING)
		return 0;
	s->link.stopped_event = false;
	if (s->qemu && !s->link.acked) {
		/*
		 * Somebody else had already resumed the guest, so QEMU took our `c` as a request to
		 * stop it. Undo that.
		 */
		s->state = UNI_GDB_HELD;
		return uni_gdb_stub_resume(s);
	}
	s->state = UNI_GDB_PAUSED;
	return uni_gdb_link_settle(&s->link, deadline_in(ANSWER_NS));
}

/* Waits for the OK that follows D; replies to earlier requests may come first. */
static int await_detached(struct uni_gdb_stub *s, uint64_t until)
{
	int rc = uni_gdb_link_ask(&s->link, until);

	while (rc == 0 && !uni_gdb_reply_is(&s->link, "OK")) {
		/* It does not know D, or not in this form: make the guest run, and disconnect. */
		if (s->link.reply_size == 0 || s->link.reply[0] == 'E')
			return send_resume(s);
		rc = uni_gdb_link_reply(&s->link, until);
	}
	return rc;
}

/* Physical memory mode is a switch in QEMU that outlives the connection. */
static int restore_memory_mode(struct uni_gdb_stub *s)
{
	if (s->phys == s->phys_was)
		return 0;
	uni_gdb_link_packet(&s->link, "Qqemu.PhyMemMode:%d", s->phys_was);
	return uni_gdb_link_ask(&s->link, deadline_in(ANSWER_NS));
}

/* A stub that names processes wants a process in D as well. */
static void put_detach(struct uni_gdb_stub *s)
{
	const char *id = s->thread[0].text;

	if (id[0] == 'p')
		uni_gdb_link_packet(&s->link, "D;%.*s", (int)strcspn(id + 1, "."), id + 1);
	else
		uni_gdb_link_packet(&s->link, "D");
}

/* Resumes the guest, and waits until the stub has read that: then the line may be closed. */
static int resume_surely(struct uni_gdb_stub *s, uint64_t wait_ns)
{
	int rc = send_resume(s);

	return rc != 0 ? rc : uni_gdb_link_acked(&s->link, deadline_in(wait_ns));
}

/*
 * By c, not by D. After D, no process of QEMU is attached, and qC or another D ends QEMU 7.2 by
 * SIGSEGV. We send these if D is not answered in time; the guardian sends them if we die before we
 * can tell that we have left.
 */
static int leave_qemu(struct uni_gdb_stub *s)
{
	bool was_paused = s->state == UNI_GDB_PAUSED;
	int rc = resynchronize_stub(s);

	if (rc == 0)
		rc = uni_gdb_breaks_remove_all(s);
	if (rc == 0)
		rc = restore_memory_mode(s);
	if (rc != 0 || (was_paused && !s->link.stopped_event))
		return rc;
	s->state = UNI_GDB_HELD;
	return resume_surely(s, ANSWER_NS);
}

/* In any state of the connection: stop (again), then detach. QEMU takes but one D (see above). */
static int leave_blindly(struct uni_gdb_stub *s, bool again)
{
	const uint64_t wait_ns = s->mute ? MUTE_NS : ANSWER_NS;

	(void)uni_gdb_link_idle(&s->link);
	uni_gdb_link_reset(&s->link);
	uni_gdb_link_byte(&s->link, INTERRUPT);
	uni_gdb_link_byte(&s->link, '+');
	if (again)
		return resume_surely(s, wait_ns);
	put_detach(s);
	return await_detached(s, deadline_in(wait_ns));
}

void uni_gdb_stub_leave(struct uni_gdb_stub *s)
{
	int rc = -UNI_EPROTO;

	if (s->state == UNI_GDB_LOST)
		return;
	if (!s->qemu && s->state == UNI_GDB_PAUSED)
		rc = 0;
	for (int i = 0; i < RECOVER_MAX && rc != 0 && rc != -UNI_EGONE; i++) {
		rc = s->qemu ? leave_qemu(s) : leave_blindly(s, i != 0);
		if (s->mute)
			break;
	}
	s->state = UNI_GDB_LOST;
	uni_gdb_link_close(&s->link);
}
