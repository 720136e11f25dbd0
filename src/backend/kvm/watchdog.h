/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the profiler is stopped (SIGSTOP, Ctrl-Z) while it holds a vCPU, the guest would stand until
 * it goes on. The watchdog, a forked child, sees that a hold lasts too long and that the profiler
 * is stopped, and wakes it; the profiler lets the guest go and stops itself again.
 */
#ifndef UNI_BACKEND_KVM_WATCHDOG_H
#define UNI_BACKEND_KVM_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct uni_kvm_watch_page {
	_Atomic uint64_t deadline_ns; /* 0: nothing is held */
	atomic_bool woken;	      /* the profiler was stopped, and is to be so again */
};

struct uni_kvm_watchdog {
	pid_t pid;
	struct uni_kvm_watch_page *page; /* NULL: there is no watchdog, all calls do nothing */
};

/* Best effort: without it only a stopped profiler is worse off. */
void uni_kvm_watchdog_start(struct uni_kvm_watchdog *w);
/* Before a thread is seized, and again while one is. No system call. */
void uni_kvm_watchdog_hold(struct uni_kvm_watchdog *w);
/* Nothing is held any more. No system call. */
void uni_kvm_watchdog_free(struct uni_kvm_watchdog *w);
/* Stops this process if it was woken for a hold that is over. Apart from free(), which lies within
 * the pause that is measured. */
void uni_kvm_watchdog_stop_again(struct uni_kvm_watchdog *w);
void uni_kvm_watchdog_end(struct uni_kvm_watchdog *w);

#endif
