/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guardian: a forked child that owns the line to the stub. A stub leaves the guest stopped when
 * its debugger dies between stop and continue, so no profiler process may be that debugger: when
 * our end of the socket pair closes (exit, crash, SIGKILL) or a hold lasts too long, the guardian
 * makes the guest run and leaves.
 *
 *   profiler --- socket pair (one message each way) --- guardian --- gdb packets --- stub
 */
#ifndef UNI_TARGET_GDB_GUARDIAN_H
#define UNI_TARGET_GDB_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "target/gdb/addr.h"
#include "target/target.h"

#define UNI_GDB_HOLD_MAX_NS 1000000000ull /* a longer hold is ended by the guardian */
#define UNI_GDB_READ_MAX    16384	  /* bytes of one read message */

struct uni_gdb_guardian {
	int fd;	   /* our end; -1 after the end */
	pid_t pid; /* 0: none */
	uint32_t seq;
	/* For the rescue when the guardian itself is killed. */
	const struct uni_arch *arch;
	struct uni_gdb_addr addr;
	bool paused; /* somebody else had paused the guest when we came */
};

/* What the handshake found. */
struct uni_gdb_hello {
	int nr_vcpus;
	int peer_pid; /* process that listens there by SO_PEERCRED, 0 unknown */
	bool qemu, phys, sysregs, paused;
	uint64_t attach_pause_ns; /* how long the guest stood during the handshake */
	struct uni_regs regs0;
};

struct uni_gdb_pause {
	uint64_t stop_ns, resume_ns; /* as the guardian saw them; resume_ns 0 while held */
};

/*
 * Forks, connects and shakes hands; the guest runs afterwards. Call before threads exist: the child
 * goes on in a copy of this process. On failure there is no child.
 */
int uni_gdb_guardian_start(struct uni_gdb_guardian *g, const struct uni_gdb_addr *addr,
	const struct uni_arch *arch, bool want_phys, struct uni_gdb_hello *ret,
	struct uni_err *err);

/* The requests; 0, -UNI_EGONE, -UNI_EAGAIN, -UNI_EIO, read also -UNI_EFAULT. No allocation. */
int uni_gdb_guardian_snap(
	struct uni_gdb_guardian *g, uint64_t mask, bool hold, struct uni_regs *ret);
int uni_gdb_guardian_release(struct uni_gdb_guardian *g, struct uni_gdb_pause *ret);
/* held: part of a hold that must still last; else the guest is stopped for the read alone. */
int uni_gdb_guardian_read(
	struct uni_gdb_guardian *g, bool held, uint64_t addr, void *buf, size_t len);
int uni_gdb_guardian_ping(struct uni_gdb_guardian *g);

/* Lets the guest run, hangs up and waits for the child's end. Idempotent. */
void uni_gdb_guardian_end(struct uni_gdb_guardian *g);

#endif
