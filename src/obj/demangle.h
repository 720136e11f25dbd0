/* SPDX-License-Identifier: BSD-2-Clause */
/* From a linker's name to the name in the source: C++, Rust (legacy and v0), OCaml. */
#ifndef UNI_OBJ_DEMANGLE_H
#define UNI_OBJ_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * With template arguments, but without parameters and return types. False if the name is not
 * mangled, or if the result is longer than cap; then ret is unchanged. ret is clean text if name
 * is.
 */
bool uni_demangle(const char *name, char *ret, size_t cap);
/* As it stands in front of a class of that function: with its parameters. */
bool uni_demangle_scope(const char *name, char *ret, size_t cap);
/* Length of the name without what compilers append to the parts and clones of a function:
 * ".constprop.0", ".cold". */
size_t uni_demangle_source_len(const char *name, size_t len);
/*
 * Is this linker's name that of an OCaml function without a name (camlMain.fun_787)? Only a line of
 * the source tells a reader which one it is.
 */
bool uni_demangle_is_anonymous(const char *name);

#endif
