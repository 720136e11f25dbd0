/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker's side of holding a VMM's threads. The observer's is base/holder.c. */
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/observer.h"
#include "base/observers.h"
#include "base/side.h"

int uni_observer_begin_hold(
	struct uni_observer *o, const uint64_t *runs, uint32_t nr, struct uni_err *err)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_RUNS };
	struct uni_observe_reply reply = { 0 };
	_cleanup_close_ int fd = -1;
	void *page = MAP_FAILED;

	_Static_assert(sizeof(*runs) * UNI_HOLD_RUNS == sizeof(q.path), "a request has room");
	memcpy(q.path, runs, sizeof(*runs) * uni_min(nr, UNI_HOLD_RUNS));
	if (uni_observer_ask(o, &q, &reply) == 0) {
		q.op = UNI_OBSERVE_PAGE;
		fd = uni_observer_ask(o, &q, &reply);
	}
	if (fd >= 0)
		page = mmap(NULL, sizeof(*o->page), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, fd, 0);
	if (page == MAP_FAILED)
		return uni_err_set(
			err, UNI_EIO, "cannot share memory with the observer of %d", o->pid);
	o->page = page;
	return 0;
}

bool uni_observer_holds(int pid)
{
	const struct uni_observer *o = uni_observer_find(pid);

	return o != NULL && o->page != NULL;
}

/*
 * On one CPU, of one priority (uni_observer_hurry()): the other side goes on as soon as this one
 * yields, and nobody has to be woken. False: it takes longer.
 */
static bool yield_while(const struct uni_observer *o, uint32_t turn)
{
	uint64_t until_ns = uni_now_ns() + UNI_HOLD_YIELD_NS;

	while (o->paired && atomic_load(&o->page->turn) == turn && uni_now_ns() < until_ns)
		(void)sched_yield();
	return atomic_load(&o->page->turn) != turn;
}

static bool ask_to_hold(const struct uni_observer *o, const struct uni_observe_request *q)
{
	static struct uni_observe_reply reply;
	uint32_t turn = UNI_TURN_ASKED;
	int fd = -1;
	bool ok;

	atomic_store(&o->page->turn, turn);
	ok = uni_side_send(o->fd, q, sizeof(*q), -1);
	if (ok && !yield_while(o, turn) &&
		atomic_compare_exchange_strong(&o->page->turn, &turn, UNI_TURN_WAITING))
		ok = uni_side_receive(o->fd, &reply, sizeof(reply), &fd);
	if (fd >= 0)
		(void)close(fd);
	return ok;
}

const struct uni_hold_page *uni_observer_hold(
	int pid, const int *tids, uint32_t nr, unsigned flags, uint64_t until_ns, uint64_t brief_ns)
{
	static struct uni_observe_request q;
	struct uni_observer *o = uni_observer_find(pid);
	bool ok;

	if (o == NULL || o->page == NULL || nr > UNI_HOLD_MAX)
		return NULL;
	_Static_assert(sizeof(*tids) * UNI_HOLD_MAX == sizeof(q.path), "a request has room");
	(void)pthread_mutex_lock(&o->asking);
	q.op = UNI_OBSERVE_HOLD;
	q.flags = (int32_t)flags;
	q.tid = (int32_t)nr;
	q.until_ns = until_ns;
	q.brief_ns = brief_ns;
	memcpy(q.path, tids, nr * sizeof(*tids));
	ok = ask_to_hold(o, &q);
	(void)pthread_mutex_unlock(&o->asking);
	return ok ? o->page : NULL;
}

void uni_observer_release(int pid)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_LET_GO };
	struct uni_observe_reply reply = { 0 };
	struct uni_observer *o = uni_observer_find(pid);

	if (o == NULL || o->page == NULL)
		return;
	if (atomic_exchange(&o->page->turn, UNI_TURN_GO) == UNI_TURN_HELD &&
		yield_while(o, UNI_TURN_GO))
		return;
	(void)uni_observer_ask(o, &q, &reply);
}

int uni_observer_write_run(int pid, uint64_t run_hva, uint64_t valid, bool unmark)
{
	struct uni_observe_request q = { .op = UNI_OBSERVE_WRITE_RUN,
		.flags = (int32_t)valid,
		.tid = unmark,
		.until_ns = run_hva };
	struct uni_observe_reply reply = { 0 };

	return uni_observer_ask(uni_observer_find(pid), &q, &reply);
}
