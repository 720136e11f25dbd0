/* SPDX-License-Identifier: BSD-2-Clause */
/* A target that passes everything on to another target, and saves what is read from it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "backend/replay/writer.h"

#define BUFFER_BYTES (8u << 20) /* memory read of one snapshot; a sample's budget is 1 MiB */

struct tee {
	struct uni_target t;
	struct uni_target *inner;    /* owned */
	struct uni_gmem *inner_gmem; /* borrowed from it */
	struct uni_gmem *gmem;
	struct uni_replay_writer *w; /* NULL once finished */
	struct uni_replay_saved saved;
	bool pending;
	uint32_t nr_vcpus;
	size_t block, nr, cap; /* blocks in the buffer */
	uint64_t *addr;
	uint8_t *bytes;
	struct uni_regs regs[]; /* nr_vcpus, of the snapshot that is not written yet */
};

static struct tee *tee_of(struct uni_target *t)
{
	return (struct tee *)t;
}

/* Saves the block at base, whose bytes at `addr` were just read into data[0..len). */
static void keep_block(struct tee *p, const struct uni_gmem_region *r, uint64_t base, uint64_t addr,
	const uint8_t *data, size_t len)
{
	uint64_t first = uni_max(base, r->start), last;
	uint8_t *slot;

	if (p->nr == p->cap) {
		p->saved.lost_blocks++;
		return;
	}
	slot = p->bytes + p->nr * p->block;
	if (len == p->block) {
		memcpy(slot, data, len);
	} else { /* all existing bytes of the block, so that a replay can also give those around */
		last = uni_min(base + (p->block - 1), r->start + (r->size - 1));
		memset(slot, 0, p->block);
		if (uni_gmem_read(p->inner_gmem, uni_gpa_of(first), slot + (first - base),
			    (size_t)(last - first) + 1) != 0) {
			p->saved.lost_blocks++;
			return;
		}
		memcpy(slot + (addr - base), data, len);
	}
	p->addr[p->nr++] = base;
}

static int read_memory(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct tee *p = ctx;
	uint64_t addr = r->start + offset;
	const uint8_t *data = buf;
	int rc = uni_gmem_read(p->inner_gmem, uni_gpa_of(addr), buf, len);

	if (rc != 0 || p->w == NULL)
		return rc;
	while (len > 0) {
		size_t in_block = (size_t)(addr & (p->block - 1)), room = p->block - in_block;
		size_t n = uni_min(len, room);

		keep_block(p, r, addr - in_block, addr, data, n);
		addr += n;
		data += n;
		len -= n;
	}
	return 0;
}

static bool is_code(void *ctx, uint64_t va)
{
	const struct tee *p = ctx;

	return uni_gmem_may_be_code(p->inner_gmem, uni_gpa_of(va));
}

static const struct uni_gmem_ops gmem_ops = { .read = read_memory, .is_code = is_code };

/* Writes the data collected since the last snapshot. Nothing is held now. */
static void flush_snapshot(struct tee *p)
{
	if (p->w != NULL && p->pending && uni_replay_writer_bytes(p->w) > UNI_REPLAY_SAVE_MAX) {
		p->saved.lost_snapshots++;
	} else if (p->w != NULL) {
		if (p->pending)
			uni_replay_writer_snapshot(p->w, p->regs);
		p->saved.snapshots += p->pending;
		for (size_t i = 0; i < p->nr; i++)
			uni_replay_writer_block(p->w, p->addr[i], p->bytes + i * p->block);
	}
	p->pending = false;
	p->nr = 0;
}

static int tee_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct tee *p = tee_of(t);
	int rc;

	flush_snapshot(p);
	p->inner->stop_ns = 0;
	rc = p->inner->ops->snap(p->inner, set, ret, flags);
	t->stop_ns = p->inner->stop_ns;
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < p->nr_vcpus; i++) {
		if (uni_vcpuset_has(set, i))
			p->regs[i] = ret[i];
		else
			p->regs[i] = (struct uni_regs){ .state = UNI_VCPU_UNKNOWN };
	}
	p->pending = true;
	return 0;
}

static int tee_release(struct uni_target *t)
{
	struct uni_target *inner = tee_of(t)->inner;

	return inner->ops->release != NULL ? inner->ops->release(inner) : 0;
}

static unsigned tee_caps(struct uni_target *t)
{
	struct uni_target *inner = tee_of(t)->inner;

	return inner->ops->caps(inner) & ~(UNI_CAP_STREAM | UNI_CAP_EXITS | UNI_CAP_WRITE_TEXT);
}

static int nr_vcpus(struct uni_target *t)
{
	struct uni_target *inner = tee_of(t)->inner;

	return inner->ops->nr_vcpus(inner);
}

static struct uni_gmem *tee_gmem(struct uni_target *t)
{
	return tee_of(t)->gmem;
}

static void tee_info(struct uni_target *t, struct uni_target_info *ret)
{
	struct uni_target *inner = tee_of(t)->inner;

	inner->ops->info(inner, ret);
}

static bool tee_alive(struct uni_target *t)
{
	struct uni_target *inner = tee_of(t)->inner;

	return inner->ops->alive(inner);
}

static bool tee_settled(struct uni_target *t)
{
	struct uni_target *inner = tee_of(t)->inner;

	return inner->ops->settled == NULL || inner->ops->settled(inner);
}

static int tee_lost(struct uni_target *t, struct uni_err *err)
{
	struct uni_target *inner = tee_of(t)->inner;

	return inner->ops->lost != NULL ? inner->ops->lost(inner, err) : 0;
}

static void tee_detach(struct uni_target *t)
{
	struct tee *p = tee_of(t);

	uni_gmem_destroy(p->gmem);
	uni_target_detach(p->inner);
	uni_replay_writer_abort(p->w);
	free(p->addr);
	free(p->bytes);
	free(p);
}

static const struct uni_target_ops tee_ops = {
	.scheme = "tee",
	.summary = "saves what is seen of another target",
	.keys = "",
	.caps = tee_caps,
	.nr_vcpus = nr_vcpus,
	.snap = tee_snap,
	.release = tee_release,
	.gmem = tee_gmem,
	.info = tee_info,
	.alive = tee_alive,
	.settled = tee_settled,
	.lost = tee_lost,
	.detach = tee_detach,
};

static int open_tee(struct tee *p, const char *path, struct uni_err *err)
{
	struct uni_gmem *m = p->inner->ops->gmem(p->inner);
	struct uni_target_info info = { 0 };
	uint32_t flags;
	int rc;

	p->inner->ops->info(p->inner, &info);
	flags = strcmp(info.vmm, "qemu") == 0 && strcmp(info.accel, "tcg") == 0
			? UNI_REPLAY_AT_BLOCKS
			: 0;
	p->inner_gmem = m;
	p->block = uni_gmem_granule(m);
	p->cap = BUFFER_BYTES / p->block;
	p->addr = calloc(p->cap, sizeof(*p->addr));
	p->bytes = malloc(BUFFER_BYTES);
	if (p->addr == NULL || p->bytes == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory to save a replay");
	rc = uni_gmem_create(&gmem_ops, p, uni_gmem_space(m), uni_gmem_region(m, 0),
		uni_gmem_nr_regions(m), &p->gmem, err);
	if (rc != 0)
		return rc;
	uni_gmem_set_granule(p->gmem, p->block);
	return uni_replay_writer_create(
		path, p->t.arch, p->nr_vcpus, m, p->block, flags, &p->w, err);
}

int uni_replay_tee(
	struct uni_target *inner, const char *path, struct uni_target **ret, struct uni_err *err)
{
	uint32_t nr = (uint32_t)uni_min(inner->ops->nr_vcpus(inner), UNI_VCPU_MAX);
	struct tee *p = calloc(1, sizeof(*p) + nr * sizeof(p->regs[0]));
	int rc;

	if (p == NULL) {
		uni_target_detach(inner);
		return uni_err_set(err, UNI_ENOMEM, "no memory to save a replay");
	}
	p->t = (struct uni_target){ .ops = &tee_ops, .arch = inner->arch };
	p->inner = inner;
	p->nr_vcpus = nr;
	rc = open_tee(p, path, err);
	if (rc != 0) {
		tee_detach(&p->t);
		return rc;
	}
	*ret = &p->t;
	return 0;
}

int uni_replay_tee_finish(struct uni_target *t, struct uni_replay_saved *ret, struct uni_err *err)
{
	struct tee *p = tee_of(t);
	struct uni_replay_writer *w = p->w;

	flush_snapshot(p);
	p->w = NULL;
	p->saved.bytes = w != NULL ? uni_replay_writer_bytes(w) : p->saved.bytes;
	if (ret != NULL)
		*ret = p->saved;
	return w != NULL ? uni_replay_writer_close(w, err) : 0;
}
