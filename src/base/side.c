/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/side.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union fd_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool uni_side_send(int to, const void *data, size_t size, int fd)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	union fd_room room = { 0 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = room.bytes;
		m.msg_controllen = sizeof(room.bytes);
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&room.head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(to, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

bool uni_side_receive(int from, void *data, size_t size, int *fd_ret)
{
	struct iovec v = { .iov_base = data, .iov_len = size };
	union fd_room room = { 0 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof(room.bytes) };
	ssize_t n;

	*fd_ret = -1;
	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n > 0 && CMSG_FIRSTHDR(&m) != NULL && room.head.cmsg_type == SCM_RIGHTS &&
		room.head.cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd_ret, CMSG_DATA(&room.head), sizeof(*fd_ret));
	return n == (ssize_t)size;
}
