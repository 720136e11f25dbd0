/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/boot_traces.h"

#include <string.h>

#include "base/checked.h"
#include "backend/vmm/scan.h"

#define BSS_BYTES     65536u
#define FIRMWARE_END  0x100000u /* all of it that writes lies below */
#define FIRMWARE_STEP 0x10000u
#define START_INFO    56u /* bytes of an hvm_start_info */

/* Memory that the loader left at zero and the image's code writes to: its stack, for instance. */
bool uni_boot_has_written(const struct uni_boot *b)
{
	static uint8_t buf[BSS_BYTES];

	for (size_t i = 0; i < b->nr_segments; i++) {
		const struct uni_segment *s = &b->segment[i];
		uint64_t bss = s->file_size + s->paddr, len, hva;

		if (!s->write || s->mem_size <= s->file_size ||
			uni_qmp_gpa2hva(b->q->qmp, bss, &hva) != 0)
			continue;
		len = uni_min(s->mem_size - s->file_size, (uint64_t)sizeof(buf));
		if (uni_vmm_copy(b->q->pid, hva, buf, len) != 0)
			continue;
		if (buf[0] != 0 || memcmp(buf, buf + 1, len - 1) != 0)
			return true;
	}
	return false;
}

/* The hvm_start_info of Xen's PVH ABI, which the firmware makes right before it enters the image.
 */
static bool is_start_info(const uint8_t *p)
{
	struct {
		uint32_t magic, version, flags, nr_modules;
		uint64_t modules, command_line, rsdp, memory_map;
		uint32_t nr_memory_map, reserved;
	} info;

	memcpy(&info, p, sizeof(info));
	return info.magic == 0x336ec578 && info.version <= 1 && info.flags == 0 &&
	       info.nr_modules <= 1 && info.reserved == 0 && info.memory_map != 0 &&
	       info.memory_map < FIRMWARE_END && info.nr_memory_map - 1 < 128;
}

bool uni_boot_was_entered(const struct uni_boot *b)
{
	static uint8_t buf[FIRMWARE_STEP + START_INFO];

	for (uint64_t gpa = 0; gpa < FIRMWARE_END; gpa += FIRMWARE_STEP) {
		size_t len = gpa + FIRMWARE_STEP < FIRMWARE_END ? sizeof(buf) : FIRMWARE_STEP;
		uint64_t hva;

		if (uni_qmp_gpa2hva(b->q->qmp, gpa, &hva) != 0 ||
			uni_vmm_copy(b->q->pid, hva, buf, len) != 0)
			continue;
		for (size_t at = 0; at + START_INFO <= len; at += 4) {
			if (is_start_info(buf + at))
				return true;
		}
	}
	return false;
}

bool uni_boot_is_astray(const struct uni_boot *b)
{
	uint64_t gpa = b->cpu.pc, hva;

	/* Code that is not mapped is a page fault. */
	if (b->cpu.paging && uni_qmp_gva2gpa(b->q->qmp, b->cpu.pc, &gpa) != 0)
		return false;
	return gpa >= FIRMWARE_END && uni_qmp_gpa2hva(b->q->qmp, gpa, &hva) == -UNI_EFAULT;
}
