/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/arch.h"

const struct uni_arch uni_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = 62, /* EM_X86_64 */
	.word = 8,
};
