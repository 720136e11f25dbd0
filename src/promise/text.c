/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "promise/query_priv.h"
#include "promise/text.h"
#include "base/text.h"

#define NAME	96
#define CHAINS	3 /* that are printed */
#define WAITING 10
#define DOUBTS	5
#define CIRCLE	16 /* promises of a circle that are printed */
#define LOOK_AT 64
#define LOCKS	10
#define BLAMES	3 /* of each lock */

/* "12.345 ms": at most three digits after the point, the unit by the size. */
static const char *format_duration(uint64_t ns, char buf[24])
{
	if (ns < 1000)
		(void)snprintf(buf, 24, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		(void)snprintf(buf, 24, "%.3f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		(void)snprintf(buf, 24, "%.3f ms", (double)ns / 1e6);
	else
		(void)snprintf(buf, 24, "%.3f s", (double)ns / 1e9);
	return buf;
}

/* Since the trace began, to the microsecond. */
static const char *format_time(const struct uni_promise_model *m, uint64_t time, char buf[24])
{
	(void)snprintf(buf, 24, "%.6f s", (double)(time - m->begin) / 1e9);
	return buf;
}

/* The guest's table tells what was so when the trace began, and not since when or by whom. */
static bool is_from_before(const struct uni_promise_model *m, uint32_t promise, uint64_t time)
{
	return time <= m->begin && m->all.v[promise].told;
}

static const char *format_since(
	const struct uni_promise_model *m, uint32_t promise, uint64_t time, char buf[24])
{
	return is_from_before(m, promise, time) ? "earlier" : format_time(m, time, buf);
}

static void tell_waited(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_step *s, const char *who, const char *by)
{
	char a[24], b[24], c[24];

	uni_sink_printf(out, "%s  %s ran again: it had waited for %s for %s",
		format_time(m, s->time, a), who, by, format_duration(s->time - s->begin, b));
	if (s->ready != UNI_PROMISE_OPEN && s->ready < s->time)
		uni_sink_printf(
			out, ", and then %s for a CPU", format_duration(s->time - s->ready, c));
}

/* The main loop resolves what it knows to be over, in no thread. */
static void tell_over(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_step *s, const char *who, const char *by)
{
	char a[24];

	uni_sink_printf(out, "%-10s  %s was %s", format_since(m, s->who, s->time, a), who,
		s->kind == UNI_STEP_FAILED ? "failed" : "resolved");
	if (s->by != UNI_PROMISE_NONE)
		uni_sink_printf(out, " by %s", by);
	if (s->kind == UNI_STEP_FAILED)
		uni_sink_printf(out, ": %s", uni_strtab_get(m->text, m->all.v[s->who].failure));
}

static bool ran_since(const struct uni_promise_model *m, uint32_t who)
{
	return m->all.v[who].nr_open == 1 &&
	       uni_promise_may_have_given_up(&m->waits.v[m->all.v[who].first_wait]);
}

static void tell_step_of_why(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_promise_step *s)
{
	char a[24], b[24], wbuf[NAME], bbuf[NAME];
	const char *who = uni_promise_name(m, s->who, wbuf, sizeof(wbuf));
	const char *by = uni_promise_name(m, s->by, bbuf, sizeof(bbuf));

	switch (s->kind) {
	case UNI_STEP_RESOLVED:
	case UNI_STEP_FAILED:
		tell_over(out, m, s, who, by);
		break;
	case UNI_STEP_BECAME:
		uni_sink_printf(out, "%s  %s became %s", format_time(m, s->time, a), who, by);
		break;
	case UNI_STEP_WAITED:
		tell_waited(out, m, s, who, by);
		break;
	case UNI_STEP_WAITS:
		uni_sink_printf(out, "%-10s  %s waits for %s since then (%s%s), and %s",
			format_since(m, s->who, s->begin, a), who, by,
			is_from_before(m, s->who, s->begin) ? "more than " : "",
			format_duration(m->end - s->begin, b),
			s->ready == UNI_PROMISE_OPEN && ran_since(m, s->who)
				? "nothing came, or has given up: it ran since"
				: "nothing came");
		break;
	case UNI_STEP_READY:
		uni_sink_printf(out, "%s  %s could run, for %s has come; it never did",
			format_time(m, s->ready, a), who, by);
		break;
	case UNI_STEP_CREATED:
		uni_sink_printf(
			out, "%s  %s was created by %s", format_time(m, s->time, a), who, by);
		break;
	case UNI_STEP_APPEARS:
		uni_sink_printf(out, "%s  %s was there before the trace begins",
			format_time(m, s->time, a), who);
		break;
	case UNI_STEP_RAN:
		uni_sink_printf(out, "%s  %s ran last, and waits for nothing that is known",
			format_time(m, s->time, a), who);
		break;
	case UNI_STEP_NEVER_RAN:
		uni_sink_printf(
			out, "%s  %s is open and never ran", format_time(m, s->time, a), who);
		break;
	case UNI_STEP_SIGNALLED:
		uni_sink_printf(out, "%s  %s was %s by %s", format_time(m, s->time, a), who,
			m->all.v[s->who].type == UNI_PROMISE_TYPE_LOCK ? "given back" : "signalled",
			by);
		break;
	case UNI_STEP_UNRESOLVED:
		uni_sink_printf(out, "%s  %s is open: nobody has resolved it",
			format_time(m, s->time, a), who);
		break;
	case UNI_STEP_SUSPECT:
		uni_sink_printf(out,
			"%10s  who should have is not told; %s may be it, and missed a wake-up:",
			"", by);
		break;
	case UNI_STEP_LONELY:
		uni_sink_printf(out, "%-10s  %s was signalled%s%s when nobody waited for it",
			format_since(m, s->who, s->time, a), who,
			s->by != UNI_PROMISE_NONE ? " by " : "",
			s->by != UNI_PROMISE_NONE ? by : "");
		break;
	case UNI_STEP_HELD:
		uni_sink_printf(out, "%-10s  %s is held by %s since then",
			is_from_before(m, s->who, s->time) ? "earlier" : format_time(m, s->time, a),
			who, by);
		break;
	case UNI_STEP_FREE:
		uni_sink_printf(
			out, "%s  %s was given back by %s", format_time(m, s->time, a), who, by);
		break;
	case UNI_STEP_CIRCLE:
		uni_sink_printf(out, "          and %s is above: each waits for the other", who);
		break;
	default:
		uni_sink_printf(out, "          and so on, from %s", who);
	}
	uni_sink_putc(out, '\n');
}

static void tell_steps(
	struct uni_sink *out, const struct uni_promise_model *m, uint32_t who, const char *indent)
{
	struct uni_promise_step s[UNI_PROMISE_STEPS];
	size_t nr = uni_promise_why(m, who, s, UNI_PROMISE_STEPS);

	for (size_t i = 0; i < nr; i++) {
		uni_sink_puts(out, indent);
		tell_step_of_why(out, m, &s[i]);
	}
}

void uni_promise_text_why(struct uni_sink *out, const struct uni_promise_model *m, uint32_t who)
{
	tell_steps(out, m, who, "");
}

int uni_promise_text_wakeups(struct uni_sink *out, const struct uni_promise_model *m, size_t max)
{
	const struct uni_promise_wait **w;
	char a[24], b[24], c[24], n1[NAME], n2[NAME], n3[NAME];
	size_t nr;

	w = calloc(max + 1, sizeof(const struct uni_promise_wait *));
	if (w == NULL)
		return -UNI_ENOMEM;
	nr = uni_promise_wakeups(m, w, max);
	uni_sink_printf(out, "%12s %11s %11s  %s\n", "LATENCY", "READY AT", "WAITED",
		"WHO <- FOR WHAT (BY WHOM)");
	for (size_t i = 0; i < nr; i++)
		uni_sink_printf(out, "%12s %11s %11s  %s <- %s (%s)\n",
			format_duration(w[i]->end - w[i]->ready, a), format_time(m, w[i]->ready, b),
			format_duration(w[i]->ready - w[i]->begin, c),
			uni_promise_name(m, w[i]->waiter, n1, sizeof(n1)),
			uni_promise_name(m, w[i]->on, n2, sizeof(n2)),
			uni_promise_name(m, w[i]->waker, n3, sizeof(n3)));
	free(w);
	return 0;
}

static void lost_wakeup(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_finding *f)
{
	const struct uni_promise *on = &m->all.v[f->other];
	char a[24], b[24], c[24], n1[NAME], n2[NAME], n3[NAME];
	const char *who = uni_promise_name(m, f->who, n1, sizeof(n1));
	const char *other = uni_promise_name(m, f->other, n2, sizeof(n2));

	uni_sink_printf(
		out, "lost wake-up: %s waits for %s, which was signalled too early\n", who, other);
	if (is_from_before(m, f->other, on->lonely))
		uni_sink_printf(
			out, "    earlier     %s was signalled: nobody waited for it\n", other);
	else
		uni_sink_printf(out, "    %s  %s signalled %s: nobody waited for it\n",
			format_time(m, on->lonely, a), uni_promise_name(m, f->by, n3, sizeof(n3)),
			other);
	if (is_from_before(m, f->who, f->time))
		uni_sink_printf(out, "    earlier     %s began to wait for it\n", who);
	else
		uni_sink_printf(out, "    %s  %s began to wait for it, %s later\n",
			format_time(m, f->time, b), who, format_duration(f->time - on->lonely, c));
	uni_sink_printf(out, "    %s  the trace ends; nothing has signalled it since (%s)\n",
		format_time(m, m->end, a), format_duration(f->ns, c));
}

static const char *needs_as(const struct uni_promise_model *m, uint32_t who)
{
	return m->all.v[who].type == UNI_PROMISE_TYPE_LOCK ? "is held by" : "waits for";
}

/* "A waits for B, which waits for A": all of them, unless they are many. */
static void tell_circle(struct uni_sink *out, const struct uni_promise_model *m, uint32_t who)
{
	uint32_t at = uni_promise_needs(m, who);
	char n[NAME];

	uni_sink_printf(out, "deadlock: %s waits for ", uni_promise_name(m, who, n, sizeof(n)));
	for (unsigned i = 0; at != who && i < CIRCLE; i++) {
		uni_sink_printf(out, "%s, which %s ", uni_promise_name(m, at, n, sizeof(n)),
			needs_as(m, at));
		at = uni_promise_needs(m, at);
	}
	uni_sink_printf(out, "%s\n",
		at != who			   ? "others, and these for it"
		: uni_promise_needs(m, who) == who ? "itself"
						   : uni_promise_name(m, who, n, sizeof(n)));
}

static void tell_finding(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_finding *f)
{
	char a[24], b[24], n1[NAME], n2[NAME];
	const char *who = uni_promise_name(m, f->who, n1, sizeof(n1));

	switch (f->kind) {
	case UNI_FINDING_LOST_WAKEUP:
		lost_wakeup(out, m, f);
		return;
	case UNI_FINDING_UNRESOLVED:
		uni_sink_printf(out, "never resolved: %s should have been, and is open after %s\n",
			who, format_duration(f->ns, a));
		tell_steps(out, m, f->who, "    ");
		return;
	case UNI_FINDING_CIRCLE:
		tell_circle(out, m, f->who);
		tell_steps(out, m, f->who, "    ");
		return;
	case UNI_FINDING_ABANDONED:
		uni_sink_printf(out, "never given back: %s waits for %s, ", who,
			uni_promise_name(m, f->other, n2, sizeof(n2)));
		uni_sink_printf(out, "which %s had when it ended\n",
			uni_promise_name(m, f->by, n2, sizeof(n2)));
		tell_steps(out, m, f->who, "    ");
		return;
	default:
		uni_sink_printf(out,
			"starved: %s could run from %s on and waited %s for a CPU, while %s ran\n",
			who, format_time(m, f->time, a), format_duration(f->ns, b),
			uni_promise_name(m, f->other, n2, sizeof(n2)));
		if (f->on_cpu != 0)
			uni_sink_printf(out, "    the host gave the guest a CPU for %s of that\n",
				format_duration(f->on_cpu, a));
	}
}

/* Is it a link of the chain that leads to `end`? Then it was printed with that one. */
static bool is_link(const struct uni_promise_model *m, uint32_t who, uint32_t end)
{
	struct uni_promise_step s[UNI_PROMISE_STEPS];
	size_t nr = uni_promise_why(m, end, s, UNI_PROMISE_STEPS);

	for (size_t i = 0; i < nr; i++) {
		if (s[i].who == who || s[i].by == who)
			return true;
	}
	return false;
}

static void one_chain(struct uni_sink *out, const struct uni_promise_model *m, uint32_t who)
{
	const struct uni_promise *p = &m->all.v[who];
	char a[24], b[24], c[24], n[NAME];

	uni_sink_printf(out,
		"  %" PRIu32 " %s, one after the other: %s, from %s on for %s, %s of it waiting\n",
		p->depth, p->depth == 1 ? "wait" : "waits", uni_promise_name(m, who, n, sizeof(n)),
		format_time(m, p->begin, b), format_duration(uni_promise_life(m, p), a),
		format_duration(p->wait_ns, c));
	tell_steps(out, m, who, "    ");
}

static void tell_chains(struct uni_sink *out, const struct uni_promise_model *m)
{
	uint32_t longest[LOOK_AT], told[CHAINS];
	size_t nr = uni_promise_longest(m, longest, LOOK_AT), nr_told = 0;

	for (size_t i = 0; i < nr && nr_told < CHAINS && m->all.v[longest[i]].depth != 0; i++) {
		bool known = false;

		for (size_t k = 0; k < nr_told && !known; k++)
			known = is_link(m, longest[i], told[k]);
		if (known)
			continue;
		if (nr_told == 0)
			uni_sink_puts(out, "\nthe longest chains of waits that ended well:\n");
		told[nr_told++] = longest[i];
		one_chain(out, m, longest[i]);
	}
}

/* Workers that wait for work look like it. */
static void tell_idle(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f)
{
	size_t nr = 0;
	char a[24], b[24], n1[NAME], n2[NAME], n3[NAME];

	for (size_t i = 0; i < f->doubts.nr; i++) {
		const struct uni_finding *x = &f->doubts.v[i];

		if (x->kind != UNI_FINDING_LOST_WAKEUP || nr++ >= DOUBTS)
			continue;
		if (nr == 1)
			uni_sink_puts(out, "\nin doubt: missed a wake-up, or has nothing to do\n");
		uni_sink_printf(out, "    %-10s  %s began to wait for %s, which ",
			format_since(m, x->who, x->time, a),
			uni_promise_name(m, x->who, n1, sizeof(n1)),
			uni_promise_name(m, x->other, n2, sizeof(n2)));
		if (x->by == UNI_PROMISE_NONE)
			uni_sink_puts(
				out, "had been signalled before, when nobody waited for it\n");
		else
			uni_sink_printf(out, "%s had signalled at %s when nobody waited for it\n",
				uni_promise_name(m, x->by, n3, sizeof(n3)),
				format_time(m, m->all.v[x->other].lonely, b));
	}
	if (nr > DOUBTS)
		uni_sink_printf(out, "    and %zu more\n", nr - DOUBTS);
}

/* The guest cannot know whether it was its own doing. */
static void tell_starved(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f)
{
	size_t nr = 0;
	char a[24], b[24], c[24], n1[NAME], n2[NAME];

	for (size_t i = 0; i < f->doubts.nr; i++) {
		const struct uni_finding *x = &f->doubts.v[i];

		if (x->kind != UNI_FINDING_STARVED || nr++ >= DOUBTS)
			continue;
		if (nr == 1)
			uni_sink_puts(out,
				"\nin doubt: starved by a thread, or the host took the CPU "
				"meanwhile\n");
		uni_sink_printf(out,
			"    %s  %s could run, and waited %s; %s had the CPU, and nothing was "
			"heard of it for %s in all, 2 ms or more at a time\n",
			format_time(m, x->time, a), uni_promise_name(m, x->who, n1, sizeof(n1)),
			format_duration(x->ns, b), uni_promise_name(m, x->other, n2, sizeof(n2)),
			format_duration(x->silent, c));
	}
	if (nr > DOUBTS)
		uni_sink_printf(out, "    and %zu more\n", nr - DOUBTS);
}

/* Whoever waits with a limit of time and gives up runs on, and need not tell that. */
static void tell_given_up(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f)
{
	size_t nr = 0;
	char a[24], n1[NAME], n2[NAME];

	for (size_t i = 0; i < f->doubts.nr; i++) {
		const struct uni_finding *x = &f->doubts.v[i];
		bool circle = x->kind == UNI_FINDING_CIRCLE;
		uint32_t ran = circle ? x->by : x->who;

		if ((!circle && x->kind != UNI_FINDING_ABANDONED) || nr++ >= DOUBTS)
			continue;
		if (nr == 1)
			uni_sink_puts(out, "\nin doubt: waits for ever, or has given up\n");
		if (circle)
			tell_circle(out, m, x->who);
		else
			uni_sink_printf(out,
				"never given back: %s waits for a lock of %s, "
				"which has ended\n",
				uni_promise_name(m, x->who, n1, sizeof(n1)),
				uni_promise_name(m, x->by, n2, sizeof(n2)));
		uni_sink_printf(out,
			"    %s had a CPU after it began to wait, last from %s on, and has not "
			"told "
			"that it still waits\n",
			uni_promise_name(m, ran, n1, sizeof(n1)),
			format_time(m, m->waits.v[m->all.v[ran].first_wait].ran, a));
	}
	if (nr > DOUBTS)
		uni_sink_printf(out, "    and %zu more\n", nr - DOUBTS);
}

/* That nothing is seen is no proof where something is not known. */
static void nothing_found(struct uni_sink *out, const struct uni_promise_model *m, bool in_doubt)
{
	char unknown[UNI_PROMISE_UNKNOWNS][UNI_PROMISE_UNKNOWN];
	size_t nr = uni_promise_unknown(m, unknown);

	uni_sink_puts(out, nr != 0    ? "no finding in what is known\n"
			   : in_doubt ? "no certain finding\n"
				      : "no finding\n");
	for (size_t i = 0; i < nr; i++)
		uni_sink_printf(out, "    not known: %s\n%s", unknown[i],
			i == 0 && uni_promise_begin_unknown(m) && !m->begin_told &&
					!uni_promise_is_any_told(m)
				? "    (`uniscope stacks --threads` shows where threads wait now)\n"
				: "");
}

static bool is_still_waiting(const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	return w->end == UNI_PROMISE_OPEN && w->ready == UNI_PROMISE_OPEN &&
	       m->all.v[w->waiter].fate == UNI_FATE_OPEN;
}

/* It is not known how long an undated one has waited: these come last. */
static bool is_longer(const struct uni_promise_wait *a, const struct uni_promise_wait *b)
{
	return a->undated != b->undated ? b->undated : a->begin < b->begin;
}

static void tell_wait(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_promise_wait *w)
{
	uint32_t owner = uni_promise_owner(m, w->on);
	char a[24], n[NAME];

	uni_sink_printf(out, "    %-10s  %s waits for ",
		w->undated ? "not known" : format_since(m, w->waiter, w->begin, a),
		uni_promise_name(m, w->waiter, n, sizeof(n)));
	uni_sink_puts(out, uni_promise_name(m, w->on, n, sizeof(n)));
	if (owner != UNI_PROMISE_NONE)
		uni_sink_printf(out, ", which %s holds", uni_promise_name(m, owner, n, sizeof(n)));
	if (uni_promise_may_have_given_up(w))
		uni_sink_printf(
			out, ", or has given up: it ran from %s on", format_time(m, w->ran, a));
	uni_sink_putc(out, '\n');
}

/* Two threads that hold each other's locks look like two that serve, if the guest does not tell who
 * holds what. So this is no finding, and may be the cause of a hang. */
static void tell_waiting(struct uni_sink *out, const struct uni_promise_model *m)
{
	const struct uni_promise_wait *first[WAITING];
	size_t nr = 0;

	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];
		size_t at = uni_min(nr, (size_t)WAITING);

		if (!is_still_waiting(m, w))
			continue;
		for (; at != 0 && is_longer(w, first[at - 1]); at--) {
			if (at < WAITING)
				first[at] = first[at - 1];
		}
		if (at < WAITING)
			first[at] = w;
		nr++;
	}
	if (nr != 0)
		uni_sink_puts(out, "\nstill waiting when the trace ended, the longest first "
				   "(a server's threads do so, too)\n");
	for (size_t i = 0; i < uni_min(nr, (size_t)WAITING); i++)
		tell_wait(out, m, first[i]);
	if (nr > WAITING)
		uni_sink_printf(out, "    and %zu more\n", nr - WAITING);
}

static void tell_blames(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_locks *l, const struct uni_lock_row *row)
{
	char a[24], n1[NAME], n2[NAME];

	for (size_t i = 0; i < uni_min(row->nr, (size_t)BLAMES); i++) {
		const struct uni_lock_blame *b = &l->blames.v[row->first + i];

		uni_sink_printf(out, "%12s   %s waited while %s had it\n",
			format_duration(b->ns, a), uni_promise_name(m, b->waiter, n1, sizeof(n1)),
			uni_promise_name(m, b->owner, n2, sizeof(n2)));
	}
	if (row->nr > BLAMES)
		uni_sink_printf(out, "%12s   and %zu more\n", "", row->nr - BLAMES);
}

static int tell_locks(struct uni_sink *out, const struct uni_promise_model *m)
{
	struct uni_locks l = { 0 };
	int rc = uni_promise_locks(m, &l);
	char a[24], b[24], c[24], d[24], n[NAME];

	if (rc == 0 && l.rows.nr != 0)
		uni_sink_printf(out,
			"\nlocks, those that were waited for longest first\n"
			"%12s %6s %11s %11s %6s %11s  %s\n",
			"WAITED", "WAITS", "LONGEST", "HELD", "HOLDS", "LONGEST", "LOCK");
	for (size_t i = 0; rc == 0 && i < uni_min(l.rows.nr, (size_t)LOCKS); i++) {
		const struct uni_lock_row *r = &l.rows.v[i];

		uni_sink_printf(out, "%12s %6" PRIu32 " %11s %11s %6" PRIu32 " %11s  %s\n",
			format_duration(r->waited, a), r->nr_waits,
			format_duration(r->longest_wait, b), format_duration(r->held, c),
			r->nr_holds, format_duration(r->longest_hold, d),
			uni_promise_name(m, r->lock, n, sizeof(n)));
		tell_blames(out, m, &l, r);
	}
	if (rc == 0 && l.rows.nr > LOCKS)
		uni_sink_printf(out, "    and %zu more\n", l.rows.nr - LOCKS);
	uni_locks_deinit(&l);
	return rc;
}

int uni_promise_text_findings(
	struct uni_sink *out, const struct uni_promise_model *m, const struct uni_findings *f)
{
	if (f->all.nr == 0)
		nothing_found(out, m, f->doubts.nr != 0);
	for (size_t i = 0; i < f->all.nr; i++)
		tell_finding(out, m, &f->all.v[i]);
	tell_waiting(out, m);
	tell_given_up(out, m, f);
	tell_idle(out, m, f);
	tell_starved(out, m, f);
	tell_chains(out, m);
	return tell_locks(out, m);
}
