/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who listens at an address, and who is connected there, without connecting: QEMU stops the guest
 * for each debugger that comes, and its monitor serves one client at a time.
 */
#ifndef UNI_BACKEND_LISTENER_H
#define UNI_BACKEND_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/net.h"

/* What this host's tables say about the listener, learnt without connecting. */
struct uni_net_listener {
	bool local;	 /* found in this host's tables */
	bool has_client; /* somebody is connected, or waits to be */
	uint64_t inode;	 /* of the listening socket */
};

void uni_net_find_listener(const struct uni_net_addr *addr, struct uni_net_listener *ret);

/* The same of a unix socket's path. */
void uni_net_find_unix(const char *path, struct uni_net_listener *ret);

/* The process that has this socket open: its pid, 0 if none can be seen. */
int uni_net_socket_owner(uint64_t inode);

#endif
