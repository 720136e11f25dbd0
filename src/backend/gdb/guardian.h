/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guardian: a forked child that also holds the line to the stub. A stub leaves the guest
 * stopped when its debugger dies between stop and continue; the guardian then makes it run.
 *
 *   profiler ---- socket pair: its closing is our death ---- guardian
 *       \            shared page: lease, flags               /
 *        `------------- line to the stub (dup'd) -----------'
 *
 * The guardian opens the line, so that at no instant a stopped guest hangs on the profiler alone,
 * and hands the profiler a copy; talking through the guardian would wake two more processes in each
 * pause. Only one of them talks at a time: the profiler while it has a lease (from before a stop to
 * after the resume) or the guest runs; the guardian when the profiler is dead, or has let its lease
 * run out (stopped by Ctrl-Z, say).
 */
#ifndef UNI_BACKEND_GDB_GUARDIAN_H
#define UNI_BACKEND_GDB_GUARDIAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "backend/gdb/addr.h"

#define UNI_GDB_LEASE_OP_MS   20000 /* longer than any one operation, with all its recoveries */
#define UNI_GDB_LEASE_HOLD_MS 1000  /* a guest is held no longer than this without a word */

/* What the guardian must know to leave properly. */
enum uni_gdb_flags {
	UNI_GDB_F_QEMU = 1u << 0,
	UNI_GDB_F_PHYS = 1u << 1,     /* we may have physical memory mode on: to be switched off */
	UNI_GDB_F_PAUSED = 1u << 2,   /* somebody else paused the guest: not to be resumed */
	UNI_GDB_F_FINISHED = 1u << 3, /* the profiler has left properly */
	UNI_GDB_F_SILENT = 1u << 4,   /* the stub does not answer: wait until it does */
};

struct uni_gdb_shared {
	_Atomic uint64_t lease_ns; /* end of the lease; 0 none; 1 taken over by the guardian */
	_Atomic uint32_t flags;	   /* enum uni_gdb_flags */
	_Atomic bool told, ran;	   /* of a stub that we switched on: what the monitor said before */
};

struct uni_gdb_guardian {
	int sock; /* our end of the pair, -1 */
	pid_t pid;
	struct uni_gdb_shared *shared;
};

/*
 * Forks and connects; *fd_ret is our copy of the line. With qmp, the path of QEMU's monitor, the
 * guardian switches a stub on by that, and in the end off again, whatever happens to us. Call
 * before threads exist: the child goes on in a copy of this process. On failure there is no child.
 */
int uni_gdb_guardian_start(struct uni_gdb_guardian *g, const struct uni_net_addr *addr,
	const char *qmp, int *fd_ret, struct uni_err *err);

/* Takes or extends the lease, from now on. False: the guardian has taken over, hands off. */
bool uni_gdb_guardian_lease(struct uni_gdb_guardian *g, unsigned ms);
/* Is (or was, until just now) the lease ours? To be asked before the guest is resumed. */
bool uni_gdb_guardian_has_lease(struct uni_gdb_guardian *g);
/* The guest runs: nothing is at stake. */
void uni_gdb_guardian_unlease(struct uni_gdb_guardian *g);

void uni_gdb_guardian_flags(struct uni_gdb_guardian *g, unsigned flags);

/* Without a guardian nothing may be stopped. */
bool uni_gdb_guardian_alive(const struct uni_gdb_guardian *g);

/*
 * After UNI_GDB_F_FINISHED it just ends, else it makes the guest run first; with UNI_GDB_F_SILENT
 * that may take any time, and it is not waited for. Idempotent.
 */
void uni_gdb_guardian_end(struct uni_gdb_guardian *g);

/* The child's whole life. */
_Noreturn void uni_gdb_guardian_main(
	int sock, const struct uni_net_addr *addr, const char *qmp, struct uni_gdb_shared *shared);

#endif
