/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes replay files: docs/formats/replay.md. */
#ifndef UNI_BACKEND_REPLAY_WRITER_H
#define UNI_BACKEND_REPLAY_WRITER_H

#include "backend/target.h"

/* Bytes after which uni_replay_tee() saves no further snapshots. */
#define UNI_REPLAY_SAVE_MAX (256ull << 20)

struct uni_replay_writer;

#define UNI_REPLAY_AT_BLOCKS 1u /* vCPUs stood at the start of a block, as TCG stops them */

/*
 * The file appears under its name when it is closed. Regions and kind of addresses are gmem's, now;
 * block is a power of two from 64 to 4096; flags: UNI_REPLAY_AT_BLOCKS or 0.
 */
int uni_replay_writer_create(const char *path, const struct uni_arch *arch, uint32_t nr_vcpus,
	const struct uni_gmem *gmem, size_t block, uint32_t flags, struct uni_replay_writer **ret,
	struct uni_err *err);
/* Registers of all vCPUs, nr_vcpus of them. The blocks that follow are of this moment. */
void uni_replay_writer_snapshot(struct uni_replay_writer *w, const struct uni_regs *regs);
/* One block of memory; addr is aligned. It is written again only when its bytes change. */
void uni_replay_writer_block(struct uni_replay_writer *w, uint64_t addr, const void *bytes);
uint64_t uni_replay_writer_bytes(const struct uni_replay_writer *w);
/* Frees w, also on failure. */
int uni_replay_writer_close(struct uni_replay_writer *w, struct uni_err *err);
void uni_replay_writer_abort(struct uni_replay_writer *w); /* NULL-safe */

struct uni_replay_saved {
	uint64_t snapshots, bytes;
	uint64_t
		lost_blocks; /* did not fit into the buffer of one snapshot, or could not be read */
	uint64_t lost_snapshots; /* after UNI_REPLAY_SAVE_MAX */
};

/*
 * Makes a target that passes everything on to `inner`. It saves each snapshot, with the memory that
 * was read through gmem() since. `record --save-replay` samples it instead of inner. It owns inner,
 * also on failure. Its memory regions are those of inner at this moment. While the guest is held it
 * only copies; it writes files before the next snapshot.
 */
int uni_replay_tee(
	struct uni_target *inner, const char *path, struct uni_target **ret, struct uni_err *err);
/* Completes the file. Call it before detach, which drops an unfinished file. */
int uni_replay_tee_finish(struct uni_target *t, struct uni_replay_saved *ret, struct uni_err *err);

#endif
