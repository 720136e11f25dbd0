/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned strings: equal bytes, equal number. Number 0 is always the empty string. */
#ifndef UNI_BASE_STRTAB_H
#define UNI_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#define UNI_STR_NONE UINT32_MAX

struct uni_strtab;

struct uni_strtab *uni_strtab_create(void); /* NULL: out of memory */
void uni_strtab_destroy(struct uni_strtab *t);
/* Adds the string if it is new. Returns its number, or UNI_STR_NONE when out of memory. */
uint32_t uni_strtab_add(struct uni_strtab *t, const char *s, size_t len);
/* The string's number, or UNI_STR_NONE if it is not there. */
uint32_t uni_strtab_find(const struct uni_strtab *t, const char *s, size_t len);
/* Borrowed, NUL-terminated, valid as long as the table. "" for a number out of range. */
const char *uni_strtab_get(const struct uni_strtab *t, uint32_t id);
size_t uni_strtab_len(const struct uni_strtab *t, uint32_t id);
uint32_t uni_strtab_nr(const struct uni_strtab *t);

#endif
