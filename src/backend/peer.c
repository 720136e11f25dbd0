/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/listener.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

struct question {
	struct nlmsghdr head;
	struct unix_diag_req req;
};

static int send_question(int fd, uint64_t inode)
{
	struct question q = {
		.head = { .nlmsg_len = sizeof(q),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST },
		.req = { .sdiag_family = AF_UNIX,
			.udiag_states = UINT32_MAX,
			.udiag_ino = (uint32_t)inode,
			.udiag_show = UDIAG_SHOW_PEER,
			.udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};

	return send(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q) ? 0 : -1;
}

/* The attribute with the peer's inode; 0: there is none. */
static uint32_t find_peer(const char *buf, size_t size)
{
	struct nlmsghdr head;
	struct rtattr a;
	uint32_t peer = 0;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, buf, sizeof(head));
	if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_len > size)
		return 0;
	for (size_t at = NLMSG_SPACE(sizeof(struct unix_diag_msg));
		at + sizeof(a) <= head.nlmsg_len; at += RTA_ALIGN(a.rta_len)) {
		memcpy(&a, buf + at, sizeof(a));
		if (a.rta_len < sizeof(a) || a.rta_len > head.nlmsg_len - at)
			return 0;
		if (a.rta_type == UNIX_DIAG_PEER && a.rta_len == RTA_LENGTH(sizeof(peer)))
			memcpy(&peer, buf + at + RTA_LENGTH(0), sizeof(peer));
	}
	return peer;
}

int uni_net_client_owner(const struct uni_net_listener *l)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	char buf[1024];
	ssize_t n;

	if (fd < 0 || l->client == 0 || send_question(fd, l->client) != 0)
		return 0;
	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT); /* the kernel has answered in send() */
	return n > 0 ? uni_net_socket_owner(find_peer(buf, (size_t)n)) : 0;
}
