/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "app/xl.h"
#include "backend/helper.h"

#define CREATE_NS (120 * UNI_NSEC_PER_SEC) /* as long as an `xl create` may take that goes on */
#define NAP_NS	  (500 * UNI_NSEC_PER_MSEC)

/* The other side is gone without a message: destroys the domain that it made. */
static void destroy_when_there(const char *name)
{
	uint64_t until_ns = uni_now_ns() + CREATE_NS, domid;
	struct timespec nap = uni_ns_timespec(NAP_NS);

	while (uni_now_ns() < until_ns) {
		int rc = uni_xl_domid(name, &domid, NULL);

		if (rc == -UNI_ENOTSUP || (rc == 0 && uni_xl_destroy(domid, NULL) == 0))
			return;
		(void)nanosleep(&nap, NULL);
	}
}

static _Noreturn void keeper_main(int sock, const char *name)
{
	struct pollfd p = { .events = POLLIN };
	sigset_t none;
	char c;

	uni_helper_begin("uni-guardian", &sock, 1);
	p.fd = sock;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	if (recv(sock, &c, 1, 0) == 1)
		_exit(0); /* all is well */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	destroy_when_there(name);
	_exit(0);
}

int uni_xl_keeper_start(struct uni_xl_keeper *k, const char *name, struct uni_err *err)
{
	int pair[2];

	*k = (struct uni_xl_keeper){ .sock = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return uni_err_set(err, UNI_EIO, "no socket pair: %s", strerror(errno));
	k->pid = fork();
	if (k->pid == 0)
		keeper_main(pair[1], name);
	(void)close(pair[1]);
	k->sock = pair[0];
	if (k->pid > 0)
		return 0;
	uni_xl_keeper_end(k);
	return uni_err_set(err, UNI_EIO,
		"no process that would destroy the domain if uniscope is killed: %s",
		strerror(errno));
}

void uni_xl_keeper_end(struct uni_xl_keeper *k)
{
	if (k->sock < 0)
		return;
	(void)send(k->sock, "", 1, MSG_NOSIGNAL);
	(void)close(k->sock);
	k->sock = -1;
	if (k->pid > 0)
		(void)waitpid(k->pid, NULL, 0);
}
