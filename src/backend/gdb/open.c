/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake. QEMU stops the guest when a debugger connects. So only the most necessary is
 * requested here, and each exit lets the guest run again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/gdb/question.h"
#include "backend/gdb/regs.h"
#include "backend/gdb/stub.h"

#define FIRST_NS    (700 * UNI_NSEC_PER_MSEC) /* until the first reply; three tries at most */
#define ANSWER_NS   (2 * UNI_NSEC_PER_SEC)
#define PACKET_MIN  64
#define PACKET_DEF  400
#define PACKET_CAP  8192
#define THREAD_MORE 8192 /* qsThreadInfo packets at most: no hypervisor has so many vCPUs */

static int ask_packet(struct uni_gdb_stub *s, const char *packet)
{
	uni_gdb_link_packet(&s->link, "%s", packet);
	return uni_gdb_link_ask(&s->link, uni_now_ns() + ANSWER_NS);
}

static void parse_features(struct uni_gdb_stub *s)
{
	static const char key[] = "PacketSize=";
	const char *p = strstr((const char *)s->link.reply, key);
	uint64_t v;
	size_t pos = 0;

	s->packet_max = PACKET_DEF;
	if (p == NULL)
		return;
	p += sizeof(key) - 1;
	if (!uni_gdb_hex_u64((const uint8_t *)p, strlen(p), &pos, &v) || v < PACKET_MIN)
		return;
	s->packet_max = v < PACKET_CAP ? (unsigned)v : PACKET_CAP;
}

/*
 * The first request. If the guest ran, the connection stopped it, and its stop packet arrives
 * before the reply. If somebody had paused it, there is no stop packet.
 */
static int greet_stub(struct uni_gdb_stub *s, struct uni_err *err)
{
	int rc = -UNI_ETIMEDOUT;

	for (int i = 0; i < 3 && rc == -UNI_ETIMEDOUT; i++) {
		/* Some stubs sleep until they are interrupted. */
		if (i != 0)
			uni_gdb_link_byte(&s->link, 0x03);
		uni_gdb_link_packet(&s->link, "qSupported:vContSupported+;swbreak+;hwbreak+");
		rc = uni_gdb_link_ask(&s->link, uni_now_ns() + FIRST_NS);
	}
	s->mute = rc == -UNI_ETIMEDOUT;
	if (s->mute)
		return uni_err_set(err, UNI_EBUSY,
			"the gdb stub does not answer: it serves one debugger at a time; is "
			"another "
			"one attached, or the VMM stopped?");
	if (rc == -UNI_EGONE)
		return uni_err_set(err, UNI_EGONE,
			"the gdb stub hung up: the VM ended, or another debugger is attached");
	if (rc != 0)
		return uni_err_set(err, UNI_EPROTO,
			"the peer is no gdb stub: its first packet makes no sense");
	parse_features(s);
	return 0;
}

static int identify_stub(struct uni_gdb_stub *s)
{
	bool running = s->link.stopped_event;
	int rc = ask_packet(s, "qqemu.PhyMemMode");

	if (rc != 0)
		return rc;
	if (uni_gdb_reply_is(&s->link, "0") || uni_gdb_reply_is(&s->link, "1")) {
		s->phys_was = s->phys = uni_gdb_reply_is(&s->link, "1");
		s->qemu = s->can_phys = true;
	} else {
		rc = ask_packet(s, "qqemu.sstepbits");
		s->qemu = rc == 0 && uni_gdb_reply_starts(&s->link, "ENABLE=");
	}
	if (rc != 0)
		return rc;
	s->state = !s->qemu || running ? UNI_GDB_HELD : UNI_GDB_PAUSED;
	return 0;
}

static int generic_setup(struct uni_gdb_stub *s)
{
	int rc = ask_packet(s, "vCont?");

	if (rc != 0)
		return rc;
	s->vcont = strstr((const char *)s->link.reply, ";c") != NULL;
	/* The reply is a stop packet, which the link takes as an event. */
	s->link.stopped_event = false;
	uni_gdb_link_packet(&s->link, "?");
	rc = uni_gdb_link_send(&s->link, uni_now_ns() + ANSWER_NS);
	if (rc == 0)
		rc = uni_gdb_link_stopped(&s->link, uni_now_ns() + ANSWER_NS);
	if (rc == 0 && !s->vcont) {
		rc = ask_packet(s, "Hc-1");
	}
	return rc;
}

static int list_threads(struct uni_gdb_stub *s)
{
	size_t nr = 0;
	int rc = ask_packet(s, "qfThreadInfo");

	for (int i = 0; rc == 0; i++) {
		/* This stub has no threads: one vCPU, which need not be selected. */
		if (s->link.reply_size == 0)
			break;
		rc = uni_gdb_threads(
			s->link.reply, s->link.reply_size, s->thread, UNI_VCPU_MAX, &nr);
		if (rc == 0)
			rc = i < THREAD_MORE ? ask_packet(s, "qsThreadInfo") : -UNI_EPROTO;
	}
	s->nr_threads = nr != 0 ? (int)uni_min(nr, (size_t)UNI_VCPU_MAX) : 1;
	s->nr_left_off = (uint32_t)(nr > UNI_VCPU_MAX ? nr - UNI_VCPU_MAX : 0);
	return rc < 0 ? rc : 0;
}

/* "* CPU #1: thread_id=4711", a line of QEMU's monitor. Its thread ids are CPU numbers plus one. */
static void note_host_thread(struct uni_gdb_stub *s, const char *line)
{
	const char *number = strstr(line, "CPU #"), *thread = strstr(line, ": thread_id=");
	unsigned long cpu, tid;

	if (number == NULL || thread == NULL)
		return;
	cpu = strtoul(number + 5, NULL, 10);
	tid = strtoul(thread + 12, NULL, 10);
	if (cpu >= UNI_VCPU_MAX || tid > INT32_MAX)
		return;
	for (int i = 0; i < s->nr_threads; i++) {
		const char *dot = strchr(s->thread[i].text, '.');
		const char *id = dot != NULL ? dot + 1 : s->thread[i].text;

		if (strtoul(id, NULL, 16) == cpu + 1)
			s->host_tid[i] = (uint32_t)tid;
	}
}

/* Text of QEMU's monitor is in l->output then; empty if it has none. command: in hex. */
static int ask_monitor(struct uni_gdb_stub *s, const char *command)
{
	struct uni_gdb_link *l = &s->link;
	int rc;

	l->output_size = 0;
	uni_gdb_link_packet(l, "qRcmd,%s", command);
	rc = uni_gdb_link_ask(l, uni_now_ns() + ANSWER_NS);
	l->output[l->output_size] = '\0';
	return rc;
}

/* Which thread runs which vCPU: QEMU's monitor knows. Without a monitor they stay unknown. */
static int ask_host_threads(struct uni_gdb_stub *s)
{
	static const char info_cpus[] = "696e666f2063707573";
	int rc = ask_monitor(s, info_cpus);

	if (rc != 0)
		return rc;
	for (char *line = s->link.output, *next; line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		note_host_thread(s, line);
	}
	return 0;
}

/* Who runs the guest's code? Only TCG has translated blocks to count. */
static int ask_accel(struct uni_gdb_stub *s)
{
	static const char info_kvm[] = "696e666f206b766d", info_jit[] = "696e666f206a6974";
	int rc = ask_monitor(s, info_kvm);

	if (rc == 0 && strstr(s->link.output, "support: enabled") != NULL) {
		s->accel = "kvm";
		return 0;
	}
	if (rc == 0)
		rc = ask_monitor(s, info_jit);
	if (rc == 0 && strstr(s->link.output, "TB count") != NULL)
		s->accel = "tcg";
	return rc;
}

/* Works only if the stub describes its architecture; otherwise the size of `g` decides. */
static int know_arch(struct uni_gdb_stub *s, struct uni_err *err)
{
	char name[64];
	int rc = ask_packet(s, "qXfer:features:read:target.xml:0,3c0");
	bool named;

	if (rc != 0)
		return rc;
	named = uni_gdb_xml_arch((const char *)s->link.reply, name, sizeof(name));
	if (s->arch == NULL && named)
		s->arch = uni_gdb_arch_of(name);
	if (s->arch == NULL)
		s->arch = &uni_arch_x86_64;
	return named ? uni_gdb_check_arch(s->arch, name, err) : 0;
}

/*
 * Without all registers that are needed to walk page tables, memory is read by virtual addresses.
 */
static int named_regs(struct uni_gdb_stub *s, struct uni_regs *ret)
{
	uint64_t until = uni_now_ns() + ANSWER_NS;
	int rc = uni_gdb_question_learn(s);

	if (rc == 0)
		rc = uni_gdb_question_named(s, until, ret);
	for (size_t i = 0; i < s->arch->nr_gdb_named; i++)
		s->sysregs &= (ret->sys_valid >> s->arch->gdb_named[i].number & 1) != 0;
	return rc;
}

static int first_regs(struct uni_gdb_stub *s, struct uni_regs *ret, struct uni_err *err)
{
	int rc = 0;

	if (s->nr_threads > 1) {
		uni_gdb_link_packet(&s->link, "Hg%s", s->thread[0].text);
		rc = uni_gdb_link_ask(&s->link, uni_now_ns() + ANSWER_NS);
	}
	if (rc == 0)
		rc = ask_packet(s, "g");
	if (rc != 0)
		return rc;
	s->sysregs = s->qemu && s->link.reply_size >= s->arch->gdb_g_size * 2;
	if (uni_gdb_regs(s->arch, s->link.reply, s->link.reply_size, s->sysregs, ret) != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"the gdb stub's registers (%zu bytes) are not those of %s",
			s->link.reply_size / 2, s->arch->name);
	return s->sysregs && s->arch->nr_gdb_named != 0 ? named_regs(s, ret) : 0;
}

static int set_up(
	struct uni_gdb_stub *s, bool want_phys, struct uni_regs *regs0_ret, struct uni_err *err)
{
	int rc = identify_stub(s);

	if (rc == 0 && !s->qemu)
		rc = generic_setup(s);
	if (rc == 0)
		rc = list_threads(s);
	if (rc == 0 && s->qemu)
		rc = ask_host_threads(s);
	if (rc == 0 && s->qemu)
		rc = ask_accel(s);
	if (rc == 0)
		rc = know_arch(s, err);
	if (rc == 0)
		rc = first_regs(s, regs0_ret, err);
	s->want_phys = want_phys && s->can_phys && s->sysregs;
	return rc;
}

static int open_line(struct uni_gdb_stub *s, const struct uni_arch *arch, bool want_phys,
	struct uni_regs *regs0_ret, struct uni_err *err)
{
	int rc;

	s->arch = arch;
	s->accel = "";
	s->state = UNI_GDB_HELD;
	rc = greet_stub(s, err);
	if (rc == 0)
		rc = set_up(s, want_phys, regs0_ret, err);
	s->link.implicit_ack = s->qemu;
	if (rc == 0 && s->state == UNI_GDB_PAUSED)
		return uni_gdb_link_settle(&s->link, uni_now_ns() + ANSWER_NS);
	if (rc == 0)
		rc = uni_gdb_stub_resume(s);
	if (rc == 0)
		return 0;
	(void)uni_err_set(err, (enum uni_errcode) - rc, "the gdb stub broke off the handshake: %s",
		uni_strerror(rc));
	uni_gdb_stub_leave(s);
	return err != NULL ? -err->code : rc;
}

int uni_gdb_stub_open(struct uni_gdb_stub *s, int fd, const struct uni_arch *arch, bool want_phys,
	struct uni_regs *regs0_ret, struct uni_err *err)
{
	memset(s, 0, sizeof(*s));
	uni_gdb_link_init(&s->link, fd);
	return open_line(s, arch, want_phys, regs0_ret, err);
}

int uni_gdb_stub_open_told(struct uni_gdb_stub *s, int fd, const struct uni_arch *arch,
	bool want_phys, bool ran, struct uni_regs *regs0_ret, struct uni_err *err)
{
	memset(s, 0, sizeof(*s));
	uni_gdb_link_init(&s->link, fd);
	s->link.stopped_event = ran; /* the other stubs say so with a stop packet */
	return open_line(s, arch, want_phys, regs0_ret, err);
}
