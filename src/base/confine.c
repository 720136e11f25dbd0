/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/confine.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/filter.h"

void uni_confine_enter(int rules)
{
	if (rules >= 0)
		(void)syscall(SYS_landlock_restrict_self, rules, 0);
}

const int uni_filter_reader[] = {
	/* memory and threads */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(mlock),
	SCMP_SYS(munlock),
	SCMP_SYS(futex),
	SCMP_SYS(clone),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(membarrier),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(wait4),
	SCMP_SYS(waitid),
	SCMP_SYS(arch_prctl),
	/* signals, time, identity */
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(rt_sigpending),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(pause),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(times),
	SCMP_SYS(getrusage),
	SCMP_SYS(getrandom),
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getpgrp),
	SCMP_SYS(setpgid),
	SCMP_SYS(capget),
	SCMP_SYS(getrlimit),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getcpu),
	SCMP_SYS(umask),
	/* open files */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(close_range),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),
	SCMP_SYS(fadvise64),
	SCMP_SYS(flock),
	SCMP_SYS(fcntl),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(getdents64),
	SCMP_SYS(copy_file_range),
	SCMP_SYS(sendfile),
	SCMP_SYS(fchmod),
	SCMP_SYS(pipe),
	SCMP_SYS(pipe2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(memfd_create),
	/* files by name: the kernel checks the rights of the user, and Landlock's */
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(statfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getcwd),
	SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),
	SCMP_SYS(rmdir),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(chmod),
	/* open sockets: those of `serve`, and the opener's */
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(shutdown),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
#ifdef UNI_CONFINE_WIDE
	/* of sanitizers, which read /proc, stop all threads, and start a symbolizer */
	SCMP_SYS(ptrace),
	SCMP_SYS(getdents),
	SCMP_SYS(execve),
	SCMP_SYS(mmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(prctl),
	SCMP_SYS(prlimit64),
	SCMP_SYS(tgkill),
	SCMP_SYS(kill),
	SCMP_SYS(ioctl),
	SCMP_SYS(personality),
	SCMP_SYS(setrlimit),
#endif
};

const size_t uni_filter_nr_reader = uni_array_len(uni_filter_reader);

int uni_filter_add(scmp_filter_ctx f, const int *calls, size_t nr)
{
	int r = 0;

	/* Not each architecture has them all. */
	for (size_t i = 0; r == 0 && i < nr; i++)
		r = calls[i] >= 0 ? seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0) : 0;
	return r;
}

int uni_filter_add_each(
	scmp_filter_ctx f, int call, unsigned arg, const unsigned long *v, size_t nr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < nr; i++)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, call, 1, SCMP_CMP(arg, SCMP_CMP_EQ, v[i]));
	return r;
}

#ifndef UNI_CONFINE_WIDE
/* Those that are allowed with some arguments only. */
static int add_limited(scmp_filter_ctx f)
{
	static const unsigned long ioctls[] = { TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO };
	const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int r = uni_filter_add_each(f, SCMP_SYS(ioctl), 1, ioctls, uni_array_len(ioctls));

	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, no_code);
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_code);
	/* raise() and abort(), but no other process */
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	if (r == 0)
		r = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0));
	if (r == 0)
		r = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	return r;
}
#endif

static int add_observers(scmp_filter_ctx f)
{
	static const unsigned long bpf[] = { BPF_MAP_CREATE };
	int r = uni_filter_add_each(f, SCMP_SYS(bpf), 0, bpf, uni_array_len(bpf));

	return r == 0 ? seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 0) : r;
}

static int add_stoppers(scmp_filter_ctx f)
{
	static const int calls[] = { SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setaffinity),
		SCMP_SYS(sched_setattr), SCMP_SYS(sched_getscheduler), SCMP_SYS(getpriority),
		SCMP_SYS(process_vm_readv) };
	int r = uni_filter_add(f, calls, uni_array_len(calls));
#ifndef UNI_CONFINE_WIDE
	static const unsigned long stop[] = { PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GETREGSET,
		PTRACE_DETACH };
	static const unsigned long watch[] = { PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE };
	static const unsigned long exact[] = { PR_SET_TIMERSLACK };

	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(ptrace), 0, stop, uni_array_len(stop));
	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(ioctl), 1, watch, uni_array_len(watch));
	if (r == 0)
		r = uni_filter_add_each(f, SCMP_SYS(prctl), 0, exact, uni_array_len(exact));
#endif
	return r;
}

static int add_openers(scmp_filter_ctx f, enum uni_confined what)
{
	int r = 0;

	if (what == UNI_CONFINED_OBSERVER || what == UNI_CONFINED_STOPPER)
		r = add_observers(f);
	if (r == 0 && what == UNI_CONFINED_STOPPER)
		r = add_stoppers(f);
	return r;
}

static int fill_filter(scmp_filter_ctx f)
{
	/* Its flags are in memory, where no filter can see them: the C library takes clone(). */
	int r = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	if (r == 0)
		r = uni_filter_add(f, uni_filter_reader, uni_filter_nr_reader);
#ifndef UNI_CONFINE_WIDE
	if (r == 0)
		r = add_limited(f);
#endif
	return r;
}

static void on_refused(int sig, siginfo_t *info, void *context)
{
	char text[] = "uniscope: ended: it tried system call     0, which a process that reads "
		      "files may not make\n";
	char *digit = strstr(text, "    0,") + 4;
	unsigned nr = (unsigned)info->si_syscall;

	(void)sig;
	(void)context;
	for (int i = 0; i < 5 && (i == 0 || nr != 0); i++, nr /= 10)
		*digit-- = (char)('0' + nr % 10);
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

int uni_filter_load(int (*more)(scmp_filter_ctx f, enum uni_confined what), enum uni_confined what,
	struct uni_err *err)
{
	struct sigaction sa = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO };
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_TRAP);
	int r = f == NULL ? -ENOMEM : fill_filter(f);

	if (r == 0)
		r = more(f, what);
	(void)sigaction(SIGSYS, &sa, NULL);
	if (r == 0)
		r = seccomp_load(f);
	if (f != NULL)
		seccomp_release(f);
	return r == 0 ? 0
		      : uni_err_set(err, UNI_ENOTSUP, "cannot limit the system calls: %s",
				strerror(-r));
}

int uni_confine_calls(enum uni_confined what, struct uni_err *err)
{
	return uni_filter_load(add_openers, what, err);
}
