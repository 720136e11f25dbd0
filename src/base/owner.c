/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/owner.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/door.h"
#include "base/privilege.h"
#include "base/text.h"

bool uni_owner_force;

static bool is_sudo_caller(uid_t uid)
{
	const char *text = geteuid() == 0 || uni_door_is_used() ? getenv("SUDO_UID") : NULL;
	uint64_t v;

	return text != NULL && uni_parse_u64(text, &v) && v == uid;
}

bool uni_owner_is_ours(uid_t uid)
{
	return uid == 0 || uid == uni_privilege_caller() || is_sudo_caller(uid);
}

int uni_owner_check(int fd, const char *path, struct uni_err *err)
{
	struct stat st;

	if (uni_owner_force || fstat(fd, &st) != 0 ||
		(!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return 0;
	/* Or this process made it. */
	if (uni_owner_is_ours(st.st_uid) || st.st_uid == geteuid())
		return 0;
	return uni_err_set(err, UNI_EPERM,
		"%s belongs to neither you nor root; --force reads it all the same", path);
}
