/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out which process listens at an address, and whether a client is connected there, without
 * connecting. QEMU stops the guest for each debugger that connects, and its monitor serves one
 * client at a time.
 */
#ifndef UNI_BACKEND_LISTENER_H
#define UNI_BACKEND_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/net.h"

/* The listener as this host's tables describe it; nothing is connected for that. */
struct uni_net_listener {
	bool local;	 /* found in this host's tables */
	bool has_client; /* a client is connected, or waits to be */
	uint64_t inode;	 /* of the listening socket */
	uint64_t client; /* inode of the listener's end of a unix connection; 0: none or unknown */
};

void uni_net_find_listener(const struct uni_net_addr *addr, struct uni_net_listener *ret);

/* The same for the path of a unix socket. */
void uni_net_find_unix(const char *path, struct uni_net_listener *ret);

/* The name that the listening unix socket with this inode was bound to; "": there is none. */
void uni_net_bound_name(uint64_t inode, char *ret, size_t cap);

/*
 * Does this process listen at the socket with this inode, and at another unix or TCP socket? False
 * also if it may not be looked into.
 */
bool uni_net_listens_beside(int pid, uint64_t inode);

/* The process that has this socket open: its pid, or 0 if none is visible. */
int uni_net_socket_owner(uint64_t inode);
/* The process at the other end of a unix connection to it: its pid, or 0 if none is visible. */
int uni_net_client_owner(const struct uni_net_listener *l);

#endif
