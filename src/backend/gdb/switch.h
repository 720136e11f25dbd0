/* SPDX-License-Identifier: BSD-2-Clause */
/* The gdb stub of a QEMU that was started without one; its monitor switches the stub on and off. */
#ifndef UNI_BACKEND_GDB_SWITCH_H
#define UNI_BACKEND_GDB_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The stub is at the other end of *fd_ret. That is a pair of sockets, which nobody else can reach;
 * QEMU's user, folder and namespaces do not matter. The guest is stopped from now on; *runs_ret: it
 * ran before.
 */
int uni_gdb_switch_on(const char *qmp, int *fd_ret, bool *runs_ret, struct uni_err *err);
/* Waits while another client uses the monitor, until then. */
void uni_gdb_switch_off(const char *qmp, uint64_t until_ns);

#endif
