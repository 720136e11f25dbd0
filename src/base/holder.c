/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hold.h"
#include "base/opener.h"

#define STOP_NS (200 * UNI_NSEC_PER_MSEC)
#define HELD_NS UNI_NSEC_PER_SEC /* nobody holds a guest for so long */

static struct held {
	int syscall_fd, stat_fd, schedstat_fd;
	struct uni_hold hold;
} held[UNI_HOLD_MAX];
static struct uni_hold_page *page;
static uint64_t runs[UNI_HOLD_RUNS];
static unsigned flags;	 /* of the threads that are held, and of those that are late */
static uint32_t nr_held; /* places that may not be free */
static bool paired;	 /* on the worker's CPU, with its priority */
static bool holding;	 /* for the worker */
static uint64_t begin_ns;

int uni_holder_take_runs(const struct uni_observe_request *q)
{
	memcpy(runs, q->path, sizeof(runs));
	return 0;
}

/* The word gets those bits alone that ask KVM for registers. From rip our mark is taken away. */
int uni_holder_write_run(int pid, const struct uni_observe_request *q)
{
	uint64_t v = (uint64_t)q->flags & KVM_SYNC_X86_VALID_FIELDS;
	struct iovec local = { &v, sizeof(v) }, remote = { .iov_len = sizeof(v) };
	uint64_t at = q->until_ns + offsetof(struct kvm_run, kvm_valid_regs);

	for (size_t i = 0; q->until_ns != 0 && i < uni_array_len(runs); i++) {
		if (runs[i] != q->until_ns)
			continue;
		if (q->tid != 0) {
			at = q->until_ns + offsetof(struct kvm_run, s.regs.regs.rip);
			v = 0;
		}
		remote.iov_base = (void *)(uintptr_t)at;
		return process_vm_writev(pid, &local, 1, &remote, 1, 0) == sizeof(v) ? 0 : -1;
	}
	errno = EACCES;
	return -1;
}

int uni_holder_page(void)
{
	int fd = memfd_create("uniscope-hold", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*page)) == 0)
		p = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || page != NULL) {
		(void)close(fd);
		errno = EBUSY;
		return -1;
	}
	page = p;
	return fd;
}

static int open_of_thread(int pid, int tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool uni_holder_pair(int tid, int cpu)
{
	static cpu_set_t before, workers;
	cpu_set_t one;

	CPU_ZERO(&one);
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_SET((size_t)cpu, &one);
	if (!paired &&
		(cpu < 0 || page == NULL || sched_getaffinity(0, sizeof(before), &before) != 0 ||
			sched_getaffinity(tid, sizeof(workers), &workers) != 0))
		return false;
	paired = cpu >= 0 && sched_setaffinity(0, sizeof(one), &one) == 0 &&
		 sched_setaffinity(tid, sizeof(one), &one) == 0;
	if (!paired) {
		(void)sched_setaffinity(0, sizeof(before), &before);
		(void)sched_setaffinity(tid, sizeof(workers), &workers);
	}
	return paired;
}

/* A thread of this process: its files stay with it, even if another one gets its number. */
static bool take_thread(struct held *h, int pid, int tid)
{
	if (h->hold.tid == tid)
		return true;
	if (h->hold.state != UNI_HOLD_FREE)
		return false;
	if (h->hold.tid != 0) {
		(void)close(h->syscall_fd);
		(void)close(h->stat_fd);
		(void)close(h->schedstat_fd);
	}
	h->hold = (struct uni_hold){ .tid = tid };
	h->syscall_fd = open_of_thread(pid, tid, "syscall");
	h->stat_fd = open_of_thread(pid, tid, "stat");
	h->schedstat_fd = open_of_thread(pid, tid, "schedstat");
	return true;
}

/* The second number: how long it has waited for a CPU. */
static uint64_t run_delay(int schedstat_fd)
{
	char text[96] = "", *at;

	if (pread(schedstat_fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	(void)strtoull(text, &at, 10);
	return strtoull(at, NULL, 10);
}

static void stop_threads(int pid, const struct uni_observe_request *q)
{
	static struct uni_hold *wait[UNI_HOLD_MAX];
	uint32_t nr = (uint32_t)q->tid, nr_wait = 0;
	static int32_t tids[UNI_HOLD_MAX];
	uint64_t limit_ns;

	memcpy(tids, q->path, sizeof(tids));
	for (uint32_t i = 0; i < nr; i++) {
		struct held *h = &held[i];

		if (tids[i] == 0 || !take_thread(h, pid, tids[i]) || h->hold.state != UNI_HOLD_FREE)
			continue;
		uni_hold_prepare(&h->hold, h->syscall_fd, h->stat_fd);
		page->run_delay_ns = run_delay(h->schedstat_fd);
	}
	page->ask_ns = uni_now_ns();
	for (uint32_t i = 0; i < nr; i++) {
		struct uni_hold *h = &held[i].hold;

		if (h->state == UNI_HOLD_SEIZED)
			(void)uni_hold_ask(h);
		if (h->state == UNI_HOLD_ASKED || h->state == UNI_HOLD_DYING)
			wait[nr_wait++] = h;
	}
	limit_ns = nr_wait > 1 ? q->brief_ns : q->until_ns;
	uni_hold_wait(wait, nr_wait, page->ask_ns + uni_min(limit_ns, STOP_NS));
	for (uint32_t i = 0; i < nr; i++) {
		const struct uni_hold *h = &held[i].hold;
		int fd = -1;

		if (h->state == UNI_HOLD_STOPPED && (flags & UNI_HOLD_WHERE) != 0)
			(void)uni_hold_in_run(h, &fd);
		page->seen[i] = (struct uni_hold_seen){ h->state, h->doing, fd };
	}
}

static void yield_to_worker(void)
{
	uint64_t until_ns = uni_now_ns() + UNI_HOLD_YIELD_NS;

	while (paired && atomic_load(&page->turn) == UNI_TURN_HELD && uni_now_ns() < until_ns)
		(void)sched_yield();
}

bool uni_holder_hold(int pid, const struct uni_observe_request *q)
{
	uint32_t turn = UNI_TURN_ASKED;

	if (page == NULL || (uint32_t)q->tid > UNI_HOLD_MAX)
		return false;
	flags = (unsigned)q->flags;
	begin_ns = holding ? begin_ns : uni_now_ns();
	holding = true;
	nr_held = uni_max(nr_held, (uint32_t)q->tid);
	stop_threads(pid, q);
	if (!atomic_compare_exchange_strong(&page->turn, &turn, UNI_TURN_HELD)) {
		atomic_store(&page->turn, UNI_TURN_ASLEEP);
		return false;
	}
	yield_to_worker();
	turn = UNI_TURN_HELD;
	if (atomic_compare_exchange_strong(&page->turn, &turn, UNI_TURN_ASLEEP))
		return true;
	uni_holder_let_go();
	if (paired) /* it looks at the clock now */
		(void)sched_yield();
	return true;
}

void uni_holder_let_go(void)
{
	uint32_t turn = UNI_TURN_GO;

	for (uint32_t i = 0; i < nr_held; i++)
		uni_hold_release(&held[i].hold, (flags & UNI_HOLD_RESTART) != 0);
	holding = false;
	/* The worker may ask for the next stop already. */
	if (page != NULL)
		(void)atomic_compare_exchange_strong(&page->turn, &turn, UNI_TURN_FREE);
}

bool uni_holder_any_late(void)
{
	for (uint32_t i = 0; !holding && i < nr_held; i++) {
		if (held[i].hold.state != UNI_HOLD_FREE)
			return true;
	}
	return false;
}

void uni_holder_settle(void)
{
	bool hung = holding && uni_now_ns() - begin_ns >= HELD_NS;

	if (hung || uni_holder_any_late())
		uni_holder_let_go();
}
