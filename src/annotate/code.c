/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotate/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/demangle.h"

#define SAME_NAME 8 /* functions that a message lists */

/* Reads one function. */
struct reader {
	const struct uni_image *img;
	struct uni_debug *debug;
	struct uni_code *c;
	struct uni_strtab *keys; /* of lines: number n is that of lines n - 1 */
};

static void name_symbol(
	const struct uni_image *img, const struct uni_symbol *sym, char *ret, size_t cap)
{
	const char *name = uni_image_sym_name(img, sym);

	if (!uni_demangle(name, ret, cap))
		(void)snprintf(ret, cap, "%s", name);
}

static uint32_t add_string(struct uni_code *c, const char *s)
{
	return s != NULL ? uni_strtab_add(c->strings, s, strlen(s)) : 0;
}

static uint32_t add_line(struct reader *r, const struct uni_place *place, size_t nr)
{
	struct uni_code *c = r->c;
	struct uni_code_line l = { .file = add_string(c, place[0].file), .line = place[0].line };
	char text[512];
	uint32_t key;

	if (nr > 1 && place[0].function != NULL)
		l.function = add_string(c, uni_demangle(place[0].function, text, sizeof(text))
						   ? text
						   : place[0].function);
	if (l.file == UNI_STR_NONE || l.function == UNI_STR_NONE)
		return UNI_CODE_NONE;
	(void)snprintf(
		text, sizeof(text), "%" PRIu32 ",%" PRIu32 ",%" PRIu32, l.file, l.line, l.function);
	key = uni_strtab_add(r->keys, text, strlen(text));
	if (key == UNI_STR_NONE || (key > c->lines.nr && !uni_vec_push(&c->lines, l)))
		return UNI_CODE_NONE;
	return key - 1;
}

static uint32_t line_at(struct reader *r, uint64_t svma)
{
	struct uni_place place[UNI_INLINE_MAX];
	struct uni_span span = { 0 };
	size_t nr;

	if (r->debug == NULL)
		return UNI_CODE_NONE;
	nr = uni_debug_lookup(r->debug, svma, place, &span);
	if (nr == 0 || place[0].file == NULL || place[0].line == 0)
		return UNI_CODE_NONE;
	r->c->has_lines = true;
	return add_line(r, place, nr);
}

/* "memcpy", or "memcpy+0x10" if it leads into a function's middle. */
static uint32_t name_target(struct reader *r, uint64_t target)
{
	const struct uni_symbol *to = uni_image_lookup(r->img, target);
	char name[512], text[560];

	if (to == NULL)
		return 0;
	name_symbol(r->img, to, name, sizeof(name));
	if (to->addr == target)
		return add_string(r->c, name);
	(void)snprintf(text, sizeof(text), "%s+0x%" PRIx64, name, target - to->addr);
	return add_string(r->c, text);
}

static int read_insns(struct reader *r, struct uni_disasm *d, const uint8_t *code)
{
	struct uni_code *c = r->c;

	for (uint64_t at = 0; at < c->size;) {
		struct uni_code_insn i = { .to = UNI_CODE_NONE };

		uni_disasm_one(d, code + at, (size_t)(c->size - at), c->addr + at, &i.insn);
		i.line = line_at(r, i.insn.addr);
		if (i.insn.target != 0 && (i.insn.kind == UNI_INSN_CALL ||
						  !uni_range_has(c->addr, c->size, i.insn.target)))
			i.callee = name_target(r, i.insn.target);
		if (i.callee == UNI_STR_NONE || !uni_vec_push(&c->insns, i))
			return -UNI_ENOMEM;
		at += i.insn.size;
	}
	return 0;
}

static void join_jumps(struct uni_code *c)
{
	uni_vec_foreach (i, &c->insns) {
		struct uni_code_insn *to = NULL;

		if (i->insn.kind == UNI_INSN_JUMP && i->insn.target != 0)
			to = uni_code_at(c, i->insn.target);
		if (to != NULL && to->insn.addr == i->insn.target)
			i->to = (uint32_t)(to - c->insns.v);
	}
}

int uni_code_read(const struct uni_image *img, const struct uni_symbol *sym,
	struct uni_debug *debug, struct uni_code *ret, struct uni_err *err)
{
	struct reader r = { .img = img, .debug = debug, .c = ret };
	_cleanup_free_ uint8_t *code = NULL;
	struct uni_disasm *d;
	int rc;

	*ret = (struct uni_code){ .addr = sym->addr, .size = sym->size };
	name_symbol(img, sym, ret->name, sizeof(ret->name));
	if (sym->size > UNI_CODE_MAX)
		return uni_err_set(err, UNI_ERANGE, "%s has %" PRIu64 " bytes: at most %" PRIu64,
			ret->name, sym->size, UNI_CODE_MAX);
	code = malloc((size_t)sym->size);
	ret->strings = uni_strtab_create();
	if (code == NULL || ret->strings == NULL)
		return uni_err_nomem(err);
	if (!uni_image_bytes(img, sym->addr, code, (size_t)sym->size))
		return uni_err_set(err, UNI_ERANGE, "%s has no code of %s in the file",
			uni_image_path(img), ret->name);
	rc = uni_disasm_open(uni_image_arch(img), &d, err);
	if (rc != 0)
		return rc;
	r.keys = uni_strtab_create();
	rc = r.keys != NULL ? read_insns(&r, d, code) : -UNI_ENOMEM;
	uni_strtab_destroy(r.keys);
	uni_disasm_close(d);
	if (rc != 0)
		return uni_err_nomem(err);
	join_jumps(ret);
	return 0;
}

void uni_code_deinit(struct uni_code *c)
{
	uni_strtab_destroy(c->strings);
	uni_vec_free(&c->insns);
	uni_vec_free(&c->lines);
	*c = (struct uni_code){ 0 };
}

const char *uni_code_string(const struct uni_code *c, uint32_t string)
{
	return string != 0 ? uni_strtab_get(c->strings, string) : NULL;
}

struct uni_code_insn *uni_code_at(struct uni_code *c, uint64_t svma)
{
	size_t low = 0, high = c->insns.nr;

	if (!uni_range_has(c->addr, c->size, svma))
		return NULL;
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (c->insns.v[mid].insn.addr <= svma)
			low = mid;
		else
			high = mid;
	}
	return high != 0 ? &c->insns.v[low] : NULL;
}

void uni_code_sum_lines(struct uni_code *c)
{
	uni_vec_foreach (i, &c->insns) {
		if (i->line != UNI_CODE_NONE)
			c->lines.v[i->line].self += i->self;
	}
}

/* In the source, or as the linker has it. */
static bool is_called(const char *linked, const char *name)
{
	char plain[512];

	return strcmp(linked, name) == 0 ||
	       (uni_demangle(linked, plain, sizeof(plain)) && strcmp(plain, name) == 0);
}

/* Is it a part or a clone of that function, "name.constprop.0"? */
static bool is_part_of(const char *linked, const char *name)
{
	size_t len = strlen(linked), source = uni_demangle_source_len(linked, len);
	char own[512];

	if (source == len || source >= sizeof(own))
		return false;
	memcpy(own, linked, source);
	own[source] = '\0';
	return is_called(own, name);
}

static size_t find_all(const struct uni_image *img, const char *name,
	bool (*fits)(const char *linked, const char *name), const struct uni_symbol **ret,
	size_t max)
{
	size_t nr = 0;

	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *s = uni_image_symbol(img, i);

		if (!fits(uni_image_sym_name(img, s), name))
			continue;
		if (nr < max)
			ret[nr] = s;
		nr++;
	}
	return nr;
}

size_t uni_code_find(
	const struct uni_image *img, const char *name, const struct uni_symbol **ret, size_t max)
{
	uint64_t addr, size;
	size_t nr = find_all(img, name, is_called, ret, max);

	/* An alias. */
	if (nr == 0 && max != 0 && uni_image_find(img, name, &addr, &size) == 0) {
		ret[0] = uni_image_lookup(img, addr);
		nr = ret[0] != NULL && ret[0]->addr == addr;
	}
	return nr != 0 ? nr : find_all(img, name, is_part_of, ret, max);
}

int uni_code_choose(const struct uni_image *img, const char *name, uint64_t bias,
	const struct uni_symbol **ret, struct uni_err *err)
{
	const struct uni_symbol *sym[SAME_NAME];
	char list[SAME_NAME * 24];
	size_t nr = uni_code_find(img, name, sym, SAME_NAME), n = 0;

	*ret = nr != 0 ? sym[0] : NULL;
	if (nr < 2)
		return 0;
	for (size_t i = 0; i < uni_min(nr, (size_t)SAME_NAME); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s0x%" PRIx64,
			i == 0 ? "" : ", ", sym[i]->addr + bias);
	return uni_err_set(err, UNI_EUSAGE, "%zu functions are called %s: give an address (%s%s)",
		nr, name, list, nr > SAME_NAME ? ", ..." : "");
}
