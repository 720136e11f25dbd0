/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address space of its own. Reads find the copy of the stack first, then the running process.
 * The process has run on since, so its memory may have changed. Code has not. A frame that was
 * found by other data is a guess, like all frames after it, and the chain is not complete. Such
 * data is the outer end of a deep stack, or another stack. A word below the stack pointer is of no
 * use.
 */
#include "sampling/rawstack.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

#define BELOW_BYTES 4096 /* a page */

struct uni_rawstack {
	struct uni_target *t;
	const struct uni_unwinder *u;
	const struct uni_stream_raw *raw; /* during one call */
	bool only_copy;			  /* no data of the running process */
	bool read_live;			  /* such data was wanted */
	struct uni_chain sure;		  /* made of the copy alone */
	struct uni_gmem *gmem;
	struct uni_as *as;
};

static bool is_below_stack(const struct uni_stream_raw *raw, uint64_t from)
{
	return raw->stack_size != 0 && raw->regs.sp - from - 1 < BELOW_BYTES;
}

/* Code does not change: that of an image, or what is beside the interrupted instruction. */
static bool is_code(const struct uni_rawstack *r, uint64_t from, size_t len)
{
	uint64_t last = from + (len - 1), pc = r->raw->regs.pc;

	return uni_hints_of(r->u->hints, from) != NULL || uni_hints_of(r->u->hints, last) != NULL ||
	       (r->raw->regs.pc_valid && from / BELOW_BYTES == pc / BELOW_BYTES);
}

static int read_process(struct uni_rawstack *r, uint64_t from, void *buf, size_t len)
{
	const struct uni_stream_raw *raw = r->raw;
	bool partly = uni_range_overlaps(raw->regs.sp, raw->stack_size, from, len);
	uint64_t low, high;
	int rc;

	/* Then the part that is needed is asked for alone. */
	if (partly && len == uni_gmem_granule(r->gmem))
		return -UNI_EFAULT;
	if (raw->unwound == NULL && (partly || !is_code(r, from, len))) {
		r->read_live = true;
		if (r->only_copy || (!partly && is_below_stack(raw, from)))
			return -UNI_EFAULT;
	}
	rc = uni_gmem_read(r->t->ops->gmem(r->t), uni_gpa_of(from), buf, len);
	if (rc != 0 || !partly)
		return rc;
	low = uni_max(from, raw->regs.sp);
	high = uni_min(from + len, raw->regs.sp + raw->stack_size);
	memcpy((uint8_t *)buf + (low - from), raw->stack + (low - raw->regs.sp), high - low);
	return 0;
}

static int read_memory(
	void *ctx, const struct uni_gmem_region *region, uint64_t offset, void *buf, size_t len)
{
	struct uni_rawstack *r = ctx;
	const struct uni_stream_raw *raw = r->raw;
	uint64_t from = region->start + offset;

	if (uni_range_contains(raw->regs.sp, raw->stack_size, from, len)) {
		memcpy(buf, raw->stack + (from - raw->regs.sp), len);
		return 0;
	}
	if (uni_range_contains(raw->other_sp, raw->other_size, from, len)) {
		memcpy(buf, raw->other + (from - raw->other_sp), len);
		return 0;
	}
	return raw->alone ? -UNI_EFAULT : read_process(r, from, buf, len);
}

static bool is_code_of_process(void *ctx, uint64_t va)
{
	const struct uni_rawstack *r = ctx;

	return uni_gmem_may_be_code(r->t->ops->gmem(r->t), uni_gpa_of(va));
}

static const struct uni_gmem_ops gmem_ops = { .read = read_memory, .is_code = is_code_of_process };

/* Nobody waits for it: a busy host may take its time. */
static const struct uni_as_budget budget = {
	.bytes = 1024u * 1024,
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

/* The frames that the copy alone does not give are guesses. */
static void mark_live_frames(struct uni_rawstack *r, struct uni_chain *c)
{
	struct uni_unwinder sure = *r->u;
	uint16_t first;
	size_t nr = 0;

	for (size_t i = 0; i < uni_array_len(sure.stepper) && sure.stepper[i].ops != NULL; i++) {
		sure.stepper[i].ctx = &sure;
		if (!sure.stepper[i].ops->guesses)
			sure.stepper[nr++] = sure.stepper[i];
	}
	if (nr < uni_array_len(sure.stepper))
		sure.stepper[nr].ops = NULL;
	r->only_copy = true;
	uni_unwind(&sure, r->as, &r->raw->regs, &r->sure);
	if (c->stop == r->sure.stop && c->nr == r->sure.nr &&
		memcmp(c->pc, r->sure.pc, c->nr * sizeof(c->pc[0])) == 0)
		return;
	first = r->sure.nr;
	if (c->nr > UNI_CHAIN_INNER && (c->flags[UNI_CHAIN_INNER] & UNI_FRAME_GAP) != 0)
		first = uni_min(first, (uint16_t)UNI_CHAIN_INNER);
	for (uint16_t i = first; i < c->nr; i++)
		c->flags[i] |= UNI_FRAME_GUESS;
	if (c->stop == UNI_STOP_ROOT)
		c->stop = UNI_STOP_FAULT;
}

void uni_rawstack_unwind(
	struct uni_rawstack *r, const struct uni_stream_raw *raw, struct uni_chain *ret)
{
	r->raw = raw;
	r->only_copy = r->read_live = false;
	uni_unwind(r->u, r->as, &raw->regs, ret);
	if (r->read_live)
		mark_live_frames(r, ret);
	r->raw = NULL;
}
