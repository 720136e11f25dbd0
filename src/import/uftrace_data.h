/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a folder of uftrace: each file's content, of which nothing is believed. */
#ifndef UNI_IMPORT_UFTRACE_DATA_H
#define UNI_IMPORT_UFTRACE_DATA_H

#include "import/stack.h"

struct uni_uftrace_symbol {
	uint64_t addr;
	uint32_t name; /* of strings */
};

struct uni_uftrace_map {
	uint64_t start, size;
	uint32_t path; /* of strings */
};

struct uni_uftrace_syms {
	struct uni_strtab *strings;
	UNI_VEC(struct uni_uftrace_map) maps;
	UNI_VEC(struct uni_uftrace_symbol) all;
	bool relative; /* addresses of symbols: to the beginning of their image */
};

/* false: out of memory. Deinit in any case. */
bool uni_uftrace_syms_init(struct uni_uftrace_syms *s);
void uni_uftrace_syms_deinit(struct uni_uftrace_syms *s);
/* The file `info`: false if it is none of uftrace's, or of a byte order or size we do not read. */
bool uni_uftrace_info(const char *data, size_t size, struct uni_uftrace_syms *s);
/* sid-*.map: lines as of /proc/PID/maps. false: out of memory. */
bool uni_uftrace_map(struct uni_uftrace_syms *s, const char *data, size_t size);
/* *.sym: "ADDRESS TYPE NAME" a line; base: where the image begins. false: out of memory. */
bool uni_uftrace_sym(struct uni_uftrace_syms *s, uint64_t base, const char *data, size_t size);
/* After the last of them. */
void uni_uftrace_syms_sort(struct uni_uftrace_syms *s);

/*
 * TID.dat: adds what each function took itself to the stack's profile. 0, -UNI_ENOMEM, or
 * -UNI_EFORMAT: bytes that are no records, from *at_ret on (what came before was added).
 */
int uni_uftrace_dat(struct uni_stack *stack, const struct uni_uftrace_syms *s, const char *data,
	size_t size, struct uni_import_stats *stats, size_t *at_ret);

#endif
