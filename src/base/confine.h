/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits what a process may still do to the system: which system calls, and where it writes. */
#ifndef UNI_BASE_CONFINE_H
#define UNI_BASE_CONFINE_H

#include <stdbool.h>

#include "base/err.h"

/*
 * An output that the user named, borrowed. Call it before uni_confine_rules(), for at most 16.
 */
void uni_confine_output(const char *path);

/*
 * Rules of Landlock: files are made, changed and removed only in the folders of the outputs and,
 * with `temporary`, of temporary files. Programs cannot be executed. Returns a descriptor that the
 * caller closes, or -1 on a kernel without Landlock.
 */
int uni_confine_rules(bool temporary);
/*
 * Guests of Xen are reached by open devices: workers and guardians may make hypercalls. They may
 * have real-time priority (base/hurry.h), as they stop the guest by themselves. Call it before
 * uni_confine_worker().
 */
void uni_confine_keep_xen(void);
bool uni_confine_keeps_xen(void);
/* They hold from now on. Needs no_new_privs. rules -1: does nothing. */
void uni_confine_enter(int rules);

enum uni_confined {
	UNI_CONFINED_READER,   /* reads files, writes results, serves open sockets */
	UNI_CONFINED_OBSERVER, /* makes events and maps (base/observer.h) */
	UNI_CONFINED_STOPPER,  /* stops threads as well */
	/* workers: */
	UNI_CONFINED_WATCHER,  /* a reader with open events, and maps and programs in the kernel */
	UNI_CONFINED_GUARDIAN, /* a reader that connects to sockets */
	UNI_CONFINED_TRACER,   /* a watcher that stops the vCPUs of its own user's VMM */
};

/*
 * From now on, only the system calls that this work needs are possible: no new socket, program or
 * debugger. Any other ends the process with one line. Needs no_new_privs. Call it before there are
 * threads.
 */
int uni_confine_calls(enum uni_confined what, struct uni_err *err);
/* The same for workers and readers; not in the opener's program. */
int uni_confine_worker(enum uni_confined what, struct uni_err *err);
/*
 * A command that keeps rights, and its guardian: no system call that looking at guests does not
 * take. Any other is refused (EPERM). Programs that it executes are limited as well.
 */
int uni_confine_command(struct uni_err *err);

#endif
