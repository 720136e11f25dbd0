/* SPDX-License-Identifier: BSD-2-Clause */
/* How `run` has to boot an image: read by a process without rights, as the image may be anything.
 */
#ifndef UNI_APP_BOOTABLE_H
#define UNI_APP_BOOTABLE_H

#include <stdbool.h>

#include "obj/image.h"
#include "obj/solo5.h"

#define UNI_BOOTABLE_SEGMENTS 64

struct uni_bootable {
	struct uni_solo5 notes; /* NONE: it is no image of Solo5, or cannot be read */
	unsigned machine;	/* EM_*; NONE: it is no ELF file */
	bool pvh;		/* a PC enters it by PVH */
	size_t nr_segments;	/* 0: it cannot be read */
	struct uni_segment segment[UNI_BOOTABLE_SEGMENTS]; /* without their bytes */
};

/* A file that is no ELF is no error; QEMU reports errors in it. */
int uni_bootable_read(const char *path, struct uni_bootable *ret, struct uni_err *err);

#endif
