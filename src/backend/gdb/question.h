/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests about a vCPU of a stopped guest, their order, and the meaning of the replies. */
#ifndef UNI_BACKEND_GDB_QUESTION_H
#define UNI_BACKEND_GDB_QUESTION_H

#include "backend/gdb/stub.h"

/* Queues all requests about one vCPU for the next send. */
void uni_gdb_question_queue(struct uni_gdb_stub *s, int vcpu);

/*
 * Takes the replies to these from QEMU; sends the requests one by one to other stubs. Returns 0;
 * -UNI_EAGAIN: this vCPU gives nothing, but the connection is fine; or an error of the connection.
 */
int uni_gdb_question_answer(
	struct uni_gdb_stub *s, int vcpu, uint64_t until_ns, struct uni_regs *ret);

/*
 * Looks up registers that are not in the g packet (arch->gdb_named) in the stub's own description,
 * to get the stub's numbers. Returns 0, or an error of the connection. Registers that are not there
 * stay unknown.
 */
int uni_gdb_question_learn(struct uni_gdb_stub *s);

/* Requests these from the selected vCPU. Returns 0, or an error of the connection. */
int uni_gdb_question_named(struct uni_gdb_stub *s, uint64_t until_ns, struct uni_regs *ret);

#endif
