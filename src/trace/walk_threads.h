/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of the walk (walk.h): threads, and which of them runs on which CPU. */
#ifndef UNI_TRACE_WALK_THREADS_H
#define UNI_TRACE_WALK_THREADS_H

#include "trace/walk.h"

bool uni_walk_threads_init(struct uni_walk *w);
void uni_walk_threads_deinit(struct uni_walk *w);
/* It has at least so many threads; nothing is known of the new ones. False: w->failed says why. */
bool uni_walk_threads_room(struct uni_walk *w, uint32_t nr);
void uni_walk_know_thread(struct uni_walk *w, uint32_t thread, uint64_t id);
void uni_walk_run_on(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t thread);
/* A thread of which nothing is known runs on c from now on. */
void uni_walk_unknown_thread(struct uni_walk *w, struct uni_walk_cpu *c);
/* The words of a UNI_TRACE_CLASS_SWITCH. */
void uni_walk_switch(
	struct uni_walk *w, struct uni_walk_cpu *c, const uint64_t words[3], uint64_t time);
/* The calls of the CPU's thread from frame `keep` on are over. */
void uni_walk_cut(
	struct uni_walk *w, struct uni_walk_cpu *c, uint32_t keep, uint64_t time, unsigned flags);
/* The same for all calls of a thread that is on no CPU. */
void uni_walk_cut_away(struct uni_walk *w, uint32_t thread, uint64_t time);

#endif
