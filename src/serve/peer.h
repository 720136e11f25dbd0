/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the user whose process is at the other end of a connection from this host. */
#ifndef UNI_SERVE_PEER_H
#define UNI_SERVE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * Finds the owner of the socket `peer`, which is connected to our port on 127.0.0.1, in
 * /proc/net/tcp and tcp6. False: it is not there, or was closed; a closed socket has no owner.
 */
bool uni_peer_uid(const struct sockaddr *peer, uint16_t port, uid_t *ret);

#endif
