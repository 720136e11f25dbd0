/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/qemu_options.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"

#define MIB	   ((uint64_t)1 << 20)
#define ARM_BASE   ((uint64_t)1 << 30) /* of `virt`'s memory */
#define LOW_MEMORY ((uint64_t)2 << 30) /* more of it may lie elsewhere */

/* Options of QEMU that add no device. */
static bool adds_no_device(const char *option)
{
	static const char *const known[] = { "-s", "-append", "-chardev", "-cpu", "-d", "-D",
		"-gdb", "-icount", "-m", "-mon", "-monitor", "-name", "-no-reboot", "-no-shutdown",
		"-pidfile", "-plugin", "-qmp", "-rtc", "-smp", "-trace", "-uuid" };

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (strcmp(option, known[i]) == 0)
			return true;
	}
	return false;
}

bool uni_qemu_wants_paused(char *const *extra)
{
	while (extra != NULL && *extra != NULL && strcmp(*extra, "-S") != 0)
		extra++;
	return extra != NULL && *extra != NULL;
}

bool uni_qemu_names_accel(char *const *extra)
{
	for (; extra != NULL && *extra != NULL; extra++) {
		bool machine = strcmp(*extra, "-machine") == 0 || strcmp(*extra, "-M") == 0;

		if (strcmp(*extra, "-accel") == 0 || strcmp(*extra, "-enable-kvm") == 0 ||
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
		bool is_device = strcmp(*extra, "-device") == 0;

		if ((*extra)[0] != '-' || strcmp(*extra, "-initrd") == 0 || adds_no_device(*extra))
			continue;
		if (!is_device || extra[1] == NULL || strncmp(extra[1], "isa-", 4) != 0)
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
		if (strcmp(*extra, "-m") == 0) /* the last one wins */
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
