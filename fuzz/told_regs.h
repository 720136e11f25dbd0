/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_FUZZ_TOLD_REGS_H
#define UNI_FUZZ_TOLD_REGS_H

#include "arch/regs.h"
#include "told.h"

static inline void tell_regs(const struct uni_regs *r)
{
	told_u64(r->valid);
	for (unsigned i = 0; i < UNI_REG_MAX; i++)
		told_u64((r->valid >> i & 1) != 0 ? r->r[i] : 0);
	told_u64(r->pc_valid ? r->pc : 1);
	told_u64(r->sp_valid ? r->sp : 1);
	for (unsigned i = 0; i < UNI_SYS_MAX; i++)
		told_u64((r->sys_valid >> i & 1) != 0 ? r->sys[i] : 1);
	told_u64(r->state);
}

#endif
