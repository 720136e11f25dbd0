/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol tables that other programs printed: nm (also with sizes), System.map, /proc/kallsyms,
 * objdump -t and -x. Also three columns "address flag name", which people cut out of the latter.
 */
#ifndef UNI_OBJ_SYMTEXT_H
#define UNI_OBJ_SYMTEXT_H

#include "obj/usym.h"

/*
 * Other lines are skipped, so headers do no harm; a text without a function is -UNI_EFORMAT.
 * Undefined and absolute symbols are dropped. A symbol without a size reaches to the next one (also
 * data), but no further than UNI_SYMTEXT_REACH. The last one reaches to the end of the page after
 * its own. Among several at one address, global goes before weak before local, then the shorter
 * name, then strcmp order. The id is a hash of addresses and names.
 */
#define UNI_SYMTEXT_REACH ((uint64_t)1 << 20)
int uni_symtab_of_text(const char *path, const void *data, size_t size, struct uni_symtab **ret,
	struct uni_err *err);
/* The same with the choice of older tools: among equals at one address, the last line counts. */
int uni_symtab_of_nm(const char *path, const void *data, size_t size, struct uni_symtab **ret,
	struct uni_err *err);

#endif
