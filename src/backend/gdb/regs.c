/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/regs.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "backend/gdb/packet.h"

/* gdb's names of architectures (bfd's printable names) for ours. */
static const struct {
	const char *gdb, *ours;
} arch_names[] = {
	{ "i386:x86-64", "x86_64" },
	{ "aarch64", "aarch64" },
};

const struct uni_arch *uni_gdb_arch_of(const char *stub_name)
{
	for (size_t i = 0; i < uni_array_len(arch_names); i++) {
		if (strcmp(arch_names[i].gdb, stub_name) == 0)
			return uni_arch_by_name(arch_names[i].ours);
	}
	return NULL;
}

int uni_gdb_check_arch(const struct uni_arch *arch, const char *stub_name, struct uni_err *err)
{
	char clean[64];

	if (uni_gdb_arch_of(stub_name) == arch)
		return 0;
	(void)uni_text_clean(clean, sizeof(clean), stub_name, strlen(stub_name));
	return uni_err_set(err, UNI_EMISMATCH,
		"the gdb stub's guest is of architecture %s, expected was %s: is it the right "
		"guest and image?",
		clean, arch->name);
}

bool uni_gdb_xml_arch(const char *xml, char *out, size_t cap)
{
	static const char open[] = "<architecture>";
	const char *p = strstr(xml, open), *end;
	size_t len;

	if (p == NULL)
		return false;
	p += sizeof(open) - 1;
	end = strchr(p, '<');
	len = end != NULL ? (size_t)(end - p) : 0;
	if (len == 0 || len >= cap)
		return false;
	memcpy(out, p, len);
	out[len] = '\0';
	return true;
}

static bool get_register(
	const uint8_t *hex, size_t size, const struct uni_gdb_reg *reg, uint64_t *ret)
{
	uint8_t b[8];
	size_t at = (size_t)reg->offset * 2;

	if (reg->size > sizeof(b) || !uni_range_contains(0, size, at, (uint64_t)reg->size * 2) ||
		!uni_gdb_unhex(hex + at, size - at, b, reg->size))
		return false;
	*ret = 0;
	for (size_t i = reg->size; i-- > 0;)
		*ret = *ret << 8 | b[i];
	return true;
}

bool uni_gdb_reg_value(const uint8_t *hex, size_t size, uint64_t *ret)
{
	const struct uni_gdb_reg all = { .size = (uint8_t)uni_min(size / 2, (size_t)9) };

	return all.size != 0 && get_register(hex, size, &all, ret);
}

/* The number in the attribute regnum="N" of the tag that contains p. */
static bool parse_regnum(const char *p, uint32_t *ret)
{
	static const char key[] = " regnum=\"";
	const char *end = strchr(p, '>'), *at = strstr(p, key);
	uint64_t v = 0;

	if (end == NULL || at == NULL || at > end)
		return false;
	for (at += sizeof(key) - 1; *at >= '0' && *at <= '9' && v <= UINT16_MAX; at++)
		v = v * 10 + (uint64_t)(*at - '0');
	*ret = (uint32_t)v;
	return *at == '"' && at[-1] != '"';
}

bool uni_gdb_xml_reg(const char *xml, const char *name, uint32_t *ret)
{
	static const char open[] = "<reg name=\"";
	size_t len = strlen(name);

	for (const char *p = strstr(xml, open); p != NULL; p = strstr(p, open)) {
		p += sizeof(open) - 1;
		if (strncmp(p, name, len) == 0 && p[len] == '"')
			return parse_regnum(p + len + 1, ret);
	}
	return false;
}

int uni_gdb_regs(const struct uni_arch *arch, const uint8_t *hex, size_t size, bool with_sys,
	struct uni_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->state = UNI_VCPU_RUNNING;
	for (size_t i = 0; i < arch->nr_gdb_regs; i++) {
		const struct uni_gdb_reg *reg = &arch->gdb_regs[i];
		uint64_t v;

		if ((reg->sys && !with_sys) || !get_register(hex, size, reg, &v))
			continue;
		if (reg->sys)
			uni_regs_set_sys(ret, reg->number, v);
		else
			uni_regs_set(ret, reg->number, v);
	}
	ret->pc_valid = uni_regs_get(ret, arch->pc_reg, &ret->pc);
	ret->sp_valid = uni_regs_get(ret, arch->sp_reg, &ret->sp);
	if (!ret->pc_valid)
		return -UNI_EPROTO;
	if (arch->never_started != NULL && arch->never_started(ret))
		ret->state = UNI_VCPU_OFFLINE;
	return 0;
}
