/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/addr.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"

bool uni_gdb_missing(const struct uni_net_addr *addr)
{
	const struct sockaddr_un *un = (const void *)&addr->at[0].sa;

	return addr->nr != 0 && un->sun_family == AF_UNIX && un->sun_path[0] != '\0' &&
	       access(un->sun_path, F_OK) != 0 && errno == ENOENT;
}

static int connect_failed(const struct uni_net_addr *addr, int e, struct uni_err *err)
{
	switch (e) {
	case EAGAIN:
	case ETIMEDOUT:
		return uni_err_set(err, UNI_EBUSY,
			"gdb stub at %s does not accept us: a stub serves one debugger at a time, "
			"detach the other one",
			addr->text);
	case ENOENT:
	case ECONNREFUSED:
		return uni_err_set(err, UNI_ENOENT,
			"no gdb stub at %s (%s): start QEMU with -gdb "
			"unix:PATH,server=on,wait=off or -gdb tcp::PORT",
			addr->text, strerror(e));
	case EACCES:
	case EPERM:
		return uni_err_set(
			err, UNI_EPERM, "may not connect to %s: %s", addr->text, strerror(e));
	default:
		return uni_err_set(
			err, UNI_EIO, "cannot connect to %s: %s", addr->text, strerror(e));
	}
}

int uni_gdb_connect(
	const struct uni_net_addr *addr, unsigned timeout_ms, int *fd_ret, struct uni_err *err)
{
	int e = uni_net_connect(addr, timeout_ms, fd_ret);

	return e == 0 ? 0 : connect_failed(addr, e, err);
}

int uni_gdb_peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || cred.pid < 0)
		return 0;
	return uni_process_numbers_check(NULL) == 0 ? cred.pid : 0;
}
