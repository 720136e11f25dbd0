/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where KVM is a module its types are not among the kernel's own. libbpf finds them by asking the
 * kernel for the modules one by one, which only CAP_SYS_ADMIN may; the files below /sys/kernel/btf
 * anybody may read. So the module's types are put behind the kernel's, as if it were built in.
 */
#ifndef UNI_TARGET_KVM_BPF_BTF_H
#define UNI_TARGET_KVM_BPF_BTF_H

#include <stddef.h>

#include "base/err.h"

/*
 * split: BTF of a module, whose numbers of types and offsets of strings go on where those of base
 * end. *ret is owned by the caller: free() it. 0, -UNI_EFORMAT, -UNI_ENOMEM.
 */
int uni_btf_join(const void *base, size_t base_size, const void *split, size_t split_size,
	void **ret, size_t *size_ret);

/*
 * A file (of memory, close-on-exec) that describes this host's kernel with KVM in it. *fd_ret is
 * -1 where KVM is built in, so that nothing is to be joined, or where no module describes itself.
 */
int uni_btf_with_kvm(int *fd_ret, struct uni_err *err);

#endif
