/* SPDX-License-Identifier: BSD-2-Clause */
/* The address at which a gdb stub listens. */
#ifndef UNI_BACKEND_GDB_ADDR_H
#define UNI_BACKEND_GDB_ADDR_H

#include <stdbool.h>

#include "base/err.h"
#include "backend/net.h"

/* Is it a unix socket whose file does not exist? Does not connect, as that would stop the guest. */
bool uni_gdb_missing(const struct uni_net_addr *addr);

/* Connects within timeout_ms; *fd_ret is non-blocking and close-on-exec. */
int uni_gdb_connect(
	const struct uni_net_addr *addr, unsigned timeout_ms, int *fd_ret, struct uni_err *err);

/* The process that listens at the other end of a connected unix socket; 0: unknown. */
int uni_gdb_peer_pid(int fd);

#endif
