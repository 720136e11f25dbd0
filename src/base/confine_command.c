/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/checked.h"
#include "base/filter.h"

/*
 * A command needs these beside a reader's calls, from its first look at a guest to its end. Some
 * give up the rest. None changes the kernel, its clock, its file systems, or its networks.
 */
static const int more[] = {
	/* memory and programs */
	SCMP_SYS(mmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(msync),
	SCMP_SYS(mincore),
	SCMP_SYS(mlock2),
	SCMP_SYS(mlockall),
	SCMP_SYS(munlockall),
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(chdir),
	SCMP_SYS(fchdir),
	/* rights and limits */
	SCMP_SYS(prctl),
	SCMP_SYS(capset),
	SCMP_SYS(seccomp),
	SCMP_SYS(landlock_create_ruleset),
	SCMP_SYS(landlock_add_rule),
	SCMP_SYS(landlock_restrict_self),
	SCMP_SYS(setuid),
	SCMP_SYS(setgid),
	SCMP_SYS(setresuid),
	SCMP_SYS(setresgid),
	SCMP_SYS(setgroups),
	SCMP_SYS(getresuid),
	SCMP_SYS(getresgid),
	SCMP_SYS(getgroups),
	SCMP_SYS(setrlimit),
	SCMP_SYS(prlimit64),
	SCMP_SYS(setsid),
	SCMP_SYS(getsid),
	SCMP_SYS(getpgid),
	SCMP_SYS(sched_setscheduler),
	SCMP_SYS(sched_getscheduler),
	SCMP_SYS(sched_setparam),
	SCMP_SYS(sched_getparam),
	SCMP_SYS(sched_setaffinity),
	SCMP_SYS(sched_setattr),
	SCMP_SYS(sched_getattr),
	SCMP_SYS(sched_get_priority_min),
	SCMP_SYS(sched_get_priority_max),
	SCMP_SYS(setpriority),
	SCMP_SYS(getpriority),
	/* other processes, and what the kernel counts of them */
	SCMP_SYS(kill),
	SCMP_SYS(tgkill),
	SCMP_SYS(tkill),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(bpf),
	/* devices, sockets, signals, files */
	SCMP_SYS(ioctl),
	SCMP_SYS(socket),
	SCMP_SYS(socketpair),
	SCMP_SYS(connect),
	SCMP_SYS(bind),
	SCMP_SYS(listen),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(alarm),
	SCMP_SYS(setitimer),
	SCMP_SYS(signalfd4),
	SCMP_SYS(rt_sigsuspend),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(getdents),
	SCMP_SYS(truncate),
	SCMP_SYS(utimensat),
	SCMP_SYS(openat2),
};

#define LEN_MAX 1024

struct program {
	struct sock_filter v[LEN_MAX];
	unsigned short nr;
};

static void add_op(struct program *p, unsigned short code, uint32_t k, uint8_t skip)
{
	p->v[p->nr++] = (struct sock_filter){ .code = code, .jf = skip, .k = k };
}

static void add_if(struct program *p, uint32_t value, uint32_t then)
{
	add_op(p, BPF_JMP | BPF_JEQ | BPF_K, value, 1);
	add_op(p, BPF_RET | BPF_K, then, 0);
}

/* Negative: this architecture does not have it. */
static void allow_calls(struct program *p, const int *calls, size_t nr)
{
	for (size_t i = 0; i < nr && p->nr < LEN_MAX - 8; i++) {
		if (calls[i] >= 0)
			add_if(p, (uint32_t)calls[i], SECCOMP_RET_ALLOW);
	}
}

/*
 * Made by hand, as libseccomp takes 2 ms for it, and most commands make a smaller one later. The
 * kernel knows by itself that these calls are always allowed, and does not run the filter for them.
 */
int uni_confine_command(struct uni_err *err)
{
	static struct program p;
	struct sock_fprog whole = { .filter = p.v };

	p.nr = 0;
	add_op(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0);
	add_op(&p, BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 0);
	p.v[1].jt = 1;
	add_op(&p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0);
	add_op(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0);
	allow_calls(&p, uni_filter_reader, uni_filter_nr_reader);
	allow_calls(&p, more, uni_array_len(more));
	/* The C library takes clone() then. */
	add_if(&p, (uint32_t)SCMP_SYS(clone3), SECCOMP_RET_ERRNO | ENOSYS);
	add_op(&p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0);
	whole.len = p.nr;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0
		       ? 0
		       : uni_err_set(err, UNI_ENOTSUP, "cannot limit the system calls: %s",
				 strerror(errno));
}
