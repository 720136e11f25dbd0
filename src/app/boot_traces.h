/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces of its boot in the memory of a guest. */
#ifndef UNI_APP_BOOT_TRACES_H
#define UNI_APP_BOOT_TRACES_H

#include "app/boot.h"

/* Has the image's code written to memory that the loader left at zero: its stack, for instance? */
bool uni_boot_has_written(const struct uni_boot *b);
/* Has the firmware made what it gives to an image that boots by PVH? */
bool uni_boot_was_entered(const struct uni_boot *b);
/* Does vCPU 0, as it was last seen, execute what is neither memory nor firmware? */
bool uni_boot_is_astray(const struct uni_boot *b);

#endif
