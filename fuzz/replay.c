/* SPDX-License-Identifier: BSD-2-Clause */
/* Replay files: what loads is unwound, each vCPU of each snapshot. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/replay/file.h"
#include "unwind/unwind.h"
#include "told_regs.h"

#define SNAPS_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct served {
	const struct uni_replay_file *f;
	size_t snap;
};

static int read_file(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	const struct served *s = ctx;

	return uni_replay_file_read(s->f, s->snap, r->start + offset, buf, len);
}

static const struct uni_gmem_ops ops = { .read = read_file };

static void unwind_all(struct served *s, struct uni_as *as)
{
	struct uni_unwinder u;
	struct uni_chain chain;
	struct uni_regs regs;

	uni_unwinder_init(&u, s->f->arch, NULL);
	for (s->snap = 0; s->snap < s->f->snap.nr && s->snap < SNAPS_MAX; s->snap++) {
		for (unsigned v = 0; v < s->f->nr_vcpus; v++) {
			uni_replay_file_regs(s->f, s->snap, v, &regs);
			tell_regs(&regs);
			uni_unwind(&u, as, &regs, &chain);
			if (chain.nr > UNI_CHAIN_MAX || chain.stop >= UNI_STOP_NR)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_err err = { 0 };
	struct uni_replay_file f;
	struct served s = { .f = &f };
	struct uni_gmem *m = NULL;
	struct uni_as *as = NULL;

	if (uni_replay_file_init(&f, data, size, &err) != 0) {
		if (err.code == 0)
			abort(); /* each refusal has a message */
		told_text(err.msg);
		return 0;
	}
	if (uni_gmem_create(&ops, &s, f.space, f.region.v, f.region.nr, &m, &err) == 0) {
		uni_gmem_set_granule(m, f.block);
		if (uni_as_create(m, &uni_as_budget_once, &as, NULL) == 0)
			unwind_all(&s, as);
		uni_as_destroy(as);
	}
	uni_gmem_destroy(m);
	uni_replay_file_deinit(&f);
	return 0;
}
