/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of the user's own options for QEMU (behind --) for `run`. */
#ifndef UNI_APP_QEMU_OPTIONS_H
#define UNI_APP_QEMU_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "app/bootable.h"
#include "base/err.h"

/* uniscope starts QEMU with -S, too, and lets it run at once. extra: up to a NULL; or NULL. */
bool uni_qemu_wants_paused(char *const *extra);
/* QEMU would take both that and ours, and the first one wins. */
bool uni_qemu_names_accel(char *const *extra);
/* QEMU takes -NAME and --NAME. */
bool uni_qemu_is_option(const char *word, const char *name);
/* microvm starts quickly, and has no PCI. */
bool uni_qemu_fits_microvm(const struct uni_bootable *image, char *const *extra);
/* Is the image within the memory that the guest is to have? Else -UNI_EUSAGE, and the size it
 * needs. */
int uni_qemu_check_memory(const struct uni_bootable *image, const char *path, uint64_t mem_bytes,
	char *const *extra, struct uni_err *err);

#endif
