/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

static struct __user_cap_header_struct cap_header(void)
{
	return (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
}

bool uni_caps_get(uint64_t *permitted_ret, uint64_t *effective_ret)
{
	struct __user_cap_header_struct h = cap_header();
	caps c = { 0 };

	if (syscall(SYS_capget, &h, c) != 0)
		return false;
	*permitted_ret = c[0].permitted | (uint64_t)c[1].permitted << 32;
	*effective_ret = c[0].effective | (uint64_t)c[1].effective << 32;
	return true;
}

static bool set_caps(uint64_t permitted, uint64_t effective, uint64_t inheritable)
{
	struct __user_cap_header_struct h = cap_header();
	caps c;

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		c[i].permitted = (uint32_t)(permitted >> (32 * i));
		c[i].effective = (uint32_t)(effective >> (32 * i));
		c[i].inheritable = (uint32_t)(inheritable >> (32 * i));
	}
	return syscall(SYS_capset, &h, c) == 0;
}

bool uni_caps_use(uint64_t effective)
{
	uint64_t permitted, before;

	return uni_caps_get(&permitted, &before) && set_caps(permitted, effective & permitted, 0);
}

bool uni_caps_give_up(void)
{
	return set_caps(0, 0, 0);
}

int uni_caps_keep(uint64_t keep, bool inherited, struct uni_err *err)
{
	uint64_t permitted = 0, effective = 0;
	bool ok = uni_caps_get(&permitted, &effective);

	keep &= permitted;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* A program may have to be found by these. */
	ok = ok && set_caps(keep, inherited ? keep : effective & keep, inherited ? keep : 0) &&
	     prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	/* Without ambient ones a user's program would have none, and says so. */
	for (unsigned cap = 0; ok && inherited && cap < 64; cap++) {
		if ((keep & 1ull << cap) != 0)
			(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	}
	return ok ? 0
		  : uni_err_set(err, UNI_EPERM, "cannot give up this process's rights: %s",
			    strerror(errno));
}
