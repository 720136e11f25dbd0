/* SPDX-License-Identifier: BSD-2-Clause */
/* The stubs by which a program calls functions of its libraries: no symbol names them. */
#ifndef UNI_OBJ_PLT_H
#define UNI_OBJ_PLT_H

#include <stdint.h>

#include "obj/elffile.h"

/*
 * Calls fn for each stub, with the name that objdump gives it: "puts@plt". Not cleaned, not NULL. A
 * result that is not 0 ends it and is returned. x86_64 only; of other files there are none.
 */
int uni_plt_each(const struct uni_elf *e,
	int (*fn)(void *ctx, uint64_t addr, uint64_t size, const char *name), void *ctx);

#endif
