/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hardware breakpoints in a guest. Each stops the guest, for whoever holds the connection: so they
 * are dangerous. The profiler and the guardian share this list. An address is in it from before its
 * Z1 packet until after its z1 packet. Whoever brings the connection to a known state also removes
 * what is in the list.
 */
#ifndef UNI_BACKEND_GDB_BREAKS_H
#define UNI_BACKEND_GDB_BREAKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/breaks.h"

struct uni_gdb_stub;

struct uni_gdb_breaks {
	_Atomic uint64_t addr[UNI_BREAKS_MAX]; /* 0: none */
	_Atomic uint32_t kind;		       /* of all, for the packets */
};

/* May the guest run into one? b may be NULL. */
bool uni_gdb_breaks_any(const struct uni_gdb_breaks *b);
/* The number of the one at this address, or -1. */
int uni_gdb_breaks_at(const struct uni_gdb_breaks *b, uint64_t addr);

/*
 * All these are for a guest that is stopped. They return 0, or an error of the connection.
 * insert: also -UNI_ENOTSUP, if the stub has no (more) breakpoints; then this one is not there.
 * remove: one that is not there is no error.
 */
int uni_gdb_breaks_insert(struct uni_gdb_stub *s, size_t i, uint64_t addr);
int uni_gdb_breaks_remove(struct uni_gdb_stub *s, size_t i);
int uni_gdb_breaks_remove_all(struct uni_gdb_stub *s);

extern const struct uni_break_ops uni_gdb_break_ops;

#endif
