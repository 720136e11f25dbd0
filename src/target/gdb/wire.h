/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between profiler and guardian, over a SOCK_SEQPACKET pair: header, then `size` bytes. */
#ifndef UNI_TARGET_GDB_WIRE_H
#define UNI_TARGET_GDB_WIRE_H

#include <stdint.h>

#include "target/gdb/guardian.h"

enum uni_gdb_op {
	UNI_GDB_OP_SNAP = 1, /* mask, hold -> struct uni_regs for each bit */
	UNI_GDB_OP_RELEASE,  /* -> struct uni_gdb_pause */
	UNI_GDB_OP_READ,     /* addr, len, held -> bytes */
	UNI_GDB_OP_PING,
};

struct uni_gdb_request {
	uint32_t op, seq;
	uint64_t mask, addr;
	uint32_t len;
	uint32_t hold;
};

struct uni_gdb_answer {
	uint32_t seq;
	int32_t rc;
	uint32_t size;
};

/* The first answer (seq 0), unasked. */
struct uni_gdb_first {
	struct uni_gdb_hello hello;
	struct uni_err err;
};

/* The child's whole life; sock is its end of the pair. Never returns. */
_Noreturn void uni_gdb_guardian_main(int sock, const struct uni_gdb_addr *addr,
	const struct uni_arch *arch, bool want_phys, void *memory);

/* Bytes that uni_gdb_guardian_main() wants at memory (allocated before the fork). */
extern const uint32_t uni_gdb_guardian_memory;

#endif
