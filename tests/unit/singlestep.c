/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frame-pointer step against the truth. A child is stepped instruction by instruction, and its
 * calls and returns are counted. At every single instruction the chain that we unwind must be the
 * chain of the calls that have not returned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "unwind/unwind.h"
#include "workload.h"

#define NR_FUNCS uni_array_len(w_functions)

extern const char __start_workload[], __stop_workload[];

static int read_child(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)(r->start + offset), len };

	return process_vm_readv(*(const pid_t *)ctx, &local, 1, &remote, 1, 0) == (ssize_t)len
		       ? 0
		       : -UNI_EFAULT;
}

static const struct uni_gmem_ops child_ops = { .read = read_child };

static int by_start(const void *a, const void *b)
{
	const struct uni_func_hint *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void make_hints(struct uni_func_hint *func, struct uni_unwind_hints *ret)
{
	uint64_t end = (uint64_t)(uintptr_t)__stop_workload;

	for (size_t i = 0; i < NR_FUNCS; i++)
		func[i] = (struct uni_func_hint){ .start = (uint64_t)(uintptr_t)w_functions[i] };
	qsort(func, NR_FUNCS, sizeof(*func), by_start);
	for (size_t i = 0; i < NR_FUNCS; i++) {
		uint64_t next = i + 1 < NR_FUNCS ? func[i + 1].start : end;

		func[i].size = (uint32_t)(next - func[i].start);
		if (!uni_arch_x86_64.sets_frame(
			    (const uint8_t *)(uintptr_t)func[i].start, func[i].size))
			func[i].flags |= UNI_FUNC_FRAMELESS;
		if (func[i].start == (uint64_t)(uintptr_t)w_entry)
			func[i].flags |= UNI_FUNC_ENTRY;
	}
	*ret = (struct uni_unwind_hints){ .func = func,
		.nr_funcs = NR_FUNCS,
		.text_start = (uint64_t)(uintptr_t)__start_workload,
		.text_size = end - (uint64_t)(uintptr_t)__start_workload };
}

static struct uni_regs regs_of(const struct user_regs_struct *u)
{
	struct uni_regs r = { .pc = u->rip, .sp = u->rsp, .pc_valid = true, .sp_valid = true };

	uni_regs_set(&r, UNI_X86_RBP, u->rbp);
	uni_regs_set(&r, UNI_X86_RSP, u->rsp);
	uni_regs_set(&r, UNI_X86_RIP, u->rip);
	return r;
}

struct stepper {
	pid_t pid;
	struct uni_unwinder u;
	struct uni_as *as;
	uint64_t shadow[64]; /* return addresses, outermost first */
	size_t depth;
	unsigned steps, wrong;
};

static void compare(struct stepper *s, const struct user_regs_struct *u)
{
	struct uni_regs regs = regs_of(u);
	struct uni_chain chain;
	bool ok;

	uni_unwind(&s->u, s->as, &regs, &chain);
	ok = chain.nr == s->depth + 1 && chain.stop == UNI_STOP_ROOT && chain.pc[0] == u->rip;
	for (size_t i = 0; ok && i < s->depth; i++)
		ok = chain.pc[i + 1] == s->shadow[s->depth - 1 - i];
	s->steps++;
	s->wrong += !ok;
	if (!ok && s->wrong <= 20)
		print_error("wrong at workload+0x%llx: depth %zu, found %u, %s\n",
			u->rip - (unsigned long long)s->u.hints->text_start, s->depth,
			chain.nr - 1u, uni_stop_name(chain.stop));
}

/* Follows the calls over the instruction between the two states. */
static void follow(
	struct stepper *s, const struct user_regs_struct *old, const struct user_regs_struct *now)
{
	uint64_t top = 0;
	struct iovec local = { &top, 8 }, remote = { (void *)(uintptr_t)now->rsp, 8 };
	uint8_t code[8];

	memcpy(code, (const void *)(uintptr_t)old->rip, sizeof(code)); /* the child is our fork */
	if (now->rsp == old->rsp - 8 && now->rip != old->rip &&
		process_vm_readv(s->pid, &local, 1, &remote, 1, 0) == 8 &&
		(code[0] == 0xe8 || code[0] == 0xff || (code[0] == 0x41 && code[1] == 0xff)) &&
		top - old->rip <= 7 && top != now->rip) {
		assert_true(s->depth < uni_array_len(s->shadow));
		s->shadow[s->depth++] = top;
	} else if (now->rsp == old->rsp + 8 && s->depth > 0 &&
		   (code[0] == 0xc3 || (code[0] == 0xf3 && code[1] == 0xc3))) {
		assert_true(now->rip == s->shadow[--s->depth]);
	}
}

static void run(struct stepper *s)
{
	struct user_regs_struct old, now;
	bool inside = false;
	int status;

	for (;;) {
		assert_int_equal(ptrace(PTRACE_GETREGS, s->pid, NULL, &now), 0);
		if (inside)
			follow(s, &old, &now);
		inside = inside || now.rip == (uint64_t)(uintptr_t)w_entry;
		if (inside && *(const uint8_t *)(uintptr_t)now.rip == 0xcc)
			return;
		if (inside)
			compare(s, &now);
		old = now;
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL), 0);
		assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
		assert_true(WIFSTOPPED(status));
	}
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(77);
		(void)raise(SIGSTOP);
		w_entry();
		_exit(0);
	}
	return pid;
}

static void every_instruction(void **state)
{
	static const struct uni_gmem_region space[] = { { 0, 1ull << 63 },
		{ 1ull << 63, 1ull << 63 } };
	struct uni_func_hint func[NR_FUNCS];
	struct uni_unwind_hints hints;
	struct stepper s = { 0 };
	struct uni_gmem *m;
	int status;

	s.pid = start_child();
	assert_true(s.pid > 0);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	if (!WIFSTOPPED(status)) {
		print_message("skipped: this machine does not allow ptrace\n");
		skip();
	}
	make_hints(func, &hints);
	uni_unwinder_init(&s.u, &uni_arch_x86_64, &hints);
	assert_int_equal(
		uni_gmem_create(&child_ops, &s.pid, UNI_GMEM_VIRTUAL, space, 2, &m, NULL), 0);
	assert_int_equal(uni_as_create(m, &uni_as_budget_once, &s.as, NULL), 0);
	run(&s);
	(void)kill(s.pid, SIGKILL);
	(void)waitpid(s.pid, &status, 0);
	uni_as_destroy(s.as);
	uni_gmem_destroy(m);
	print_message("%u instructions, %u wrong chains\n", s.steps, s.wrong);
	assert_true(s.steps > 1000);
	assert_int_equal(s.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_instruction) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
