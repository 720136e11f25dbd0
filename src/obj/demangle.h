/* SPDX-License-Identifier: BSD-2-Clause */
/* What a linker's name is called in the source: C++, Rust (legacy and v0), OCaml. */
#ifndef UNI_OBJ_DEMANGLE_H
#define UNI_OBJ_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Without parameters and return types, with template arguments. False, and ret untouched, if the
 * name is not mangled, or if what it says is longer than cap. ret is clean text if name is.
 */
bool uni_demangle(const char *name, char *ret, size_t cap);

#endif
