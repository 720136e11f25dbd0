/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of a guest. There is one model for each operating system: a const table of operations
 * in a file of its own. A model knows where the guest keeps its threads, and what the guest saved
 * of threads that are on no vCPU. The offsets come from the image's debug data. A model reads
 * through a uni_as only, so that it works the same on a running guest and on a core file. All that
 * it reads is hostile: a list is followed for a limited number of steps, and no thread is taken
 * twice.
 */
#ifndef UNI_GUEST_GUEST_H
#define UNI_GUEST_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "mem/as.h"
#include "obj/debug.h"
#include "obj/image.h"

#define UNI_THREADS_MAX	    512 /* of one list */
#define UNI_THREAD_NAME_MAX 64	/* bytes, with the NUL */
#define UNI_THREAD_THEN_MAX 16

enum uni_thread_state {
	UNI_THREAD_UNKNOWN,
	UNI_THREAD_RUNNING,  /* on a vCPU */
	UNI_THREAD_READY,    /* could run, but no vCPU does */
	UNI_THREAD_BLOCKED,  /* until another thread or an interrupt wakes it */
	UNI_THREAD_SLEEPING, /* until some time: it asked to sleep */
	UNI_THREAD_EXITED,
	UNI_THREAD_WAITING, /* until it is woken, or until some time: the guest does not say which
			       of them it asked for */
	UNI_THREAD_IDLE,    /* the guest's idle thread, which has nothing to do */
	UNI_THREAD_STATE_NR
};

/* "running", ... */
const char *uni_thread_state_name(unsigned state);

struct uni_guest_thread {
	uint64_t object; /* address of the guest's structure for it: tells threads apart */
	uint64_t number; /* the guest's own, where has_number */
	bool has_number;
	uint8_t state;	  /* enum uni_thread_state */
	int32_t vcpu;	  /* where it is; -1: on none. A blocked one may still be on a vCPU that
			     looks for work on its stack */
	uint64_t wait_on; /* address of what it waits for, 0: not known */
	char name[UNI_THREAD_NAME_MAX]; /* clean; "": it has no name */
	char wait_name[32];		/* the guest's name for that; clean, "": it has none */
	/* Registers with which a thread on no vCPU will go on; pc_valid false: not known. */
	struct uni_regs regs;
	/* Without a stack: where it will go on, function by function, the next one first. */
	uint32_t nr_then;
	uint64_t then[UNI_THREAD_THEN_MAX];
};

/* Why a list may lack threads. */
enum uni_threads_cut {
	UNI_THREADS_WHOLE,
	UNI_THREADS_LOOP,  /* the list leads back to a thread that it already had */
	UNI_THREADS_FAULT, /* memory of it could not be read */
	UNI_THREADS_MORE,  /* there are more than `cap` */
	UNI_THREADS_SPENT, /* reading took more than its budget */
};

/* For messages: "the list of threads has a loop"; NULL: the list is whole. */
const char *uni_threads_cut_text(unsigned cut);

struct uni_thread_list { /* large; of uni_thread_list_create() */
	uint8_t cut;	 /* enum uni_threads_cut */
	uint32_t nr, cap;
	uint32_t slot[2 * UNI_THREADS_MAX]; /* object -> its index + 1, by hash */
	struct uni_guest_thread v[];
};

/* cap is at most UNI_THREADS_MAX. NULL: out of memory. */
struct uni_thread_list *uni_thread_list_create(uint32_t cap);

/* Which image, where it is, and what is known of its structures. All borrowed. */
struct uni_model_from {
	const struct uni_image *img;
	uint64_t bias;
	struct uni_debug *debug; /* NULL: none */
};

struct uni_model;

/* Is debug data of use to the model for the guest that runs this image? */
bool uni_model_wants_debug(const struct uni_image *img);
/* The name of the model for the guest that runs this image ("unikraft"), or NULL. */
const char *uni_model_name(const struct uni_image *img);

/*
 * -UNI_ENOENT: no model knows this guest; -UNI_ENOTSUP: its model does not know this version. err
 * has one line in both cases. The debug data is not needed any more afterwards.
 */
int uni_model_open(const struct uni_model_from *from, struct uni_model **ret, struct uni_err *err);
void uni_model_close(struct uni_model *m); /* NULL-safe */
/* False: its threads are promises, which have no stack. */
bool uni_model_has_stacks(const struct uni_model *m);
/* True as well if it is known in which functions such threads will go on. */
bool uni_model_has_chains(const struct uni_model *m);

/*
 * Puts all threads into list. as must have the root of the guest's address space (uni_as_begin);
 * regs are the vCPUs' registers of the same moment. Allocates nothing, for use while the guest is
 * held. At the end, the threads on a vCPU are marked.
 */
void uni_model_walk(const struct uni_model *m, struct uni_as *as, const struct uni_regs *regs,
	uint32_t nr_vcpus, struct uni_thread_list *list);

/*
 * Finds only the thread on one vCPU. Returns 0, or -UNI_ENOENT: none, or not known. Does not fill
 * its regs.
 */
int uni_model_current(const struct uni_model *m, struct uni_as *as, const struct uni_regs *regs,
	uint32_t vcpu, struct uni_guest_thread *ret);

#endif
