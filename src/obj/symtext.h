/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol tables that other programs printed: nm (also with sizes), System.map, /proc/kallsyms,
 * objdump -t and -x, and the three columns "address flag name" that people cut out of the latter.
 */
#ifndef UNI_OBJ_SYMTEXT_H
#define UNI_OBJ_SYMTEXT_H

#include "obj/usym.h"

/*
 * Lines of another shape are passed over, so headers do no harm; a text without one function is
 * -UNI_EFORMAT. Undefined and absolute symbols are dropped. A symbol without a size reaches to the
 * next one, be it data, but no further than UNI_SYMTEXT_REACH; the last one to the end of the page
 * behind its own. Of several at one address: global before weak before local, then the shorter
 * name, then strcmp order. The id is a hash of addresses and names.
 */
#define UNI_SYMTEXT_REACH ((uint64_t)1 << 20)
int uni_symtab_of_text(const char *path, const void *data, size_t size, struct uni_symtab **ret,
	struct uni_err *err);
/*
 * The same, as older tools chose: of several at one address and of the same rank, the last line's.
 */
int uni_symtab_of_nm(const char *path, const void *data, size_t size, struct uni_symtab **ret,
	struct uni_err *err);

#endif
