/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets in the notation of targets: unix=PATH or tcp=HOST:PORT. */
#ifndef UNI_BACKEND_NET_H
#define UNI_BACKEND_NET_H

#include <sys/socket.h>

#include "base/err.h"
#include "backend/spec.h"

#define UNI_NET_MAX 4

struct uni_net_addr {
	char text[300]; /* cleaned, for messages: "unix socket /run/g.sock" */
	int nr;		/* candidates, tried in order (a host name may have several) */
	struct {
		struct sockaddr_storage sa;
		socklen_t len;
	} at[UNI_NET_MAX];
};

/* Also looks up host names. */
int uni_net_parse(const struct uni_spec *spec, struct uni_net_addr *ret, struct uni_err *err);

/* The address of a unix socket with that path; spec is for messages. */
int uni_net_unix(const struct uni_spec *spec, const char *path, struct uni_net_addr *ret,
	struct uni_err *err);

/* Looks whether this user may connect to the unix socket at path, which is `what` of a VMM. */
int uni_net_check_path(const char *path, const char *what, struct uni_err *err);

/*
 * Connects within timeout_ms. Returns 0, and *fd_ret is non-blocking and close-on-exec; or an errno
 * (EAGAIN, ETIMEDOUT: nobody accepts).
 */
int uni_net_connect(const struct uni_net_addr *addr, unsigned timeout_ms, int *fd_ret);

#endif
