/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest made up in memory, whose program is this very test's, for tests of what the kernel side
 * makes of its stacks. Included once by each of them, after cmocka.
 */
#ifndef UNI_TESTS_KVMCHAIN_GUEST_H
#define UNI_TESTS_KVMCHAIN_GUEST_H

#include <stdlib.h>
#include <string.h>

#include "arch/cfi.h"
#include "arch/x86_64/x86_64.h"
#include "base/checked.h"
#include "obj/image.h"
#include "unwind/unwind.h"

#define UNI_BPF_PORT "../support/bpf_port.h"
#include "backend/kvm/bpf/chain.bpf.h"
#include "backend/kvm/bpf/text.h"

#define RAM_SIZE   (16u << 20)
#define RAM_GPA	   0x40000000ull
#define STACK_VA   0xffffc90000000000ull
#define STACK_SIZE 0x8000u
#define PAGE	   4096u

struct fixture {
	uint8_t *ram;
	uint64_t next; /* free page, from the end of the stack and the text */
	uint64_t root;
	struct uni_image *image;
	const struct uni_unwind_hints *hints;
	struct uni_unwinder unwinder;
	struct uni_gmem *gmem;
	struct uni_as *as;
	struct uni_kvm_text text;
	struct uni_bpf_guest guest;
	struct uni_bpf_scratch scratch;
	uint64_t *call;	  /* return addresses in the text */
	uint64_t *target; /* where the call before it goes; 0: through a pointer */
	size_t nr_calls;
	uint64_t rng;
};

static inline uint64_t rnd(struct fixture *f)
{
	f->rng ^= f->rng << 13;
	f->rng ^= f->rng >> 7;
	f->rng ^= f->rng << 17;
	return f->rng;
}

static inline uint8_t *at(struct fixture *f, uint64_t gpa)
{
	return f->ram + (gpa - RAM_GPA);
}

static inline uint64_t new_page(struct fixture *f)
{
	uint64_t gpa = f->next;

	f->next += PAGE;
	assert_true(f->next <= RAM_GPA + RAM_SIZE);
	return gpa;
}

static inline uint64_t *entry(struct fixture *f, uint64_t table, unsigned i)
{
	return (uint64_t *)(void *)at(f, table + i * 8);
}

/* 4 KiB leaves, each on a page that is not next to the one before; a stack is no code. */
static inline uint64_t map(struct fixture *f, uint64_t va)
{
	uint64_t table = f->root;

	for (unsigned shift = 39; shift > 12; shift -= 9) {
		uint64_t *e = entry(f, table, va >> shift & 511);

		if (*e == 0)
			*e = new_page(f) | 3;
		table = *e & UNI_PT_ADDR;
	}
	if (*entry(f, table, va >> 12 & 511) == 0)
		*entry(f, table, va >> 12 & 511) =
			new_page(f) | 3 | (va - STACK_VA < STACK_SIZE ? UNI_PT_NX : 0);
	return *entry(f, table, va >> 12 & 511) & UNI_PT_ADDR;
}

static inline void poke(struct fixture *f, uint64_t va, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		*at(f, map(f, va + i) + (va + i) % PAGE) = (uint8_t)(value >> (8 * i));
}

static inline int read_ram(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	memcpy(buf, (const uint8_t *)ctx + r->cookie + offset, len);
	return 0;
}

static inline void read_code(void *ctx, uint64_t gva, void *buf, size_t len)
{
	struct fixture *f = ctx;

	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = *at(f, map(f, gva + i) + (gva + i) % PAGE);
}

static inline void load_text(struct fixture *f)
{
	struct uni_kvm_code code = { read_code, f };
	uint64_t va = f->hints->text_start, end = va + f->hints->text_size;
	struct uni_err err = { 0 };

	for (; va < end; va++) {
		uint8_t b = 0;

		(void)uni_image_bytes(f->image, va, &b, 1);
		*at(f, map(f, va) + va % PAGE) = b;
	}
	assert_int_equal(uni_kvm_text_make(&uni_arch_x86_64, f->hints, &code, &f->text, &err), 0);
	assert_null(f->text.cfi); /* this program has frame pointers */
	assert_int_equal(uni_kvm_text_add_cfi(&f->text, &uni_arch_x86_64, f->hints), 0);
	bpf_text = f->text.text;
	bpf_text_nr = f->text.nr;
	bpf_cfi = f->text.cfi;
	bpf_cfi_nr = f->text.nr_cfi;
	f->call = malloc(f->hints->text_size * sizeof(*f->call));
	f->target = malloc(f->hints->text_size * sizeof(*f->target));
	assert_non_null(f->call);
	assert_non_null(f->target);
	for (va = f->hints->text_start + 8; va < end; va++) {
		uint8_t op[5];
		int32_t rel;

		read_code(f, va - 5, op, 5);
		if (op[0] != 0xe8 && (op[3] != 0xff || (op[4] & 0xf8) != 0xd0))
			continue;
		memcpy(&rel, op + 1, 4);
		f->target[f->nr_calls] = op[0] == 0xe8 ? va + (uint64_t)(int64_t)rel : 0;
		f->call[f->nr_calls++] = va;
	}
	assert_true(f->nr_calls > 100);
}

/* The unwinder by unwind rows only, or by frame pointers only. */
static inline void use_rows(struct fixture *f, bool rows)
{
	assert_int_equal(uni_unwinder_use(&f->unwinder, rows ? "cfi" : "fp", NULL), 0);
	/* And samples whose registers are of one instant, as the unwinder's. */
	f->guest.flags = (rows ? UNI_BPF_CFI : 0) | UNI_BPF_SPLIT;
}

static inline int setup(void **state)
{
	struct uni_as_budget budget = uni_as_budget_default;
	static const struct uni_gmem_ops ops = { .read = read_ram };
	const struct uni_gmem_region region = { .start = RAM_GPA, .size = RAM_SIZE };
	struct fixture *f = calloc(1, sizeof(*f));
	struct uni_err err = { 0 };

	assert_non_null(f);
	f->rng = 0x9e3779b97f4a7c15ull;
	f->ram = calloc(1, RAM_SIZE);
	assert_non_null(f->ram);
	f->next = RAM_GPA;
	f->root = new_page(f);
	assert_int_equal(uni_image_load("/proc/self/exe", &f->image, &err), 0);
	assert_int_equal(uni_image_hints(f->image, 0, &f->hints, &err), 0);
	assert_true(f->hints->nr_funcs > 100 && f->hints->text_size < RAM_SIZE / 2);
	load_text(f);
	assert_int_equal(
		uni_gmem_create(&ops, f->ram, UNI_GMEM_PHYSICAL, &region, 1, &f->gmem, &err), 0);
	budget.wall_ns = 0; /* a busy machine is no broken chain */
	assert_int_equal(uni_as_create(f->gmem, &budget, &f->as, &err), 0);
	uni_unwinder_init(&f->unwinder, &uni_arch_x86_64, f->hints);
	use_rows(f, false);
	bpf_user = f->ram;
	bpf_user_size = RAM_SIZE;
	f->guest.text_start = f->hints->text_start;
	f->guest.text_size = f->hints->text_size;
	/* Several slots, of which the right one is not the first. */
	f->guest.slot[0][0] = (struct uni_bpf_slot){ 0, 0x1000000, 0x10000 };
	f->guest.slot[0][1] = (struct uni_bpf_slot){ 0xfff00000, 0x100000, 0x10000 };
	f->guest.slot[0][2] =
		(struct uni_bpf_slot){ RAM_GPA, RAM_SIZE, (uint64_t)(uintptr_t)f->ram };
	f->guest.nr_slots[0] = 3;
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	uni_as_destroy(f->as);
	uni_gmem_destroy(f->gmem);
	uni_image_destroy(f->image);
	uni_kvm_text_free(&f->text);
	free(f->call);
	free(f->target);
	free(f->ram);
	free(f);
	return 0;
}

static inline void long_mode(struct fixture *f, struct uni_bpf_regs *r)
{
	r->cr0 = UNI_CR0_PG | 1;
	r->cr4 = UNI_CR4_PAE;
	r->cr3 = f->root;
	r->efer = UNI_EFER_LMA | UNI_EFER_NXE | 1u << 8;
	r->have = UNI_BPF_HAVE_PC | UNI_BPF_HAVE_SP | UNI_BPF_HAVE_CR0 | UNI_BPF_HAVE_CR3 |
		  UNI_BPF_HAVE_CR4;
}

/* A call of the very function that holds pc, for the search in functions without a frame. */
static inline void poke_call_of(struct fixture *f, uint64_t va, uint64_t pc)
{
	const struct uni_func_hint *h = uni_hints_find(f->hints, pc);

	for (size_t i = 0; h != NULL && i < f->nr_calls; i++) {
		if (f->target[i] != h->start)
			continue;
		poke(f, va, f->call[i]);
		return;
	}
}

/* The next pc to try: all of a small program's, some of a large one's. */
static inline uint64_t next_pc(struct fixture *f, uint64_t off)
{
	return off + 1 + rnd(f) % (3 + f->hints->text_size / 50000);
}

static inline unsigned rule_of(const struct fixture *f, uint64_t pc)
{
	uint64_t off = pc - f->hints->text_start;

	return off < f->hints->text_size ? f->text.text[off / 8].rule >> off % 8 * 8 & 0xff : 256;
}

#ifdef __clang__
#define CLANG true
#else
#define CLANG false
#endif

#endif
