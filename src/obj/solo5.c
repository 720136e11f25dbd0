/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/solo5.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "obj/objfile.h"

/*
 * include/elf_abi.h and include/mft_abi.h of Solo5 0.9. The descriptor of "ABI1" is
 *	u32 binding, version, 0, 0
 * and that of "MFT1" has a pad of 4 bytes in front, so that the manifest is aligned to 8 bytes:
 *	u32 pad, version, entries; entries times
 *	u8 name[68], u32 type, u64 properties[2], u64 backing, u8 attached, pad[7]
 * The first entry is reserved and stands for no device.
 */
#define TYPE_ABI	 0x31494241
#define TYPE_MANIFEST	 0x3154464d
#define MANIFEST_VERSION 1
#define ENTRY_SIZE	 104

#define DEVICE_BLOCK	1
#define DEVICE_NET	2
#define DEVICE_RESERVED (1u << 30) /* and above */

const char *uni_solo5_binding_name(uint32_t binding)
{
	static const char *const names[] = {
		[UNI_SOLO5_HVT] = "hvt",
		[UNI_SOLO5_SPT] = "spt",
		[UNI_SOLO5_VIRTIO] = "virtio",
		[UNI_SOLO5_MUEN] = "muen",
		[UNI_SOLO5_GENODE] = "genode",
		[UNI_SOLO5_XEN] = "xen",
	};

	return binding < uni_array_len(names) ? names[binding] : NULL;
}

static bool is_alnum(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Its name becomes a part of a command: only what Solo5 permits is taken. */
static bool take_device(const uint8_t *entry, struct uni_solo5_device *ret)
{
	struct uni_cursor c =
		uni_cursor_make(entry + UNI_SOLO5_NAME_MAX, ENTRY_SIZE - UNI_SOLO5_NAME_MAX);
	uint32_t type = uni_cursor_u32(&c);
	size_t len = 0;

	while (len < UNI_SOLO5_NAME_MAX && is_alnum(entry[len]))
		len++;
	if ((type != DEVICE_BLOCK && type != DEVICE_NET) || len == 0 || len == UNI_SOLO5_NAME_MAX ||
		entry[len] != '\0')
		return false;
	memcpy(ret->name, entry, len + 1);
	ret->is_net = type == DEVICE_NET;
	return true;
}

static bool is_reserved(const uint8_t *entry)
{
	struct uni_cursor c = uni_cursor_make(entry + UNI_SOLO5_NAME_MAX, sizeof(uint32_t));

	return uni_cursor_u32(&c) >= DEVICE_RESERVED;
}

static void take_manifest(const void *desc, size_t len, struct uni_solo5 *ret)
{
	struct uni_cursor c = uni_cursor_make(desc, len);
	uint32_t nr;

	ret->has_manifest = true;
	(void)uni_cursor_u32(&c);
	ret->partly = uni_cursor_u32(&c) != MANIFEST_VERSION;
	nr = uni_cursor_u32(&c);
	ret->partly = ret->partly || c.failed;
	for (uint32_t i = 0; i < nr && !ret->partly; i++) {
		const uint8_t *entry = uni_cursor_take(&c, ENTRY_SIZE);

		if (entry != NULL && is_reserved(entry))
			continue;
		if (entry == NULL || ret->nr_devices == UNI_SOLO5_DEVICES_MAX ||
			!take_device(entry, &ret->device[ret->nr_devices]))
			ret->partly = true;
		else
			ret->nr_devices++;
	}
}

void uni_solo5_take(uint32_t type, const void *desc, size_t len, struct uni_solo5 *ret)
{
	struct uni_cursor c = uni_cursor_make(desc, len);

	if (type == TYPE_ABI && ret->binding == UNI_SOLO5_NONE && len >= 2 * sizeof(uint32_t)) {
		ret->binding = uni_cursor_u32(&c);
		ret->abi = uni_cursor_u32(&c);
	}
	if (type == TYPE_MANIFEST && !ret->has_manifest)
		take_manifest(desc, len, ret);
}

int uni_solo5_parse(const void *data, size_t size, struct uni_solo5 *ret, struct uni_err *err)
{
	struct uni_objfile file = { 0 };
	int rc = uni_objfile_from_memory("image", data, size, &file, err);

	*ret = (struct uni_solo5){ 0 };
	if (rc == 0)
		uni_elf_solo5(&file.elf, ret);
	uni_objfile_deinit(&file);
	return rc;
}

int uni_solo5_read(const char *path, struct uni_solo5 *ret, struct uni_err *err)
{
	struct uni_objfile file = { 0 };
	int rc = uni_objfile_load(path, &file, err);

	*ret = (struct uni_solo5){ 0 };
	if (rc == 0)
		uni_elf_solo5(&file.elf, ret);
	uni_objfile_deinit(&file);
	return rc;
}
