/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose process is at the other end of a connection from this host. */
#ifndef UNI_SERVE_PEER_H
#define UNI_SERVE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * The user whose socket `peer` is, as the kernel has it (/proc/net/tcp, tcp6), of a connection to
 * our port on 127.0.0.1. False: it is not there, or was closed: a closed one is nobody's.
 */
bool uni_peer_uid(const struct sockaddr *peer, uint16_t port, uid_t *ret);

/* The same in a text of that form, for tests. `addr`: in network byte order, as is `port`. */
bool uni_peer_find(char *table, uint32_t addr, uint16_t port, uint16_t our_port, uid_t *ret);

#endif
