/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/catch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"

#define SLICE_NS 100000u /* the shortest that the kernel gives: who asks for it runs first */
#define LEAST_NS 50000u
#define MORE_NS	 400000u
#define NEAR_NS	 500000u
#define SOON_NS	 30000u
#define NOW_NS	 1000u
#define NAP_NS	 100000u
#define DOUBT_NS 20000u /* between the last look at the clock, and the switch to the thread */
#define PAGE	 4096u

#if defined(__x86_64__)
#define PC	   rip
#define SP	   rsp
#define IN_CALL(r) ((int64_t)(r)->orig_rax >= 0) /* an interrupt leaves -1 there */
#else						 /* nobody asks: proc: is not for them */
#define PC	   pc
#define SP	   sp
#define IN_CALL(r) ((void)(r), false)
#endif

/* All records have this size: a page fault, or a switch. */
struct record {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t t_ns;
	uint32_t cpu, reserved;
};

/* The kernel writes over the oldest records, as the ring is mapped for reading. */
static _Thread_local struct watch {
	int tid, fd;
	uint8_t *ring;
	uint64_t begin; /* position */
} watch = { .fd = -1 };

static void close_watch(void)
{
	if (watch.ring != NULL)
		(void)munmap(watch.ring, (size_t)2 * PAGE);
	if (watch.fd >= 0)
		(void)close(watch.fd);
	watch = (struct watch){ .fd = -1 };
}

static bool open_watch(int tid)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.context_switch = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = 1,
	};
	void *ring;

	if (watch.tid == tid)
		return true;
	close_watch();
	watch.fd = (int)syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (watch.fd < 0)
		return false;
	ring = mmap(NULL, (size_t)2 * PAGE, PROT_READ, MAP_SHARED, watch.fd, 0);
	watch.ring = ring != MAP_FAILED ? ring : NULL;
	if (watch.ring == NULL) {
		close_watch();
		return false;
	}
	watch.tid = tid;
	return true;
}

static uint64_t ring_head(void)
{
	return __atomic_load_n(
		&((struct perf_event_mmap_page *)(void *)watch.ring)->data_head, __ATOMIC_ACQUIRE);
}

/* Since from_ns, of which `first` is the earliest; 0: none. */
struct seen {
	unsigned switches, faults;
	bool out, preempted; /* first */
	uint32_t cpu;	     /* of the first */
	uint64_t first_ns;
};

static struct seen look_back(uint64_t from_ns)
{
	struct seen s = { 0 };
	struct record r;

	for (uint64_t at = ring_head(); at > watch.begin; at -= sizeof(r)) {
		memcpy(&r, watch.ring + PAGE + ((at - sizeof(r)) & (PAGE - 1)), sizeof(r));
		if (r.head.size != sizeof(r)) /* of another kind: nothing is known */
			return (struct seen){ 0 };
		if (r.t_ns < from_ns || s.switches + s.faults == PAGE / sizeof(r) - 2)
			break;
		s.faults += r.head.type == PERF_RECORD_SAMPLE;
		if (r.head.type != PERF_RECORD_SWITCH)
			continue;
		s.switches++;
		s.out = (r.head.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
		s.preempted = (r.head.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
		s.cpu = r.cpu;
		s.first_ns = r.t_ns;
	}
	return s;
}

static void copy_stack(int tid, struct uni_catch *c)
{
	const struct iovec to = { c->stack, sizeof(c->stack) };
	const struct iovec from = { (void *)(uintptr_t)c->regs.SP, sizeof(c->stack) };
	ssize_t n = process_vm_readv(tid, &to, 1, &from, 1, 0);

	c->stack_size = n > 0 ? (uint32_t)n : 0;
}

/* It was preempted and has not run since. */
static int stop_it(struct uni_thread_stop *s, uint64_t from_ns, struct uni_catch *c)
{
	uint64_t begin_ns = uni_now_ns();
	int rc = uni_thread_stop_begin(s), e;

	if (rc == 0 && uni_thread_stop_regs(s, &c->regs, sizeof(c->regs)) != sizeof(c->regs))
		rc = -1;
	e = errno;
	if (rc == 0 && IN_CALL(&c->regs))
		c->what = UNI_CATCH_CALL;
	else if (rc == 0)
		c->what = look_back(from_ns).faults != 0 ? UNI_CATCH_FAULT : UNI_CATCH_USER;
	if (c->what != UNI_CATCH_NONE && c->what != UNI_CATCH_USER)
		copy_stack(s->tid, c);
	uni_thread_stop_end(s);
	c->stopped_ns = rc == 0 ? uni_now_ns() - begin_ns : 0;
	errno = e;
	return rc;
}

static bool read_text(int pid, int tid, const char *name, char *text, size_t cap)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, cap - 1);
		(void)close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "NR ARGS SP PC", or "running" if it has been woken. */
static void look_at_sleeper(int pid, int tid, struct uni_catch *c)
{
	char *pc, *sp, text[256];

	(void)read_text(pid, tid, "syscall", text, sizeof(text));
	pc = strrchr(text, ' ');
	if (pc == NULL)
		return;
	*pc++ = '\0';
	sp = strrchr(text, ' ');
	if (sp == NULL)
		return;
	c->regs.PC = strtoull(pc, NULL, 16);
	c->regs.SP = strtoull(sp + 1, NULL, 16);
	c->what = UNI_CATCH_SLEPT;
	copy_stack(tid, c);
}

/* To this CPU, and before others there when the timer rings. */
static bool go_there(int cpu)
{
	/* struct sched_attr, which C libraries do not have */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = { .size = sizeof(a), .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS };
	cpu_set_t one;

	CPU_ZERO(&one);
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return false;
	CPU_SET((size_t)cpu, &one);
	if (sched_getscheduler(0) == SCHED_OTHER) /* kernels before 6.12 have no such slices */
		(void)syscall(SYS_sched_setattr, 0, &a, 0);
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

/* For how long this thread has been ready and waited for a CPU; 0: the kernel does not say. */
static uint64_t waited_ns(void)
{
	static _Thread_local int fd = -1;
	char text[64] = "";
	const char *at;

	if (fd < 0)
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	at = strchr(text, ' ');
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/*
 * Did we take its CPU at once? The scheduler may have let it go on for a while, and then the place
 * is not by chance: some system calls ask the scheduler. How long a switch takes depends on the
 * host, and the fastest one tells.
 */
static bool is_at_once(uint64_t wait_ns, uint64_t slack_ns)
{
	static _Thread_local uint64_t least_ns = UINT64_MAX / 4;

	least_ns = wait_ns < least_ns ? wait_ns : least_ns;
	return wait_ns <= 2 * least_ns + slack_ns;
}

/* It left this CPU because we came, or by itself in the moment before. */
static bool was_there(const struct seen *s, int cpu, uint64_t at_ns)
{
	return s->switches == 1 && s->out && s->cpu == (uint32_t)cpu &&
	       s->first_ns - at_ns < NEAR_NS;
}

static int catch_there(int pid, struct uni_thread_stop *s, int cpu, struct uni_catch *ret)
{
	uint64_t at_ns = uni_now_ns() + LEAST_NS, before_ns = waited_ns(), now_ns, wait_ns;
	struct timespec at;
	struct seen seen;

	at_ns += at_ns * 0x9e3779b97f4a7c15u % MORE_NS;
	at = uni_ns_timespec(at_ns);
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	now_ns = uni_now_ns();
	wait_ns = waited_ns() - before_ns;
	seen = look_back(at_ns);
	if (!was_there(&seen, cpu, at_ns) || !is_at_once(wait_ns, SOON_NS))
		return 0;
	if (seen.preempted)
		return stop_it(s, at_ns, ret);
	/* The timer had to wait until it was asleep: interrupts are off while threads switch. */
	if (seen.first_ns + wait_ns <= now_ns)
		look_at_sleeper(pid, s->tid, ret);
	return 0;
}

int uni_catch_thread(int pid, struct uni_thread_stop *s, int cpu, struct uni_catch *ret)
{
	cpu_set_t all;
	int rc, e;

	memset(ret, 0, sizeof(*ret));
	if (s->pending)
		uni_thread_stop_end(s);
	if (s->pending || !open_watch(s->tid) || sched_getaffinity(0, sizeof(all), &all) != 0)
		return -1;
	if (!go_there(cpu))
		return 0;
	watch.begin = ring_head();
	rc = ioctl(watch.fd, PERF_EVENT_IOC_ENABLE, 0);
	rc = rc == 0 ? catch_there(pid, s, cpu, ret) : rc;
	e = errno;
	(void)ioctl(watch.fd, PERF_EVENT_IOC_DISABLE, 0);
	(void)sched_setaffinity(0, sizeof(all), &all);
	errno = e;
	return rc;
}

/* --- by counts -------------------------------------------------------------------------------- */

/* For how long it has waited for a CPU. That is counted when it gets one. */
static uint64_t has_waited_ns(int pid, int tid)
{
	char text[64];
	const char *at = NULL;

	if (read_text(pid, tid, "schedstat", text, sizeof(text)))
		at = strchr(text, ' ');
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* How often it has lost a CPU, and did not give it up. */
static uint64_t has_lost(int pid, int tid)
{
	static const char key[] = "\nnonvoluntary_ctxt_switches:";
	char text[PAGE];
	const char *at = NULL;

	if (read_text(pid, tid, "status", text, sizeof(text)))
		at = strstr(text, key);
	return at != NULL ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
}

/* The letter of its state, and the CPU on which it ran last. */
static char where_is(int pid, int tid, int *cpu_ret)
{
	const int spaces = 37; /* from the name to field 39 */
	const char *end, *at;
	char text[512];

	if (!read_text(pid, tid, "stat", text, sizeof(text)))
		return '\0';
	end = at = strrchr(text, ')'); /* a name may have any characters */
	for (int i = 0; i < spaces && at != NULL; i++)
		at = strchr(at + 1, ' ');
	*cpu_ret = at != NULL ? (int)strtol(at, NULL, 10) : -1;
	return at != NULL ? end[2] : '\0';
}

/* When the kernel updated its CPU time last, on the clock of its CPU. It has not run since, if it
 * does not run now. 0: the kernel does not say. */
static uint64_t counted_ns(int pid, int tid)
{
	static const char key[] = "se.exec_start";
	char text[PAGE];
	const char *at = NULL;
	char *end;
	uint64_t ms;

	if (read_text(pid, tid, "sched", text, sizeof(text)))
		at = strstr(text, key);
	at = at != NULL ? strchr(at, ':') : NULL;
	if (at == NULL)
		return 0;
	ms = strtoull(at + 1, &end, 10); /* and six digits after a point */
	return *end == '.' ? ms * UNI_NSEC_PER_MSEC + strtoull(end + 1, NULL, 10) : 0;
}

/*
 * Interrupts are off while a thread goes to sleep, so the timer had to wait for that. This thread
 * was counted when it got the CPU, just before now_ns.
 */
static bool was_leaving(int pid, int tid, uint64_t at_ns, uint64_t now_ns)
{
	uint64_t own_ns = counted_ns(getpid(), (int)gettid()), its_ns = counted_ns(pid, tid);

	return its_ns != 0 && its_ns + (now_ns - at_ns) >= own_ns;
}

/*
 * It waits for this CPU. Once it has got it, its counts tell whether the timer took it: the thread
 * has lost it once more, and not before that. Else it was woken up meanwhile, or waited already.
 */
static int stop_waiting(
	int pid, struct uni_thread_stop *s, uint64_t at_ns, uint64_t lost, struct uni_there *ret)
{
	uint64_t before_ns = has_waited_ns(pid, s->tid), leave_ns, wait_ns;
	int rc;

	ret->what = UNI_THERE_WAITED;
	rc = uni_thread_stop_tell(s);
	leave_ns = uni_now_ns();
	if (rc == 0)
		rc = uni_thread_stop_begin(s);
	ret->stop_ns = uni_now_ns();
	if (rc != 0 || uni_thread_stop_regs(s, &ret->regs, sizeof(ret->regs)) != sizeof(ret->regs))
		return -1;
	wait_ns = has_waited_ns(pid, s->tid) - before_ns;
	if (has_lost(pid, s->tid) != lost && leave_ns - wait_ns + DOUBT_NS >= at_ns)
		ret->what = UNI_THERE_RAN;
	/* It would have waited for others anyway, but not for us. */
	if (ret->what == UNI_THERE_RAN)
		ret->stop_ns -= leave_ns - at_ns;
	return 0;
}

static int stop_on_cpu(
	int pid, struct uni_thread_stop *s, int cpu, uint64_t at_ns, struct uni_there *ret)
{
	const struct timespec at = uni_ns_timespec(at_ns);
	uint64_t before_ns = waited_ns(), lost = has_lost(pid, s->tid), now_ns;
	bool at_once;
	int now = -1, rc;
	char state;

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	now_ns = uni_now_ns();
	state = where_is(pid, s->tid, &now);
	at_once = is_at_once(waited_ns() - before_ns, NOW_NS);
	if (state == 'S' || state == 'D')
		ret->what = now == cpu && at_once && was_leaving(pid, s->tid, at_ns, now_ns)
				    ? UNI_THERE_LEFT
				    : UNI_THERE_ASLEEP;
	if (state != 'R' || now != cpu)
		return 0;
	rc = stop_waiting(pid, s, at_ns, lost, ret);
	if (rc == 0 && ret->what == UNI_THERE_RAN && !at_once) {
		uni_thread_stop_end(s);
		ret->what = UNI_THERE_AWAY;
	}
	return rc;
}

int uni_catch_there(int pid, struct uni_thread_stop *s, int cpu, struct uni_there *ret)
{
	uint64_t at_ns = uni_now_ns() + NAP_NS;
	cpu_set_t all;
	int rc, e;

	*ret = (struct uni_there){ .what = UNI_THERE_AWAY };
	if (sched_getaffinity(0, sizeof(all), &all) != 0 || !go_there(cpu))
		return 0;
	at_ns += at_ns * 0x9e3779b97f4a7c15u % NAP_NS;
	rc = stop_on_cpu(pid, s, cpu, at_ns, ret);
	e = errno;
	(void)sched_setaffinity(0, sizeof(all), &all);
	if (rc != 0 && s->held)
		uni_thread_stop_end(s);
	errno = e;
	return rc;
}
