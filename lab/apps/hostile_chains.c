/* SPDX-License-Identifier: BSD-2-Clause */
/* Broken frame-pointer chains and stack pointers, in plain memory. */
#include "cpu.h"
#include "hostile.h"

#define NR_FRAMES   16
#define LONG_FRAMES 16384
#define BAIT	    0xffffd20000000000ULL /* above all stacks: a chain that leads there rises */
#define UNMAPPED    0xffffd3fffffff000ULL

static uint64_t cycle_rbp, self_rbp, descend_rbp, misaligned_rbp, unmapped_rbp, noncanonical_rbp;
static uint64_t wrap_rbp, data_rbp, zero_rbp, long_rbp;
static uint64_t rsp_page;

struct frame *hostile_pages(unsigned nr)
{
	static uint64_t next = BAIT;
	uint64_t va = next, pa = lab_page_alloc(nr);

	for (unsigned i = 0; i < nr; i++)
		lab_map(va + i * LAB_PAGE_SIZE, pa + i * LAB_PAGE_SIZE, PTE_WRITE, 12);
	next += (nr + 1) * LAB_PAGE_SIZE;
	return (struct frame *)va;
}

static struct hostile_regs just_rbp(uint64_t rbp)
{
	return (struct hostile_regs){ .rbp = rbp };
}

static void prepare_cycle(void)
{
	struct frame *f = hostile_pages(1);

	cycle_rbp = link_frames(f, NR_FRAMES, (uint64_t)f);
}

static struct hostile_regs step_cycle(uint64_t turn)
{
	return just_rbp(cycle_rbp);
}

static void prepare_self(void)
{
	struct frame *f = hostile_pages(1);

	self_rbp = link_frames(f, 1, (uint64_t)f);
}

static struct hostile_regs step_self(uint64_t turn)
{
	return just_rbp(self_rbp);
}

static void prepare_descend(void)
{
	struct frame *f = hostile_pages(1);

	for (unsigned i = 1; i < NR_FRAMES; i++)
		link_frames(&f[i], 1, (uint64_t)&f[i - 1]);
	descend_rbp = (uint64_t)&f[NR_FRAMES - 1];
}

static struct hostile_regs step_descend(uint64_t turn)
{
	return just_rbp(descend_rbp);
}

static void prepare_misaligned(void)
{
	struct frame *f = hostile_pages(1);

	misaligned_rbp = link_frames(f, NR_FRAMES, (uint64_t)&f[NR_FRAMES] + 3);
}

/* Aligned up to the last link, or odd from the start. */
static struct hostile_regs step_misaligned(uint64_t turn)
{
	return just_rbp(misaligned_rbp + (turn & 1));
}

static void prepare_unmapped(void)
{
	unmapped_rbp = link_frames(hostile_pages(1), NR_FRAMES, UNMAPPED);
	noncanonical_rbp = link_frames(hostile_pages(1), NR_FRAMES, 0x0000800000001000ULL);
	wrap_rbp = link_frames(hostile_pages(1), NR_FRAMES, 0xfffffffffffffff8ULL);
}

static struct hostile_regs step_unmapped(uint64_t turn)
{
	return just_rbp(turn & 1 ? unmapped_rbp : UNMAPPED);
}

static struct hostile_regs step_noncanonical(uint64_t turn)
{
	return just_rbp(turn & 1 ? noncanonical_rbp : 0x8000000000000000ULL);
}

/* The frame would lie around the end of the address space. */
static struct hostile_regs step_wrap(uint64_t turn)
{
	return just_rbp(turn & 1 ? wrap_rbp : 0xfffffffffffffff0ULL);
}

static void prepare_data(void)
{
	struct frame *f = hostile_pages(1);

	data_rbp = link_frames(f, NR_FRAMES, 0);
	for (unsigned i = 0; i < NR_FRAMES; i++)
		f[i].ret = (uint64_t)&f[i];
	f = hostile_pages(1);
	zero_rbp = link_frames(f, NR_FRAMES, 0);
	f[NR_FRAMES / 2].ret = 0;
}

static struct hostile_regs step_data(uint64_t turn)
{
	return just_rbp(data_rbp);
}

static struct hostile_regs step_zero(uint64_t turn)
{
	return just_rbp(zero_rbp);
}

static void prepare_long(void)
{
	struct frame *f = hostile_pages(LONG_FRAMES * sizeof(*f) / 4096);

	long_rbp = link_frames(f, LONG_FRAMES, 0);
}

static struct hostile_regs step_long(uint64_t turn)
{
	return just_rbp(long_rbp);
}

static void prepare_rsp(void)
{
	rsp_page = (uint64_t)hostile_pages(1);
}

/* Unusable, misaligned, device memory, across the end of a page. rbp is the true one. */
static struct hostile_regs step_rsp(uint64_t turn)
{
	static const uint64_t bad[] = { 1, 0xdeadbeefdeadbeef, UNMAPPED, 0xfffffffffffffff8,
		0xffffffffffffffff, 0x00007ffffffffff8, 0xffffffffc0000030 };
	const unsigned nr = sizeof(bad) / sizeof(bad[0]);
	unsigned i = (unsigned)(turn % (nr + 1));

	return (struct hostile_regs){
		.rbp = (uint64_t)__builtin_frame_address(0),
		.rsp = i < nr ? bad[i] : rsp_page + 4096 - 4,
	};
}

const struct hostile_mode hostile_chains[] = {
	{ "cycle", prepare_cycle, step_cycle },
	{ "self", prepare_self, step_self },
	{ "descend", prepare_descend, step_descend },
	{ "misaligned", prepare_misaligned, step_misaligned },
	{ "unmapped", prepare_unmapped, step_unmapped },
	{ "noncanonical", prepare_unmapped, step_noncanonical },
	{ "wrap", prepare_unmapped, step_wrap },
	{ "data", prepare_data, step_data },
	{ "zero", prepare_data, step_zero },
	{ "long", prepare_long, step_long },
	{ "rsp", prepare_rsp, step_rsp },
	{ NULL, NULL, NULL },
};
