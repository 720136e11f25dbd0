/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oracle_rows IMAGE...: compares our unwind rows with those that elfutils' libdw reads from the
 * same sections, at each place in the code where either changes. It checks each image, and this
 * program's own files (C library, dynamic loader). TAP.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/image.h"
#include "arch/cfi.h"

#define SHOWN 10

struct oracle {
	const struct uni_cfi_table *t;
	const struct uni_arch *arch;
	Dwarf_CFI *eh, *debug; /* NULL: none */
	unsigned long compared, wrong;
	unsigned shown;
};

static bool differ(struct oracle *o, uint64_t pc, const char *what, long ours, long theirs)
{
	o->wrong++;
	if (o->shown++ < SHOWN)
		printf("# 0x%llx: %s: %ld, want %ld\n", (unsigned long long)pc, what, ours, theirs);
	return false;
}

/* The offset of `call_frame_cfa [plus_uconst N | consts N plus]`; false if it is something else. */
static bool cfa_offset(const Dwarf_Op *ops, size_t n, long *ret)
{
	*ret = 0;
	if (n == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (n >= 2 && ops[1].atom == DW_OP_plus_uconst)
		*ret = (long)ops[1].number;
	return n == 1 || ops[1].atom == DW_OP_plus_uconst || ops[1].atom == DW_OP_stack_value;
}

static bool same_register(
	struct oracle *o, uint64_t pc, Dwarf_Frame *f, int reg, const struct uni_cfi_val *v)
{
	Dwarf_Op mem[3], *ops;
	bool is_value;
	size_t n;
	long off;

	if (dwarf_frame_register(f, reg, mem, &ops, &n) != 0)
		return differ(o, pc, "libdw's register", reg, 0);
	if (n == 0 && ops == NULL) /* a return address that stays in its register has its number */
		return v->how == UNI_CFI_SAME ||
		       (v->how == UNI_CFI_REG && v->reg == reg && v->arg == 0) ||
		       differ(o, pc, "rule", v->how, UNI_CFI_SAME);
	if (n == 0)
		return v->how == UNI_CFI_UNDEF || differ(o, pc, "rule", v->how, UNI_CFI_UNDEF);
	if (ops[0].atom == DW_OP_regx)
		return (v->how == UNI_CFI_REG && v->reg == ops[0].number) ||
		       differ(o, pc, "rule", v->how, UNI_CFI_REG);
	is_value = ops[n - 1].atom == DW_OP_stack_value;
	if (cfa_offset(ops, n, &off)) {
		if (v->how != (is_value ? UNI_CFI_IS_CFA : UNI_CFI_AT_CFA))
			return differ(o, pc, "rule", v->how, is_value);
		return v->arg == off || differ(o, pc, "offset", v->arg, off);
	}
	return v->how == UNI_CFI_AT_EXPR || v->how == UNI_CFI_IS_EXPR ||
	       differ(o, pc, "rule", v->how, UNI_CFI_AT_EXPR);
}

static bool same_cfa(struct oracle *o, uint64_t pc, Dwarf_Frame *f, const struct uni_cfi_val *v)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(f, &ops, &n) != 0 || n == 0)
		return differ(o, pc, "CFA, libdw has none", v->how, 0);
	if (n > 1 || (ops[0].atom != DW_OP_bregx))
		return v->how == UNI_CFI_IS_EXPR || differ(o, pc, "CFA", v->how, UNI_CFI_IS_EXPR);
	if (v->how != UNI_CFI_REG)
		return differ(o, pc, "CFA", v->how, UNI_CFI_REG);
	if (v->reg != ops[0].number)
		return differ(o, pc, "register of the CFA", v->reg, (long)ops[0].number);
	return v->arg == (long)ops[0].number2 ||
	       differ(o, pc, "offset of the CFA", v->arg, (long)ops[0].number2);
}

static bool same_others(struct oracle *o, uint64_t pc, Dwarf_Frame *f, const struct uni_cfi_rule *r)
{
	for (unsigned i = 0; i < r->nr_other; i++) {
		const struct uni_cfi_val *v = &o->t->other[r->other + i];

		if (!same_register(o, pc, f, v->of, v))
			return false;
	}
	return true;
}

static void compare(struct oracle *o, uint64_t pc, Dwarf_Frame *f, int ra, bool is_signal)
{
	const struct uni_cfi_rule *r = uni_cfi_find(o->t, pc);

	o->compared++;
	if (r == NULL) {
		(void)differ(o, pc, "no rule", 0, 1);
		return;
	}
	is_signal = is_signal && !uni_cfi_returns(o->arch, r, o->t->other + r->other);
	if (((r->flags & UNI_CFI_SIGNAL) != 0) != is_signal)
		(void)differ(o, pc, "signal frame", !is_signal, is_signal);
	/* An entry point: we say that nobody called it. */
	if (r->ra.how == UNI_CFI_UNDEF && r->cfa.arg == 0)
		return;
	if (same_cfa(o, pc, f, &r->cfa) && same_register(o, pc, f, ra, &r->ra) &&
		same_register(o, pc, f, o->arch->fp_reg, &r->fp))
		(void)same_others(o, pc, f, r);
}

/* The next pc at which our own rows change. */
static uint64_t next_row(const struct uni_cfi_table *t, uint64_t pc)
{
	for (uint32_t i = 0; i < t->nr_rows; i++) {
		if (t->base + t->row[i].start > pc)
			return t->base + t->row[i].start;
	}
	return UINT64_MAX;
}

/* All of one FDE's rows from pc on; returns where they end. */
static uint64_t check_at(struct oracle *o, uint64_t pc, uint64_t end)
{
	Dwarf_Addr start, stop = 0;
	Dwarf_Frame *f = NULL;
	bool is_signal;
	int ra;

	if (o->eh == NULL || dwarf_cfi_addrframe(o->eh, pc, &f) != 0)
		f = NULL;
	if (f == NULL && (o->debug == NULL || dwarf_cfi_addrframe(o->debug, pc, &f) != 0))
		f = NULL;
	if (f == NULL) {
		if (uni_cfi_find(o->t, pc) != NULL)
			(void)differ(o, pc, "a rule", 1, 0);
		return end;
	}
	ra = dwarf_frame_info(f, &start, &stop, &is_signal);
	compare(o, pc, f, ra, is_signal);
	free(f);
	return uni_min((uint64_t)stop, end);
}

static void check_code(struct oracle *o, uint64_t start, uint64_t size)
{
	uint64_t pc = start, last = start + (size - 1);

	while (pc >= start && pc <= last) {
		uint64_t row = next_row(o->t, pc);
		uint64_t next = check_at(o, pc, uni_min(row, last + 1));

		pc = next > pc ? next : pc + 1;
	}
}

static bool check_image(const char *path, struct oracle *o)
{
	const struct uni_unwind_hints *h;
	struct uni_image *img = NULL;
	struct uni_err err = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	Dwarf *dwarf = elf != NULL ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

	*o = (struct oracle){ 0 };
	if (elf == NULL || uni_image_load(path, &img, &err) != 0 ||
		uni_image_hints(img, 0, &h, &err) != 0) {
		printf("# %s: %s\n", path, err.msg);
		return false;
	}
	o->t = h->cfi;
	o->arch = uni_image_arch(img);
	o->eh = dwarf_getcfi_elf(elf);
	o->debug = dwarf != NULL ? dwarf_getcfi(dwarf) : NULL;
	for (size_t i = 0; o->t != NULL && i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *s = uni_image_segment(img, i);

		if (s->exec)
			check_code(o, s->vaddr, s->mem_size);
	}
	printf("# %s: %lu places, %lu wrong; %u rows, %u rules, %u others, %u operations\n", path,
		o->compared, o->wrong, o->t != NULL ? o->t->nr_rows : 0,
		o->t != NULL ? o->t->nr_rules : 0, o->t != NULL ? o->t->nr_others : 0,
		o->t != NULL ? o->t->nr_ops : 0);
	uni_image_destroy(img);
	if (o->eh != NULL)
		(void)dwarf_cfi_end(o->eh);
	(void)dwarf_end(dwarf);
	(void)elf_end(elf);
	(void)close(fd);
	return true;
}

/* The files with code in this process: PLT stubs, signal frames and hand-written code in them. */
static size_t own_files(char (*ret)[256], size_t cap)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	char line[512], path[256];
	size_t nr = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL && nr < cap) {
		char perms[8];

		if (sscanf(line, "%*s %7s %*s %*s %*s %255s", perms, path) == 2 &&
			strcmp(perms, "r-xp") == 0 && path[0] == '/')
			(void)snprintf(ret[nr++], sizeof(*ret), "%s", path);
	}
	return nr;
}

int main(int argc, char **argv)
{
	char own[16][256];
	size_t nr_own = own_files(own, uni_array_len(own));
	size_t nr = (size_t)argc - 1 + nr_own;
	struct oracle o;

	(void)elf_version(EV_CURRENT);
	printf("1..%zu\n", nr);
	for (size_t i = 0; i < nr; i++) {
		const char *path = i < nr_own ? own[i] : argv[1 + i - nr_own];
		bool ok = check_image(path, &o) && o.wrong == 0 && o.compared > 100;

		printf("%s %zu - %s\n", ok ? "ok" : "not ok", i + 1, path);
	}
	return 0;
}
