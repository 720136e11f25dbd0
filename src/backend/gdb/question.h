/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked about a vCPU of a stopped guest, in which order, and what the answers mean. */
#ifndef UNI_BACKEND_GDB_QUESTION_H
#define UNI_BACKEND_GDB_QUESTION_H

#include "backend/gdb/stub.h"

/* All questions about one vCPU, for the next send. */
void uni_gdb_question_queue(struct uni_gdb_stub *s, int vcpu);

/*
 * Takes the answers to that, with QEMU; asks one by one with others. 0; -UNI_EAGAIN nothing to be
 * had of this vCPU but all is well; or a failure of the line.
 */
int uni_gdb_question_answer(
	struct uni_gdb_stub *s, int vcpu, uint64_t until_ns, struct uni_regs *ret);

/*
 * Looks up in the stub's own description by which numbers it knows the registers that its g packet
 * does not have (arch->gdb_named). 0 or a failure of the line; what it does not have stays unknown.
 */
int uni_gdb_question_learn(struct uni_gdb_stub *s);

/* Asks the selected vCPU for them. 0 or a failure of the line. */
int uni_gdb_question_named(struct uni_gdb_stub *s, uint64_t until_ns, struct uni_regs *ret);

#endif
