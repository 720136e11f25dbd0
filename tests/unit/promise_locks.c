/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks: who has them, who waits for them and for whom, against the books of those who lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "promise_events.h"

static void lock_ev(uint8_t kind, uint64_t thread, uint64_t lock)
{
	put((struct uni_promise_event){
		.kind = kind, .thread = thread, .other = lock, .type = UNI_PROMISE_TYPE_LOCK });
}

static void wait_for(uint64_t thread, uint64_t lock)
{
	lock_ev(UNI_PE_TRY_READ, thread, lock);
}

static void take_lock(uint64_t thread, uint64_t lock)
{
	lock_ev(UNI_PE_READ, thread, lock);
}

static void give_back(uint64_t lock)
{
	lock_ev(UNI_PE_NOTIFY, NOBODY, lock);
}

static void run_thread(uint64_t thread)
{
	ev(UNI_PE_SWITCH, thread, NOBODY);
}

static void threads(void)
{
	create(NOBODY, 1, 19, "alpha");
	create(NOBODY, 2, 19, "beta");
	create(NOBODY, 3, 19, "gamma");
	create(NOBODY, 10, UNI_PROMISE_TYPE_LOCK, "disk");
	create(NOBODY, 11, UNI_PROMISE_TYPE_LOCK, "cache");
}

/* Each event takes 1 us. */
static void a_lock(void **state)
{
	const struct uni_promise_model *m;
	const struct uni_promise_wait *w;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	threads();
	run_thread(1);
	take_lock(1, 10);
	run_thread(2);
	wait_for(2, 10);
	run_thread(1);
	run_thread(2); /* woken for nothing: still waits */
	run_thread(1);
	give_back(10);
	run_thread(2);
	take_lock(2, 10);
	give_back(10);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->holds.nr, 2);
	assert_int_equal(m->holds.v[0].end - m->holds.v[0].begin, 6000);
	assert_int_equal(m->holds.v[0].owner, uni_promise_find(b, 1));
	assert_int_equal(m->holds.v[1].end - m->holds.v[1].begin, 1000);
	assert_int_equal(m->holds.v[1].owner, uni_promise_find(b, 2));
	assert_int_equal(m->waits.nr, 1);
	w = &m->waits.v[0];
	assert_int_equal(w->ready - w->begin, 4000);
	assert_int_equal(w->end - w->ready, 2000);
	assert_int_equal(w->waker, uni_promise_find(b, 1));
	assert_false(w->given_up);
	assert_int_equal(of(m, 2)->wait_ns, 5000); /* it ran for 1000 of the 6000 */
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr + f.doubts.nr, 0);
	text = said(m, &f, 0);
	expect_text(text, "\nlocks, those that were waited for longest first\n"
			  "      WAITED  WAITS     LONGEST        HELD  HOLDS     LONGEST  LOCK"
			  "\n    6.000 us      1    6.000 us    7.000 us      2    6.000 us  disk\n"
			  "    4.000 us   beta waited while alpha had it\n");
	assert_null(strstr(text, "cache"));
	free(text);
	uni_findings_deinit(&f);
}

static void two_locks(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	threads();
	take_lock(1, 10);
	take_lock(2, 11);
	wait_for(1, 11);
	wait_for(2, 10);
	run_thread(1); /* for nothing, as it tells */
	wait_for(1, 11);
	wait_for(3, 10);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 1);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_CIRCLE);
	assert_int_equal(f.doubts.nr, 0);
	text = said(m, &f, 0);
	expect_text(text, "deadlock: alpha waits for cache, which is held by beta, which waits for "
			  "disk, which is held by alpha\n");
	expect_text(text, "cache is held by beta since then\n");
	expect_text(text, "and alpha is above: each waits for the other\n");
	expect_text(text, "gamma waits for disk, which alpha holds\n");
	free(text);
	uni_findings_deinit(&f);
}

/* A thread that runs does not wait: it gave up then, as soon as it tells of anything else. If it
 * tells of nothing, it may wait again, and a deadlock is in doubt. */
static void gave_up(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	struct uni_locks l = { 0 };
	char *text;

	(void)state;
	threads();
	take_lock(1, 10);
	take_lock(2, 11);
	take_lock(3, 12);
	wait_for(3, 10);
	run_thread(1);
	now += 50000;
	run_thread(3);
	now += 400000;
	ev(UNI_PE_RESOLVE, 3, 3);
	wait_for(1, 11);
	wait_for(2, 10);
	ev(UNI_PE_SWITCH, NOBODY, NOBODY);
	now += 50000;
	run_thread(2);
	now += 600000;
	ev(UNI_PE_LABEL, 1, NOBODY);
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->waits.v[0].end - m->waits.v[0].begin, 52000);
	assert_true(m->waits.v[0].given_up);
	assert_int_equal(of(m, 3)->wait_ns, 52000);
	assert_int_equal(of(m, 2)->wait_ns, 52000);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	assert_int_equal(f.doubts.nr, 1);
	text = said(m, &f, 0);
	expect_text(text, "no certain finding\n");
	expect_text(text, "beta waits for disk, which alpha holds, or has given up: it ran from ");
	expect_text(text, "\nin doubt: waits for ever, or has given up\ndeadlock: ");
	expect_text(text, "    beta had a CPU after it began to wait, last from ");
	free(text);
	text = said(m, NULL, 2);
	expect_text(text, "and nothing came, or has given up: it ran since\n");
	free(text);
	assert_int_equal(uni_promise_locks(m, &l), 0);
	assert_int_equal(l.rows.v[0].longest_wait, 654000);
	uni_locks_deinit(&l);
	uni_findings_deinit(&f);
}

/* Each has its number behind the name, in every line. A name that one thread has stays as it is. */
static void one_name(void **state)
{
	const struct uni_promise_model *m;
	struct uni_promise_list_opts like = { .like = "worker" };
	struct uni_promise_rows rows = { 0 };
	struct uni_findings f = { 0 };
	char *text, buf[24];

	(void)state;
	create(NOBODY, 1, 19, "worker");
	create(NOBODY, 0xffff80001234, 19, "worker");
	create(NOBODY, 3, 19, "gamma");
	create(NOBODY, 10, UNI_PROMISE_TYPE_LOCK, "queue");
	create(NOBODY, 11, UNI_PROMISE_TYPE_LOCK, "queue");
	create(NOBODY, 12, 0, "page");
	create(NOBODY, 13, 0, "page");
	take_lock(1, 10);
	take_lock(0xffff80001234, 11);
	wait_for(1, 11);
	wait_for(0xffff80001234, 10);
	wait_for(3, 10);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	text = said(m, &f, 0);
	expect_text(text, "deadlock: worker 1 waits for queue 11, which is held by worker "
			  "0xffff80001234, which waits for queue 10, which is held by worker 1\n");
	expect_text(text, " gamma waits for queue 10, which worker 1 holds\n");
	expect_text(text, " worker 1 waited while worker 0xffff80001234 had it\n");
	free(text);
	assert_string_equal(uni_promise_name(m, uni_promise_find(b, 12), buf, sizeof(buf)), "page");
	assert_string_equal(uni_promise_name(m, uni_promise_find(b, 0xffff80001234), buf, 18),
		"wo 0xffff80001234");
	assert_int_equal(uni_promise_list(m, &like, &rows), 0);
	assert_int_equal(rows.all.nr, 2);
	uni_vec_free(&rows.all);
	uni_findings_deinit(&f);
}

/* Whoever takes what it has waits for itself. */
static void own_lock(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	threads();
	take_lock(1, 10);
	wait_for(1, 10);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	text = said(m, &f, 0);
	expect_text(text, "deadlock: alpha waits for disk, which is held by alpha\n");
	free(text);
	uni_findings_deinit(&f);
}

/* Its owner has ended: nobody gives it back. Without a waiter that is no error, nor if a promise
 * that is no thread ended: another one may go on with the lock. */
static void owner_has_ended(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	threads();
	create(NOBODY, 4, 0, "promise");
	create(NOBODY, 12, UNI_PROMISE_TYPE_LOCK, "handed on");
	take_lock(1, 10);
	take_lock(1, 11);
	ev(UNI_PE_RESOLVE, 1, 1);
	run_thread(4);
	take_lock(4, 12);
	ev(UNI_PE_RESOLVE, 4, 4);
	wait_for(2, 10);
	wait_for(3, 12);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 1);
	assert_int_equal(f.all.v[0].kind, UNI_FINDING_ABANDONED);
	text = said(m, &f, 0);
	expect_text(text, "never given back: beta waits for disk, which alpha had when it ended\n");
	free(text);
	uni_findings_deinit(&f);
}

/* The same before the recording begins: the guest's table says so. */
static void owner_had_ended(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *text;

	(void)state;
	threads();
	put((struct uni_promise_event){ .kind = UNI_PE_OPEN_NOW,
		.thread = NOBODY,
		.other = 9,
		.type = UNI_PROMISE_TYPE_GONE });
	ev(UNI_PE_READ_LATER, 10, 9);
	ev(UNI_PE_READ_LATER, 2, 10);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 1);
	text = said(m, &f, 0);
	expect_text(
		text, "never given back: beta waits for disk, which thread 9 had when it ended\n");
	free(text);
	uni_findings_deinit(&f);
}

/* Two that serve and hold nothing are none. */
static void no_deadlock(void **state)
{
	const struct uni_promise_model *m;
	struct uni_findings f = { 0 };
	char *why;

	(void)state;
	threads();
	take_lock(1, 10);
	take_lock(2, 11);
	wait_for(1, 11);
	run_thread(2);
	give_back(11);
	wait_for(2, 10);
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_findings(m, 10000000, &f), 0);
	assert_int_equal(f.all.nr, 0);
	why = said(m, NULL, 2);
	expect_text(why, "beta waits for disk since then");
	expect_text(why, "disk is held by alpha since then\n");
	expect_text(why, "alpha waits for cache since then");
	expect_text(why, "cache was given back by beta\n");
	free(why);
	uni_findings_deinit(&f);
}

/* The trace begins while a lock is held, or the guest told that by its table; events are missing.
 */
static void from_before(void **state)
{
	const struct uni_promise_model *m;

	(void)state;
	ev(UNI_PE_SWITCH, 1, NOBODY);
	give_back(20);
	put((struct uni_promise_event){ .kind = UNI_PE_OPEN_NOW,
		.thread = NOBODY,
		.other = 21,
		.type = UNI_PROMISE_TYPE_LOCK });
	ev(UNI_PE_READ_LATER, 21, 2);
	run_thread(2);
	give_back(21);
	take_lock(2, 21);
	put((struct uni_promise_event){ .kind = UNI_PE_LOST, .thread = NOBODY, .other = NOBODY });
	take_lock(1, 21);
	wait_for(1, 22);
	ev(UNI_PE_CREATE, 1, 30); /* without the lock: it has given up */
	m = uni_promise_builder_finish(b);
	assert_int_equal(m->holds.nr, 4);
	assert_true(m->holds.v[0].undated && m->holds.v[0].begin == m->begin);
	assert_int_equal(m->holds.v[0].owner, uni_promise_find(b, 1));
	assert_true(m->holds.v[1].undated);
	assert_int_equal(m->holds.v[1].owner, uni_promise_find(b, 2));
	assert_false(m->holds.v[2].undated);
	assert_int_equal(m->holds.v[2].end, m->last_gap);
	assert_int_equal(m->holds.v[3].end, UNI_PROMISE_OPEN);
	assert_int_equal(m->waits.nr, 1);
	assert_true(m->waits.v[0].given_up && m->waits.v[0].end == m->end);
}

/* Threads that lock by turns, each with a book of its own. */
#define LOCKS	4
#define WORKERS 6
#define TURNS	20000

static struct worker {
	uint64_t lock, since; /* 0: it waits for none */
	uint32_t has;	      /* locks, a bit each */
} worker[WORKERS];
static struct {
	unsigned owner; /* 0: nobody, else the number of a thread */
	uint64_t since, held, waited, holds, waits;
	uint64_t blame[WORKERS + 1][WORKERS + 1];
} book[LOCKS];

static void note_blame(unsigned lock, uint64_t until)
{
	unsigned owner = book[lock].owner;

	for (unsigned i = 0; owner != 0 && i < WORKERS; i++) {
		uint64_t from =
			worker[i].since > book[lock].since ? worker[i].since : book[lock].since;

		if (worker[i].lock == lock + 1)
			book[lock].blame[i + 1][owner] += until - from;
	}
}

static void work(unsigned i, unsigned lock, bool gives)
{
	struct worker *w = &worker[i];

	if (gives) {
		give_back(100 + lock);
		note_blame(lock, now);
		book[lock].held += now - book[lock].since;
		book[lock].owner = 0;
		w->has &= ~(1u << lock);
	} else if (book[lock].owner == 0) {
		take_lock(i + 1, 100 + lock);
		if (w->lock != 0)
			book[lock].waited += now - w->since;
		w->lock = 0;
		w->has |= 1u << lock;
		book[lock].owner = i + 1;
		book[lock].since = now;
		book[lock].holds++;
	} else if (w->lock == 0) {
		wait_for(i + 1, 100 + lock);
		w->lock = lock + 1;
		w->since = now;
		book[lock].waits++;
	}
}

static void books(void **state)
{
	const struct uni_promise_model *m;
	uint64_t random = 7;
	struct uni_locks l;

	(void)state;
	for (unsigned n = 0; n < TURNS; n++) {
		unsigned i, lock;

		random = random * 6364136223846793005u + 1442695040888963407u;
		i = (random >> 33) % WORKERS;
		lock = worker[i].lock != 0 ? (unsigned)worker[i].lock - 1 : (random >> 43) % LOCKS;
		run_thread(i + 1);
		/* Locks are taken in order, so that nobody waits for ever. */
		if (worker[i].lock == 0 && (worker[i].has >> lock) != 0)
			work(i, 31 - (unsigned)__builtin_clz(worker[i].has), true);
		else
			work(i, lock, false);
	}
	run_thread(1);
	for (unsigned i = 0; i < WORKERS; i++) {
		if (worker[i].lock != 0)
			wait_for(i + 1, 100 + worker[i].lock - 1); /* still */
	}
	m = uni_promise_builder_finish(b);
	assert_int_equal(uni_promise_locks(m, &l), 0);
	assert_int_equal(l.rows.nr, LOCKS);
	for (size_t i = 0; i < LOCKS; i++) {
		const struct uni_lock_row *r = &l.rows.v[i];
		unsigned lock = (unsigned)(m->all.v[r->lock].id - 100);

		note_blame(lock, now);
		book[lock].held += book[lock].owner != 0 ? now - book[lock].since : 0;
		for (unsigned k = 0; k < WORKERS; k++)
			book[lock].waited += worker[k].lock == lock + 1 ? now - worker[k].since : 0;
		assert_int_equal(r->nr_holds, book[lock].holds);
		assert_int_equal(r->nr_waits, book[lock].waits);
		assert_int_equal(r->held, book[lock].held);
		assert_int_equal(r->waited, book[lock].waited);
		assert_true(i == 0 || r->waited <= l.rows.v[i - 1].waited);
		for (size_t k = 0; k < r->nr; k++) {
			const struct uni_lock_blame *x = &l.blames.v[r->first + k];

			assert_int_equal(x->ns,
				book[lock].blame[m->all.v[x->waiter].id][m->all.v[x->owner].id]);
			assert_true(k == 0 || x->ns <= l.blames.v[r->first + k - 1].ns);
			book[lock].blame[m->all.v[x->waiter].id][m->all.v[x->owner].id] = 0;
		}
	}
	for (unsigned i = 0; i < LOCKS; i++) {
		for (unsigned k = 0; k < (WORKERS + 1) * (WORKERS + 1); k++)
			assert_int_equal(book[i].blame[k / (WORKERS + 1)][k % (WORKERS + 1)], 0);
		assert_true(book[i].waits > 100);
	}
	uni_locks_deinit(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lock, begin, end),
		cmocka_unit_test_setup_teardown(two_locks, begin, end),
		cmocka_unit_test_setup_teardown(gave_up, begin, end),
		cmocka_unit_test_setup_teardown(one_name, begin, end),
		cmocka_unit_test_setup_teardown(own_lock, begin, end),
		cmocka_unit_test_setup_teardown(owner_has_ended, begin, end),
		cmocka_unit_test_setup_teardown(owner_had_ended, begin, end),
		cmocka_unit_test_setup_teardown(no_deadlock, begin, end),
		cmocka_unit_test_setup_teardown(from_before, begin, end),
		cmocka_unit_test_setup_teardown(books, begin, end),
	};

	return cmocka_run_group_tests_name("promise_locks", tests, NULL, NULL);
}
