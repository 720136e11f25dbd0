/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of threads and promises, and what is asked of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "promise_events.h"

/* Three threads, each waits for what the one before gives; and a fourth that waits for nobody. */
static void chains(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	uint32_t longest[8];
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "disk");
	create(NOBODY, 2, 19, "cache");
	create(NOBODY, 3, 19, "server");
	create(NOBODY, 4, 19, "idler");
	create(NOBODY, 11, 0, "block");
	create(NOBODY, 12, 0, "page");
	create(NOBODY, 13, 0, "answer");
	ev(UNI_PE_SWITCH, 2, NOBODY);
	ev(UNI_PE_TRY_READ, 2, 11);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	ev(UNI_PE_TRY_READ, 3, 12);
	ev(UNI_PE_SWITCH, 4, NOBODY);
	ev(UNI_PE_RESOLVE, 4, 4);
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_RESOLVE, 1, 11);
	ev(UNI_PE_SIGNAL, 2, 11);
	ev(UNI_PE_RESOLVE, 2, 12);
	ev(UNI_PE_SIGNAL, 3, 12);
	ev(UNI_PE_RESOLVE, 3, 13);
	m = uni_promise_builder_finish(b);
	assert_int_equal(of(m, 11)->depth, 0);
	assert_int_equal(of(m, 12)->depth, 1);
	assert_int_equal(of(m, 13)->depth, 2);
	assert_int_equal(uni_promise_longest(m, longest, 8), 4);
	assert_int_equal(m->all.v[longest[0]].id, 13);
	assert_int_equal(m->all.v[longest[1]].id, 12);
	assert_int_equal(uni_promise_findings(m, 1000000, &f), 0);
	text = said(m, &f, 0);
	expect_text(text, "2 waits, one after the other: answer, ");
	expect_text(text, "server ran again: it had waited for page ");
	expect_text(text, "cache ran again: it had waited for block ");
	/* The shorter chain is part of the longer one. */
	assert_null(strstr(text, "1 wait, one after the other"));
	free(text);
	uni_findings_deinit(&f);
}

/* 1 runs, waits for 2, which 3 resolves while nobody else runs. */
static void a_wait(void **state)
{
	const struct uni_promise_model *m;
	char *why;

	(void)state;
	create(NOBODY, 1, 1, "reader"); /* 1001, label 1002 us */
	create(NOBODY, 2, 0, "value");
	create(NOBODY, 3, 19, "writer");
	ev(UNI_PE_SWITCH, 1, NOBODY);	   /* 7000 after the start of the clock */
	ev(UNI_PE_TRY_READ, 1, 2);	   /* 8000: waits */
	ev(UNI_PE_SWITCH, 3, NOBODY);	   /* 9000 */
	ev(UNI_PE_RESOLVE, 3, 2);	   /* 10000: ready */
	ev(UNI_PE_SIGNAL, 1, 2);	   /* 11000: runs */
	ev(UNI_PE_RESOLVE, 1, 1);	   /* 12000 */
	ev(UNI_PE_SWITCH, NOBODY, NOBODY); /* 13000 */
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->all.nr, 3);
	assert_int_equal(m->events, 13);
	assert_int_equal(of(m, 1)->fate, UNI_FATE_RESOLVED);
	assert_int_equal(of(m, 1)->nr_runs, 2);
	assert_int_equal(of(m, 1)->run_ns, 2000 + 2000);
	assert_int_equal(of(m, 1)->wait_ns, 3000);
	assert_int_equal(of(m, 3)->run_ns, 2000);
	assert_int_equal(of(m, 2)->resolver, uni_promise_find(b, 3));
	assert_int_equal(m->waits.nr, 1);
	assert_int_equal(m->waits.v[0].ready - m->waits.v[0].begin, 2000);
	assert_int_equal(m->waits.v[0].end - m->waits.v[0].ready, 1000);
	assert_int_equal(m->waits.v[0].waker, uni_promise_find(b, 3));
	assert_false(m->waits.v[0].given_up);
	assert_int_equal(of(m, 2)->fate, UNI_FATE_RESOLVED);
	why = said(m, NULL, 1);
	expect_text(why, "reader was resolved by reader\n");
	expect_text(
		why, "reader ran again: it had waited for value for 3.000 us, and then 1.000 us");
	expect_text(why, "value was resolved by writer\n");
	expect_text(why, "writer was created by nobody\n");
	free(why);
}

/* The bug of MirageOS' ARP: the reply comes in before its query is waited for. */
static void arp_by(uint64_t maker, bool early)
{
	create(maker, 1, 19, "tcp connect");
	ev(UNI_PE_SHOULD_RESOLVE, 1, NOBODY);
	create(maker, 2, 8, "arp reply");
	create(maker, 3, 19, "netif");
	if (early) {
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_NOTIFY, NOBODY, 2);
	}
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_TRY_READ, 1, 2);
	if (!early) {
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_NOTIFY, 1, 2);
		ev(UNI_PE_SWITCH, 1, NOBODY);
		ev(UNI_PE_RESOLVE, 1, 1);
	}
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
}

static void arp(bool early)
{
	arp_by(NOBODY, early);
}

static void lost_wakeup(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	arp(true);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 2);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_LOST_WAKEUP);
	assert_int_equal(f.all.v[0].who, uni_promise_find(b, 1));
	assert_int_equal(f.all.v[0].other, uni_promise_find(b, 2));
	assert_int_equal(f.all.v[0].by, uni_promise_find(b, 3));
	assert_int_equal(f.all.v[1].kind, UNI_FINDING_UNRESOLVED);
	text = said(m, &f, 0);
	expect_text(text,
		"lost wake-up: tcp connect waits for arp reply, which was signalled too early\n");
	expect_text(text, "netif signalled arp reply: nobody waited for it\n");
	expect_text(text, "tcp connect began to wait for it, 2.000 us later\n");
	expect_text(text, "never resolved: tcp connect should have been");
	expect_text(
		text, "tcp connect waits for arp reply since then (1.000 us), and nothing came");
	expect_text(text, "arp reply was signalled by netif when nobody waited for it");
	free(text);
	uni_findings_deinit(&f);
}

static bool in_order(const char *text, const char *const *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		text = strstr(text, words[i]);
		if (text == NULL)
			return false;
	}
	return true;
}

/* Nothing says who should resolve `connection`: who missed a wake-up and has the same maker may be.
 */
static void why_unresolved(void **state)
{
	static const char *const words[] = {
		"connection is open: nobody has resolved it\n",
		"connection was created by main\n",
		"who should have is not told; tcp connect may be it, and missed a wake-up:\n",
		"tcp connect waits for arp reply since then",
		"arp reply was signalled by netif when nobody waited for it\n",
	};
	const struct uni_promise_model *m;
	char *text;

	(void)state;
	create(NOBODY, 9, 19, "main");
	create(NOBODY, 20, 8, "other");
	create(NOBODY, 21, 19, "elsewhere");
	ev(UNI_PE_NOTIFY, NOBODY, 20);
	ev(UNI_PE_TRY_READ, 21, 20);
	create(9, 10, 1, "connection");
	create(9, 11, 0, "given");
	arp_by(9, true);
	ev(UNI_PE_RESOLVE, 3, 11);
	m = uni_promise_builder_finish(b);
	text = said(m, NULL, 10);
	assert_true(in_order(text, words, 5));
	assert_null(strstr(text, "never ran"));
	assert_null(strstr(text, "elsewhere"));
	free(text);
	text = said(m, NULL, 11);
	assert_null(strstr(text, "missed"));
	free(text);
}

static void no_lost_wakeup(void **state)
{
	struct uni_findings f = { 0 };
	const struct uni_promise_model *m;

	(void)state;
	arp(false);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	assert_int_equal(m->waits.nr, 1);
	assert_int_equal(m->waits.v[0].end - m->waits.v[0].ready, 1000);
	assert_int_equal(m->waits.v[0].waker, uni_promise_find(b, 3));
}

/* A signal that came too early, and another one that helped. */
/* A semaphore keeps the post for who comes later: waiting for the next one is no loss. */
static void semaphore_remembers(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 19, "taker");
	create(NOBODY, 2, UNI_PROMISE_TYPE_SEMAPHORE, "items");
	create(NOBODY, 3, UNI_PROMISE_TYPE_MVAR, "slot");
	ev(UNI_PE_NOTIFY, NOBODY, 2);
	ev(UNI_PE_NOTIFY, NOBODY, 3);
	ev(UNI_PE_READ, 1, 2);
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_TRY_READ, 1, 3);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 1000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	uni_findings_deinit(&f);
}

/* Another source's names are only for promises without a name of their own that are threads or
 * unknown. */
static void names_from_elsewhere(void **state)
{
	const struct uni_promise_model *m;
	char buf[64];

	(void)state;
	create(NOBODY, 1, 19, "own");
	ev(UNI_PE_SWITCH, 5, NOBODY);
	put((struct uni_promise_event){
		.kind = UNI_PE_CREATE, .thread = NOBODY, .other = 6, .type = 0 });
	for (uint64_t id = 1; id < 9; id++)
		assert_int_equal(uni_promise_builder_name(b, id, id == 8 ? "" : "idle"), 0);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->all.nr, 3);
	assert_string_equal(uni_promise_name(m, uni_promise_find(b, 1), buf, sizeof(buf)), "own");
	assert_string_equal(uni_promise_name(m, uni_promise_find(b, 5), buf, sizeof(buf)), "idle");
	assert_string_equal(
		uni_promise_name(m, uni_promise_find(b, 6), buf, sizeof(buf)), "wait 6");
}

static void signalled_again(void **state)
{
	struct uni_findings f = { 0 };
	const struct uni_promise_model *m;

	(void)state;
	arp(true);
	ev(UNI_PE_SWITCH, 3, NOBODY);
	ev(UNI_PE_NOTIFY, 1, 2);
	ev(UNI_PE_SWITCH, 1, NOBODY);
	ev(UNI_PE_RESOLVE, 1, 1);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
}

static void deadlock(void **state)
{
	struct uni_findings f = { 0 };
	const struct uni_promise_model *m;
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "a");
	create(NOBODY, 2, 19, "b");
	create(NOBODY, 3, 19, "c");
	create(NOBODY, 4, 19, "outside");
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_TRY_READ, 2, 3);
	ev(UNI_PE_TRY_READ, 3, 1);
	ev(UNI_PE_TRY_READ, 4, 1);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 1);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_CIRCLE);
	text = said(m, &f, 0);
	expect_text(text, "deadlock: a waits for b, which waits for c, which waits for a\n");
	expect_text(text, "a waits for b since");
	expect_text(text, "c waits for a since");
	expect_text(text, "and a is above: each waits for the other\n");
	free(text);
	uni_findings_deinit(&f);
}

/* A chain with more steps than are shown says that it goes on. */
static void long_chain(void **state)
{
	char *text;

	(void)state;
	for (uint64_t i = 1; i <= UNI_PROMISE_STEPS + 2; i++)
		create(NOBODY, i, 19, "t");
	for (uint64_t i = 1; i <= UNI_PROMISE_STEPS + 1; i++)
		ev(UNI_PE_TRY_READ, i, i + 1);
	text = said(uni_promise_builder_finish(b), NULL, 1);
	expect_text(text, "and so on, from t");
	free(text);
}

/* A thread that waits for a promise that became another waits for the other. */
static void became(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 19, "reader");
	create(NOBODY, 2, 2, "bind");
	create(NOBODY, 3, 0, "inner");
	create(NOBODY, 4, 19, "late");
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_BECOME, 2, 3);
	ev(UNI_PE_TRY_READ, 4, 2);
	ev(UNI_PE_BECOME, 3, 2); /* nonsense: it would be itself */
	ev(UNI_PE_SHOULD_RESOLVE, 2, NOBODY);
	ev(UNI_PE_RESOLVE, NOBODY, 3);
	m = uni_promise_builder_finish(b);
	assert_int_equal(of(m, 2)->fate, UNI_FATE_BECAME);
	assert_int_equal(of(m, 3)->fate, UNI_FATE_RESOLVED);
	for (int i = 0; i < 2; i++)
		assert_int_equal(m->waits.v[i].ready, of(m, 3)->end);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0); /* it became one that was resolved */
}

/* The trace does not have its creation: that it remembers is seen in how it is used. */
static void unknown_remembers(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	create(NOBODY, 1, 19, "taker");
	create(NOBODY, 4, 19, "giver");
	ev(UNI_PE_SWITCH, 4, NOBODY);
	ev(UNI_PE_NOTIFY, NOBODY, 2); /* a semaphore's post, taken at once by who comes */
	ev(UNI_PE_READ, 1, 2);
	ev(UNI_PE_NOTIFY, NOBODY, 3); /* an mvar that is empty again, waited for by the same one */
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_TRY_READ, 1, 3);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 1000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	uni_findings_deinit(&f);
}

/* The thread that woke another by a condition, and the event that let the first thread run. */
static void through_a_signal(void **state)
{
	static const char *const words[] = {
		"connection was resolved by tcp\n",
		"tcp ran again: it had waited for reply for",
		"reply was signalled by netif\n",
		"netif ran again: it had waited for frame for",
		"frame was resolved by card\n",
	};
	const struct uni_promise_model *m;
	char *text;

	(void)state;
	create(NOBODY, 1, 19, "tcp");
	create(NOBODY, 2, 8, "reply");
	create(NOBODY, 3, 19, "netif");
	create(NOBODY, 4, 0, "frame");
	create(NOBODY, 5, 19, "card");
	create(NOBODY, 6, 0, "connection");
	ev(UNI_PE_TRY_READ, 1, 2);
	ev(UNI_PE_TRY_READ, 3, 4);
	ev(UNI_PE_SWITCH, 5, NOBODY);
	ev(UNI_PE_RESOLVE, 5, 4);
	ev(UNI_PE_READ, 3, 4);
	ev(UNI_PE_NOTIFY, 1, 2);
	ev(UNI_PE_READ, 1, 2);
	ev(UNI_PE_RESOLVE, 1, 6);
	m = uni_promise_builder_finish(b);
	assert_int_equal(of(m, 6)->depth, 2);
	text = said(m, NULL, 6);
	assert_true(in_order(text, words, 5));
	free(text);
}

/* A timeout: it runs again, and what it waited for has not come. */
static void given_up(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	create(NOBODY, 1, 19, "reader");
	ev(UNI_PE_TRY_READ, 1, 7); /* never created: it is older than the trace */
	ev(UNI_PE_TRY_READ, 1, 8);
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	ev(UNI_PE_SWITCH, 1, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->waits.nr, 2);
	assert_true(m->waits.v[0].given_up && m->waits.v[1].given_up);
	assert_int_equal(of(m, 1)->wait_ns, 3000); /* both at once count once */
	assert_false(of(m, 7)->created);
	assert_int_equal(m->pauses.nr, 2); /* the first while nobody had run */
	assert_int_equal(m->pauses.v[1].end - m->pauses.v[1].begin, 1000);
}

/* A signal too early, and a waiter that somebody cancels: it waits no more, and nothing is wrong.
 */
static void waiter_ended(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };

	(void)state;
	arp(true); /* 1 waits for 2 since 1010000 */
	create(NOBODY, 4, 0, "dns");
	ev(UNI_PE_SWITCH, 3, NOBODY);
	ev(UNI_PE_READ_LATER, 5, 4);
	ev(UNI_PE_READ_LATER, 6, 4);
	ev(UNI_PE_BECOME, 6, 5);
	ev(UNI_PE_FAIL, 3, 1);
	ev(UNI_PE_RESOLVE, 3, 5);
	now += 100000;
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->waits.nr, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(m->waits.v[i].given_up);
	assert_int_equal(m->waits.v[0].end, of(m, 1)->end);
	assert_int_equal(m->waits.v[1].end, of(m, 5)->end);
	assert_int_equal(m->waits.v[2].end, of(m, 5)->end);
	assert_int_equal(of(m, 1)->wait_ns, of(m, 1)->end - m->waits.v[0].begin);
	assert_int_equal(of(m, 6)->wait_ns, 3000);
	assert_int_equal(of(m, 6)->nr_open, 0);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr + f.doubts.nr, 0);
	uni_findings_deinit(&f);
}

/* Looked for twice, woken once: one wait, from the first look on. */
static void looked_twice(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	create(NOBODY, 1, 19, "taker");
	create(NOBODY, 2, UNI_PROMISE_TYPE_MVAR, "box");
	for (int i = 0; i < 2; i++) {
		ev(UNI_PE_TRY_READ, 1, 2);
		ev(UNI_PE_TRY_READ, 1, 2);
		ev(UNI_PE_SWITCH, 3, NOBODY);
		ev(UNI_PE_NOTIFY, 1, 2);
		ev(UNI_PE_READ, 1, 2);
	}
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->waits.nr, 2); /* and the second time is a wait of its own */
	assert_int_equal(of(m, 1)->nr_waits, 2);
	assert_int_equal(m->waits.v[0].ready - m->waits.v[0].begin, 3000);
	assert_int_equal(of(m, 1)->wait_ns, 2 * 4000);
}

static void ids_used_again(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		create(NOBODY, 1 + i % 700, 0, "x");
		ev(UNI_PE_RESOLVE, NOBODY, 1 + i % 700);
	}
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->all.nr, 3000);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(m->all.v[i].fate, UNI_FATE_RESOLVED);
}

static void gaps_and_nonsense(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	ev(UNI_PE_SWITCH, 1, NOBODY);
	put((struct uni_promise_event){ .kind = UNI_PE_LOST, .value = 5 });
	now += 1000000;
	ev(UNI_PE_SWITCH, 2, NOBODY);
	put((struct uni_promise_event){ .kind = 77, .thread = 9 });
	put((struct uni_promise_event){ .kind = UNI_PE_SWITCH, .thread = 9, .cpu = 4711 });
	put((struct uni_promise_event){ .kind = UNI_PE_GC, .value = INT64_MIN });
	ev(UNI_PE_RESOLVE, 2, 2);
	ev(UNI_PE_RESOLVE, 2, 2);
	now -= 5000;
	ev(UNI_PE_SWITCH, 1, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->all.nr, 2);
	assert_int_equal(m->lost, 5);
	assert_int_equal(m->gaps, 1);
	assert_int_equal(m->backwards, 1);
	assert_int_equal(of(m, 1)->run_ns, 1000); /* not through what is missing */
	assert_int_equal(m->pauses.v[0].begin, m->begin);
}

static void counters(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	for (int i = 0; i < 4; i++)
		put((struct uni_promise_event){ .kind = i == 2 ? UNI_PE_COUNTER : UNI_PE_INCREASE,
			.thread = 1,
			.other = NOBODY,
			.value = 3,
			.text = i == 1 ? "b" : "a",
			.text_len = 1 });
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->counts.nr, 4);
	assert_int_equal(m->counts.v[0].value, 3);
	assert_int_equal(m->counts.v[1].value, 3);
	assert_int_equal(m->counts.v[2].value, 3);
	assert_int_equal(m->counts.v[3].value, 6);
}

/* As many as events: each is added to its own last value without a look at the others. */
static void many_counters(void **state)
{
	const struct uni_promise_model *m;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 400000; i++) {
		int len = snprintf(name, sizeof(name), "%u", i % 200000);

		put((struct uni_promise_event){ .kind = UNI_PE_INCREASE,
			.thread = 1,
			.other = NOBODY,
			.value = i,
			.text = name,
			.text_len = (uint32_t)len });
	}
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->counts.nr, 400000);
	for (unsigned i = 0; i < 200000; i++)
		assert_int_equal(m->counts.v[200000 + i].value, 200000 + 2 * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chains, begin, end),
		cmocka_unit_test_setup_teardown(a_wait, begin, end),
		cmocka_unit_test_setup_teardown(lost_wakeup, begin, end),
		cmocka_unit_test_setup_teardown(why_unresolved, begin, end),
		cmocka_unit_test_setup_teardown(no_lost_wakeup, begin, end),
		cmocka_unit_test_setup_teardown(semaphore_remembers, begin, end),
		cmocka_unit_test_setup_teardown(names_from_elsewhere, begin, end),
		cmocka_unit_test_setup_teardown(signalled_again, begin, end),
		cmocka_unit_test_setup_teardown(deadlock, begin, end),
		cmocka_unit_test_setup_teardown(long_chain, begin, end),
		cmocka_unit_test_setup_teardown(became, begin, end),
		cmocka_unit_test_setup_teardown(through_a_signal, begin, end),
		cmocka_unit_test_setup_teardown(unknown_remembers, begin, end),
		cmocka_unit_test_setup_teardown(given_up, begin, end),
		cmocka_unit_test_setup_teardown(waiter_ended, begin, end),
		cmocka_unit_test_setup_teardown(looked_twice, begin, end),
		cmocka_unit_test_setup_teardown(ids_used_again, begin, end),
		cmocka_unit_test_setup_teardown(gaps_and_nonsense, begin, end),
		cmocka_unit_test_setup_teardown(counters, begin, end),
		cmocka_unit_test_setup_teardown(many_counters, begin, end),
	};

	return cmocka_run_group_tests_name("promise", tests, NULL, NULL);
}
