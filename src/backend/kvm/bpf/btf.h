/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel describes some 100,000 types, and the loader library looks at each of them for each
 * type that a program names. So it gets a description of those alone.
 *
 * If KVM is a module, /sys/kernel/btf/kvm describes its structures, and continues the kernel's own
 * description. The library would ask the kernel for all modules' descriptions, which takes
 * CAP_SYS_ADMIN and time. Everybody can read both files.
 */
#ifndef UNI_BACKEND_KVM_BPF_BTF_H
#define UNI_BACKEND_KVM_BPF_BTF_H

#include <stddef.h>
#include <stdint.h>

struct btf;

/* A type of the kernel proper that programs give to the kernel by its number. */
#define UNI_KVM_BTF_NUMBERED "pt_regs"

/*
 * Makes a description of the types in kernel that have a name that programs have, too (name___form
 * stands for name), and of what they contain. Pointers point to void. UNI_KVM_BTF_NUMBERED keeps
 * its number, others do not. The caller frees it with btf__free(). NULL: no memory, or kernel is
 * damaged.
 */
struct btf *uni_kvm_btf_cut(const struct btf *kernel, const struct btf *programs);

/*
 * Writes what this kernel has of the types that programs name to a file, for
 * bpf_object_open_opts.btf_custom_path. -1: it cannot be done.
 */
int uni_kvm_btf_write(int fd, const struct btf *programs);

#endif
