/* SPDX-License-Identifier: BSD-2-Clause */
/* The backends that a host without x86's registers has in place of kvm: and proc:. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "backend/target.h"

extern const struct uni_target_ops uni_target_kvm, uni_target_proc;

/* Whatever is asked of them, the answer names the hosts and what to do instead; nobody asks for an
 * image first. */
static void refuses(const struct uni_target_ops *ops, const char *target, const char *instead)
{
	const struct uni_attach_opts opts = { 0 };
	struct uni_target_info info;
	struct uni_target *t = NULL;
	struct uni_err err = { 0 };
	struct uni_spec spec;

	assert_int_equal(uni_spec_parse(target, &spec, &err), 0);
	assert_string_equal(spec.scheme, ops->scheme);
	assert_non_null(strstr(ops->summary, "x86_64 hosts only"));
	assert_null(ops->claims);
	assert_int_equal(ops->host_check(&err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, instead));
	err = (struct uni_err){ 0 };
	assert_non_null(ops->probe);
	assert_int_equal(ops->probe(&spec, &info, &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, target));
	assert_non_null(strstr(err.msg, "x86_64 hosts only"));
	assert_non_null(strstr(err.msg, instead));
	err = (struct uni_err){ 0 };
	assert_int_equal(ops->attach(&spec, &opts, &t, &err), -UNI_ENOTSUP);
	assert_non_null(strstr(err.msg, instead));
}

static void kvm_refuses(void **state)
{
	refuses(&uni_target_kvm, "kvm:pid=1", "gdb:");
}

static void proc_refuses(void **state)
{
	refuses(&uni_target_proc, "proc:pid=1", "perf record");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kvm_refuses),
		cmocka_unit_test(proc_refuses) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
