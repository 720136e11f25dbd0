/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guardian: a forked child that also holds the connection to the stub. A stub leaves the guest
 * stopped if its debugger dies between stop and continue. Then the guardian resumes the guest.
 *
 *   profiler ---- socket pair: its closing is our death ---- guardian
 *       \            shared page: lease, flags               /
 *        `---------- connection to the stub (dup'd) --------'
 *
 * The guardian makes the connection, and gives the profiler a copy. So a stopped guest never
 * depends on the profiler alone. Sending all packets through the guardian would wake two more
 * processes in each pause. Only one of them uses the connection at a time. The profiler does while
 * it has a lease (from before a stop to after the resume), or while the guest runs. The guardian
 * does when the profiler is dead, or has let its lease expire (stopped by Ctrl-Z, for example).
 *
 * Its only right is to connect to each socket. It gives that up before it reads the first reply of
 * a stub. Only one with a monitor keeps it, to switch the stub off later.
 */
#ifndef UNI_BACKEND_GDB_GUARDIAN_H
#define UNI_BACKEND_GDB_GUARDIAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "backend/gdb/addr.h"
#include "backend/gdb/breaks.h"

#define UNI_GDB_LEASE_OP_MS 20000 /* longer than any single operation, with all its recoveries */
/* Longest time that a guest is held, or runs into breakpoints, without a sign of life. */
#define UNI_GDB_LEASE_HOLD_MS 1000

/* The facts that the guardian needs to detach properly. */
enum uni_gdb_flags {
	UNI_GDB_F_QEMU = 1u << 0,
	UNI_GDB_F_PHYS = 1u << 1,     /* physical memory mode may be on: switch it off */
	UNI_GDB_F_PAUSED = 1u << 2,   /* somebody else paused the guest: do not resume it */
	UNI_GDB_F_FINISHED = 1u << 3, /* the profiler has left properly */
	UNI_GDB_F_SILENT = 1u << 4,   /* the stub does not answer: wait until it does */
};

struct uni_gdb_shared {
	_Atomic uint64_t lease_ns; /* end of the lease; 0 none; 1 taken over by the guardian */
	_Atomic uint32_t flags;	   /* enum uni_gdb_flags */
	_Atomic bool told, ran; /* for a stub that we switched on: what the monitor said before */
	struct uni_gdb_breaks breaks;
};

struct uni_gdb_guardian {
	int sock; /* our end of the pair, -1 */
	pid_t pid;
	struct uni_gdb_shared *shared;
	struct uni_gdb_guardian
		*kept; /* this is a copy of it, for one connection; NULL: it is not */
};

/*
 * Only forks. Then uni_gdb_guardian_again() connects, in a process without rights too, as often as
 * the connection before has ended. `g` stays at its place until uni_gdb_guardian_end().
 */
int uni_gdb_guardian_keep(
	struct uni_gdb_guardian *g, const struct uni_net_addr *addr, struct uni_err *err);
int uni_gdb_guardian_again(struct uni_gdb_guardian *g, struct uni_gdb_guardian *kept, int *fd_ret,
	struct uni_err *err);

/*
 * Forks and connects; *fd_ret is our copy of the connection. With qmp, the path of QEMU's monitor,
 * the guardian switches a stub on through the monitor. At the end it switches the stub off again,
 * whatever happens to us. Call this before threads exist: the child goes on in a copy of this
 * process. On failure there is no child.
 */
int uni_gdb_guardian_start(struct uni_gdb_guardian *g, const struct uni_net_addr *addr,
	const char *qmp, int *fd_ret, struct uni_err *err);

/*
 * Takes or extends the lease, from now on. False: the guardian has taken over; do not use the stub.
 */
bool uni_gdb_guardian_lease(struct uni_gdb_guardian *g, unsigned ms);
/* Is the lease ours, or was it until just now? Ask this before the guest is resumed. */
bool uni_gdb_guardian_has_lease(struct uni_gdb_guardian *g);
/* Gives the lease up: the guest runs, and nothing can go wrong. */
void uni_gdb_guardian_unlease(struct uni_gdb_guardian *g);

void uni_gdb_guardian_flags(struct uni_gdb_guardian *g, unsigned flags);

/* Without a guardian, the guest must not be stopped. */
bool uni_gdb_guardian_alive(const struct uni_gdb_guardian *g);

/*
 * Ends the guardian. After UNI_GDB_F_FINISHED it just ends; otherwise it resumes the guest first.
 * With UNI_GDB_F_SILENT that may take any time, and we do not wait. Idempotent. A kept one has then
 * done the same, and waits for uni_gdb_guardian_again().
 */
void uni_gdb_guardian_end(struct uni_gdb_guardian *g);

/* The child's main function. */
_Noreturn void uni_gdb_guardian_main(
	int sock, const struct uni_net_addr *addr, const char *qmp, struct uni_gdb_shared *shared);

#endif
