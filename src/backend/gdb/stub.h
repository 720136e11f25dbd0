/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A conversation with a gdb stub: identify it, stop, registers, memory, resume, leave.
 *
 *            snap/hold                  another monitor stops the guest
 *   RUNNING ----------> HELD    RUNNING ------------------------------> PAUSED
 *           <----------                 <------------------------------
 *              resume                   (seen at the next snap)
 *
 * A guest that somebody else paused (PAUSED) is read, but we never resume it.
 */
#ifndef UNI_BACKEND_GDB_STUB_H
#define UNI_BACKEND_GDB_STUB_H

#include "arch/arch.h"
#include "base/err.h"
#include "backend/gdb/link.h"
#include "backend/target.h"

struct uni_gdb_breaks;

enum uni_gdb_state {
	UNI_GDB_RUNNING,
	UNI_GDB_HELD,	/* stopped by us: we must resume it */
	UNI_GDB_PAUSED, /* stopped by somebody else */
	UNI_GDB_LOST,	/* the connection has ended */
};

struct uni_gdb_stub {
	struct uni_gdb_link link;
	const struct uni_arch *arch;
	enum uni_gdb_state state;
	const char *accel; /* "kvm", "tcg", or "" if its monitor does not say; of QEMU alone */
	bool qemu;	   /* knows QEMU's own queries: packets may be sent together */
	/*
	 * It never replied. The detach packet stays in the socket, for a stub that accepts the
	 * connection after we have gone. Such a stub would otherwise stop the guest for nobody.
	 */
	bool mute;
	bool silent;	/* it stopped replying, and one request is pending */
	bool vcont;	/* wants vCont;c */
	bool can_phys;	/* has QEMU's physical memory mode */
	bool want_phys; /* m must read guest physical memory, from the first read on */
	bool phys;	/* m reads guest physical memory now */
	bool phys_was;	/* m did so when we connected */
	bool sysregs;	/* it has the registers that select page tables */
	/* System registers that are not in g: the stub's numbers for them, and sys[] indices. */
	struct {
		uint32_t ask;
		uint8_t number;
	} named[UNI_SYS_MAX];
	unsigned nr_named;
	unsigned packet_max; /* longest packet that it accepts or sends, in characters */
	int nr_threads;
	uint32_t nr_left_off; /* threads for which there is no room here */
	struct uni_gdb_thread thread[UNI_VCPU_MAX];
	uint32_t host_tid[UNI_VCPU_MAX]; /* the VMM's thread of each vCPU; 0: not known */
	/* Borrowed, shared with the guardian; NULL: none will ever be inserted. */
	struct uni_gdb_breaks *breaks;
};

/*
 * Takes over fd. arch NULL: the stub's architecture, or x86_64 if the stub does not state it.
 * want_phys: read physical memory if the stub can. Leaves the guest running.
 */
int uni_gdb_stub_open(struct uni_gdb_stub *s, int fd, const struct uni_arch *arch, bool want_phys,
	struct uni_regs *regs0_ret, struct uni_err *err);
/* The same for a stub that was switched on for us, and cannot tell whether the guest `ran`. */
int uni_gdb_stub_open_told(struct uni_gdb_stub *s, int fd, const struct uni_arch *arch,
	bool want_phys, bool ran, struct uni_regs *regs0_ret, struct uni_err *err);

/*
 * Stops the guest, and reads registers of the vCPUs in the set, in order, into ret[0..]. Afterwards
 * the guest is held; on failure it runs (if the stub can be reached at all). Returns 0; -UNI_EGONE;
 * -UNI_EAGAIN: nothing was read, but the stub is fine; -UNI_EIO: the stub was given up.
 */
int uni_gdb_stub_snap(struct uni_gdb_stub *s, const struct uni_vcpuset *set, struct uni_regs *ret);

/* Resumes a held guest; does nothing in other states. */
int uni_gdb_stub_resume(struct uni_gdb_stub *s);

/*
 * Copies guest memory. Unless the guest is held, stops it before, and resumes it after. -UNI_EFAULT
 * ...
 */
int uni_gdb_stub_read(struct uni_gdb_stub *s, uint64_t addr, void *buf, size_t len);

/* Makes memory packets use physical addresses, if that was wanted (s->phys). */
int uni_gdb_stub_physical(struct uni_gdb_stub *s);
/*
 * An exchange with a held guest failed with rc: brings the connection to a known state. Afterwards
 * the guest runs, or the stub was given up. Returns the code for the caller to return.
 */
int uni_gdb_stub_recover(struct uni_gdb_stub *s, int rc);

/*
 * Takes packets that came without a request: somebody paused the guest, the VM ended. A guest that
 * ran into a breakpoint is HELD afterwards: nobody else resumes it.
 */
int uni_gdb_stub_idle(struct uni_gdb_stub *s);

/*
 * Brings a connection in an unknown state to a known one; then the guest runs. Returns 0, or an
 * error.
 */
int uni_gdb_stub_reset(struct uni_gdb_stub *s);

/* It did not reply in time: sends one request, whose reply will show that it listens again. */
void uni_gdb_stub_silence(struct uni_gdb_stub *s);

/*
 * Has a silent stub replied by now? Then returns 0, and the guest runs; else -UNI_EAGAIN,
 * -UNI_EGONE.
 */
int uni_gdb_stub_listen(struct uni_gdb_stub *s, uint64_t wait_ns);

/* Waits for a silent stub without time limit, until it replies or is gone. */
void uni_gdb_stub_await(struct uni_gdb_stub *s);

/* Makes sure that the guest runs, in any state of the connection, and disconnects. */
void uni_gdb_stub_leave(struct uni_gdb_stub *s);

#endif
