/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/arch.h"

#include <string.h>

#include "base/checked.h"

static const struct uni_arch *const arches[] = { &uni_arch_x86_64, &uni_arch_aarch64 };

const struct uni_arch *uni_arch_by_elf_machine(unsigned machine)
{
	for (size_t i = 0; i < uni_array_len(arches); i++) {
		if (arches[i]->elf_machine == machine)
			return arches[i];
	}
	return NULL;
}

const struct uni_arch *uni_arch_by_name(const char *name)
{
	for (size_t i = 0; i < uni_array_len(arches); i++) {
		if (strcmp(arches[i]->name, name) == 0)
			return arches[i];
	}
	return NULL;
}

uint64_t uni_arch_keep_pc(const struct uni_regs *regs, uint64_t pc)
{
	return pc;
}

const struct uni_arch *uni_arch_of_host(void)
{
#if defined(__x86_64__)
	return &uni_arch_x86_64;
#elif defined(__aarch64__)
	return &uni_arch_aarch64;
#else
	return NULL;
#endif
}
