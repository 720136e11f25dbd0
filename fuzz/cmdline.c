/* SPDX-License-Identifier: BSD-2-Clause */
/* Inputs read from a VMM process: the command line, configuration files, API answers,
 * /proc/PID/maps. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "backend/vmm/api.h"
#include "backend/vmm/cmdline.h"
#include "backend/vmm/config.h"
#include "backend/vmm/fds.h"
#include "backend/vmm/maps.h"
#include "backend/vmm/split.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_cmdline(const uint8_t *data, size_t size)
{
	static const char *const exes[] = { "", "qemu-system-x86_64", "firecracker",
		"cloud-hypervisor", "crosvm", "lkvm", "solo5-hvt", "other" };
	struct uni_vmm_cmdline c;
	uint64_t low;

	for (size_t i = 0; i < uni_array_len(exes); i++) {
		uni_vmm_cmdline_parse(data, size, exes[i], &c);
		assert(memchr(c.image, '\0', sizeof(c.image)) != NULL);
		assert(memchr(c.name, '\0', sizeof(c.name)) != NULL);
		told_text(c.image);
		told_text(c.name);
		if (uni_vmm_ram_split(&c, &low))
			told_u64(low);
	}
	memset(&c, 0, sizeof(c));
	(void)uni_vmm_config_parse(data, size, &c);
	assert(memchr(c.image, '\0', sizeof(c.image)) != NULL);
}

static void fuzz_http(const uint8_t *data, size_t size)
{
	struct uni_vmm_cmdline c;
	size_t body = 0, len = 0;

	if (uni_vmm_http_parse((const char *)data, size, &body, &len) != 0)
		return;
	assert(uni_range_contains(0, size, body, len));
	memset(&c, 0, sizeof(c));
	(void)uni_vmm_config_parse(data + body, len, &c);
}

static void fuzz_maps(const uint8_t *data, size_t size)
{
	struct uni_vmm_maps m;
	uint64_t start, run, top = 0;

	if (uni_vmm_maps_parse(data, size, &m) != 0)
		return;
	for (size_t i = 0; i < m.m.nr; i++) {
		const struct uni_vmm_map *p = &m.m.v[i];
		uint32_t id;

		assert(p->size != 0 && uni_range_ok(p->start, p->size) && p->start >= top);
		top = p->start + (p->size - 1);
		told_u64(p->start);
		told_u64(p->size);
		assert(uni_vmm_maps_find(&m, top) == p);
		if (uni_vmm_maps_run(&m, p->start, 0, &start, &run))
			assert(uni_range_contains(start, run, p->start, p->size));
		(void)uni_vmm_vcpu_of_link(p->name, &id);
	}
	uni_vmm_maps_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_cmdline(data, size);
	fuzz_http(data, size);
	fuzz_maps(data, size);
	return 0;
}
