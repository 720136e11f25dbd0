/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF: whatever opens must answer each address in bounded time, with clean strings and a span
 * that holds the address. The same for parameters of functions and members of structures.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "obj/members.h"
#include "obj/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_text(const char *s)
{
	char clean[UNI_TEXT_MAX];

	if (s == NULL)
		return;
	require(strlen(s) < UNI_TEXT_MAX);
	require(uni_text_clean(clean, sizeof(clean), s, strlen(s)) == strlen(s));
	require(strcmp(clean, s) == 0);
}

static void check_address(struct uni_debug *d, uint64_t addr)
{
	struct uni_place place[UNI_INLINE_MAX];
	struct uni_span span;
	const char *text;
	size_t n = uni_debug_lookup(d, addr, place, &span);

	require(n <= UNI_INLINE_MAX);
	require(n == 0 || uni_range_has(span.start, span.size, addr));
	for (size_t i = 0; i < n; i++) {
		check_text(place[i].function);
		check_text(place[i].file);
		if (place[i].file != NULL && (text = uni_debug_source(d, place[i].file)) != NULL)
			require(strlen(text) != 0);
	}
}

static void check_param(const struct uni_param *p)
{
	check_text(p->name);
	require(p->form <= UNI_PARAM_POINTER && p->size <= 8);
	require(p->reg >= UNI_PARAM_NO_REG && p->reg < 8);
}

static void check_params(struct uni_debug *d, uint64_t addr)
{
	struct uni_params p;

	if (uni_debug_params(d, addr, &p) != 0)
		return;
	require(p.nr <= UNI_PARAMS_MAX);
	for (size_t i = 0; i < p.nr; i++)
		check_param(&p.param[i]);
	if (p.returns)
		check_param(&p.value);
}

static void check_members(struct uni_debug *d)
{
	struct uni_member m[] = { { .path = "a" }, { .path = "b.a", .optional = true },
		{ .path = "next.next", .optional = true } };
	static const char *const tags[] = { "s", "node", "" };

	for (size_t i = 0; i < uni_array_len(tags); i++) {
		if (uni_debug_members(d, tags[i], m, uni_array_len(m), NULL) != 0)
			continue;
		for (size_t k = 0; k < uni_array_len(m); k++)
			require(!m[k].found || m[k].offset <= UNI_MEMBER_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_debug *d;
	struct uni_err err = { 0 };

	if (uni_debug_from_memory("fuzz", data, size, &d, &err) != 0)
		return 0;
	for (uint64_t a = 0; a < 0x400; a += 3) {
		check_address(d, 0x1000 + a);
		check_address(d, a * 0x40000000000000);
		check_params(d, 0x1000 + a);
	}
	uni_debug_load_all(d);
	check_members(d);
	check_address(d, UINT64_MAX);
	uni_debug_destroy(d);
	return 0;
}
