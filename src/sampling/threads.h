/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of a guest at one moment. While it is held, the list is copied. For each thread that
 * is on no vCPU its saved registers and a piece of its stack are copied, too. Chains are followed
 * when the guest runs again (slab.h), unless its memory or its image does not permit that. Bounded
 * in threads and in time.
 */
#ifndef UNI_SAMPLING_THREADS_H
#define UNI_SAMPLING_THREADS_H

#include "base/clock.h"
#include "guest/guest.h"
#include "recording/recording.h"
#include "backend/target.h"
#include "unwind/unwind.h"

struct uni_threads;

/*
 * For pause_ns. ONE_LOOK: of a guest that is held for one look that is asked for. NO_CLOCK: of one
 * that is not held; only the number of reads counts.
 */
#define UNI_THREADS_ONE_LOOK (2 * UNI_NSEC_PER_SEC)
#define UNI_THREADS_NO_CLOCK UINT64_MAX
#define UNI_THREADS_READS    (1u << 16)

/*
 * Borrows all. After pause_ns of a pause nothing more is read: the list says so. From ONE_LOOK on,
 * it says so of stacks, too. In shorter pauses, the next look begins with those.
 */
int uni_threads_create(struct uni_target *t, const struct uni_unwinder *u,
	const struct uni_model *model, uint64_t pause_ns, struct uni_threads **ret,
	struct uni_err *err);
void uni_threads_destroy(struct uni_threads *s); /* NULL-safe */
/* pause_ns for one look at this target. */
uint64_t uni_threads_one_look_ns(struct uni_target *t);

/* Before the guest is held: more room, where the last look found more threads than there was for.
 */
void uni_threads_prepare(struct uni_threads *s);
/* With the guest held; regs of all its vCPUs. No allocation. */
void uni_threads_take(struct uni_threads *s, const struct uni_regs *regs, uint32_t nr_vcpus);
/*
 * With the guest running again. True: some chains are shorter than they need be, and another
 * uni_threads_take() would fetch more of their stacks.
 */
bool uni_threads_unwind(struct uni_threads *s);

/* True: that list may lack threads, and uni_threads_prepare() makes no room for them. */
bool uni_threads_are_short(const struct uni_threads *s);
/* The list of the last look. */
const struct uni_thread_list *uni_threads_list(const struct uni_threads *s);
/* The chain of list->v[i]. NULL: it is on a vCPU, which has the chain, or the chain could not be
 * read. */
const struct uni_chain *uni_threads_chain(const struct uni_threads *s, uint32_t i);

/*
 * Numbers for a session, from 1 on: the same object with the same name is the same thread. Never
 * while a guest is held.
 */
struct uni_thread_ids;

struct uni_thread_ids *uni_thread_ids_create(void);	 /* NULL: out of memory */
void uni_thread_ids_destroy(struct uni_thread_ids *ids); /* NULL-safe */
/* 0: too many threads, or no memory. *new_ret: the thread's entry if it is new, else NULL; borrowed
 * until the next call. */
uint32_t uni_thread_ids_get(struct uni_thread_ids *ids, const struct uni_guest_thread *t,
	const struct uni_record_thread **new_ret);

#endif
