/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/qemu_options.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"

#define MIB	   ((uint64_t)1 << 20)
#define ARM_BASE   ((uint64_t)1 << 30) /* of `virt`'s memory */
#define LOW_MEMORY ((uint64_t)2 << 30) /* more of it may lie elsewhere */

/* "device" of -device and --device; NULL: the word is no option. */
static const char *option_name(const char *word)
{
	if (word[0] != '-')
		return NULL;
	return word + (word[1] == '-' ? 2 : 1);
}

bool uni_qemu_is_option(const char *word, const char *name)
{
	const char *own = option_name(word);

	return own != NULL && strcmp(own, name) == 0;
}

/* Does this -device go on one of microvm's own buses? */
static bool fits_its_buses(const char *value)
{
	size_t len = strcspn(value, ",");

	return strncmp(value, "isa-", 4) == 0 || strncmp(value, "pvpanic", len) == 0 ||
	       strncmp(value, "loader", len) == 0 ||
	       (len > 7 && strncmp(value + len - 7, "-device", 7) == 0); /* virtio-net-device */
}

/* "if=none" in file=x,if=none: only a backend, which some -device names. */
static bool has_part(const char *value, const char *part)
{
	for (const char *at = value; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
		if (strcspn(at, ",") == strlen(part) && strncmp(at, part, strlen(part)) == 0)
			return true;
	}
	return false;
}

/*
 * Does this option give the machine a device that microvm has not, or a firmware for a PC? QEMU has
 * few such options, and would leave the device of some out. It refuses others, and then the guest
 * is booted on q35.
 */
static bool needs_pc(const char *name, const char *value)
{
	static const char *const adds[] = { "audio", "balloon", "bios", "cdrom", "fda", "fdb",
		"hda", "hdb", "hdc", "hdd", "mtdblock", "option-rom", "parallel", "pflash",
		"readconfig", "sd", "serial", "soundhw", "usb", "usbdevice", "virtfs",
		"virtfs_synth", "watchdog" };
	static const struct {
		const char *name, *unless;
	} mostly[] = { { "drive", "if=none" }, { "net", "none" }, { "nic", "none" },
		{ "vga", "none" } };

	if (strcmp(name, "device") == 0)
		return !fits_its_buses(value);
	for (size_t i = 0; i < uni_array_len(mostly); i++) {
		if (strcmp(name, mostly[i].name) == 0)
			return !has_part(value, mostly[i].unless);
	}
	for (size_t i = 0; i < uni_array_len(adds); i++) {
		if (strcmp(name, adds[i]) == 0)
			return true;
	}
	return false;
}

bool uni_qemu_wants_paused(char *const *extra)
{
	while (extra != NULL && *extra != NULL && !uni_qemu_is_option(*extra, "S"))
		extra++;
	return extra != NULL && *extra != NULL;
}

bool uni_qemu_names_accel(char *const *extra)
{
	for (; extra != NULL && *extra != NULL; extra++) {
		bool machine =
			uni_qemu_is_option(*extra, "machine") || uni_qemu_is_option(*extra, "M");

		if (uni_qemu_is_option(*extra, "accel") ||
			uni_qemu_is_option(*extra, "enable-kvm") ||
			(machine && extra[1] != NULL && strstr(extra[1], "accel=") != NULL))
			return true;
	}
	return false;
}

bool uni_qemu_fits_microvm(const struct uni_bootable *image, char *const *extra)
{
	if (!image->pvh)
		return false;
	for (; extra != NULL && *extra != NULL; extra++) {
		const char *name = option_name(*extra);

		if (name != NULL && needs_pc(name, extra[1] != NULL ? extra[1] : ""))
			return false;
	}
	return true;
}

/* One that is linked elsewhere is loaded in its own way. A linker may put notes anywhere, and QEMU
 * boots without them. */
static bool is_loaded_low(const struct uni_segment *s, uint64_t base)
{
	return (s->exec || s->write) && s->mem_size != 0 && s->mem_size <= LOW_MEMORY &&
	       s->paddr >= base && s->paddr - base <= LOW_MEMORY - s->mem_size;
}

int uni_qemu_check_memory(const struct uni_bootable *image, const char *path, uint64_t mem_bytes,
	char *const *extra, struct uni_err *err)
{
	unsigned machine = image->machine;
	uint64_t base = machine == EM_AARCH64 ? ARM_BASE : 0, end = 0;

	if (machine != EM_X86_64 && machine != EM_386 && machine != EM_AARCH64)
		return 0;
	for (; extra != NULL && *extra != NULL; extra++) {
		if (uni_qemu_is_option(*extra, "m")) /* the last one wins */
			return 0;
	}
	for (size_t i = 0; i < image->nr_segments; i++) {
		const struct uni_segment *s = &image->segment[i];

		if (is_loaded_low(s, base))
			end = uni_max(end, s->paddr - base + s->mem_size);
	}
	if (end <= mem_bytes)
		return 0;
	return uni_err_set(err, UNI_EUSAGE,
		"%s does not fit into memory: it is loaded up to 0x%" PRIx64 ", and the guest has "
		"%" PRIu64 "M: give at least --memory %" PRIu64 "M",
		path, base + end, mem_bytes / MIB, (end + MIB - 1) / MIB);
}
