/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patches the code of a process. ptrace stops all its threads. That includes sleeping ones, which
 * might wake while the code changes. A thread that waits for a CPU, or in vfork(), cannot stop now;
 * and a running thread cannot be let go, either. So a thread of our own does the stopping: when it
 * ends, the kernel lets all stopped threads go.
 *
 * Code is mapped read-only. A debugger writes through /proc/PID/mem, which makes a private copy of
 * a file's page. One system call writes a page, which no signal interrupts halfway. A place across
 * two pages needs two calls. Their order is such that a return is a whole instruction in between:
 * the bytes behind a `ret` are never executed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hurry.h"
#include "base/observer.h"
#include "backend/patch.h"
#include "backend/proc/proc.h"
#include "backend/vmm/scan.h"

#define PAGE	    4096u
#define EXTENT_MAX  8192
#define THREADS_MAX 4096
#define CALL	    0xe8
#define JUMP	    0xe9

struct write {
	struct uni_proc *p;
	struct uni_patch_plan plan;
	int rc; /* the result */
	int fd; /* memory of the process */
	int nr;
	struct uni_proc_thread thread[THREADS_MAX];
	struct user_regs_struct held[THREADS_MAX];
	int tid[THREADS_MAX];
};

static bool has_thread(const struct write *w, int tid)
{
	for (int i = 0; i < w->nr; i++) {
		if (w->thread[i].stop.tid == tid)
			return true;
	}
	return false;
}

/* Repeats until no thread runs: a thread that is not yet stopped may create another one. */
static int stop_all(struct write *w)
{
	bool more = true;

	while (more) {
		int nr = uni_proc_list(w->p->pid, w->tid, THREADS_MAX);

		if (nr == 0)
			return -UNI_EGONE;
		if (nr > THREADS_MAX)
			return -UNI_ENOTSUP;
		more = false;
		for (int i = 0; i < nr; i++) {
			struct uni_proc_thread *t = &w->thread[w->nr];
			int rc;

			if (has_thread(w, w->tid[i]))
				continue;
			if (w->nr == THREADS_MAX)
				return -UNI_ENOTSUP;
			*t = (struct uni_proc_thread){ .stop = { .tid = w->tid[i], .firm = true },
				.fd = -1 };
			rc = uni_proc_seize(w->p, t, &w->held[w->nr++]);
			if (rc != 0)
				return rc;
			more = true;
		}
	}
	return 0;
}

static bool may_write(const struct write *w)
{
	for (int i = 0; w->plan.pieces && i < w->nr; i++) {
		struct uni_regs regs = { 0 };

		if (!w->thread[i].stop.held)
			continue;
		uni_proc_ptrace_to_regs(&w->held[i], &regs);
		if (uni_patch_hit(&w->plan, &regs))
			return false;
	}
	return true;
}

static bool write_memory(const struct write *w, const uint8_t *bytes, uint64_t va, size_t len)
{
	return len == 0 || pwrite(w->fd, bytes, len, (off_t)va) == (ssize_t)len;
}

/* The first byte of a place across the border tells which page must be written first. */
static bool is_tail_first(
	const struct uni_patch_job *job, const struct uni_patch_extent *e, uint64_t border)
{
	for (size_t i = e->first; i < e->first + e->nr; i++) {
		const struct uni_patch *p = &job->patch[i];

		if (p->gpa < border && border - p->gpa < p->len)
			return p->new_bytes[0] == CALL || p->new_bytes[0] == JUMP;
	}
	return false;
}

static bool put_extent(const struct write *w, const struct uni_patch_extent *e, const uint8_t *from)
{
	size_t head = uni_min(e->len, (size_t)(PAGE - e->gpa % PAGE));
	uint64_t border = e->gpa + head;

	if (is_tail_first(w->plan.job, e, border))
		return write_memory(w, from + head, border, e->len - head) &&
		       write_memory(w, from, e->gpa, head);
	return write_memory(w, from, e->gpa, head) &&
	       write_memory(w, from + head, border, e->len - head);
}

/* Call it while all threads are stopped. */
static int patch_places(struct write *w)
{
	struct uni_patch_job *job = w->plan.job;
	size_t done = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->plan.nr; i++) {
		const struct uni_patch_extent *e = &w->plan.extent[i];

		job->bad = e->first;
		rc = uni_vmm_copy(w->p->pid, e->gpa, w->plan.was + e->at, e->len);
	}
	if (rc == 0)
		rc = uni_patch_apply(&w->plan);
	if (rc != 0 || job->nr_written == 0)
		return rc;
	while (done < w->plan.nr &&
		put_extent(w, &w->plan.extent[done], w->plan.want + w->plan.extent[done].at))
		done++;
	if (done == w->plan.nr)
		return 0;
	job->bad = w->plan.extent[done].first;
	job->nr_written = 0;
	for (size_t i = 0; i <= done; i++)
		(void)put_extent(w, &w->plan.extent[i], w->plan.was + w->plan.extent[i].at);
	return -UNI_EFAULT;
}

static void *stop_and_write(void *arg)
{
	struct write *w = arg;
	struct uni_patch_job *job = w->plan.job;
	struct uni_hurry hurry; /* which no thread inherits */
	uint64_t begin_ns;

	uni_hurry_begin(&hurry);
	begin_ns = uni_now_ns();
	w->rc = stop_all(w);
	if (w->rc == 0 && !may_write(w))
		w->rc = -UNI_EAGAIN;
	if (w->rc == 0)
		w->rc = patch_places(w);
	for (int i = 0; i < w->nr; i++) {
		if (w->thread[i].stop.held)
			uni_proc_let_go(&w->thread[i]);
	}
	job->pause_ns = uni_max(job->pause_ns, uni_now_ns() - begin_ns);
	return NULL;
}

static int write_with_threads_stopped(struct write *w)
{
	pthread_t thread;

	/* Lets go the threads that a snapshot holds, as they could not be stopped a second time. */
	for (int i = 0; i < w->p->nr_threads; i++)
		uni_proc_let_go(&w->p->thread[i]);
	if (pthread_create(&thread, NULL, stop_and_write, w) != 0)
		return -UNI_ENOMEM;
	(void)pthread_join(thread, NULL);
	return w->rc;
}

int uni_proc_write_text(struct uni_target *base, struct uni_patch_job *job)
{
	struct uni_proc *p = (struct uni_proc *)base;
	_cleanup_free_ struct write *w = calloc(1, sizeof(*w));
	_cleanup_close_ int fd = -1;
	int rc;

	if (w == NULL)
		return -UNI_ENOMEM;
	if (uni_proc_program_changed(p))
		return -UNI_EGONE;
	fd = uni_observer_open_writable(p->pid);
	if (fd < 0)
		return errno == ENOENT ? -UNI_EGONE : -UNI_EPERM;
	w->p = p;
	w->fd = fd;
	rc = uni_patch_plan(job, EXTENT_MAX, &w->plan);
	if (rc != 0)
		return rc;
	rc = write_with_threads_stopped(w);
	uni_patch_plan_deinit(&w->plan);
	return rc;
}
