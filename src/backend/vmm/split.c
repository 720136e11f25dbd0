/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/split.h"

#include <string.h>

#include "base/checked.h"

#define GIB (1ull << 30)

/*
 * QEMU's machines are in hw/i386/{pc_piix,pc_q35,microvm}.c. If RAM is smaller than `fits`, all of
 * it is below the hole; otherwise `low` is.
 */
static const struct rule {
	const char *vmm, *machine; /* start of its name */
	uint64_t fits, low;
	bool goes_on;
} rules[] = {
	{ "qemu", "pc-q35", 0xb0000000, 2 * GIB, true },
	{ "qemu", "q35", 0xb0000000, 2 * GIB, true },
	{ "qemu", "microvm", 3 * GIB, 3 * GIB, true },
	{ "qemu", "pc", 0xe0000000, 3 * GIB, true }, /* and the default */
	/* These map the rest separately, anywhere. */
	{ "firecracker", "", 0xd0000000, 0xd0000000, false },
	{ "cloud-hypervisor", "", 3 * GIB, 3 * GIB, false },
	{ "", "", 4 * GIB, 4 * GIB, false },
};

static bool rule_applies(const struct rule *r, const struct uni_vmm_cmdline *c)
{
	const char *machine = c->machine[0] != '\0' ? c->machine : "pc";

	return (r->vmm[0] == '\0' || strcmp(r->vmm, c->vmm) == 0) &&
	       strncmp(machine, r->machine, strlen(r->machine)) == 0;
}

bool uni_vmm_ram_split(const struct uni_vmm_cmdline *c, uint64_t *below_ret)
{
	uint64_t max = c->max_below_4g != 0 ? c->max_below_4g : UINT64_MAX;
	const struct rule *r = rules;

	while (!rule_applies(r, c)) /* the last rule applies to all */
		r++;
	if (c->mem_bytes < uni_min(r->fits, max))
		*below_ret = c->mem_bytes != 0 ? c->mem_bytes : r->low;
	else
		*below_ret = uni_min(r->low, max);
	return r->goes_on && c->mem_bytes != 0;
}
