/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip (RFC 1952) into a sink, piece by piece. */
#ifndef UNI_FORMAT_GZ_H
#define UNI_FORMAT_GZ_H

#include "base/sink.h"

struct uni_gz;

/* 0 or -UNI_ENOMEM; out is borrowed. */
int uni_gz_open(struct uni_sink *out, struct uni_gz **ret);
void uni_gz_write(struct uni_gz *z, const void *data, size_t len);
/* Writes the rest and frees. 0 or -UNI_EIO. NULL-safe. */
int uni_gz_close(struct uni_gz *z);

#endif
