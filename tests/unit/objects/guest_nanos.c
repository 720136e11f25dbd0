/* SPDX-License-Identifier: BSD-2-Clause */
/* The structures in which Nanos keeps its threads, with the same names and members. */
#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;

struct context {
	u64 frame[31]; /* rbx 1, rbp 6, rsp 7, r12 to r15, rip 16 */
	u64 more[9];
};

struct rbnode {
	u64 parent_color;
	struct rbnode *c[2];
};

struct rbtree {
	struct rbnode *root;
	u64 count;
};

struct blockq {
	void *h;
	struct {
		u64 len;
		const char *ptr;
	} name;
};

struct syscall_context {
	struct {
		struct {
			struct context context;
		} kc;
		struct blockq *blocked_on;
	} uc;
	struct thread *t;
	int call; /* its number */
	int beside;
};

struct thread {
	struct context context;
	char name[16];
	struct syscall_context *syscall;
	int tid;
	struct rbnode n;
};

struct process {
	int pid;
	struct rbtree *threads;
};

struct cpuinfo {
	struct {
		void *self;
		struct context *current_context;
	} m;
	uint32_t id;
};

struct buffer {
	u64 start, end, length;
	void *contents;
};

void *waiting_at(void);
void *waiting_at(void)
{
	return NULL;
}

struct blockq queue = { .name = { 9, "pipe readNOT THIS" } };
struct thread first, second, third, fourth;
struct syscall_context of_first = { .uc = { .blocked_on = &queue }, .beside = 1 };
struct syscall_context of_second = {
	.uc = { .blocked_on = (struct blockq *)-1 }, .call = 1, .beside = 1
};
struct syscall_context of_fourth;

/* The tree: second above first and fourth, third below fourth. */
struct thread first = { .name = "first",
	.tid = 1,
	.syscall = &of_first,
	.context = { { [1] = 3, [6] = 6, [7] = 0x7000, [12] = 12, [16] = (u64)waiting_at } } };
struct thread second = {
	.name = "second",
	.tid = 2,
	.syscall = &of_second,
	.context = { { [16] = (u64)waiting_at } },
	.n = { .c = { &first.n, &fourth.n } },
};
struct thread third = {
	.name = "0123456789abcdef", .tid = 3, .context = { { [16] = (u64)waiting_at } }
};
struct thread fourth = {
	.tid = 4,
	.syscall = &of_fourth,
	.context = { { [16] = (u64)waiting_at } },
	.n = { .c = { &third.n, NULL } },
};

struct rbtree tree = { &second.n, 4 };
struct process of_kernel, program = { 2, &tree };
struct process *processes[4] = { NULL, &program, &of_kernel };

/* One CPU runs a system call of the fourth thread. */
struct cpuinfo cpu = { .m = { .current_context = &of_fourth.uc.kc.context } };
struct cpuinfo *cpus[2] = { NULL, &cpu };
struct buffer cpu_vector = { 8, 16, 16, cpus };
struct buffer *cpuinfos = &cpu_vector;

void _start(void);
void _start(void)
{
	for (;;)
		;
}
