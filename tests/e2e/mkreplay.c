/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mkreplay FILE VCPUS SNAPSHOTS: a replay file of so many vCPUs. Number v is at 0x1000 + v in all
 * snapshots, and nobody called it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "arch/arch.h"
#include "arch/regs.h"
#include "base/text.h"
#include "backend/replay/writer.h"

static int read_nothing(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	return -UNI_EFAULT;
}

static void fill(struct uni_regs *regs, uint32_t nr)
{
	for (uint32_t v = 0; v < nr; v++) {
		regs[v].pc = 0x1000 + v;
		regs[v].sp = 0x100000;
		regs[v].pc_valid = regs[v].sp_valid = true;
		uni_regs_set(&regs[v], UNI_X86_RBP, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct uni_gmem_ops ops = { .read = read_nothing };
	const struct uni_gmem_region ram = { .start = 0, .size = 0x1000 };
	struct uni_replay_writer *w = NULL;
	struct uni_gmem *m = NULL;
	struct uni_regs *regs;
	struct uni_err err = { 0 };
	uint64_t nr, snapshots;
	int rc;

	if (argc != 4 || !uni_parse_u64(argv[2], &nr) || nr == 0 || nr > UNI_VCPU_MAX ||
		!uni_parse_u64(argv[3], &snapshots)) {
		(void)fprintf(stderr, "usage: mkreplay FILE VCPUS SNAPSHOTS\n");
		return 2;
	}
	regs = calloc(nr, sizeof(*regs));
	if (regs == NULL)
		return 1;
	fill(regs, (uint32_t)nr);
	rc = uni_gmem_create(&ops, NULL, UNI_GMEM_VIRTUAL, &ram, 1, &m, &err);
	if (rc == 0)
		rc = uni_replay_writer_create(
			argv[1], &uni_arch_x86_64, (uint32_t)nr, m, 4096, 0, &w, &err);
	for (uint64_t i = 0; rc == 0 && i < snapshots; i++)
		uni_replay_writer_snapshot(w, regs);
	if (rc == 0)
		rc = uni_replay_writer_close(w, &err);
	if (rc != 0)
		(void)fprintf(stderr, "mkreplay: %s\n", err.msg);
	uni_gmem_destroy(m);
	free(regs);
	return rc == 0 ? 0 : 1;
}
