/* SPDX-License-Identifier: BSD-2-Clause */
/* The gdb: target's own struct, shared by its parts. */
#ifndef UNI_TARGET_GDB_GDB_H
#define UNI_TARGET_GDB_GDB_H

#include "target/gdb/guardian.h"
#include "target/target.h"

struct uni_gdb_target {
	struct uni_target base;
	struct uni_gdb_guardian guardian;
	struct uni_gdb_hello hello;
	struct uni_gmem *gmem;
	struct uni_target_info info;
	bool held;
	struct uni_regs regs[UNI_VCPU_MAX]; /* as the guardian sends them: without gaps */
};

/* mem=: where guest memory is read from. */
enum uni_gdb_mem {
	UNI_GDB_MEM_AUTO,    /* the VMM's process if it can be, else packets */
	UNI_GDB_MEM_PROCESS, /* or fail */
	UNI_GDB_MEM_PACKETS,
};

/*
 * Makes t->gmem and completes t->info.note. t->guardian runs, t->hello and t->info are set.
 * qmp: path of a monitor socket or NULL.
 */
int uni_gdb_mem_open(struct uni_gdb_target *t, enum uni_gdb_mem how,
	const struct uni_attach_opts *opts, const char *qmp, struct uni_err *err);

#endif
