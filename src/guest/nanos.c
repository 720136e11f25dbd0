/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nanos: each process keeps its threads in a tree, ordered by number. A thread's frame has the
 * registers that it had when it last entered the kernel. A blocking system call keeps no kernel
 * stack, so the thread's chain is the program's. The name of a queue tells for what the thread
 * waits.
 */
#include <elf.h>
#include <stdio.h>

#include "base/checked.h"
#include "guest/model.h"

#define PROCESSES_MAX 64u
#define DEPTH_MAX     64u	 /* of the tree: balanced, at most 2^31 threads */
#define NO_QUEUE      UINT64_MAX /* INVALID_ADDRESS: it waits, but for no queue */

enum { CPUINFOS, PROCESSES };
enum {
	FRAME,
	NAME,
	SYSCALL,
	TID,
	NODE,
	NR_THREAD,
	BLOCKED_ON = NR_THREAD,
	CALL,
	BQ_NAME,
	BQ_NAME_LEN,
	TREE,
	ROOT,
	CHILD,
	CONTEXT,
	VEC_START,
	VEC_END,
	VEC_CONTENTS,
	NR,
};

static const char *const thread_paths[] = { "context.frame", "name", "syscall", "tid", "n" };
static const char *const syscall_paths[] = { "uc.blocked_on", "?call" };
static const char *const queue_paths[] = { "?name.ptr", "?name.len" };
static const char *const process_paths[] = { "threads" };
static const char *const tree_paths[] = { "root" };
static const char *const node_paths[] = { "c" };
static const char *const cpu_paths[] = { "m.current_context" };
static const char *const vector_paths[] = { "start", "end", "contents" };

static const struct uni_model_struct structs[] = { { "thread", NR_THREAD, thread_paths },
	{ "syscall_context", 2, syscall_paths }, { "blockq", 2, queue_paths },
	{ "process", 1, process_paths }, { "rbtree", 1, tree_paths }, { "rbnode", 1, node_paths },
	{ "cpuinfo", 1, cpu_paths }, { "buffer", 3, vector_paths }, { 0 } };

/*
 * Word indexes in a frame (src/x86_64/frame.h), by DWARF number of the register; 0xff: not in it.
 */
static const struct frame {
	unsigned machine, pc, sp, nr;
	struct {
		uint8_t reg, word;
	} reg[8];
} frames[] = {
	{ EM_X86_64, 16, 7, 6,
		{ { UNI_X86_RBX, 1 }, { UNI_X86_RBP, 6 }, { UNI_X86_R12, 12 }, { UNI_X86_R13, 13 },
			{ UNI_X86_R14, 14 }, { UNI_X86_R15, 15 } } },
};

/* The entry of frames[] for this guest; NULL: its machine is not known. */
static const struct frame *frame_of(const struct uni_look *look)
{
	for (size_t i = 0; i < uni_array_len(frames); i++) {
		if (frames[i].machine == look->m->arch->elf_machine)
			return &frames[i];
	}
	return NULL;
}

/* The kernel's process has a dummy thread: it has no place to go on from. */
static bool is_dummy(struct uni_look *look, uint64_t thread)
{
	uint64_t at = uni_look_at(look, thread, FRAME), pc;
	const struct frame *f = frame_of(look);

	return f != NULL && at != 0 && uni_look_u64(look, at + 8u * f->pc, &pc) && pc == 0;
}

/* In order, without recursion: a hostile tree cannot be deeper than this array. */
static void each_of_tree(struct uni_look *look, uint64_t node)
{
	uint64_t stack[DEPTH_MAX] = { 0 };
	unsigned depth = 0, dummies = 0;

	while (node != 0 || depth != 0) {
		uint64_t at = node != 0 ? uni_look_at(look, node, CHILD) : 0, thread;

		if (node != 0) {
			if (depth == DEPTH_MAX || at == 0 || !uni_look_u64(look, at, &node)) {
				look->list->cut =
					depth == DEPTH_MAX ? UNI_THREADS_LOOP : UNI_THREADS_FAULT;
				return;
			}
			stack[depth++] = at;
			continue;
		}
		at = stack[--depth];
		node = at - look->m->member[CHILD].offset;
		thread = node - look->m->member[NODE].offset;
		/* A node of the tree. uni_look_add() ends a tree that has no end. */
		if (dummies == 0 && is_dummy(look, thread))
			dummies++;
		else if (!uni_look_add(look, thread))
			return;
		if (!uni_look_u64(look, at + 8, &node)) {
			(void)uni_look_cut(look, UNI_THREADS_FAULT);
			return;
		}
	}
}

static void each_nanos_thread(struct uni_look *look)
{
	uint64_t nr = uni_min(look->m->sym_size[PROCESSES] / 8, PROCESSES_MAX);

	for (uint64_t i = 0; i < nr; i++) {
		uint64_t process, tree, root;

		if (!uni_look_u64(look, look->m->sym[PROCESSES] + i * 8, &process) ||
			(process != 0 && !uni_look_member(look, process, TREE, &tree)) ||
			(process != 0 && tree != 0 && !uni_look_member(look, tree, ROOT, &root)))
			(void)uni_look_cut(look, UNI_THREADS_FAULT);
		else if (process != 0 && tree != 0)
			each_of_tree(look, root);
	}
}

static void read_frame(struct uni_look *look, struct uni_guest_thread *t)
{
	uint64_t at = uni_look_at(look, t->object, FRAME), word;
	const struct frame *f = frame_of(look);

	uni_look_blank(look, t);
	if (f == NULL || at == 0)
		return;
	t->regs.pc_valid = uni_look_u64(look, at + 8u * f->pc, &t->regs.pc);
	t->regs.sp_valid = uni_look_u64(look, at + 8u * f->sp, &t->regs.sp);
	if (t->regs.sp_valid)
		uni_regs_set(&t->regs, look->m->arch->sp_reg, t->regs.sp);
	for (size_t k = 0; k < f->nr; k++) {
		if (uni_look_u64(look, at + 8u * f->reg[k].word, &word))
			uni_regs_set(&t->regs, f->reg[k].reg, word);
	}
}

/* The name of a queue says what it is for: "pipe read", "epoll". */
static void read_queue(struct uni_look *look, struct uni_guest_thread *t)
{
	uint64_t at, len;

	if (t->wait_on == NO_QUEUE) {
		t->wait_on = 0;
		return;
	}
	if (uni_look_member(look, t->wait_on, BQ_NAME, &at) &&
		uni_look_member(look, t->wait_on, BQ_NAME_LEN, &len))
		uni_look_text(look, at, (size_t)uni_min(len, sizeof(t->wait_name) - 1),
			t->wait_name, sizeof(t->wait_name));
}

/*
 * Calls that wait for a time, for a signal, or for several things: they use a queue of the thread's
 * own, whose name tells nothing. Numbers are Linux's of x86_64.
 */
static void read_call(struct uni_look *look, uint64_t context, struct uni_guest_thread *t)
{
	static const struct {
		uint16_t number;
		bool sleeps; /* only time wakes it */
		const char *name;
	} calls[] = {
		{ 7, false, "poll" },
		{ 23, false, "select" },
		{ 34, false, "pause" },
		{ 35, true, "nanosleep" },
		{ 128, false, "rt_sigtimedwait" },
		{ 130, false, "rt_sigsuspend" },
		{ 207, false, "io_destroy" },
		{ 208, false, "io_getevents" },
		{ 230, true, "clock_nanosleep" },
		{ 232, false, "epoll_wait" },
		{ 270, false, "pselect6" },
		{ 271, false, "ppoll" },
		{ 281, false, "epoll_pwait" },
		{ 426, false, "io_uring_enter" },
	};
	uint64_t number;

	if (look->m->arch->elf_machine != EM_X86_64 ||
		!uni_look_member(look, context, CALL, &number))
		return;
	for (size_t i = 0; i < uni_array_len(calls); i++) {
		if (calls[i].number != number)
			continue;
		if (calls[i].sleeps)
			t->state = UNI_THREAD_SLEEPING;
		(void)snprintf(t->wait_name, sizeof(t->wait_name), "%s", calls[i].name);
	}
}

static bool read_thread(struct uni_look *look, struct uni_guest_thread *t)
{
	uint64_t call;

	if (!uni_look_member(look, t->object, TID, &t->number) ||
		!uni_look_member(look, t->object, SYSCALL, &call))
		return false;
	t->has_number = true;
	t->state = UNI_THREAD_READY;
	if (call != 0 && uni_look_member(look, call, BLOCKED_ON, &t->wait_on) && t->wait_on != 0) {
		t->state = UNI_THREAD_BLOCKED;
		read_queue(look, t);
		read_call(look, call, t);
	}
	uni_look_text(look, uni_look_at(look, t->object, NAME), look->m->member[NAME].size, t->name,
		sizeof(t->name));
	if (look->list != NULL)
		read_frame(look, t);
	return true;
}

/* The context that a CPU runs; 0: not known. */
static uint64_t context_of(struct uni_look *look, uint32_t vcpu)
{
	uint64_t vector, start, end, contents, cpu, context = 0;

	if (uni_look_u64(look, look->m->sym[CPUINFOS], &vector) &&
		uni_look_member(look, vector, VEC_START, &start) &&
		uni_look_member(look, vector, VEC_END, &end) &&
		uni_look_member(look, vector, VEC_CONTENTS, &contents) && end > start &&
		(end - start) / 8 > vcpu &&
		uni_look_u64(look, contents + start + 8ull * vcpu, &cpu))
		(void)uni_look_member(look, cpu, CONTEXT, &context);
	return context;
}

/*
 * A thread's own context is at the thread's start. The context of a system call is elsewhere, and
 * has the thread's address. Only the list of threads can tell which of them this is.
 */
static uint64_t current_nanos_thread(struct uni_look *look, uint32_t vcpu)
{
	uint64_t context = context_of(look, vcpu), call;

	for (uint32_t i = 0; context != 0 && look->list != NULL && i < look->list->nr; i++) {
		const struct uni_guest_thread *t = &look->list->v[i];

		if (t->object == context ||
			(uni_look_member(look, t->object, SYSCALL, &call) && call == context))
			return t->object;
	}
	return 0;
}

const struct uni_guest_ops uni_guest_nanos = {
	.name = "nanos",
	.title = "Nanos",
	.syms = { [CPUINFOS] = "cpuinfos", [PROCESSES] = "processes" },
	.structs = structs,
	.each = each_nanos_thread,
	.read = read_thread,
	.current = current_nanos_thread,
};
