/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/qemu_options.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"

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

bool uni_qemu_fits_microvm(const struct uni_image *image, char *const *extra)
{
	unsigned machine = image != NULL ? uni_image_machine(image) : EM_NONE;

	if ((machine != EM_X86_64 && machine != EM_386) || !uni_image_is_pvh(image))
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
