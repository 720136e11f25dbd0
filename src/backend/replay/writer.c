/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/replay/writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sink.h"
#include "backend/replay/file.h"

#define TABLE_MIN 1024u

struct seen {
	uint64_t addr, hash; /* hash of the bytes last written; addr 1 (never aligned): empty */
};

struct uni_replay_writer {
	struct uni_sink *out;
	const struct uni_arch *arch;
	uint32_t nr_vcpus;
	size_t block;
	struct seen *seen; /* open addressing, a power of two */
	size_t nr_seen, cap_seen;
};

static void put_le_number(struct uni_sink *out, uint64_t v, unsigned bytes)
{
	uint8_t b[8];

	for (unsigned i = 0; i < bytes; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	uni_sink_write(out, b, bytes);
}

static void put_header(struct uni_replay_writer *w, const struct uni_gmem *gmem, uint32_t flags)
{
	size_t nr = uni_gmem_nr_regions(gmem);
	char arch[16] = { 0 };

	memcpy(arch, w->arch->name, strnlen(w->arch->name, sizeof(arch)));
	uni_sink_write(w->out, UNI_REPLAY_MAGIC, 8);
	put_le_number(w->out, UNI_REPLAY_VERSION, 4);
	put_le_number(w->out, UNI_REPLAY_HEADER, 4);
	uni_sink_write(w->out, arch, sizeof(arch));
	put_le_number(w->out, w->nr_vcpus, 4);
	put_le_number(w->out, w->arch->nr_regs, 4);
	put_le_number(w->out, uni_gmem_space(gmem), 4);
	put_le_number(w->out, w->block, 4);
	put_le_number(w->out, nr, 4);
	put_le_number(w->out, flags, 4);
	put_le_number(w->out, 0, 8);
	for (size_t i = 0; i < nr; i++) {
		put_le_number(w->out, uni_gmem_region(gmem, i)->start, 8);
		put_le_number(w->out, uni_gmem_region(gmem, i)->size, 8);
	}
}

static struct seen *new_table(size_t cap)
{
	struct seen *t = calloc(cap, sizeof(*t));

	for (size_t i = 0; t != NULL && i < cap; i++)
		t[i].addr = 1;
	return t;
}

int uni_replay_writer_create(const char *path, const struct uni_arch *arch, uint32_t nr_vcpus,
	const struct uni_gmem *gmem, size_t block, uint32_t flags, struct uni_replay_writer **ret,
	struct uni_err *err)
{
	struct uni_replay_writer *w;
	int rc;

	if (uni_gmem_nr_regions(gmem) > UNI_REPLAY_REGIONS_MAX)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s: the guest has too many memory regions", path);
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for %s", path);
	w->arch = arch;
	w->nr_vcpus = nr_vcpus;
	w->block = block;
	w->cap_seen = TABLE_MIN;
	w->seen = new_table(w->cap_seen);
	if (w->seen == NULL) {
		uni_replay_writer_abort(w);
		return uni_err_set(err, UNI_ENOMEM, "no memory for %s", path);
	}
	rc = uni_sink_open_file(path, &w->out, err);
	if (rc != 0) {
		uni_replay_writer_abort(w);
		return rc;
	}
	put_header(w, gmem, flags);
	*ret = w;
	return 0;
}

static void put_vcpu(struct uni_replay_writer *w, const struct uni_regs *regs)
{
	put_le_number(w->out, regs->state, 1);
	put_le_number(w->out, (regs->pc_valid ? 1u : 0) | (regs->sp_valid ? 2u : 0), 1);
	put_le_number(w->out, regs->sys_valid, 1);
	put_le_number(w->out, 0, 5);
	put_le_number(w->out, regs->valid, 8);
	put_le_number(w->out, regs->pc, 8);
	put_le_number(w->out, regs->sp, 8);
	for (unsigned i = 0; i < UNI_SYS_MAX; i++)
		put_le_number(w->out, regs->sys[i], 8);
	for (unsigned i = 0; i < w->arch->nr_regs; i++)
		put_le_number(w->out, regs->r[i], 8);
}

void uni_replay_writer_snapshot(struct uni_replay_writer *w, const struct uni_regs *regs)
{
	size_t bytes = UNI_REPLAY_VCPU_BYTES + 8u * (size_t)w->arch->nr_regs;

	put_le_number(w->out, UNI_REPLAY_SNAPSHOT, 4);
	put_le_number(w->out, bytes * w->nr_vcpus, 4);
	for (uint32_t i = 0; i < w->nr_vcpus; i++)
		put_vcpu(w, &regs[i]);
}

static struct seen *seen_slot(struct seen *table, size_t cap, uint64_t addr)
{
	size_t i = (size_t)uni_hash_pair(addr, 0) & (cap - 1);

	while (table[i].addr != addr && table[i].addr != 1)
		i = (i + 1) & (cap - 1);
	return &table[i];
}

/* Keeps the table at most half full; without memory it does not grow. */
static void grow_seen(struct uni_replay_writer *w)
{
	size_t cap = w->cap_seen * 2;
	struct seen *bigger;

	if (w->nr_seen < w->cap_seen / 2)
		return;
	bigger = new_table(cap);
	if (bigger == NULL)
		return;
	for (size_t i = 0; i < w->cap_seen; i++) {
		if (w->seen[i].addr != 1)
			*seen_slot(bigger, cap, w->seen[i].addr) = w->seen[i];
	}
	free(w->seen);
	w->seen = bigger;
	w->cap_seen = cap;
}

void uni_replay_writer_block(struct uni_replay_writer *w, uint64_t addr, const void *bytes)
{
	uint64_t hash = uni_hash_bytes(bytes, w->block, 0);
	struct seen *s;

	grow_seen(w);
	s = seen_slot(w->seen, w->cap_seen, addr);
	if (s->addr == addr && s->hash == hash)
		return;
	if (s->addr == addr ||
		w->nr_seen < w->cap_seen - 1) { /* one slot stays empty, so that seen_slot() ends */
		w->nr_seen += s->addr != addr;
		*s = (struct seen){ .addr = addr, .hash = hash };
	}
	put_le_number(w->out, UNI_REPLAY_BLOCK, 4);
	put_le_number(w->out, 8 + w->block, 4);
	put_le_number(w->out, addr, 8);
	uni_sink_write(w->out, bytes, w->block);
}

uint64_t uni_replay_writer_bytes(const struct uni_replay_writer *w)
{
	return uni_sink_bytes(w->out);
}

int uni_replay_writer_close(struct uni_replay_writer *w, struct uni_err *err)
{
	int rc = uni_sink_close(w->out, err);

	w->out = NULL;
	uni_replay_writer_abort(w);
	return rc;
}

void uni_replay_writer_abort(struct uni_replay_writer *w)
{
	if (w == NULL)
		return;
	uni_sink_abort(w->out);
	free(w->seen);
	free(w);
}
