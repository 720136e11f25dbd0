/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chain that the program in the kernel makes, compiled as plain C. The input is the registers,
 * the facts about a piece of code and its unwind rows. Then comes the guest's memory: page tables
 * and a stack. The verifier bounds the memory that is read; here a sanitizer and the checks do.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define UNI_BPF_PORT "../tests/support/bpf_port.h"
#include "backend/kvm/bpf/chain.bpf.h"
#include "told.h"

#define RAM_SIZE (8 * UNI_PAGE)
#define NR_TEXT	 8
#define NR_CFI	 4
#define TEXT	 0x1000
#define READS	 60000 /* of the guest: no chain needs more */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t ram[RAM_SIZE];
static struct {
	struct uni_bpf_regs regs;
	uint32_t flags, pad;
	struct uni_bpf_text text[NR_TEXT];
	struct uni_bpf_cfi cfi[NR_CFI];
} in;

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct uni_bpf_scratch s;
	struct uni_bpf_guest g = { .text_start = TEXT, .text_size = sizeof(u64) * NR_TEXT };
	size_t head = uni_min(size, sizeof(in)), rest = uni_min(size - head, sizeof(ram));

	memset(&in, 0, sizeof(in));
	memset(ram, 0, sizeof(ram));
	memcpy(&in, data, head);
	if (rest != 0)
		memcpy(ram, data + head, rest);
	memset(&s, 0xa5, sizeof(s));
	s.guest = 0;
	s.regs = in.regs;
	g.flags = in.flags;
	g.slot[0][0] = (struct uni_bpf_slot){ 0, RAM_SIZE, (uint64_t)(uintptr_t)ram };
	g.nr_slots[0] = 1;
	bpf_user = ram;
	bpf_user_size = sizeof(ram);
	bpf_user_reads = 0;
	bpf_text = in.text;
	bpf_text_nr = NR_TEXT;
	bpf_cfi = in.cfi;
	bpf_cfi_nr = NR_CFI;
	if (uni_chain(&g, &s) == 0) {
		require((s.regs.have & UNI_BPF_HAVE_PC) == 0);
		return 0;
	}
	require(s.nr >= 1 && s.nr <= UNI_BPF_FRAMES && s.pc[0] == in.regs.pc);
	require(s.stop < UNI_STOP_NR || s.stop == UNI_BPF_STOP_FP_0);
	require(bpf_user_reads < READS);
	told(s.pc, s.nr * sizeof(s.pc[0]));
	told_u64(s.stop);
	for (u32 i = 0; i < sizeof(s.rec.exact) && s.rec.exact[i] != 0; i++)
		require(s.rec.exact[i] < s.nr);
	return 0;
}
