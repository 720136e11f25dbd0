/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notes that Solo5 puts into an image: for which binding it is linked, and which devices it
 * needs (its manifest).
 */
#ifndef UNI_OBJ_SOLO5_H
#define UNI_OBJ_SOLO5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define UNI_SOLO5_DEVICES_MAX 64
#define UNI_SOLO5_NAME_MAX    68 /* with its NUL */

/* The numbers of Solo5's "ABI1" note. */
enum uni_solo5_binding {
	UNI_SOLO5_NONE, /* no such note */
	UNI_SOLO5_HVT,
	UNI_SOLO5_SPT,
	UNI_SOLO5_VIRTIO,
	UNI_SOLO5_MUEN,
	UNI_SOLO5_GENODE,
	UNI_SOLO5_XEN,
};

struct uni_solo5_device {
	char name[UNI_SOLO5_NAME_MAX]; /* letters and digits, at least one */
	bool is_net;		       /* else a block device */
};

struct uni_solo5 {
	uint32_t binding; /* enum uni_solo5_binding, or one that came later */
	uint32_t abi;	  /* the version of the binding's interface */
	bool has_manifest;
	/* Its manifest has an unknown version or device, or is cut off: some devices are missing
	 * here. */
	bool partly;
	size_t nr_devices;
	struct uni_solo5_device device[UNI_SOLO5_DEVICES_MAX];
};

/* Takes one note of the name "Solo5"; ret is zeroed before the first. The first of a kind counts.
 */
void uni_solo5_take(uint32_t type, const void *desc, size_t len, struct uni_solo5 *ret);

/* Reads them from a linked ELF file. One without the notes is no error: its binding is NONE. */
int uni_solo5_parse(const void *data, size_t size, struct uni_solo5 *ret, struct uni_err *err);
int uni_solo5_read(const char *path, struct uni_solo5 *ret, struct uni_err *err);

/* "hvt", ...; NULL: a number that is not known. */
const char *uni_solo5_binding_name(uint32_t binding);

#endif
