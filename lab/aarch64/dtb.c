/* SPDX-License-Identifier: BSD-2-Clause */
/* Two things of the device tree (Devicetree Specification, chapter 5): /chosen/bootargs, /memory.
 */
#include "lab.h"
#include "cpu.h"

#define MAGIC	   0xd00dfeed
#define BEGIN_NODE 1
#define END_NODE   2
#define PROP	   3
#define NOP	   4

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

/* A property of a child of the root. virt gives addresses and sizes two cells each. */
static void property(
	const char *node, const char *name, const uint8_t *value, uint32_t len, uint64_t *ram_end)
{
	if (!lab_strcmp(node, "chosen") && !lab_strcmp(name, "bootargs"))
		lab_cmdline_init((const char *)value);
	if (!memcmp(node, "memory@", 7) && !lab_strcmp(name, "reg") && len >= 16)
		*ram_end = be64(value) + be64(value + 8);
}

void lab_dtb_read(uint64_t *ram_end_ret)
{
	const uint8_t *dtb = lab_phys(LAB_RAM_PA), *p;
	const char *strings, *node = "";
	unsigned depth = 0;

	*ram_end_ret = 0;
	if (be32(dtb) != MAGIC)
		lab_fail("no device tree at the start of RAM");
	p = dtb + be32(dtb + 8);
	strings = (const char *)dtb + be32(dtb + 12);
	for (;;) {
		uint32_t token = be32(p), len;

		p += 4;
		if (token == BEGIN_NODE) {
			if (++depth == 2)
				node = (const char *)p;
			p += (lab_strlen((const char *)p) + 4) & ~3ULL;
		} else if (token == END_NODE) {
			depth--;
		} else if (token == PROP) {
			len = be32(p);
			if (depth == 2)
				property(node, strings + be32(p + 4), p + 8, len, ram_end_ret);
			p += 8 + ((len + 3) & ~3U);
		} else if (token != NOP) {
			break;
		}
	}
	if (!*ram_end_ret)
		lab_fail("the device tree tells of no memory");
}
