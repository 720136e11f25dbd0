/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A conversation with a gdb stub: who it is, stop, registers, memory, go on, leave.
 *
 *            snap/hold                  another monitor stops the guest
 *   RUNNING ----------> HELD    RUNNING ------------------------------> PAUSED
 *           <----------                 <------------------------------
 *              resume                   (seen at the next snap)
 *
 * A guest that somebody else paused (PAUSED) is read but never resumed by us.
 */
#ifndef UNI_BACKEND_GDB_STUB_H
#define UNI_BACKEND_GDB_STUB_H

#include "arch/arch.h"
#include "base/err.h"
#include "backend/gdb/link.h"
#include "backend/target.h"

enum uni_gdb_state {
	UNI_GDB_RUNNING,
	UNI_GDB_HELD,	/* stopped by us: ours to resume */
	UNI_GDB_PAUSED, /* stopped by somebody else */
	UNI_GDB_LOST,	/* nobody is on the line any more */
};

struct uni_gdb_stub {
	struct uni_gdb_link link;
	const struct uni_arch *arch;
	enum uni_gdb_state state;
	bool qemu; /* knows QEMU's own queries: packets may be sent in one go */
	/* It never answered. The detach packet stays in the socket for a stub that accepts us after
	 * we have gone, and would stop the guest for nobody. */
	bool mute;
	bool silent;	/* it stopped answering and was asked a question */
	bool vcont;	/* wants vCont;c */
	bool can_phys;	/* knows QEMU's physical memory mode */
	bool want_phys; /* m shall read guest physical memory, from the first read on */
	bool phys;	/* it does now */
	bool phys_was;	/* and it did so when we came */
	bool sysregs;	/* it gives the registers that select page tables */
	/* System registers that are not in g: the stub's numbers of them, and sys[] indices. */
	struct {
		uint32_t ask;
		uint8_t number;
	} named[UNI_SYS_MAX];
	unsigned nr_named;
	unsigned packet_max; /* longest packet it takes or sends, in characters */
	int nr_threads;
	uint32_t nr_left_off; /* threads for which there is no room here */
	struct uni_gdb_thread thread[UNI_VCPU_MAX];
};

/*
 * Takes over fd. arch NULL: what the stub calls it, x86_64 if it does not say. want_phys: read
 * physical memory if the stub can. Leaves the guest running.
 */
int uni_gdb_stub_open(struct uni_gdb_stub *s, int fd, const struct uni_arch *arch, bool want_phys,
	struct uni_regs *regs0_ret, struct uni_err *err);
/* The same of one that was switched on for us, and did not tell us that the guest `ran`. */
int uni_gdb_stub_open_told(struct uni_gdb_stub *s, int fd, const struct uni_arch *arch,
	bool want_phys, bool ran, struct uni_regs *regs0_ret, struct uni_err *err);

/*
 * Stops the guest and reads registers of the vCPUs in the set, in order, into ret[0..]. It is held
 * afterwards; on failure it runs (if it can be reached at all). 0, -UNI_EGONE; -UNI_EAGAIN nothing
 * read but all is well; -UNI_EIO the stub was given up.
 */
int uni_gdb_stub_snap(struct uni_gdb_stub *s, const struct uni_vcpuset *set, struct uni_regs *ret);

/* Lets a held guest run; nothing to do in other states. */
int uni_gdb_stub_resume(struct uni_gdb_stub *s);

/* Copies guest memory; stops and resumes around it unless the guest is held. -UNI_EFAULT ... */
int uni_gdb_stub_read(struct uni_gdb_stub *s, uint64_t addr, void *buf, size_t len);

/* Makes memory packets name physical addresses, if that was wanted (s->phys). */
int uni_gdb_stub_physical(struct uni_gdb_stub *s);
/* An exchange with a held guest failed with rc: brings the line to a known state. The guest runs
 * then, or the stub was given up. Returns what is to be returned. */
int uni_gdb_stub_recover(struct uni_gdb_stub *s, int rc);

/*
 * Patches a guest that is held, by packets, each place by one of its own: a line that breaks leaves
 * old bytes or new ones. As uni_patch_run(); -UNI_EPROTO and the like: the line failed.
 */
struct uni_patch_plan;
int uni_gdb_stub_patch(struct uni_gdb_stub *s, struct uni_patch_plan *p);

/* Takes what came unasked: somebody paused the guest, the VM ended. */
int uni_gdb_stub_idle(struct uni_gdb_stub *s);

/* The line is in an unknown state: brings it to a known one, and the guest runs. 0 or why not. */
int uni_gdb_stub_reset(struct uni_gdb_stub *s);

/* It did not answer in time: asks it the question whose answer tells that it listens again. */
void uni_gdb_stub_silence(struct uni_gdb_stub *s);

/* Has a silent stub answered by now? Then 0, and the guest runs; else -UNI_EAGAIN, -UNI_EGONE. */
int uni_gdb_stub_listen(struct uni_gdb_stub *s, uint64_t wait_ns);

/* Waits for a silent stub, however long it takes, until it answers or is gone. */
void uni_gdb_stub_await(struct uni_gdb_stub *s);

/* Makes sure that the guest runs, in whatever state the line is, and hangs up. */
void uni_gdb_stub_leave(struct uni_gdb_stub *s);

#endif
