/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VMM whose threads may be listed, and not be traced: the files in /proc open, and cannot be
 * read. Its vCPUs are not taken for paused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/kvm/vcpu.h"

/* Without any right of root's, as that user. */
static int give_up_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	return (int)syscall(SYS_capset, &head, none);
}

/* The way that the child looked at its parent: what it was told, as a status. */
static int look_at_parent(pid_t parent)
{
	struct uni_kvm_vcpu vcpu = { .id = 0, .fd = 3 };
	struct uni_kvm_late late = { .nr = 0 };
	struct uni_err err = { 0 };
	int rc;

	if (give_up_rights() != 0)
		return 100;
	rc = uni_kvm_find_threads(parent, &vcpu, 1, &late, NULL, &err);
	(void)fprintf(stderr, "# %s\n", err.msg);
	return rc > 0 || -rc > 90 ? 101 : -rc;
}

static void it_says_so(void **state)
{
	int status = 0;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip(); /* one user's processes trace each other, unless one has more rights */
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(look_at_parent(getppid()));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), UNI_EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
