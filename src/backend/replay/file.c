/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/replay/file.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "backend/replay/writer.h"

static int parse_regions(
	struct uni_replay_file *f, struct uni_cursor *c, uint32_t nr, struct uni_err *err)
{
	if (nr > UNI_REPLAY_REGIONS_MAX)
		return uni_err_set(err, UNI_EFORMAT, "%u memory regions are too many", nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct uni_gmem_region r = { .start = uni_cursor_u64(c) };

		r.size = uni_cursor_u64(c);
		if (c->failed)
			return uni_err_set(err, UNI_EFORMAT, "the file ends in its regions");
		if (!uni_vec_push(&f->region, r))
			return uni_err_set(err, UNI_ENOMEM, "no memory for the regions");
	}
	return 0;
}

static int parse_header(struct uni_replay_file *f, struct uni_cursor *c, struct uni_err *err)
{
	const uint8_t *magic = uni_cursor_take(c, 8);
	uint32_t version = uni_cursor_u32(c), header = uni_cursor_u32(c), nr_regs, space;
	char arch[17] = { 0 };

	if (magic == NULL || memcmp(magic, UNI_REPLAY_MAGIC, 8) != 0)
		return uni_err_set(err, UNI_EFORMAT, "this is not a replay file");
	uni_cursor_copy(c, arch, 16);
	f->nr_vcpus = uni_cursor_u32(c);
	nr_regs = uni_cursor_u32(c);
	space = uni_cursor_u32(c);
	f->block = uni_cursor_u32(c);
	if (version != UNI_REPLAY_VERSION || header != UNI_REPLAY_HEADER)
		return uni_err_set(err, UNI_EFORMAT,
			"replay files of version %u are not known, only %u", version,
			UNI_REPLAY_VERSION);
	f->arch = uni_arch_by_name(arch);
	if (f->arch == NULL)
		return uni_err_set(err, UNI_ENOTSUP, "architecture %s is not known", arch);
	if (f->nr_vcpus < 1 || f->nr_vcpus > UNI_VCPU_MAX || nr_regs != f->arch->nr_regs ||
		space > UNI_GMEM_VIRTUAL)
		return uni_err_set(
			err, UNI_EFORMAT, "the header of the replay file makes no sense");
	f->space = (enum uni_gmem_space)space;
	if (f->block < UNI_GMEM_GRANULE_MIN || f->block > UNI_GMEM_GRANULE_MAX ||
		(f->block & (f->block - 1)) != 0)
		return uni_err_set(
			err, UNI_EFORMAT, "blocks of %u bytes are not possible", f->block);
	space = uni_cursor_u32(c);
	f->at_blocks = (uni_cursor_u32(c) & UNI_REPLAY_AT_BLOCKS) != 0;
	uni_cursor_seek(c, UNI_REPLAY_HEADER);
	return parse_regions(f, c, space, err);
}

static size_t vcpu_bytes(const struct uni_replay_file *f)
{
	return UNI_REPLAY_VCPU_BYTES + 8u * (size_t)f->arch->nr_regs;
}

static int add_block(
	struct uni_replay_file *f, struct uni_cursor *c, size_t size, struct uni_err *err)
{
	struct uni_replay_block b;

	if (size != 8 + (size_t)f->block)
		return uni_err_set(err, UNI_EFORMAT, "a block record of %zu bytes", size);
	b.addr = uni_cursor_u64(c);
	b.offset = c->pos;
	b.snap = f->snap.nr == 0 ? 0 : (uint32_t)(f->snap.nr - 1);
	if ((b.addr & (f->block - 1)) != 0)
		return uni_err_set(err, UNI_EFORMAT, "a block at 0x%llx, which is not aligned",
			(unsigned long long)b.addr);
	if (!uni_vec_push(&f->blocks, b))
		return uni_err_set(err, UNI_ENOMEM, "no memory for %zu blocks", f->blocks.nr);
	return 0;
}

static int add_snapshot(
	struct uni_replay_file *f, struct uni_cursor *c, size_t size, struct uni_err *err)
{
	if (size != f->nr_vcpus * vcpu_bytes(f))
		return uni_err_set(err, UNI_EFORMAT, "a snapshot record of %zu bytes", size);
	if (f->snap.nr == UINT32_MAX || !uni_vec_push(&f->snap, c->pos))
		return uni_err_set(err, UNI_ENOMEM, "no memory for %zu snapshots", f->snap.nr);
	return 0;
}

static int parse_records(struct uni_replay_file *f, struct uni_cursor *c, struct uni_err *err)
{
	while (uni_cursor_left(c) > 0) {
		uint32_t type = uni_cursor_u32(c), size = uni_cursor_u32(c);
		size_t body = c->pos;
		int rc = 0;

		if (c->failed || size > uni_cursor_left(c)) {
			f->truncated = true;
			break;
		}
		if (type == UNI_REPLAY_BLOCK)
			rc = add_block(f, c, size, err);
		else if (type == UNI_REPLAY_SNAPSHOT)
			rc = add_snapshot(f, c, size, err);
		if (rc != 0)
			return rc;
		uni_cursor_seek(c, body + size);
	}
	if (f->snap.nr == 0)
		return uni_err_set(err, UNI_EFORMAT, "there is no snapshot in the replay file");
	return 0;
}

static int by_addr_snap(const void *a, const void *b)
{
	const struct uni_replay_block *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->snap != y->snap)
		return x->snap < y->snap ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

int uni_replay_file_init(
	struct uni_replay_file *ret, const void *data, size_t size, struct uni_err *err)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	struct uni_replay_file f = { .data = data };
	int rc = parse_header(&f, &c, err);

	if (rc == 0)
		rc = parse_records(&f, &c, err);
	if (rc != 0) {
		uni_replay_file_deinit(&f);
		return rc;
	}
	if (f.blocks.nr > 0)
		qsort(f.blocks.v, f.blocks.nr, sizeof(*f.blocks.v), by_addr_snap);
	*ret = f;
	return 0;
}

void uni_replay_file_deinit(struct uni_replay_file *f)
{
	uni_vec_free(&f->region);
	uni_vec_free(&f->blocks);
	uni_vec_free(&f->snap);
}

void uni_replay_file_regs(
	const struct uni_replay_file *f, size_t snap, unsigned vcpu, struct uni_regs *ret)
{
	/* The parser has checked that the whole record is there. */
	struct uni_cursor c =
		uni_cursor_make(f->data + f->snap.v[snap] + vcpu * vcpu_bytes(f), vcpu_bytes(f));
	uint8_t known;

	memset(ret, 0, sizeof(*ret));
	ret->state = uni_cursor_u8(&c);
	if (ret->state > UNI_VCPU_UNKNOWN)
		ret->state = UNI_VCPU_UNKNOWN;
	known = uni_cursor_u8(&c);
	ret->pc_valid = (known & 1) != 0;
	ret->sp_valid = (known & 2) != 0;
	ret->sys_valid = uni_cursor_u8(&c);
	uni_cursor_seek(&c, 8);
	ret->valid = uni_cursor_u64(&c) & ((1ull << f->arch->nr_regs) - 1);
	ret->pc = uni_cursor_u64(&c);
	ret->sp = uni_cursor_u64(&c);
	for (unsigned i = 0; i < UNI_SYS_MAX; i++)
		ret->sys[i] = uni_cursor_u64(&c);
	for (unsigned i = 0; i < f->arch->nr_regs; i++)
		ret->r[i] = uni_cursor_u64(&c);
}

/* The block at addr at the time of the snapshot: the last one that is not later. */
static const struct uni_replay_block *find_block(
	const struct uni_replay_file *f, size_t snap, uint64_t addr)
{
	size_t lo = 0, hi = f->blocks.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct uni_replay_block *b = &f->blocks.v[mid];

		if (b->addr < addr || (b->addr == addr && b->snap <= snap))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 0 && f->blocks.v[lo - 1].addr == addr ? &f->blocks.v[lo - 1] : NULL;
}

int uni_replay_file_read(
	const struct uni_replay_file *f, size_t snap, uint64_t addr, void *buf, size_t len)
{
	uint8_t *out = buf;

	while (len > 0) {
		size_t in_block = (size_t)(addr & (f->block - 1)), room = f->block - in_block;
		size_t n = uni_min(len, room);
		const struct uni_replay_block *b = find_block(f, snap, addr - in_block);

		if (b == NULL)
			return -UNI_EFAULT;
		memcpy(out, f->data + b->offset + in_block, n);
		addr += n;
		out += n;
		len -= n;
	}
	return 0;
}
