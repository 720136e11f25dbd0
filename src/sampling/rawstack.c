/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address space of its own. Reads find the copy of the stack first, then the running process.
 * The process has run on since, so its memory may have changed. Only data that hardly changes
 * should come from it (code, the outer end of a deep stack).
 */
#include "sampling/rawstack.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

struct uni_rawstack {
	struct uni_target *t;
	const struct uni_unwinder *u;
	const struct uni_stream_raw *raw; /* during one call */
	struct uni_gmem *gmem;
	struct uni_as *as;
};

static int read_memory(
	void *ctx, const struct uni_gmem_region *region, uint64_t offset, void *buf, size_t len)
{
	const struct uni_rawstack *r = ctx;
	const struct uni_stream_raw *raw = r->raw;
	uint64_t from = region->start + offset, low, high;
	int rc;

	if (uni_range_contains(raw->regs.sp, raw->stack_size, from, len)) {
		memcpy(buf, raw->stack + (from - raw->regs.sp), len);
		return 0;
	}
	if (raw->nr != 0)
		return -UNI_EFAULT;
	rc = uni_gmem_read(r->t->ops->gmem(r->t), uni_gpa_of(from), buf, len);
	if (rc != 0 || !uni_range_overlaps(raw->regs.sp, raw->stack_size, from, len))
		return rc;
	/* A piece that is partly copied: that part as it was. */
	low = uni_max(from, raw->regs.sp);
	high = uni_min(from + len, raw->regs.sp + raw->stack_size);
	memcpy((uint8_t *)buf + (low - from), raw->stack + (low - raw->regs.sp), high - low);
	return 0;
}

static const struct uni_gmem_ops gmem_ops = { .read = read_memory };

/* Nobody waits for it: a busy host may take its time. */
static const struct uni_as_budget budget = {
	.bytes = 256u * 1024,
	.table_loads = 4096,
	.cpu_ns = 20 * UNI_NSEC_PER_MSEC,
};

int uni_rawstack_create(struct uni_target *t, const struct uni_unwinder *u,
	struct uni_rawstack **ret, struct uni_err *err)
{
	struct uni_gmem *m = t->ops->gmem(t);
	struct uni_rawstack *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return uni_err_nomem(err);
	r->t = t;
	r->u = u;
	rc = uni_gmem_create(&gmem_ops, r, uni_gmem_space(m), uni_gmem_region(m, 0),
		uni_gmem_nr_regions(m), &r->gmem, err);
	if (rc == 0)
		rc = uni_as_create(r->gmem, &budget, &r->as, err);
	if (rc != 0)
		uni_rawstack_destroy(r);
	else
		*ret = r;
	return rc;
}

void uni_rawstack_destroy(struct uni_rawstack *r)
{
	if (r == NULL)
		return;
	uni_as_destroy(r->as);
	uni_gmem_destroy(r->gmem);
	free(r);
}

void uni_rawstack_unwind(
	struct uni_rawstack *r, const struct uni_stream_raw *raw, struct uni_chain *ret)
{
	r->raw = raw;
	uni_unwind(r->u, r->as, &raw->regs, ret);
	r->raw = NULL;
}
