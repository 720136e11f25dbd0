/* SPDX-License-Identifier: BSD-2-Clause */
/* The gdb: target's own struct, shared by its parts. */
#ifndef UNI_BACKEND_GDB_GDB_H
#define UNI_BACKEND_GDB_GDB_H

#include "backend/gdb/guardian.h"
#include "backend/gdb/stub.h"
#include "backend/target.h"

#define UNI_GDB_AGAIN_MAX 16

struct uni_gdb_target {
	struct uni_target base;
	struct uni_gdb_guardian guardian;
	struct uni_gdb_stub stub;
	struct uni_regs regs0; /* vCPU 0 at attach */
	struct uni_gmem *gmem;
	struct uni_target_info info;
	bool held;	       /* between a snap with HOLD and release() */
	bool orphaned;	       /* the guardian has died; the guest goes on without us */
	char *monitor;	       /* owned; it has switched the stub on; NULL: nobody has to */
	int spare_fd;	       /* our end stays open until that stub is off; -1 */
	struct uni_regs *regs; /* owned; in the stub's order, without gaps */
	/* Calls that were counted, but whose vCPUs will run into their breakpoints once more. */
	struct {
		uint64_t sp;
		unsigned which;
		bool used;
	} again[UNI_GDB_AGAIN_MAX];
	size_t next_again;
};

/*
 * Call these before and after each exchange with the stub. They handle the lease, packets that
 * arrived meanwhile, and the state that the guardian needs. begin returns 0; -UNI_EGONE; or
 * -UNI_EAGAIN: the guardian has just taken over, and a hold, if there was one, is over.
 */
int uni_gdb_begin(struct uni_gdb_target *t);
void uni_gdb_end(struct uni_gdb_target *t);

/*
 * find.c. Checks the keys, and finds the stub, or the monitor that can switch one on, without
 * connecting. In a process without rights it only describes the VMM that it may look at.
 */
int uni_gdb_look(const struct uni_spec *spec, struct uni_net_addr *addr_ret,
	const char **monitor_ret, struct uni_target_info *ret, struct uni_err *err);
/* The address of a stub that somebody has switched on by the VMM's monitor, into info->gdb. */
void uni_gdb_complete(struct uni_target_info *info);
int uni_gdb_hand_line(const struct uni_spec *spec, struct uni_target_shared *shared, int *pid_ret,
	struct uni_err *err);
/* The guardian that uni_gdb_hand_line() made for it, or NULL. */
struct uni_gdb_guardian *uni_gdb_kept(const struct uni_spec *spec);

/* write.c */
int uni_gdb_write_text(struct uni_target *base, struct uni_patch_job *job);

/* mem=: how guest memory is read. */
enum uni_gdb_mem {
	UNI_GDB_MEM_AUTO,    /* from the VMM's process if possible, else by packets */
	UNI_GDB_MEM_PROCESS, /* from the VMM's process, or fail */
	UNI_GDB_MEM_PACKETS,
};

/*
 * Makes t->gmem and completes t->info.note. t->stub must be open, and t->regs0 and t->info set.
 * qmp: path of a monitor socket or NULL.
 */
int uni_gdb_mem_open(struct uni_gdb_target *t, enum uni_gdb_mem how,
	const struct uni_attach_opts *opts, const char *qmp, struct uni_err *err);

#endif
