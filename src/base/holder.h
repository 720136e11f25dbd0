/* SPDX-License-Identifier: BSD-2-Clause */
/* The observer's part that stops a VMM's threads for a worker, and writes what KVM is to copy. */
#ifndef UNI_BASE_HOLDER_H
#define UNI_BASE_HOLDER_H

#include <stdbool.h>

struct uni_observe_request;

/* The first of all requests may name the VMM's mappings of kvm_run. */
int uni_holder_take_runs(const struct uni_observe_request *q);
/* Writes kvm_valid_regs of one of these. */
int uni_holder_write_run(int pid, const struct uni_observe_request *q);
/* The page that both share, as a new descriptor, or -1 and errno. */
int uni_holder_page(void);
/* Both processes stay on this CPU, which they give each other; -1: no longer. */
bool uni_holder_pair(int tid, int cpu);
/* Stops the threads. False: the worker waits for a reply. */
bool uni_holder_hold(int pid, const struct uni_observe_request *q);
/* All go on. */
void uni_holder_let_go(void);
/* Some were told to stop, and were let go before they did. */
bool uni_holder_any_late(void);
/* Lets those go that have stopped since; and all, if the worker has hung for a second. */
void uni_holder_settle(void);

#endif
