/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/watchdog.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "backend/helper.h"

#define HOLD_NS (500 * UNI_NSEC_PER_MSEC) /* more than any sample takes */
#define LOOK_NS (200 * UNI_NSEC_PER_MSEC)

/* Stopped by a signal: a process that only waits for a CPU, or is debugged, does not count. */
static bool is_stopped(pid_t pid)
{
	char path[32], stat[1024];
	const char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (uni_read_small(path, stat, sizeof(stat)) <= 0)
		return false;
	p = strrchr(stat, ')');
	return p != NULL && strncmp(p, ") T", 3) == 0;
}

static _Noreturn void watch_profiler(struct uni_kvm_watch_page *page, pid_t profiler)
{
	struct timespec look = uni_ns_timespec(LOOK_NS);

	/* Ends together with the profiler. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != profiler)
		_exit(0);
	uni_helper_begin("uni-watchdog", NULL, 0);
	for (;;) {
		uint64_t deadline = atomic_load(&page->deadline_ns);

		if (deadline != 0 && uni_now_ns() > deadline && is_stopped(profiler)) {
			atomic_store(&page->woken, true);
			/* Not if somebody else has resumed it meanwhile. */
			if (is_stopped(profiler))
				(void)kill(profiler, SIGCONT);
			else
				atomic_store(&page->woken, false);
		}
		(void)nanosleep(&look, NULL);
	}
}

void uni_kvm_watchdog_start(struct uni_kvm_watchdog *w)
{
	pid_t profiler = getpid();
	void *page = mmap(NULL, sizeof(*w->page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (page == MAP_FAILED)
		return;
	w->page = page;
	w->pid = fork();
	if (w->pid == 0)
		watch_profiler(page, profiler);
	if (w->pid > 0)
		return;
	(void)munmap(page, sizeof(*w->page));
	*w = (struct uni_kvm_watchdog){ 0 };
}

void uni_kvm_watchdog_hold(struct uni_kvm_watchdog *w)
{
	if (w->page != NULL)
		atomic_store(&w->page->deadline_ns, uni_now_ns() + HOLD_NS);
}

void uni_kvm_watchdog_free(struct uni_kvm_watchdog *w)
{
	if (w->page != NULL)
		atomic_store(&w->page->deadline_ns, 0);
}

void uni_kvm_watchdog_stop_again(struct uni_kvm_watchdog *w)
{
	if (w->page == NULL || atomic_load(&w->page->deadline_ns) != 0)
		return;
	if (atomic_load(&w->page->woken) && atomic_exchange(&w->page->woken, false))
		(void)kill(getpid(), SIGSTOP);
}

void uni_kvm_watchdog_end(struct uni_kvm_watchdog *w)
{
	if (w->page == NULL)
		return;
	(void)kill(w->pid, SIGKILL);
	(void)waitpid(w->pid, NULL, 0);
	(void)munmap(w->page, sizeof(*w->page));
	*w = (struct uni_kvm_watchdog){ 0 };
}
