/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "backend/vmm/qmp.h"

#define AGAIN_US 200000

int uni_gdb_switch_on(const char *qmp, int *fd_ret, bool *runs_ret, struct uni_err *err)
{
	_cleanup_close_ int theirs = -1;
	struct uni_qmp *q = NULL;
	int pair[2], rc = uni_qmp_open(qmp, 0, &q, err);

	if (rc != 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		uni_qmp_close(q);
		return uni_err_set(err, UNI_EIO, "gdb: no socket pair: %s", strerror(errno));
	}
	theirs = pair[1];
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	rc = uni_qmp_gdb_on(q, theirs, runs_ret, err);
	uni_qmp_close(q);
	if (rc == 0)
		*fd_ret = pair[0];
	else
		(void)close(pair[0]);
	return rc;
}

void uni_gdb_switch_off(const char *qmp, uint64_t until_ns)
{
	for (;;) {
		struct uni_err err = { 0 };
		struct uni_qmp *q = NULL;
		int rc = uni_qmp_open(qmp, 0, &q, &err);

		if (rc == 0)
			rc = uni_qmp_gdb_off(q);
		uni_qmp_close(q);
		if ((rc != -UNI_EBUSY && rc != -UNI_ETIMEDOUT) || uni_now_ns() >= until_ns)
			return;
		(void)usleep(AGAIN_US);
	}
}
