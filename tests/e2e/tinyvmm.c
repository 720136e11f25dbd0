/* SPDX-License-Identifier: BSD-2-Clause */
#include "tinyvmm.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/kvm.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CODE_SIZE 256
#define SLEEP_MS  2000

/* SI holds the address of the vCPU's counter. */
static const uint8_t count_code[] = {
	0x66, 0xff, 0x04, /* 1000: incl (%si) */
	0xeb, 0xfb,	  /* 1003: jmp 1000 */
};
static const uint8_t out_code[] = {
	0x66, 0xff, 0x04, /* 1000: incl (%si) */
	0xe6, 0x80,	  /* 1003: out %al, $0x80 */
	0xeb, 0xf9,	  /* 1005: jmp 1000 */
};
static const uint8_t halt_code[] = {
	0x66, 0xff, 0x04, /* 1000: incl (%si) */
	0xf4,		  /* 1003: hlt */
	0xeb, 0xfa,	  /* 1004: jmp 1000 */
};

static const uint8_t timed_code[] = {
	0xf4,					   /* 1000: hlt */
	0xb9, TINY_OUTS & 255, TINY_OUTS >> 8,	   /* 1001: mov $TINY_OUTS, %cx */
	0xe6, 0x80,				   /* 1004: out %al, $0x80 */
	0xe2, 0xfc,				   /* 1006: loop 1004 */
	0xb9, TINY_OUTS4 & 255, TINY_OUTS4 >> 8,   /* 1008: mov $TINY_OUTS4, %cx */
	0x66, 0xe7, 0x84,			   /* 100b: outl %eax, $0x84 */
	0xe2, 0xfb,				   /* 100e: loop 100b */
	0xb9, TINY_STORES & 255, TINY_STORES >> 8, /* 1010: mov $TINY_STORES, %cx */
	0x66, 0xa3, TINY_MMIO & 255, 0x00, /* 1013: movl %eax, TINY_MMIO & 255; ds is the rest */
	0xe2, 0xfa,			   /* 1017: loop 1013 */
	0xf4,				   /* 1019: hlt */
	0xeb, 0xfd,			   /* 101a: jmp 1019 */
};

static const uint8_t burn_code[] = {
	0x66, 0xff, 0x04, /* 1000: incl (%si) */
	0xb9, 0x10, 0x27, /* 1003: mov $10000, %cx */
	0xe2, 0xfe,	  /* 1006: loop 1006 */
	0xe6, 0x80,	  /* 1008: out %al, $0x80 */
	0xeb, 0xf4,	  /* 100a: jmp 1000 */
	0x66, 0xff, 0x04, /* 100c: incl (%si): HALT_ENTRY, the other vCPUs */
	0xb9, 0x10, 0x27, /* 100f: mov $10000, %cx */
	0xe2, 0xfe,	  /* 1012: loop 1012 */
	0xf4,		  /* 1014: hlt */
	0xeb, 0xf5,	  /* 1015: jmp 100c */
};

#define HALT_ENTRY 0x100c

/* Each program is followed by bytes that nothing else has, so that it can be looked for. */
const uint8_t *tiny_code(enum tiny_mode mode)
{
	static const struct {
		const uint8_t *code;
		size_t size;
	} programs[] = {
		[TINY_BRITTLE] = { count_code, sizeof(count_code) },
		[TINY_EXITS] = { out_code, sizeof(out_code) },
		[TINY_SLEEPS] = { halt_code, sizeof(halt_code) },
		[TINY_KICKED] = { count_code, sizeof(count_code) },
		[TINY_SYNCS] = { count_code, sizeof(count_code) },
		[TINY_GROWS] = { count_code, sizeof(count_code) },
		[TINY_BURNS] = { burn_code, sizeof(burn_code) },
		[TINY_TIMED] = { timed_code, sizeof(timed_code) },
	};
	static uint8_t code[TINY_NR][CODE_SIZE];

	for (unsigned i = 0; i < CODE_SIZE; i++)
		code[mode][i] = (uint8_t)(i * 167 + 13);
	memcpy(code[mode], programs[mode].code, programs[mode].size);
	return code[mode];
}

struct vcpu {
	struct tiny *t;
	int fd, index;
	uint64_t last_ns; /* BURNS: CPU time at the last exit */
	struct kvm_run *run;
};

static _Noreturn void give_up(struct tiny *t, int why)
{
	atomic_store(&t->shared->failed, why != 0 ? why : -1);
	_exit(9);
}

/* The guest halted: sleeps like a tender waiting for its network, until the test says go on. */
static void sleep_in_vmm(struct tiny *t)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;

	atomic_fetch_add(&t->shared->sleeps, 1);
	while (!atomic_exchange(&t->shared->wake, false)) {
		/* Would be restarted if it were poll(): epoll_wait() is not (signal(7)). */
		if (epoll_wait(ep, &e, 1, SLEEP_MS / 100) < 0)
			give_up(t, errno);
	}
	(void)close(ep);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Between two runs of the guest: works or sleeps, and writes down whose time it was. */
static void keep_books(struct vcpu *v, uint64_t before, uint64_t after)
{
	struct tiny_books *b = &v->t->shared->books[v->index];
	uint64_t ran = after - before;
	struct timespec nap = { .tv_nsec = (long)(2 * ran % 1000000000u) };

	if (v->last_ns != 0)
		atomic_fetch_add(&b->vmm_ns, before - v->last_ns);
	atomic_fetch_add(&b->run_ns, ran);
	atomic_fetch_add(&b->rounds, 1);
	v->last_ns = after;
	if (v->index != 0)
		(void)nanosleep(&nap, NULL);
	while (v->index == 0 && cpu_ns() - after < ran / 2)
		continue;
}

static void one_exit(struct vcpu *v)
{
	struct tiny *t = v->t;

	atomic_fetch_add(&t->shared->exits, 1);
	if (v->index == 0)
		atomic_store(&t->shared->valid_regs, v->run->kvm_valid_regs);
	if (v->run->exit_reason == KVM_EXIT_HLT && t->mode == TINY_SLEEPS)
		sleep_in_vmm(t);
	else if (v->run->exit_reason != KVM_EXIT_IO &&
		 !(v->run->exit_reason == KVM_EXIT_HLT && t->mode == TINY_BURNS))
		give_up(t, -(int)v->run->exit_reason);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static enum tiny_timed kind_of(const struct kvm_run *run)
{
	if (run->exit_reason == KVM_EXIT_IO)
		return run->io.size == 4 ? TINY_T_OUT4 : TINY_T_OUT;
	return run->exit_reason == KVM_EXIT_MMIO ? TINY_T_STORE : TINY_T_HALT;
}

/* Pretends to emulate a device: some kinds take longer than others. */
static void work(enum tiny_timed kind, uint64_t since_ns)
{
	static const uint64_t work_ns[TINY_T_NR] = { 100000, 300000, 200000, 1000 };

	while (clock_ns(CLOCK_MONOTONIC) - since_ns < work_ns[kind])
		;
}

/* TIMED: the vCPU's loop, with a watch around all that happens outside of KVM_RUN. */
static void *run_timed(struct vcpu *v)
{
	for (;;) {
		uint64_t begin_ns, cpu_ns;
		struct tiny_time *sum;
		enum tiny_timed kind;

		if (ioctl(v->fd, KVM_RUN, 0) != 0)
			give_up(v->t, errno);
		begin_ns = clock_ns(CLOCK_MONOTONIC);
		cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		kind = kind_of(v->run);
		sum = &v->t->shared->timed[kind];
		atomic_fetch_add(&v->t->shared->exits, 1);
		if (kind == TINY_T_HALT)
			sleep_in_vmm(v->t);
		work(kind, begin_ns);
		atomic_fetch_add(&sum->exits, 1);
		atomic_fetch_add(&sum->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
		atomic_fetch_add(&sum->host_ns, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	}
	return NULL;
}

static void *run_vcpu(void *arg)
{
	struct vcpu *v = arg;
	bool books = v->t->mode == TINY_BURNS;

	atomic_store(&v->t->shared->books[v->index].tid, gettid());
	if (v->t->mode == TINY_TIMED)
		return run_timed(v);
	for (;;) {
		uint64_t before = books ? cpu_ns() : 0;

		if (ioctl(v->fd, KVM_RUN, 0) == 0) {
			if (books)
				keep_books(v, before, cpu_ns());
			one_exit(v);
			continue;
		}
		if (errno != EINTR || v->t->mode != TINY_KICKED)
			give_up(v->t, errno);
	}
	return NULL;
}

static void on_kick(int sig)
{
}

static bool make_vcpu(struct tiny *t, int kvm, int vm, int index, struct vcpu *v)
{
	struct kvm_regs regs = { .rip = TINY_CODE, .rflags = 2, .rsp = 0x7000 };
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_sregs sregs;

	*v = (struct vcpu){ .t = t, .index = index, .fd = ioctl(vm, KVM_CREATE_VCPU, index) };
	if (v->fd < 0 || size < 0)
		return false;
	v->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED || ioctl(v->fd, KVM_GET_SREGS, &sregs) != 0)
		return false;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (t->mode == TINY_TIMED)
		sregs.ds.base = TINY_MMIO & ~255u;
	if (t->mode == TINY_BURNS && index != 0)
		regs.rip = HALT_ENTRY;
	regs.rsi = TINY_COUNTERS + 64 * (unsigned)index;
	if (t->mode == TINY_GROWS && index == 1)
		regs.rbp = TINY_PLUGGED;
	if (t->mode == TINY_SYNCS)
		v->run->kvm_valid_regs = KVM_SYNC_X86_REGS;
	return ioctl(v->fd, KVM_SET_SREGS, &sregs) == 0 && ioctl(v->fd, KVM_SET_REGS, &regs) == 0;
}

/* Memory with a frame whose return address is in the guest's code, and a vCPU that stands on it. */
static void grow(struct tiny *t, int kvm, int vm, struct vcpu *v)
{
	struct kvm_userspace_memory_region more = {
		.slot = 1, .guest_phys_addr = TINY_PLUGGED, .memory_size = TINY_RAM
	};
	uint64_t frame[2] = { 0, TINY_CODE + 3 };
	void *p = mmap(NULL, TINY_RAM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	if (p == MAP_FAILED)
		give_up(t, errno);
	memcpy(p, frame, sizeof(frame));
	more.userspace_addr = (uintptr_t)p;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &more) != 0 || !make_vcpu(t, kvm, vm, 1, v) ||
		pthread_create(&thread, NULL, run_vcpu, v) != 0)
		give_up(t, errno);
}

static bool add_slot(int vm, unsigned slot, uint64_t gpa, size_t size, const void *at)
{
	struct kvm_userspace_memory_region ram = { .slot = slot,
		.guest_phys_addr = gpa,
		.memory_size = size,
		.userspace_addr = (uintptr_t)at };

	return at != MAP_FAILED && ioctl(vm, KVM_SET_USER_MEMORY_REGION, &ram) == 0;
}

/* The upper part first, so that it does not lie behind the lower one; the whole is mapped no more.
 */
static bool add_ram(struct tiny *t, int vm, enum tiny_ram how)
{
	const int rw = PROT_READ | PROT_WRITE;
	void *low, *high;

	memcpy(t->ram + TINY_CODE, tiny_code(t->mode), CODE_SIZE);
	if (how != TINY_REGIONS)
		return add_slot(vm, 0, 0, TINY_RAM, t->ram);
	low = mmap(NULL, TINY_SPLIT, rw, MAP_SHARED, t->ram_fd, 0);
	(void)mmap(NULL, TINY_RAM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	high = mmap(NULL, TINY_RAM - TINY_SPLIT, rw, MAP_SHARED, t->ram_fd, TINY_SPLIT);
	(void)munmap(t->ram, t->ram_size);
	return add_slot(vm, 0, 0, TINY_SPLIT, low) &&
	       add_slot(vm, 1, TINY_SPLIT, TINY_RAM - TINY_SPLIT, high);
}

static bool go_to_jail(void)
{
	return chroot("/proc/self/fdinfo") == 0 && chdir("/") == 0 && setgroups(0, NULL) == 0 &&
	       setgid(TINY_USER) == 0 && setuid(TINY_USER) == 0 &&
	       prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/* The VMM. Says on fd that its guest is about to run. */
static _Noreturn void vmm(struct tiny *t, unsigned nr, const struct tiny_how *how, int fd)
{
	const struct sigaction sa = { .sa_handler = on_kick };
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int vm = kvm >= 0 ? ioctl(kvm, KVM_CREATE_VM, 0) : -1;
	struct vcpu v[TINY_VCPUS];
	pthread_t thread[TINY_VCPUS];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigaction(SIGRTMIN, &sa, NULL);
	if (vm < 0 || !add_ram(t, vm, how->ram) || (how->jailed && !go_to_jail()))
		_exit(8);
	for (unsigned i = 0; i < nr; i++) {
		if (!make_vcpu(t, kvm, vm, (int)i, &v[i]))
			_exit(8);
	}
	for (unsigned i = 1; i < nr; i++) {
		if (pthread_create(&thread[i], NULL, run_vcpu, &v[i]) != 0)
			_exit(8);
	}
	(void)!write(fd, "x", 1);
	(void)close(fd);
	if (t->mode == TINY_KICKED)
		(void)pthread_create(&thread[0], NULL, run_vcpu, &v[0]);
	if (t->mode == TINY_GROWS) {
		(void)pthread_create(&thread[0], NULL, run_vcpu, &v[0]);
		while (!atomic_load(&t->shared->wake))
			(void)usleep(1000);
		grow(t, kvm, vm, &v[1]);
		for (;;)
			(void)pause();
	}
	while (t->mode == TINY_KICKED) {
		(void)pthread_kill(thread[0], SIGRTMIN);
		atomic_fetch_add(&t->shared->kicks, 1);
		(void)usleep(300);
	}
	(void)run_vcpu(&v[0]);
	_exit(0);
}

/* As ahead.sh: where it may, the test goes before what else this host does. */
static void go_ahead(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	(void)setpriority(PRIO_PROCESS, 0, -10);
	if (fd < 0)
		return;
	(void)!write(fd, "-10", 3);
	(void)close(fd);
}

static void map_ram(struct tiny *t, enum tiny_ram how)
{
	const int rw = PROT_READ | PROT_WRITE;

	t->ram_size = how == TINY_HUGE ? 2u << 20 : TINY_RAM;
	t->ram_fd = how == TINY_ANON ? -1 : memfd_create("ram", how == TINY_HUGE ? MFD_HUGETLB : 0);
	t->ram = MAP_FAILED;
	if (how == TINY_ANON)
		t->ram = mmap(NULL, t->ram_size, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	else if (t->ram_fd >= 0 && ftruncate(t->ram_fd, (off_t)t->ram_size) == 0)
		t->ram = mmap(NULL, t->ram_size, rw, MAP_SHARED, t->ram_fd, 0);
}

/* As fork(), into a pid namespace of its own. */
static pid_t fork_jailed(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
}

bool tiny_start(struct tiny *t, enum tiny_mode mode, unsigned nr_vcpus)
{
	const struct tiny_how how = { .ram = TINY_ANON };

	return tiny_start_how(t, mode, nr_vcpus, &how);
}

bool tiny_start_how(
	struct tiny *t, enum tiny_mode mode, unsigned nr_vcpus, const struct tiny_how *how)
{
	int p[2];
	char c;

	*t = (struct tiny){ .mode = mode };
	go_ahead();
	map_ram(t, how->ram);
	t->shared = mmap(NULL, sizeof(*t->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->ram == MAP_FAILED || t->shared == MAP_FAILED || pipe(p) != 0)
		return false;
	t->pid = how->jailed ? fork_jailed() : fork();
	if (t->pid == 0) {
		(void)close(p[0]);
		vmm(t, nr_vcpus, how, p[1]);
	}
	(void)close(p[1]);
	if (t->pid < 0 || read(p[0], &c, 1) != 1) {
		(void)close(p[0]);
		tiny_end(t);
		return false;
	}
	(void)close(p[0]);
	return true;
}

void tiny_end(struct tiny *t)
{
	if (t->pid > 0) {
		(void)kill(t->pid, SIGKILL);
		(void)waitpid(t->pid, NULL, 0);
	}
	(void)munmap(t->ram, t->ram_size);
	if (t->ram_fd >= 0)
		(void)close(t->ram_fd);
	(void)munmap(t->shared, sizeof(*t->shared));
	t->pid = 0;
}

uint32_t tiny_counter(const struct tiny *t, unsigned i)
{
	return __atomic_load_n((const uint32_t *)(const void *)(t->ram + TINY_COUNTERS + 64 * i),
		__ATOMIC_RELAXED);
}

bool tiny_runs(struct tiny *t, unsigned i)
{
	uint32_t before = tiny_counter(t, i);

	for (unsigned n = 0; n < 20000 && tiny_counter(t, i) == before; n++)
		(void)usleep(1000);
	return tiny_counter(t, i) != before;
}
