/* SPDX-License-Identifier: BSD-2-Clause */
/* Built instead of the rest on hosts whose registers proc: does not know. */
#include "backend/target.h"

#define INSTEAD "`perf record` samples it, and `uniscope import` reads what `perf script` prints"

static int refuse_process(const struct uni_spec *spec, struct uni_err *err)
{
	return uni_err_set(err, UNI_ENOTSUP,
		"target %s: proc: works on x86_64 hosts only; " INSTEAD, spec->text);
}

static int no_proc_probe(
	const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	return refuse_process(spec, err);
}

static int no_proc_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	return refuse_process(spec, err);
}

static int no_proc_check(struct uni_err *err)
{
	return uni_err_set(err, UNI_ENOTSUP, "it reads x86 registers: " INSTEAD);
}

extern const struct uni_target_ops uni_target_proc;
const struct uni_target_ops uni_target_proc = {
	.scheme = "proc",
	.summary = "a unikernel that was built as a Linux process (x86_64 hosts only: not on this "
		   "one)",
	.keys = "pid=N",
	.host_check = no_proc_check,
	.probe = no_proc_probe,
	.attach = no_proc_attach,
};
