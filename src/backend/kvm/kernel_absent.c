/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without clang or libbpf. */
#include "backend/kvm/kernel.h"

const struct uni_kvm_kernel_ops *uni_kvm_kernel_ops(struct uni_err *err)
{
	(void)uni_err_set(err, UNI_ENOTSUP,
		"this build has no kernel-side sampler: clang or libbpf was missing "
		"(meson setup -Dbpf=enabled tells which)");
	return NULL;
}
