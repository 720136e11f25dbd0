/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * If the profiler is stopped (SIGSTOP, Ctrl-Z) while it holds a vCPU, the guest would stay stopped,
 * too. The watchdog is a forked child. When a hold lasts too long and the profiler is stopped, it
 * wakes the profiler. The profiler lets the guest go, and stops itself again.
 */
#ifndef UNI_BACKEND_KVM_WATCHDOG_H
#define UNI_BACKEND_KVM_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct uni_kvm_watch_page {
	_Atomic uint64_t deadline_ns; /* 0: nothing is held */
	atomic_bool woken;	      /* the profiler was stopped, and must stop again */
};

struct uni_kvm_watchdog {
	pid_t pid;
	struct uni_kvm_watch_page *page; /* NULL: there is no watchdog, and all calls do nothing */
};

/* Best effort: without it, only a stopped profiler does harm. */
void uni_kvm_watchdog_start(struct uni_kvm_watchdog *w);
/* Call it before a thread is seized, and again while one is. No system call. */
void uni_kvm_watchdog_hold(struct uni_kvm_watchdog *w);
/* Nothing is held any more. No system call. */
void uni_kvm_watchdog_free(struct uni_kvm_watchdog *w);
/*
 * Stops this process if it was woken for a hold that is over. Separate from free(), which is within
 * the measured pause.
 */
void uni_kvm_watchdog_stop_again(struct uni_kvm_watchdog *w);
void uni_kvm_watchdog_end(struct uni_kvm_watchdog *w);

#endif
