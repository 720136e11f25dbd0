/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/config.h"

#include <string.h>

#include "base/json_load.h"
#include "base/text.h"

static void take_image(const json_t *path, struct uni_vmm_cmdline *ret)
{
	const char *s = json_string_value(path);

	if (s != NULL && ret->image[0] == '\0')
		(void)uni_text_clean(ret->image, sizeof(ret->image), s, strlen(s));
}

static void take_size(
	const json_t *cpus, const json_t *mem, unsigned mem_shift, struct uni_vmm_cmdline *ret)
{
	json_int_t n = json_integer_value(cpus), size = json_integer_value(mem);

	if (n > 0 && n <= UINT32_MAX && ret->nr_vcpus == 0)
		ret->nr_vcpus = (uint32_t)n;
	if (size > 0 && size <= INT64_MAX >> mem_shift && ret->mem_bytes == 0)
		ret->mem_bytes = (uint64_t)size << mem_shift;
}

static bool take_firecracker(const json_t *root, struct uni_vmm_cmdline *ret)
{
	const json_t *machine = json_object_get(root, "machine-config");
	const json_t *boot = json_object_get(root, "boot-source");

	if (!json_is_object(machine) && !json_is_object(boot))
		return false;
	take_image(json_object_get(boot, "kernel_image_path"), ret);
	take_size(json_object_get(machine, "vcpu_count"), json_object_get(machine, "mem_size_mib"),
		20, ret);
	ret->default_vcpus = 1;
	ret->default_mem_bytes = 128 << 20;
	return true;
}

static bool is_on(const json_t *platform, const char *key)
{
	return json_is_true(json_object_get(platform, key));
}

static bool take_cloud_hypervisor(const json_t *root, struct uni_vmm_cmdline *ret)
{
	const json_t *config = json_object_get(root, "config");
	const json_t *payload = json_object_get(config, "payload");
	const json_t *platform = json_object_get(config, "platform");

	if (!json_is_object(config))
		return false;
	take_image(json_object_get(payload, "kernel"), ret);
	take_image(json_object_get(payload, "firmware"), ret);
	take_image(json_object_get(json_object_get(config, "kernel"), "path"), ret); /* before 28 */
	take_size(json_object_get(json_object_get(config, "cpus"), "boot_vcpus"),
		json_object_get(json_object_get(config, "memory"), "size"), 0, ret);
	if (is_on(platform, "tdx") || is_on(platform, "sev_snp"))
		ret->confidential = true;
	return true;
}

bool uni_vmm_config_parse(const void *data, size_t size, struct uni_vmm_cmdline *ret)
{
	json_t *root = uni_json_load(data, size, JSON_REJECT_DUPLICATES, UNI_JSON_TIMES, NULL);
	bool ok = take_firecracker(root, ret) || take_cloud_hypervisor(root, ret);

	json_decref(root);
	return ok;
}
