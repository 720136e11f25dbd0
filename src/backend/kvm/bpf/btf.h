/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * If KVM is a module, /sys/kernel/btf/kvm describes its structures, and continues the kernel's own
 * description. The loader library would ask the kernel for all modules' descriptions, which takes
 * CAP_SYS_ADMIN and time. Everybody can read both files.
 */
#ifndef UNI_BACKEND_KVM_BPF_BTF_H
#define UNI_BACKEND_KVM_BPF_BTF_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes one description of the kernel's and a module's: types and strings of the second get the
 * numbers after those of the first. The caller frees *ret with free(). 0, -UNI_EFORMAT,
 * -UNI_ENOMEM. Pure.
 */
int uni_kvm_btf_join(const uint8_t *base, size_t base_size, const uint8_t *module,
	size_t module_size, uint8_t **ret, size_t *size_ret);

/*
 * A file in memory with both, for bpf_object_open_opts.btf_custom_path (its path is in path_ret).
 * The caller closes it after loading. -1: KVM is no module here, and nothing is needed.
 */
int uni_kvm_btf_open(char *path_ret, size_t cap);

#endif
