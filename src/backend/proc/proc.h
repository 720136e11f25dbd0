/* SPDX-License-Identifier: BSD-2-Clause */
/* The proc: target's own struct, shared by its parts. Threads count as vCPUs. */
#ifndef UNI_BACKEND_PROC_PROC_H
#define UNI_BACKEND_PROC_PROC_H

#include <pthread.h>

#include "base/hurry.h"
#include "base/stop.h"
#include "backend/target.h"

struct user_regs_struct;

struct uni_proc_thread {
	struct uni_thread_stop stop;
	/* Samples of the thread. */
	int fd;				    /* perf event, -1 */
	uint64_t begin_ns, run_ns, wait_ns; /* values at the begin of sampling */
	uint64_t taken; /* periods that its samples stand for, also the lost ones */
	/* Without samples of the kernel: periods that it was there, told, and to be told. */
	uint64_t in_kernel, waits;
	uint64_t in_kernel_ns;	       /* when the first of them was seen */
	uint64_t seen_run_ns, seen_ns; /* CPU time, and when it had grown */
	bool notable;		       /* it runs, and is in the kernel for a part that matters */
	struct uni_proc_votes *votes;
	/* deep.c: it has stacks that are not copied whole; it is stopped for its samples. */
	uint32_t depth;
	bool by_stops;
	uint64_t told_run_ns; /* CPU time that its samples stand for until then */
	uint64_t next_stop_ns;
	void *ring;
	size_t ring_bytes; /* of the data, after the first page */
};

/* Identifies the program that a process executes. */
struct uni_proc_program {
	bool known;
	uint64_t dev, ino, code, stack;
};

#define UNI_PROC_CODE_MAX 1024

/* Its memory that may be executed. */
struct uni_proc_code {
	pthread_mutex_t lock;
	uint64_t next_ns; /* not looked at again before */
	bool known;
	unsigned nr;
	struct uni_proc_range {
		uint64_t start, end;
	} range[UNI_PROC_CODE_MAX];
};

struct uni_proc {
	struct uni_target base;
	int pid;
	struct uni_gmem *gmem;
	struct uni_proc_code code;
	struct uni_target_info info;
	struct uni_proc_program program; /* the program at attach */
	bool changed;			 /* it has changed */
	bool executed;			 /* it has changed, by the kernel's records */
	uint64_t look_program_ns;	 /* time of the next check */
	int nr_threads;			 /* at attach: the threads of snap() */
	int nr_sampled;			 /* including later threads */
	struct uni_proc_thread thread[UNI_VCPU_MAX];
	/* Sampling. */
	bool streaming;
	bool kernel; /* samples in the kernel are permitted, too */
	bool asks;   /* otherwise: threads are stopped to find who called the kernel */
	/* Threads with deep stacks may be stopped, as struct uni_stream_cfg says. */
	bool may_stop, hurry;
	struct uni_hurry hurried; /* until the next look */
	double max_duty;
	bool ending;
	struct uni_proc_callers *callers;
	double frequency;
	size_t ring_bytes; /* of each thread, at most */
	uint64_t next_counts_ns;
	bool counts;	       /* this read of the stream looks at CPU times */
	uint64_t next_look_ns; /* for new threads */
	uint64_t samples, lost, failed, begin_ns;
	uint8_t *record; /* UNI_PROC_RECORD_MAX bytes: room for one whole record */
};

/* task.c. All calls for one target between snap() and release() come from one thread. */
/* Returns the number of threads, and the first cap of them, rising. 0: the process is gone. */
int uni_proc_list(int pid, int *tid_ret, int cap);
/* pid, or another thread of it if that one has ended: /proc shows program and memory of any. 0: all
 * have ended. */
int uni_proc_living(int pid);
bool uni_proc_is_kernel(int pid);
/*
 * Reads registers. A running thread is stopped for that, and stays so until uni_proc_let_go().
 * alone: no other one waits meanwhile, so there is time to stop it at a place by chance.
 * Returns 0, -UNI_EAGAIN or -UNI_EPERM.
 */
int uni_proc_stop(struct uni_proc *p, struct uni_proc_thread *t, bool alone, struct uni_regs *ret);
void uni_proc_let_go(struct uni_proc_thread *t);
/* The CPU on which a thread ran last; -1: not known. */
int uni_proc_cpu(int pid, int tid);
/* Has a signal stopped the process? */
bool uni_proc_is_stopped(int pid);
/* The process that traces one of its threads, if it is not us; 0: none. */
int uni_proc_tracer(const struct uni_proc *p);
bool uni_proc_is_traced(int tid); /* by anybody */
/* Stops any thread, sleeping or not. Returns 0 also if it has ended; then it is not held. */
int uni_proc_seize(
	struct uni_proc *p, struct uni_proc_thread *t, struct user_regs_struct *regs_ret);

/* program.c: remembers the current program, for uni_proc_program_changed(). */
void uni_proc_program_note(struct uni_proc *p);
/* Has it executed another program since? Then fills info.ended. Checks only now and then. */
bool uni_proc_program_changed(struct uni_proc *p);

/*
 * regs_x86_64.c: converts the kernel's layouts (ptrace; perf, by the bits of uni_proc_perf_regs).
 */
extern const uint64_t uni_proc_perf_regs;
extern const unsigned uni_proc_nr_perf_regs;
void uni_proc_perf_to_regs(const uint64_t *value, struct uni_regs *ret);
void uni_proc_ptrace_to_regs(const struct user_regs_struct *u, struct uni_regs *ret);
/* Would a stop alone make this system call fail with EINTR? */
bool uni_proc_call_notices(long nr);

/* perf.c */
/* *kernel_ret: also in the kernel? */
int uni_proc_perf_works(int pid, bool *kernel_ret, struct uni_err *err);
int uni_proc_stream_start(struct uni_target *base, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err);
int uni_proc_stream_read(struct uni_target *base, const struct uni_stream_sink *sink);
void uni_proc_stream_stats(struct uni_target *base, struct uni_stream_stats *ret);
int uni_proc_stream_times(struct uni_target *base, uint32_t vcpu, struct uni_vcpu_times *ret);
int uni_proc_stream_stop(struct uni_target *base);
void uni_proc_stream_close(struct uni_proc *p);

#define UNI_PROC_STACK_BYTES 32768u /* that perf events copy */

/* deep.c */
void uni_proc_deep_note(struct uni_proc_thread *t, bool deep);
/* Is it to be stopped for its samples from now on? */
bool uni_proc_deep_begins(struct uni_proc *p, struct uni_proc_thread *t);
/* Takes a sample, if it is time. False: from now on the kernel can make them again. */
bool uni_proc_deep_look(struct uni_proc *p, uint32_t vcpu, const struct uni_stream_sink *sink);
/* Before the reader sleeps: the next look is to be in time. */
void uni_proc_deep_hurry(struct uni_proc *p);

/* callers.c. With struct uni_proc.callers NULL there are no votes. */
void uni_proc_callers_start(struct uni_proc *p);
void uni_proc_callers_stop(struct uni_proc *p);
void uni_proc_callers_close(struct uni_proc *p);
uint64_t uni_proc_callers_votes(const struct uni_proc *p);
/* Which threads are notable; and the pauses since the last call. */
void uni_proc_callers_tell(struct uni_proc *p, const struct uni_stream_sink *sink);
/* Has the thread votes? Then these periods are shared out; raw has what they have in common. */
bool uni_proc_callers_known(struct uni_proc *p, uint32_t vcpu);
void uni_proc_callers_share(struct uni_proc *p, struct uni_stream_raw *raw, uint64_t periods,
	const struct uni_stream_sink *sink);

/* code.c: may the process execute what is there? For struct uni_gmem_ops; ctx is it. */
bool uni_proc_is_code(void *ctx, uint64_t va);

/* write.c */
struct uni_patch_job;
int uni_proc_write_text(struct uni_target *base, struct uni_patch_job *job);

/* files.c */
int uni_proc_files(struct uni_target *base, uni_target_file_fn fn, void *ctx);
int uni_proc_mapped(struct uni_target *base, uni_target_range_fn fn, void *ctx);
/* A path under which this process can open the executable of another one. */
void uni_proc_exe(int pid, char *out, size_t cap);

#endif
