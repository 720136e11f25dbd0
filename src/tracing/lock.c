/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/lock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TRIES 3 /* the owner may end between two looks */

/* An abstract name: it has no file, so that nothing is left of who was killed. */
static socklen_t name_of(
	const struct uni_target_info *info, const char *target, struct sockaddr_un *ret)
{
	char *name = ret->sun_path + 1;
	size_t cap = sizeof(ret->sun_path) - 1, len = strlen(target);

	if (info->pid > 0)
		(void)snprintf(name, cap, "uniscope-trace-pid-%d", info->pid);
	else if (info->domid != 0)
		(void)snprintf(name, cap, "uniscope-trace-xen-%u", info->domid);
	else /* of two names, the ends differ */
		(void)snprintf(name, cap, "uniscope-trace-%zu-%s", len,
			target + (len > 80 ? len - 80 : 0));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

/* Its process; 0: it cannot be told (yet, or any more). */
static int owner_of(const struct sockaddr_un *un, socklen_t len)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred who = { 0 };
	socklen_t size = sizeof(who);

	if (fd < 0 || connect(fd, (const struct sockaddr *)un, len) != 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
		return 0;
	return who.pid;
}

int uni_trace_own(
	const struct uni_target_info *info, const char *target, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = name_of(info, target, &un);
	char who[32] = "another process";
	int pid = 0, e = fd < 0 ? errno : EADDRINUSE;

	for (int i = 0; e == EADDRINUSE && pid == 0 && i < TRIES; i++) {
		if (bind(fd, (const struct sockaddr *)&un, len) == 0 && listen(fd, 1) == 0) {
			*fd_ret = uni_take_fd(&fd);
			return 0;
		}
		e = errno;
		pid = owner_of(&un, len);
	}
	if (e != EADDRINUSE)
		return uni_err_set(
			err, UNI_EIO, "cannot claim the guest for this trace: %s", strerror(e));
	if (pid > 0)
		(void)snprintf(who, sizeof(who), "process %d", pid);
	return uni_err_set(err, UNI_EBUSY,
		"the guest is being traced by %s: a second choice of functions would end the first",
		who);
}
