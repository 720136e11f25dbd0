/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rights of this process beyond those of its user: from root, or from its file's capabilities.
 */
#ifndef UNI_BASE_PRIVILEGE_H
#define UNI_BASE_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

bool uni_privilege_has(void);
/* The user that nobody else is, for this process: of a range that systemd leaves free. */
uid_t uni_privilege_own_user(void);

/*
 * Gives up all capabilities for good; programs started later do not gain any. From then on this
 * process makes only the system calls of a reader, and changes only the outputs
 * (base/confine.h). Call it before reading the first byte of a file that others may have made, and
 * before there are threads. If root calls it, this process becomes a user of its own. A child
 * opens root's and its users' files for it (base/door.h), which belong to root as before.
 */
int uni_privilege_drop(struct uni_err *err);

/* How another process is reached by one without rights. */
struct uni_watched {
	int pid;
	/*
	 * It is the guest itself: its threads are stopped, at once (base/hurry.h), and files opened
	 * that it has mapped, be they deleted.
	 */
	bool stops;
	bool writes; /* code of the guest itself is written, while all its threads stand */
	/* The guest is reached by a child (uni_privilege_keep_connecting()) or a connection. Only
	 * the memory of this process is read, the VMM; pid 0: of none. */
	bool beside;
};

/*
 * The same for a process that watches others (VMMs) by open descriptors. For each of them, a
 * further child can still look into it (base/observer.h).
 */
int uni_privilege_drop_watching(const struct uni_watched *w, size_t nr, struct uni_err *err);
/*
 * The same for a process that stops the vCPUs of a VMM by itself. It becomes the user of that
 * process, who may trace it without any capability: uni_privilege_owner_may_trace() tries that. The
 * child reads files of the VMM for it, and gives it real-time priority.
 */
int uni_privilege_drop_to_owner(int pid, struct uni_err *err);
bool uni_privilege_owner_may_trace(int pid); /* and is not root */
bool uni_privilege_is_dropped(void);	     /* by one of these */
/* The user who called us, also if this process has become a VMM's. */
uid_t uni_privilege_caller(void);
bool uni_privilege_may_stop(void); /* does it still stop vCPUs by itself? */

/*
 * For a child that stays: it keeps the right to connect to each socket, until uni_caps_give_up().
 * If root called us, it becomes a user of its own.
 */
int uni_privilege_keep_connecting(struct uni_err *err);

/*
 * For a process that must keep rights. From now on it has those to look into guests only, and makes
 * only system calls for that (base/confine.h). Nothing that it executes has more. Does nothing
 * after rights were given up, and without rights. Call it before there are threads.
 */
int uni_privilege_limit(struct uni_err *err);
/* The same for whoever only waits until it has to execute `trace stop`. */
int uni_privilege_limit_guardian(struct uni_err *err);

/* The result of fn(ctx), called without any capability; afterwards they are there again. */
int uni_privilege_try_without(int (*fn)(void *ctx), void *ctx);
/*
 * The same with those alone that the child will have which looks into the process. If that fails,
 * it tries CAP_SYS_ADMIN as well; if this helps, the child keeps it.
 */
int uni_privilege_try_observing(int (*fn)(void *ctx), void *ctx);

#endif
