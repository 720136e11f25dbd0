/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "obj/sites.h"
#include "obj/sites_priv.h"

const uint8_t uni_site_free_entry[UNI_SITE_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
const uint8_t uni_site_free_exit[UNI_SITE_BYTES] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc };

uint64_t uni_site_rel32(uint64_t next, const uint8_t *rel32)
{
	uint32_t rel = (uint32_t)rel32[0] | (uint32_t)rel32[1] << 8 | (uint32_t)rel32[2] << 16 |
		       (uint32_t)rel32[3] << 24;

	return next + (uint64_t)(int64_t)(int32_t)rel;
}

uint64_t uni_site_goes_to(uint64_t addr, const uint8_t *bytes)
{
	return uni_site_rel32(addr + UNI_SITE_BYTES, bytes + 1);
}

bool uni_site_on(const struct uni_site *site, uint64_t bias, uint64_t hook,
	uint8_t ret[static UNI_SITE_BYTES])
{
	uint64_t rel = hook - (site->addr + bias + UNI_SITE_BYTES);

	if ((uint64_t)(int64_t)(int32_t)(uint32_t)rel != rel)
		return false;
	ret[0] = site->kind == UNI_SITE_ENTRY ? UNI_SITE_CALL : UNI_SITE_JUMP;
	for (int i = 0; i < 4; i++)
		ret[1 + i] = (uint8_t)(rel >> 8 * i);
	return true;
}

uint64_t uni_site_hook(
	const struct uni_site *site, uint64_t bias, const uint8_t bytes[static UNI_SITE_BYTES])
{
	if (bytes[0] != (site->kind == UNI_SITE_ENTRY ? UNI_SITE_CALL : UNI_SITE_JUMP))
		return 0;
	return uni_site_goes_to(site->addr + bias, bytes);
}

bool uni_site_is_on(const struct uni_sites *s, const struct uni_site *site,
	const uint8_t bytes[static UNI_SITE_BYTES])
{
	uint64_t hook = uni_site_hook(site, 0, bytes);

	if (site->kind == UNI_SITE_EXIT)
		return hook != 0 && hook == s->hook_exit;
	return hook != 0 && (hook == s->hook_entry || hook == s->hook_entry_any);
}

void uni_site_free_bytes(const struct uni_site *site, uint8_t ret[static UNI_SITE_BYTES])
{
	const uint8_t *from =
		site->kind == UNI_SITE_ENTRY ? uni_site_free_entry : uni_site_free_exit;

	memcpy(ret, site->state == UNI_SITE_FREE ? site->off : from, UNI_SITE_BYTES);
}

void uni_sites_destroy(struct uni_sites *s)
{
	if (s == NULL)
		return;
	free(s->site);
	free(s->function);
	free(s);
}

const struct uni_site_function *uni_sites_at(const struct uni_sites *s, uint64_t addr)
{
	size_t lo = 0, hi = s->nr_functions;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->function[mid].addr == addr)
			return &s->function[mid];
		if (s->function[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}
