/* SPDX-License-Identifier: BSD-2-Clause */
/* The header block of POSIX' ustar: where its fields are. */
#ifndef UNI_RECORDING_BUNDLE_PRIV_H
#define UNI_RECORDING_BUNDLE_PRIV_H

#include <stddef.h>
#include <stdint.h>

#define UNI_TAR_MODE	 100
#define UNI_TAR_UID	 108
#define UNI_TAR_GID	 116
#define UNI_TAR_SIZE	 124
#define UNI_TAR_MTIME	 136
#define UNI_TAR_CHECKSUM 148
#define UNI_TAR_TYPE	 156
#define UNI_TAR_MAGIC	 257
#define UNI_TAR_PREFIX	 345

/* The sum of all bytes of a block, its own field taken as blanks. */
static inline uint64_t uni_tar_checksum(const uint8_t *block)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 512; i++)
		sum += i >= UNI_TAR_CHECKSUM && i < UNI_TAR_TYPE ? ' ' : block[i];
	return sum;
}

#endif
