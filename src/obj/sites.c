/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/sites.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/objfile.h"
#include "obj/sites_priv.h"

#define ENDBR	4 /* bytes of it */
#define UNKNOWN UINT32_MAX

struct found {
	struct uni_site site;
	uint32_t function; /* index into functions, or UNKNOWN */
};

struct finder {
	const struct uni_image *img;
	struct uni_sites *out;
	UNI_VEC(struct uni_site_function) functions;
	UNI_VEC(struct found) found;
	uint32_t *by_name; /* indices of functions, sorted by name */
};

/* One instruction of five bytes that does nothing; the last byte is a displacement. */
static bool is_nop(const uint8_t *b)
{
	return (b[0] == 0x0f && b[1] == 0x1f && b[2] == 0x44 && b[3] == 0x00) ||
	       (b[0] == 0x66 && b[1] == 0x0f && b[2] == 0x1f && b[3] == 0x40);
}

static bool is_nops(const uint8_t *b)
{
	static const uint8_t nops[UNI_SITE_BYTES] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

	return memcmp(b, nops, sizeof(nops)) == 0;
}

/* A site that `trace prepare --on` switched on. */
static bool is_switched_on(const struct finder *f, struct uni_site *s)
{
	if (!uni_site_is_on(f->out, s, s->off))
		return false;
	memcpy(s->off, s->kind == UNI_SITE_ENTRY ? uni_site_free_entry : uni_site_free_exit,
		UNI_SITE_BYTES);
	return true;
}

static bool entry_state(const struct finder *f, struct uni_site *s)
{
	if (!uni_image_bytes(f->img, s->addr, s->off, UNI_SITE_BYTES))
		return false;
	if (is_nop(s->off) || is_switched_on(f, s))
		s->state = UNI_SITE_FREE;
	else if (is_nops(s->off))
		s->state = UNI_SITE_PIECES;
	else if (s->off[0] == UNI_SITE_CALL)
		s->state = UNI_SITE_JUMPS;
	else
		return false;
	return true;
}

static bool exit_state(const struct finder *f, struct uni_site *s)
{
	if (!uni_image_bytes(f->img, s->addr, s->off, UNI_SITE_BYTES))
		return false;
	if (memcmp(s->off, uni_site_free_exit, UNI_SITE_BYTES) == 0 || is_switched_on(f, s))
		s->state = UNI_SITE_FREE;
	else if (s->off[0] == UNI_SITE_JUMP && uni_site_goes_to(s->addr, s->off) == f->out->thunk)
		s->state = UNI_SITE_JUMPS;
	else
		return false;
	return true;
}

/* --- entries: what makes a function ------------------------------------------------------------
 */

/* False: out of memory. Leaves out an entry that is not at a function's start. */
static bool add_entry(struct finder *f, uint64_t addr)
{
	const struct uni_symbol *sym = uni_image_lookup(f->img, addr);
	struct found found = { .site = { .addr = addr, .kind = UNI_SITE_ENTRY } };
	struct uni_site_function fn;

	if (sym == NULL || (addr != sym->addr && addr != sym->addr + ENDBR) ||
		!uni_range_contains(sym->addr, sym->size, addr, UNI_SITE_BYTES) ||
		f->functions.nr == UNKNOWN || !entry_state(f, &found.site)) {
		f->out->nr_foreign++;
		return true;
	}
	fn = (struct uni_site_function){ .addr = sym->addr,
		.size = sym->size,
		.name = uni_image_sym_name(f->img, sym),
		.low = (uint8_t)((addr + UNI_SITE_BYTES) & 15) };
	found.function = (uint32_t)f->functions.nr;
	return uni_vec_push(&f->functions, fn) && uni_vec_push(&f->found, found);
}

static int compare_addrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Adds the entries in order of address, so that functions are sorted; each once. */
static bool add_entries(struct finder *f, uni_site_addrs *entries)
{
	const struct uni_symbol *last = NULL;

	if (entries->nr != 0)
		qsort(entries->v, entries->nr, sizeof(entries->v[0]), compare_addrs);
	uni_vec_foreach (addr, entries) {
		const struct uni_symbol *sym = uni_image_lookup(f->img, *addr);

		if (sym != NULL && sym == last)
			continue;
		last = sym;
		if (!add_entry(f, *addr))
			return false;
	}
	return true;
}

/* Without a table: a function that begins with a 5-byte nop was compiled for tracing. */
static bool guess_entries(struct finder *f, uni_site_addrs *entries)
{
	static const uint8_t endbr[ENDBR] = { 0xf3, 0x0f, 0x1e, 0xfa };

	for (size_t i = 0; i < uni_image_nr_symbols(f->img); i++) {
		const struct uni_symbol *sym = uni_image_symbol(f->img, i);
		uint64_t at = sym->addr;
		uint8_t b[UNI_SITE_BYTES];

		if (uni_image_bytes(f->img, at, b, ENDBR) && memcmp(b, endbr, ENDBR) == 0)
			at += ENDBR;
		if (!uni_image_bytes(f->img, at, b, sizeof(b)) || !(is_nop(b) || is_nops(b)))
			continue;
		if (!uni_vec_push(entries, at))
			return false;
	}
	return true;
}

/* --- exits -------------------------------------------------------------------------------------
 */

static uint32_t function_at(const struct finder *f, uint64_t addr)
{
	size_t lo = 0, hi = f->functions.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->functions.v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo != 0 && f->functions.v[lo - 1].addr == addr ? (uint32_t)(lo - 1) : UNKNOWN;
}

static int compare_names(const void *a, const void *b, void *arg)
{
	const struct finder *f = arg;

	return strcmp(f->functions.v[*(const uint32_t *)a].name,
		f->functions.v[*(const uint32_t *)b].name);
}

static bool sort_names(struct finder *f)
{
	f->by_name = calloc(f->functions.nr + 1, sizeof(f->by_name[0]));
	if (f->by_name == NULL)
		return false;
	for (size_t i = 0; i < f->functions.nr; i++)
		f->by_name[i] = (uint32_t)i;
	qsort_r(f->by_name, f->functions.nr, sizeof(f->by_name[0]), compare_names, f);
	return true;
}

/* Index in by_name of the first function of that name, or the number of functions. */
static size_t first_named(const struct finder *f, const char *name, size_t len)
{
	size_t lo = 0, hi = f->functions.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const char *other = f->functions.v[f->by_name[mid]].name;
		int order = strncmp(other, name, len);

		if (order < 0)
			lo = mid + 1;
		else
			hi = mid; /* equal up to the length of `name`: the exact name comes first */
	}
	return lo;
}

static bool is_named(const struct finder *f, size_t i, const char *name, size_t len)
{
	const char *other;

	if (i >= f->functions.nr)
		return false;
	other = f->functions.v[f->by_name[i]].name;
	return strncmp(other, name, len) == 0 && other[len] == '\0';
}

/*
 * Finds the function of an unlikely part, which GCC puts elsewhere as NAME.cold. If two functions
 * have that name, the part may belong to either, so for neither are all exits known.
 */
static uint32_t parent_of(struct finder *f, const char *cold)
{
	const char *end = strstr(cold, ".cold");
	size_t len, i;

	if (end == NULL)
		return UNKNOWN;
	len = (size_t)(end - cold);
	i = first_named(f, cold, len);
	if (!is_named(f, i, cold, len))
		return UNKNOWN;
	if (!is_named(f, i + 1, cold, len))
		return f->by_name[i];
	for (; is_named(f, i, cold, len); i++)
		f->functions.v[f->by_name[i]].exits_known = false;
	return UNKNOWN;
}

static bool add_exit(struct finder *f, uint64_t addr)
{
	const struct uni_symbol *sym = uni_image_lookup(f->img, addr);
	struct found found = { .site = { .addr = addr, .kind = UNI_SITE_EXIT } };

	if (sym == NULL)
		return true;
	found.function = function_at(f, sym->addr);
	if (found.function == UNKNOWN)
		found.function = parent_of(f, uni_image_sym_name(f->img, sym));
	if (found.function == UNKNOWN) {
		f->out->nr_foreign++; /* in a function that cannot be traced */
		return true;
	}
	if (!uni_range_contains(sym->addr, sym->size, addr, UNI_SITE_BYTES) ||
		!exit_state(f, &found.site)) {
		/* For example a conditional jump: the function cannot be traced with its exits. */
		f->functions.v[found.function].exits_known = false;
		f->out->nr_foreign++;
		return true;
	}
	return uni_vec_push(&f->found, found);
}

static const uint8_t *code_at(const struct finder *f, uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < uni_image_nr_segments(f->img); i++) {
		const struct uni_segment *seg = uni_image_segment(f->img, i);

		if (seg->exec && uni_range_contains(seg->vaddr, seg->file_size, addr, size))
			return seg->bytes + (addr - seg->vaddr);
	}
	return NULL;
}

static bool is_found(const struct finder *f, uint64_t addr)
{
	size_t lo = 0, hi = f->found.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->found.v[mid].site.addr == addr)
			return true;
		if (f->found.v[mid].site.addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* Finds possible jumps to the thunk without a relocation, which the assembler did not need. */
static bool has_strays(const struct finder *f, const struct uni_symbol *sym)
{
	const uint8_t *code = code_at(f, sym->addr, sym->size);
	uint64_t thunk = f->out->thunk;

	for (uint64_t i = 1; code != NULL && i < sym->size; i++) {
		uint64_t at = sym->addr + i;
		uint8_t op = code[i - 1];

		if ((op == 0xeb || (op & 0xf0) == 0x70) &&
			at + 1 + (uint64_t)(int64_t)(int8_t)code[i] == thunk)
			return true;
		if (sym->size - i >= 4 && uni_site_rel32(at + 4, code + i) == thunk &&
			!is_found(f, at - 1))
			return true;
	}
	return false;
}

/* found is sorted by address. */
static void doubt_strays(struct finder *f)
{
	for (size_t i = 0; f->out->relocations && i < uni_image_nr_symbols(f->img); i++) {
		const struct uni_symbol *sym = uni_image_symbol(f->img, i);
		uint32_t owner = function_at(f, sym->addr);

		if (owner == UNKNOWN)
			owner = parent_of(f, uni_image_sym_name(f->img, sym));
		if (owner != UNKNOWN && f->functions.v[owner].exits_known && has_strays(f, sym))
			f->functions.v[owner].exits_known = false;
	}
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->site.kind != y->site.kind)
		return x->site.kind < y->site.kind ? -1 : 1;
	return x->site.addr < y->site.addr ? -1 : x->site.addr > y->site.addr;
}

static int compare_by_addr(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->site.addr < y->site.addr ? -1 : x->site.addr > y->site.addr;
}

/*
 * Two sites must not share a byte. The same site twice counts once; otherwise the file is wrong
 * about both functions.
 */
static void drop_overlaps(struct finder *f)
{
	size_t to = 0;

	if (f->found.nr == 0)
		return;
	qsort(f->found.v, f->found.nr, sizeof(f->found.v[0]), compare_by_addr);
	for (size_t i = 0; i < f->found.nr; i++) {
		const struct found *cur = &f->found.v[i], *prev = &f->found.v[to - (to != 0)];

		if (to == 0 || cur->site.addr - prev->site.addr >= UNI_SITE_BYTES) {
			f->found.v[to++] = *cur;
			continue;
		}
		if (cur->site.addr == prev->site.addr && cur->site.kind == prev->site.kind)
			continue;
		f->functions.v[cur->function].exits_known = false;
		f->functions.v[prev->function].exits_known = false;
		f->out->nr_foreign++;
	}
	f->found.nr = to;
	doubt_strays(f);
	qsort(f->found.v, f->found.nr, sizeof(f->found.v[0]), compare_found);
}

static int hand_out(struct finder *f, struct uni_err *err)
{
	struct uni_sites *s = f->out;
	size_t to = 0;

	s->site = calloc(f->found.nr + 1, sizeof(s->site[0]));
	if (s->site == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory for %zu sites", f->found.nr);
	for (size_t i = 0; i < f->found.nr; i++) {
		struct uni_site_function *fn = &f->functions.v[f->found.v[i].function];

		if (fn->nr++ == 0)
			fn->first = (uint32_t)i;
		fn->pieces |= f->found.v[i].site.state == UNI_SITE_PIECES;
		s->site[i] = f->found.v[i].site;
	}
	s->nr_sites = f->found.nr;
	/* A function whose entry overlapped another site is not traced. */
	for (size_t i = 0; i < f->functions.nr; i++) {
		const struct uni_site_function *fn = &f->functions.v[i];

		if (fn->nr != 0 && s->site[fn->first].kind == UNI_SITE_ENTRY)
			f->functions.v[to++] = *fn;
	}
	s->nr_functions = to;
	s->function = f->functions.v;
	f->functions.v = NULL;
	f->functions.nr = f->functions.cap = 0;
	return 0;
}

static int assemble_sites(struct finder *f, struct uni_site_places *p, struct uni_err *err)
{
	bool ok = p->entries.nr != 0 || guess_entries(f, &p->entries);

	f->out->thunk = p->thunk;
	f->out->relocations = p->exits.nr != 0;
	ok = ok && add_entries(f, &p->entries) && sort_names(f);
	for (size_t i = 0; i < f->functions.nr; i++)
		f->functions.v[i].exits_known = f->out->relocations;
	for (size_t i = 0; ok && i < p->exits.nr; i++)
		ok = add_exit(f, p->exits.v[i]);
	if (!ok)
		return uni_err_set(err, UNI_ENOMEM, "out of memory looking for places to trace");
	drop_overlaps(f);
	if (f->functions.nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no function that can be traced: compile with -pg -mfentry "
			"-mnop-mcount -mrecord-mcount or -fpatchable-function-entry=5, with "
			"-mfunction-return=thunk-extern, and link with --emit-relocs",
			uni_image_path(f->img));
	return hand_out(f, err);
}

static void finder_deinit(struct finder *f)
{
	uni_vec_free(&f->functions);
	uni_vec_free(&f->found);
	free(f->by_name);
}

static uint64_t find_hook(const struct uni_image *img, const char *name)
{
	uint64_t addr, size;

	return uni_image_find(img, name, &addr, &size) == 0 ? addr : 0;
}

/* elf: the files to search; the first file that has sites is used. */
static int find_sites(const struct uni_image *img, const struct uni_elf *const *elf, size_t nr,
	struct uni_sites **ret, struct uni_err *err)
{
	_cleanup_(uni_site_places_deinit) struct uni_site_places p = { 0 };
	_cleanup_(finder_deinit) struct finder f = { .img = img };
	uint64_t size;
	int rc;

	if (uni_image_machine(img) != EM_X86_64)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: calls can be traced in code for x86_64 only", uni_image_path(img));
	if (uni_image_find(img, "__x86_return_thunk", &p.thunk, &size) != 0)
		p.thunk = 0;
	for (size_t i = 0; i < nr && (p.entries.nr == 0 || p.exits.nr == 0); i++) {
		if (!uni_site_places_read(img, elf[i], &p))
			return uni_err_set(err, UNI_ENOMEM, "out of memory reading relocations");
	}
	f.out = calloc(1, sizeof(*f.out));
	if (f.out == NULL)
		return uni_err_nomem(err);
	f.out->hook_entry = find_hook(img, "uni_trace_entry");
	f.out->hook_entry_any = find_hook(img, "uni_trace_entry_any");
	f.out->hook_exit = find_hook(img, "uni_trace_exit");
	rc = assemble_sites(&f, &p, err);
	if (rc == 0)
		*ret = f.out;
	else
		uni_sites_destroy(f.out);
	return rc;
}

int uni_sites_read(const struct uni_image *img, struct uni_sites **ret, struct uni_err *err)
{
	_cleanup_(uni_objfile_deinit) struct uni_objfile code = { 0 };
	_cleanup_(uni_objfile_deinit) struct uni_objfile symbols = { 0 };
	const struct uni_elf *const elf[] = { &code.elf, &symbols.elf };
	bool two = strcmp(uni_image_path(img), uni_image_symbol_path(img)) != 0;
	int rc = uni_objfile_load(uni_image_path(img), &code, err);

	if (rc == 0 && two)
		rc = uni_objfile_load(uni_image_symbol_path(img), &symbols, err);
	return rc != 0 ? rc : find_sites(img, elf, two ? 2 : 1, ret, err);
}

int uni_sites_from_memory(const struct uni_image *img, void *data, size_t size,
	struct uni_sites **ret, struct uni_err *err)
{
	struct uni_elf e = { 0 };
	const struct uni_elf *const elf[] = { &e };
	int rc = uni_elf_open(uni_image_path(img), data, size, &e, err);

	if (rc != 0)
		return rc;
	rc = find_sites(img, elf, 1, ret, err);
	uni_elf_close(&e);
	return rc;
}
