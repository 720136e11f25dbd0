/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of perf records as a kernel would hardly write it, and stacks that a process made up. The
 * input: tail and written bytes (4 each), up to 8 KiB of ring, then memory of the process at BASE.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/support/guest.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "sampling/rawstack.h"
#include "backend/proc/record.h"
#include "told_regs.h"

#define BASE	 0x7ff000000000ull
#define RING	 8192u
#define RAM	 16384u
#define MANY_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fake {
	struct uni_target t;
	struct guest g;
};

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->g.m;
}

static const struct uni_target_ops fake_ops = { .gmem = fake_gmem };

static void take_sample(
	struct uni_rawstack *r, const struct uni_stream_raw *raw, const uint8_t *record, size_t n)
{
	struct uni_chain chain;

	tell_regs(&raw->regs);
	told_u64(raw->t_ns);
	told_u64(raw->stack_size);
	told_u64(raw->nr_kernel);
	told_u64(raw->thread);
	if (raw->stack_size != 0 && (raw->stack < record || raw->stack > record + n ||
					    raw->stack_size > (size_t)(record + n - raw->stack)))
		abort();
	for (uint16_t i = 0; i < raw->nr_kernel; i++) {
		const uint8_t *at = (const uint8_t *)&raw->kernel[i];

		if (at < record || at > record + n - sizeof(*raw->kernel))
			abort();
	}
	uni_rawstack_unwind(r, raw, &chain);
	if (chain.nr + raw->nr_kernel < 1 || chain.nr > UNI_CHAIN_MAX || chain.stop >= UNI_STOP_NR)
		abort();
}

static void drain(struct uni_rawstack *r, const uint8_t *ring, uint64_t tail, uint64_t head)
{
	static _Alignas(uint64_t) uint8_t out[UNI_PROC_RECORD_MAX];

	for (unsigned i = 0; i < MANY_MAX && tail != head; i++) {
		size_t n = uni_proc_ring_take(ring, RING, tail, head, out);
		struct uni_stream_raw raw;
		uint64_t lost;

		if (n == 0)
			break;
		if (n > head - tail || n > RING)
			abort();
		if (uni_proc_record_parse(out, n, &raw, &lost) == UNI_PROC_RECORD_SAMPLE)
			take_sample(r, &raw, out, n);
		tail += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	uint64_t tail = uni_cursor_u32(&c), written = uni_cursor_u32(&c);
	struct fake f = { .t = { .ops = &fake_ops, .arch = &uni_arch_x86_64 } };
	struct uni_rawstack *r = NULL;
	struct uni_unwinder u;
	uint8_t *ring;
	size_t n;

	if (c.failed)
		return 0;
	ring = calloc(1, RING);
	uni_unwinder_init(&u, &uni_arch_x86_64, NULL);
	if (ring != NULL && guest_init(&f.g, BASE, RAM, UNI_GMEM_VIRTUAL) &&
		uni_rawstack_create(&f.t, &u, &r, NULL) == 0) {
		n = uni_min(size - c.pos, (size_t)RING);
		memcpy(ring, data + c.pos, n);
		memcpy(f.g.ram, data + c.pos + n, uni_min(size - c.pos - n, (size_t)RAM));
		drain(r, ring, tail, tail + written);
	}
	uni_rawstack_destroy(r);
	guest_deinit(&f.g);
	free(ring);
	return 0;
}
