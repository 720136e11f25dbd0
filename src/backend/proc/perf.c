/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples by perf events: the kernel's CPU clock of each thread. Each sample has the thread's
 * registers and a copy of the top of its stack, both in user space. In the kernel, it also has the
 * kernel's chain. If that is not permitted, the kernel makes samples of user space only. Then the
 * rest of the thread's CPU time is one frame, below its callers if they are known (callers.c). Each
 * thread has one event and one ring. Later threads are found by searching for them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/observer.h"
#include "backend/proc/proc.h"
#include "backend/proc/record.h"
#include "backend/vmm/proc.h"

#define SAMPLE_BYTES   (UNI_PROC_STACK_BYTES + 512)
#define RINGS_MAX      (256ull << 20) /* of all threads */
#define RING_PAGES_MIN 16u
#define RING_PAGES_MAX 1024u
#define RING_NS	       (1000 * UNI_NSEC_PER_MSEC) /* how late a reader may be */
#define LOOK_NS	       (100 * UNI_NSEC_PER_MSEC)
#define COUNTS_NS      (200 * UNI_NSEC_PER_MSEC) /* between looks at all CPU times */
#define NOTABLE	       100			 /* one part of so many */
#define FIRST_NS       (2 * UNI_NSEC_PER_SEC)	 /* to wait for a first known caller */

static int open_event(int tid, double frequency, bool kernel)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = (uint64_t)(1e9 / frequency),
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.exclude_kernel = !kernel,
		.exclude_callchain_user = 1,
		.exclude_hv = 1,
		.comm = 1,
		.comm_exec = 1,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_regs_user = uni_proc_perf_regs,
		.sample_stack_user = UNI_PROC_STACK_BYTES,
		.watermark = 1,
		.wakeup_watermark = UNI_PROC_RECORD_MAX,
	};

	return uni_observer_perf_event(&a, tid);
}

int uni_proc_perf_works(int pid, bool *kernel_ret, struct uni_err *err)
{
	int fd = open_event(pid, 1, true);

	*kernel_ret = fd >= 0;
	if (fd < 0)
		fd = open_event(pid, 1, false);
	if (fd >= 0) {
		(void)close(fd);
		return 0;
	}
	if (errno == EACCES || errno == EPERM)
		return uni_err_set(err, UNI_EPERM,
			"perf events of process %d are not permitted (root, CAP_PERFMON, or "
			"kernel.perf_event_paranoid of 2 at most and the same user)",
			pid);
	return uni_err_set(err, UNI_ENOTSUP, "the kernel makes no perf events of process %d: %s",
		pid, strerror(errno));
}

/* For all rings: the kernel locks so much memory for a user, and what the process may lock. */
static uint64_t rings_bytes(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit = { 0 };
	uint64_t kib = 0;
	char text[32];

	if (uni_read_small("/proc/sys/kernel/perf_event_mlock_kb", text, sizeof(text)) > 0)
		kib = strtoull(text, NULL, 10) * (uint64_t)uni_max(cpus, 1L);
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	return uni_min((kib << 10) + uni_min(limit.rlim_cur, (rlim_t)RINGS_MAX), RINGS_MAX);
}

/*
 * Bytes of a ring, a power of two: large enough for a late reader. All threads get the same, also
 * some that are not there yet. Otherwise the first ones would take all.
 */
static size_t ring_bytes(double frequency, int nr_threads)
{
	const double want = frequency * (double)RING_NS / 1e9 * SAMPLE_BYTES;
	const uint64_t share = rings_bytes() / ((uint64_t)nr_threads * 5 / 4 + 2);
	size_t pages = RING_PAGES_MIN;

	while (pages < RING_PAGES_MAX && (double)pages * 4096 < want &&
		((uint64_t)pages * 2 + 1) * 4096 <= share)
		pages *= 2;
	return pages * 4096;
}

/* The amount of locked memory is limited: tries smaller sizes, too. */
static bool map_ring(struct uni_proc_thread *t, size_t bytes)
{
	for (; bytes >= UNI_PROC_RECORD_MAX; bytes /= 2) {
		t->ring = mmap(NULL, 4096 + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
		if (t->ring != MAP_FAILED) {
			t->ring_bytes = bytes;
			return true;
		}
	}
	t->ring = NULL;
	return false;
}

static void close_thread(struct uni_proc_thread *t)
{
	if (t->ring != NULL)
		(void)munmap(t->ring, 4096 + t->ring_bytes);
	if (t->fd >= 0)
		(void)close(t->fd);
	t->ring = NULL;
	t->fd = -1;
}

/* Returns 0, or the errno of the failed call. */
static int open_thread(struct uni_proc *p, struct uni_proc_thread *t)
{
	bool good;
	int saved;

	t->fd = open_event(t->stop.tid, p->frequency, p->kernel);
	good = t->fd >= 0 && map_ring(t, p->ring_bytes) &&
	       ioctl(t->fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
	saved = errno;
	if (uni_vmm_thread_times(p->pid, t->stop.tid, &t->run_ns, &t->wait_ns))
		t->begin_ns = uni_now_ns();
	if (good)
		return 0;
	close_thread(t);
	return saved;
}

static bool is_known(const struct uni_proc *p, int tid)
{
	for (int i = 0; i < p->nr_sampled; i++) {
		if (p->thread[i].stop.tid == tid)
			return true;
	}
	return false;
}

static void add_new_threads(struct uni_proc *p, uint64_t now_ns)
{
	int tid[4 * UNI_VCPU_MAX];
	int nr;

	if (now_ns < p->next_look_ns)
		return;
	p->next_look_ns = now_ns + LOOK_NS;
	nr = uni_proc_list(p->pid, tid, (int)uni_array_len(tid));
	nr = uni_min(nr, (int)uni_array_len(tid));
	for (int i = 0; i < nr && p->nr_sampled < UNI_VCPU_MAX; i++) {
		struct uni_proc_thread *t = &p->thread[p->nr_sampled];

		if (is_known(p, tid[i]))
			continue;
		*t = (struct uni_proc_thread){ .stop.tid = tid[i], .fd = -1 };
		p->nr_sampled++;
		(void)open_thread(p, t);
	}
}

int uni_proc_stream_start(struct uni_target *base, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err)
{
	struct uni_proc *p = (struct uni_proc *)base;
	int error = 0, good = 0;

	(void)hints; /* the receiver of the samples unwinds the stacks */
	if (cfg->exits_every != 0)
		return uni_err_set(err, UNI_ENOTSUP, "a process has no VM exits");
	if (p->record == NULL)
		p->record = malloc(UNI_PROC_RECORD_MAX);
	if (p->record == NULL)
		return uni_err_nomem(err);
	p->frequency = cfg->frequency;
	p->hurry = cfg->hurry;
	p->max_duty = uni_max(cfg->max_duty, 1e-4);
	p->ring_bytes = ring_bytes(p->frequency, p->nr_sampled);
	p->samples = p->lost = p->failed = 0;
	p->ending = false;
	p->begin_ns = uni_now_ns();
	for (int i = 0; i < p->nr_sampled; i++) {
		int e = open_thread(p, &p->thread[i]);

		error = e != 0 && e != ESRCH ? e : error;
		good += e == 0;
	}
	if (good != 0 && p->asks)
		uni_proc_callers_start(p);
	if (good != 0)
		return 0;
	if (error == 0)
		return uni_err_set(err, UNI_EGONE, "process %d has ended", p->pid);
	return uni_err_set(err, error == EPERM || error == EACCES ? UNI_EPERM : UNI_EIO,
		"the kernel does not sample process %d: %s (via=stop stops it instead)", p->pid,
		strerror(error));
}

static void take_record(
	struct uni_proc *p, uint32_t vcpu, size_t size, const struct uni_stream_sink *sink)
{
	struct uni_stream_raw raw;
	uint64_t lost = 0, depth = 0;

	switch (uni_proc_record_parse(p->record, size, &raw, &lost)) {
	case UNI_PROC_RECORD_SAMPLE:
		if (sink->raw == NULL) {
			p->failed++;
			break;
		}
		raw.vcpu = vcpu;
		raw.depth_ret = &depth;
		p->samples++;
		p->thread[vcpu].taken++;
		sink->raw(sink->ctx, &raw);
		uni_proc_deep_note(&p->thread[vcpu], depth > raw.stack_size);
		break;
	case UNI_PROC_RECORD_LOST:
		p->lost += lost;
		p->thread[vcpu].taken += lost;
		break;
	case UNI_PROC_RECORD_BROKEN:
		p->failed++;
		p->thread[vcpu].taken++;
		break;
	case UNI_PROC_RECORD_EXEC:
		p->look_program_ns = 0;
		p->executed = true;
		break;
	case UNI_PROC_RECORD_OTHER:
		break;
	}
}

static void drain_perf_ring(struct uni_proc *p, uint32_t vcpu, const struct uni_stream_sink *sink)
{
	const struct uni_proc_thread *t = &p->thread[vcpu];
	struct perf_event_mmap_page *page = t->ring;
	uint64_t head, tail;
	size_t size;

	if (page == NULL)
		return;
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	/* After EXEC, the records belong to another program. */
	for (tail = page->data_tail; tail != head && !p->executed; tail += size) {
		size = uni_proc_ring_take(
			(const uint8_t *)t->ring + 4096, t->ring_bytes, tail, head, p->record);
		if (size == 0) {
			tail = head; /* cannot happen: the rest of the ring is not trusted */
			break;
		}
		take_record(p, vcpu, size, sink);
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

/*
 * The periods of CPU time that had no sample until run_ns: the thread was in the kernel, where none
 * was permitted. One period is not over yet.
 */
static uint64_t kernel_periods(const struct uni_proc *p, struct uni_proc_thread *t, uint64_t run_ns)
{
	double periods = (double)(run_ns - uni_min(run_ns, t->run_ns)) * p->frequency / 1e9;
	uint64_t nr = periods < (double)t->taken + 2 ? 0 : (uint64_t)periods - t->taken - 1;

	t->notable = run_ns != t->seen_run_ns && (double)(t->in_kernel + nr) * NOTABLE > periods;
	t->seen_run_ns = run_ns;
	return nr;
}

/* A first caller may be known soon. */
static bool waits_for_caller(struct uni_proc *p, uint32_t vcpu, uint64_t now_ns)
{
	struct uni_proc_thread *t = &p->thread[vcpu];

	if (t->in_kernel_ns == 0)
		t->in_kernel_ns = now_ns;
	return p->callers != NULL && !p->ending && now_ns - t->in_kernel_ns < FIRST_NS &&
	       !uni_proc_callers_known(p, vcpu);
}

static void put_kernel_time(struct uni_proc *p, uint32_t vcpu, uint64_t nr, uint64_t now_ns,
	const struct uni_stream_sink *sink)
{
	static const uint64_t somewhere = 0;
	struct uni_proc_thread *t = &p->thread[vcpu];
	struct uni_stream_raw raw = { .t_ns = now_ns, .vcpu = vcpu };

	t->taken += nr;
	t->in_kernel += nr;
	p->samples += nr;
	if (uni_proc_callers_known(p, vcpu)) {
		uni_proc_callers_share(p, &raw, nr, sink);
		return;
	}
	raw.kernel = &somewhere;
	raw.nr_kernel = 1;
	raw.weight = nr;
	raw.regs.state = UNI_VCPU_RUNNING;
	sink->raw(sink->ctx, &raw);
}

/* A thread without a ring, as no more memory may be locked: its samples are lost. */
static void count_lost(struct uni_proc *p, struct uni_proc_thread *t)
{
	uint64_t run_ns, wait_ns, nr;

	if (!uni_vmm_thread_times(p->pid, t->stop.tid, &run_ns, &wait_ns))
		return;
	nr = kernel_periods(p, t, run_ns);
	t->notable = false;
	t->taken += nr;
	p->lost += nr;
}

/* True: it is stopped for its samples. */
static bool read_deep(struct uni_proc *p, uint32_t vcpu, const struct uni_stream_sink *sink)
{
	struct uni_proc_thread *t = &p->thread[vcpu];

	if (t->ring == NULL)
		return false;
	if (!t->by_stops && uni_proc_deep_begins(p, t)) {
		(void)ioctl(t->fd, PERF_EVENT_IOC_DISABLE, 0);
		drain_perf_ring(p, vcpu, sink);
	} else if (t->by_stops && !uni_proc_deep_look(p, vcpu, sink)) {
		(void)ioctl(t->fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return t->by_stops;
}

static void read_thread(struct uni_proc *p, uint32_t vcpu, const struct uni_stream_sink *sink)
{
	struct uni_proc_thread *t = &p->thread[vcpu];
	uint64_t run_ns = 0, wait_ns, now_ns = uni_now_ns(), nr;
	bool known = p->counts && !p->kernel && t->begin_ns != 0 &&
		     uni_vmm_thread_times(p->pid, t->stop.tid, &run_ns, &wait_ns);

	if (t->ring == NULL && t->begin_ns != 0 && p->counts) {
		count_lost(p, t);
		return;
	}
	drain_perf_ring(p, vcpu, sink); /* with all samples until run_ns */
	if (read_deep(p, vcpu, sink) || !p->counts)
		return;
	nr = known ? kernel_periods(p, t, run_ns) : t->waits;
	t->waits = 0;
	if (sink->raw == NULL || p->executed || nr == 0)
		return;
	if (known && waits_for_caller(p, vcpu, now_ns))
		t->waits = nr; /* to be told even if the thread ends */
	else
		put_kernel_time(p, vcpu, nr, now_ns, sink);
}

/* Either those that are stopped for their samples, or the others. */
static void read_threads(struct uni_proc *p, bool by_stops, const struct uni_stream_sink *sink)
{
	for (int i = 0; i < p->nr_sampled; i++) {
		if (p->thread[i].by_stops == by_stops)
			read_thread(p, (uint32_t)i, sink);
	}
}

int uni_proc_stream_read(struct uni_target *base, const struct uni_stream_sink *sink)
{
	struct uni_proc *p = (struct uni_proc *)base;
	uint64_t now_ns = uni_now_ns();
	int tid;

	add_new_threads(p, now_ns);
	p->counts = p->ending || now_ns >= p->next_counts_ns;
	if (p->counts)
		p->next_counts_ns = now_ns + COUNTS_NS;
	read_threads(p, true, sink);
	uni_hurry_end(&p->hurried);
	read_threads(p, false, sink);
	uni_proc_callers_tell(p, sink);
	uni_proc_deep_hurry(p);
	if (uni_proc_program_changed(p))
		return -UNI_EGONE;
	return uni_proc_list(p->pid, &tid, 1) != 0 ? 0 : -UNI_EGONE;
}

void uni_proc_stream_stats(struct uni_target *base, struct uni_stream_stats *ret)
{
	const struct uni_proc *p = (const struct uni_proc *)base;
	size_t turn = p->ring_bytes / SAMPLE_BYTES / 2;

	for (int i = 0; i < p->nr_sampled; i++)
		turn = p->thread[i].by_stops ? 1 : turn;
	*ret = (struct uni_stream_stats){
		.begin_ns = p->begin_ns,
		.samples = p->samples,
		.lost = p->lost,
		.failed = p->failed,
		.callers = uni_proc_callers_votes(p),
		.turn_samples = (uint32_t)uni_max(turn, (size_t)1),
	};
}

/* A thread that waits for a CPU counts as a vCPU that the host lets wait. */
int uni_proc_stream_times(struct uni_target *base, uint32_t vcpu, struct uni_vcpu_times *ret)
{
	const struct uni_proc *p = (const struct uni_proc *)base;
	uint64_t run_ns, wait_ns, wall_ns;
	const struct uni_proc_thread *t;

	if (vcpu >= (uint32_t)p->nr_sampled)
		return -UNI_ENOENT;
	t = &p->thread[vcpu];
	if (t->begin_ns == 0 || !uni_vmm_thread_times(p->pid, t->stop.tid, &run_ns, &wait_ns))
		return -UNI_ENOENT;
	wall_ns = uni_now_ns() - t->begin_ns;
	run_ns = uni_min(run_ns - uni_min(run_ns, t->run_ns), wall_ns);
	wait_ns = uni_min(wait_ns - uni_min(wait_ns, t->wait_ns), wall_ns - run_ns);
	*ret = (struct uni_vcpu_times){
		.guest_ns = run_ns,
		.stolen_ns = wait_ns,
		.idle_ns = wall_ns - run_ns - wait_ns,
		.split = true,
	};
	return 0;
}

int uni_proc_stream_stop(struct uni_target *base)
{
	struct uni_proc *p = (struct uni_proc *)base;

	for (int i = 0; i < p->nr_sampled; i++) {
		if (p->thread[i].fd >= 0)
			(void)ioctl(p->thread[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	}
	uni_hurry_end(&p->hurried);
	p->next_look_ns = UINT64_MAX;
	p->ending = true;
	uni_proc_callers_stop(p);
	return 0;
}

void uni_proc_stream_close(struct uni_proc *p)
{
	uni_proc_callers_close(p);
	for (int i = 0; i < p->nr_sampled; i++)
		close_thread(&p->thread[i]);
}
