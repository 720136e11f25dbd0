/* SPDX-License-Identifier: BSD-2-Clause */
/* The gdb stub of a QEMU that was started without one, switched on and off by its monitor. */
#ifndef UNI_BACKEND_GDB_SWITCH_H
#define UNI_BACKEND_GDB_SWITCH_H

#include <stdbool.h>

#include "base/err.h"

/*
 * The stub is at the other end of *fd_ret, a pair of sockets that nobody else reaches, whatever
 * QEMU's user, folder and namespaces. The guest stands from now on; *runs_ret: it ran before.
 */
int uni_gdb_switch_on(const char *qmp, int *fd_ret, bool *runs_ret, struct uni_err *err);
/* For the guardian: waits while another client has the monitor. */
void uni_gdb_switch_off(const char *qmp);

#endif
