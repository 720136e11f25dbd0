/* SPDX-License-Identifier: BSD-2-Clause */
/* Built instead of the rest if KVM has no synchronized registers. */
#include "backend/target.h"

static int refuse_host(const struct uni_spec *spec, struct uni_err *err)
{
	return uni_err_set(err, UNI_ENOTSUP,
		"target %s: kvm: works on x86_64 hosts only; use the VMM's gdb stub (gdb:)",
		spec->text);
}

/* Before anybody is asked for an image. */
static int other_probe(
	const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	return refuse_host(spec, err);
}

static int other_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	return refuse_host(spec, err);
}

static int other_host_check(struct uni_err *err)
{
	return uni_err_set(
		err, UNI_ENOTSUP, "it reads x86 registers: use the VMM's gdb stub (gdb:)");
}

extern const struct uni_target_ops uni_target_kvm;
const struct uni_target_ops uni_target_kvm = {
	.scheme = "kvm",
	.summary = "any VMM that uses KVM (x86_64 hosts only: not on this one)",
	.keys = "pid=N",
	.host_check = other_host_check,
	.probe = other_probe,
	.attach = other_attach,
};
