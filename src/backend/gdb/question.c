/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/question.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "backend/gdb/regs.h"

#define ANSWER_NS (2 * UNI_NSEC_PER_SEC)
#define XML_MAX	  (128u * 1024) /* QEMU's has 13 KiB with all CPU features */
#define XML_PART  0x3c0u	/* fits the smallest packets in use */

/* The requests for one vCPU, in this order; then one for each named register. */
enum question { Q_SELECT, Q_REGS, Q_STATE, Q_NR };

static unsigned nr_questions(const struct uni_gdb_stub *s)
{
	return Q_NR + s->nr_named;
}

static bool is_asked(const struct uni_gdb_stub *s, unsigned q)
{
	return q == Q_REGS || (q == Q_SELECT && s->nr_threads > 1) || (q == Q_STATE && s->qemu) ||
	       q >= Q_NR;
}

static void queue_question(struct uni_gdb_stub *s, unsigned q, int vcpu)
{
	static const char *const packet[Q_NR] = { "Hg", "g", "qThreadExtraInfo," };

	if (q >= Q_NR)
		uni_gdb_link_packet(&s->link, "p%x", (unsigned)s->named[q - Q_NR].ask);
	else
		uni_gdb_link_packet(
			&s->link, "%s%s", packet[q], q == Q_REGS ? "" : s->thread[vcpu].text);
}

/* "[halted ]" in hex, the end of QEMU's description of a vCPU. */
static bool says_halted(const struct uni_gdb_link *l)
{
	static const char halted[] = "5b68616c746564205d";

	return strstr((const char *)l->reply, halted) != NULL;
}

static int take_answer(struct uni_gdb_stub *s, unsigned q, struct uni_regs *ret)
{
	struct uni_gdb_link *l = &s->link;
	uint64_t v;

	if (q == Q_SELECT)
		return uni_gdb_reply_is(l, "OK") ? 0 : -UNI_EAGAIN;
	if (q == Q_REGS)
		return uni_gdb_regs(s->arch, l->reply, l->reply_size, s->sysregs, ret) == 0
			       ? 0
			       : -UNI_EAGAIN;
	if (q == Q_STATE && ret->state == UNI_VCPU_RUNNING && says_halted(l))
		ret->state = UNI_VCPU_HALTED;
	if (q >= Q_NR && uni_gdb_reg_value(l->reply, l->reply_size, &v))
		uni_regs_set_sys(ret, s->named[q - Q_NR].number, v);
	return 0;
}

void uni_gdb_question_queue(struct uni_gdb_stub *s, int vcpu)
{
	for (unsigned q = 0; q < nr_questions(s); q++) {
		if (is_asked(s, q))
			queue_question(s, q, vcpu);
	}
}

/* Only the named registers may show that it was never started. */
static void note_never_started(const struct uni_gdb_stub *s, struct uni_regs *r)
{
	if (s->nr_named != 0 && s->arch->never_started != NULL && s->arch->never_started(r))
		r->state = UNI_VCPU_OFFLINE;
}

int uni_gdb_question_answer(
	struct uni_gdb_stub *s, int vcpu, uint64_t until_ns, struct uni_regs *ret)
{
	int bad = 0;

	for (unsigned q = 0; q < nr_questions(s); q++) {
		int rc;

		if (!is_asked(s, q))
			continue;
		if (!s->qemu)
			queue_question(s, q, vcpu);
		rc = s->qemu ? uni_gdb_link_reply(&s->link, until_ns)
			     : uni_gdb_link_ask(&s->link, until_ns);
		if (rc != 0)
			return rc;
		/* Takes all replies; otherwise the next request would get the wrong one. */
		rc = take_answer(s, q, ret);
		bad = bad != 0 ? bad : rc;
	}
	if (bad == 0)
		note_never_started(s, ret);
	return bad;
}

int uni_gdb_question_named(struct uni_gdb_stub *s, uint64_t until_ns, struct uni_regs *ret)
{
	int rc = 0;

	for (unsigned q = Q_NR; q < nr_questions(s) && rc == 0; q++) {
		queue_question(s, q, 0);
		rc = uni_gdb_link_ask(&s->link, until_ns);
		if (rc == 0)
			rc = take_answer(s, q, ret);
	}
	note_never_started(s, ret);
	return rc;
}

/*
 * Gets the part of the target description with the system registers, as text. *ret is empty if
 * there is none.
 */
static int fetch_description(struct uni_gdb_stub *s, char *ret, size_t cap)
{
	size_t len = 0;
	int rc = 0;

	for (bool more = true; more && rc == 0;) {
		size_t n;

		uni_gdb_link_packet(
			&s->link, "qXfer:features:read:system-registers.xml:%zx,%x", len, XML_PART);
		rc = uni_gdb_link_ask(&s->link, uni_now_ns() + ANSWER_NS);
		if (rc != 0 || s->link.reply_size < 2)
			break;
		more = s->link.reply[0] == 'm';
		n = s->link.reply_size - 1;
		if ((!more && s->link.reply[0] != 'l') || n >= cap - len)
			break;
		memcpy(ret + len, s->link.reply + 1, n);
		len += n;
	}
	ret[len] = '\0';
	return rc;
}

int uni_gdb_question_learn(struct uni_gdb_stub *s)
{
	_cleanup_free_ char *xml = malloc(XML_MAX);
	int rc;

	s->nr_named = 0;
	if (xml == NULL)
		return -UNI_ENOMEM;
	rc = fetch_description(s, xml, XML_MAX);
	for (size_t i = 0; rc == 0 && i < s->arch->nr_gdb_named; i++) {
		const struct uni_gdb_named *named = &s->arch->gdb_named[i];
		uint32_t ask;

		if (s->nr_named == uni_array_len(s->named) ||
			!uni_gdb_xml_reg(xml, named->name, &ask))
			continue;
		s->named[s->nr_named].ask = ask;
		s->named[s->nr_named++].number = named->number;
	}
	return rc;
}
