/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing into a process of which one thread cannot stop: it is in vfork(), which no stop ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/patch.h"
#include "backend/proc/proc.h"

#define LONG_US 500000
#define TRIES	10000

/* Shared with the child. */
struct shared {
	atomic_ulong main_turns, other_turns;
	atomic_int away; /* how often the other thread went into vfork() */
	_Alignas(8) uint32_t place;
};

static struct shared *mem;

/* Not one after the other without a pause: it can be stopped in between. */
static void *other(void *arg)
{
	for (;;) {
		pid_t pid;

		atomic_fetch_add(&mem->away, 1);
		pid = vfork();
		if (pid == 0) {
			(void)usleep(LONG_US);
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
		for (int i = 0; i < 1000; i++) {
			atomic_fetch_add(&mem->other_turns, 1);
			(void)usleep(100);
		}
	}
	return arg;
}

static _Noreturn void run_child(void)
{
	pthread_t t;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves it */
	(void)pthread_create(&t, NULL, other, NULL);
	for (;;) {
		atomic_fetch_add(&mem->main_turns, 1);
		(void)usleep(100);
	}
}

static pid_t start(void)
{
	pid_t pid;

	mem = mmap(NULL, sizeof(*mem), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_child();
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)munmap(mem, sizeof(*mem));
}

static int write_place(struct uni_proc *p, uint8_t from, uint8_t to)
{
	const struct uni_patch one = { .va = (uintptr_t)&mem->place,
		.gpa = (uintptr_t)&mem->place,
		.len = 4,
		.old_bytes = { from },
		.new_bytes = { to } };
	struct uni_patch_job job = { .patch = &one, .nr = 1 };

	return uni_proc_write_text(&p->base, &job);
}

/* Waits until it is away again, and has been told to stop there in vain. */
static void write_in_vain(struct uni_proc *p)
{
	for (int i = 0; i < 100; i++) {
		int away = atomic_load(&mem->away), rc;

		while (atomic_load(&mem->away) == away)
			(void)usleep(1000);
		(void)usleep(LONG_US / 20);
		rc = write_place(p, mem->place & 1, !(mem->place & 1));
		if (rc == -UNI_EAGAIN)
			return;
		assert_int_equal(rc, 0); /* it was late: once more */
	}
	fail_msg("it could be stopped each time");
}

static void goes_on(atomic_ulong *turns)
{
	unsigned long before = atomic_load(turns);

	for (int i = 0; i < TRIES && atomic_load(turns) < before + 10; i++)
		(void)usleep(1000);
	assert_true(atomic_load(turns) >= before + 10);
}

static void again_until_it_stops(void **state)
{
	struct uni_proc p = { .pid = start() };
	uint8_t was;
	int rc = 0;

	write_in_vain(&p);
	was = mem->place & 1;
	for (int i = 0; i < TRIES; i++) {
		rc = write_place(&p, was, !was);
		if (rc != -UNI_EAGAIN)
			break;
		(void)usleep(2000);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(mem->place, !was);
	goes_on(&mem->main_turns);
	goes_on(&mem->other_turns);
	end(p.pid);
}

/* Nobody comes back for what was told to stop. */
static void given_up(void **state)
{
	struct uni_proc p = { .pid = start() };

	write_in_vain(&p);
	goes_on(&mem->main_turns);
	goes_on(&mem->other_turns);
	end(p.pid);
}

/* Each register is itself. */
static void registers_of_a_thread(void **state)
{
	static const unsigned of[] = { UNI_X86_RAX, UNI_X86_RBX, UNI_X86_RCX, UNI_X86_RDX,
		UNI_X86_RSI, UNI_X86_RDI, UNI_X86_RBP, UNI_X86_RSP, UNI_X86_R8, UNI_X86_R9,
		UNI_X86_R10, UNI_X86_R11, UNI_X86_R12, UNI_X86_R13, UNI_X86_R14, UNI_X86_R15,
		UNI_X86_RIP };
	struct uni_thread_stop s = { 0 };
	struct user_regs_struct u;
	struct uni_regs regs;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &u), 0);
	u.rax = 100, u.rbx = 101, u.rcx = 102, u.rdx = 103, u.rsi = 104, u.rdi = 105;
	u.rbp = 106, u.rsp = 107, u.r8 = 108, u.r9 = 109, u.r10 = 110, u.r11 = 111;
	u.r12 = 112, u.r13 = 113, u.r14 = 114, u.r15 = 115, u.rip = 116;
	assert_int_equal(ptrace(PTRACE_SETREGS, pid, NULL, &u), 0);
	s.tid = pid;
	memset(&u, 0, sizeof(u));
	assert_int_equal(uni_thread_stop_regs(&s, &u, sizeof(u)), sizeof(u));
	uni_proc_ptrace_to_regs(&u, &regs);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		uint64_t value = 0;

		assert_true(uni_regs_get(&regs, of[i], &value));
		assert_int_equal(value, 100 + i);
	}
	assert_true(regs.pc_valid && regs.sp_valid);
	assert_int_equal(regs.pc, 116);
	assert_int_equal(regs.sp, 107);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	assert_int_equal(uni_thread_stop_regs(&s, &u, sizeof(u)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_of_a_thread),
		cmocka_unit_test(again_until_it_stops),
		cmocka_unit_test(given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
