/* SPDX-License-Identifier: BSD-2-Clause */
/* Guest memory copied at the first and the last sample, into buffers that exist beforehand. */
#ifndef UNI_SAMPLING_WATCH_H
#define UNI_SAMPLING_WATCH_H

#include "recording/recording.h"

struct uni_watcher;

/* Borrows watch[nr]; first and last become the caller's to free, NULL where nothing was read. */
int uni_watcher_create(struct uni_watch *watch, size_t nr, const struct uni_arch *arch,
	struct uni_watcher **ret, struct uni_err *err);
void uni_watcher_destroy(struct uni_watcher *w); /* NULL-safe */

/*
 * Reads all watches through the first vCPU that has a usable address space, into `last`, and the
 * first time also into `first`. A watch that cannot be read keeps its older value. For use while
 * the guest is held: allocates nothing.
 */
void uni_watcher_read(struct uni_watcher *w, struct uni_as *as, const struct uni_regs *regs,
	uint32_t nr_vcpus, uint64_t t_ns);

#endif
