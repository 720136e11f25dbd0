/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

#define BIT(cap) (1u << (cap))
#define ROOTS	 (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_NET_BIND_SERVICE))

static struct __user_cap_header_struct cap_header(void)
{
	return (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
}

bool uni_privilege_has(void)
{
	struct __user_cap_header_struct h = cap_header();
	caps c = { 0 };

	return geteuid() == 0 ||
	       (syscall(SYS_capget, &h, c) == 0 && (c[0].effective != 0 || c[1].effective != 0));
}

int uni_privilege_drop(struct uni_err *err)
{
	struct __user_cap_header_struct h = cap_header();
	const unsigned keep = geteuid() == 0 ? ROOTS : 0;
	caps c = { 0 };
	bool ok = syscall(SYS_capget, &h, c) == 0;

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		c[i].effective &= i == 0 ? keep : 0;
		c[i].permitted &= i == 0 ? keep : 0;
		c[i].inheritable = 0;
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	ok = ok && syscall(SYS_capset, &h, c) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	return ok ? 0
		  : uni_err_set(err, UNI_EPERM, "cannot give up this process's rights: %s",
			    strerror(errno));
}
