/* SPDX-License-Identifier: BSD-2-Clause */
/* The layouts of x86_64 registers in the cores of QEMU, Xen and Linux. */
#include <string.h>

#include "backend/core/file.h"

#define SKIP 0xff /* a word that is no register that we use */

#define CR0_PE	 (1ull << 0)
#define CR0_PG	 (1ull << 31)
#define CR4_PAE	 (1ull << 5)
#define EFER_PV	 (1ull << 8 | 1ull << 10 | 1ull << 11) /* LME, LMA, NXE */
#define XEN_UP	 (1u << 5)			       /* VGCF_online */
#define RESET_PC 0xfff0

/* Reads words in the file's order, each by its DWARF number. */
static void take_words(struct uni_cursor *c, const uint8_t *order, size_t nr, struct uni_regs *ret)
{
	for (size_t i = 0; i < nr; i++) {
		uint64_t v = uni_cursor_u64(c);

		if (order[i] != SKIP)
			uni_regs_set(ret, order[i], v);
	}
}

static void finish_core_regs(struct uni_regs *r)
{
	uint64_t cr0;

	r->pc_valid = uni_regs_get(r, UNI_X86_RIP, &r->pc);
	r->sp_valid = uni_regs_get(r, UNI_X86_RSP, &r->sp);
	/* It waits for its first start-up interrupt: at the reset vector, in real mode. */
	if (uni_regs_get_sys(r, UNI_X86_CR0, &cr0) && (cr0 & CR0_PE) == 0 && r->pc == RESET_PC)
		r->state = UNI_VCPU_OFFLINE;
}

/* QEMU, target/i386/arch_dump.c: version and size, 18 words, 10 segments of 24 bytes, CR0 to CR4.
 */
static bool x86_64_qemu(const uint8_t *desc, size_t size, struct uni_regs *ret)
{
	static const uint8_t order[] = { UNI_X86_RAX, UNI_X86_RBX, UNI_X86_RCX, UNI_X86_RDX,
		UNI_X86_RSI, UNI_X86_RDI, UNI_X86_RSP, UNI_X86_RBP, UNI_X86_R8, UNI_X86_R9,
		UNI_X86_R10, UNI_X86_R11, UNI_X86_R12, UNI_X86_R13, UNI_X86_R14, UNI_X86_R15,
		UNI_X86_RIP };
	enum { CS, FS = 3, GS, NR_SEGMENTS = 10 };
	struct uni_cursor c = uni_cursor_make(desc, size);
	struct uni_regs r = { .state = UNI_VCPU_RUNNING };
	uint64_t cr[5];

	(void)uni_cursor_take(&c, 8);
	take_words(&c, order, sizeof(order), &r);
	uni_regs_set_sys(&r, UNI_X86_RFLAGS, uni_cursor_u64(&c));
	for (unsigned i = 0; i < NR_SEGMENTS; i++) {
		uint32_t selector = uni_cursor_u32(&c);
		uint64_t base;

		(void)uni_cursor_take(&c, 12); /* limit, flags, padding */
		base = uni_cursor_u64(&c);
		if (i == CS)
			uni_regs_set_sys(&r, UNI_X86_CS, selector);
		else if (i == FS || i == GS)
			uni_regs_set_sys(&r, i == FS ? UNI_X86_FS_BASE : UNI_X86_GS_BASE, base);
	}
	for (unsigned i = 0; i < 5; i++)
		cr[i] = uni_cursor_u64(&c);
	if (c.failed)
		return false;
	uni_regs_set_sys(&r, UNI_X86_CR0, cr[0]);
	uni_regs_set_sys(&r, UNI_X86_CR3, cr[3]);
	uni_regs_set_sys(&r, UNI_X86_CR4, cr[4]);
	finish_core_regs(&r);
	*ret = r;
	return true;
}

/* Linux, struct elf_prstatus: 112 other bytes, then user_regs_struct. */
static bool x86_64_prstatus(const uint8_t *desc, size_t size, struct uni_regs *ret)
{
	static const uint8_t order[] = { UNI_X86_R15, UNI_X86_R14, UNI_X86_R13, UNI_X86_R12,
		UNI_X86_RBP, UNI_X86_RBX, UNI_X86_R11, UNI_X86_R10, UNI_X86_R9, UNI_X86_R8,
		UNI_X86_RAX, UNI_X86_RCX, UNI_X86_RDX, UNI_X86_RSI, UNI_X86_RDI, SKIP,
		UNI_X86_RIP };
	static const uint8_t stack[] = { UNI_X86_RSP, SKIP };
	struct uni_cursor c = uni_cursor_make(desc, size);
	struct uni_regs r = { .state = UNI_VCPU_RUNNING };

	(void)uni_cursor_take(&c, 112);
	take_words(&c, order, sizeof(order), &r);
	uni_regs_set_sys(&r, UNI_X86_CS, uni_cursor_u64(&c));
	uni_regs_set_sys(&r, UNI_X86_RFLAGS, uni_cursor_u64(&c));
	take_words(&c, stack, sizeof(stack), &r);
	uni_regs_set_sys(&r, UNI_X86_FS_BASE, uni_cursor_u64(&c));
	uni_regs_set_sys(&r, UNI_X86_GS_BASE, uni_cursor_u64(&c));
	if (c.failed)
		return false;
	finish_core_regs(&r);
	*ret = r;
	return true;
}

/*
 * Xen, public/arch-x86/xen.h, struct vcpu_guest_context:
 *
 *   0 FPU, 512 flags, 520 user registers (200), 720 traps, 4984 control registers, 5144 FS base
 *
 * A PV guest always has four levels of tables, whatever its control registers say: it has no
 * choice.
 */
static bool x86_64_xen(const uint8_t *ctx, size_t size, bool pv, struct uni_regs *ret)
{
	static const uint8_t order[] = { UNI_X86_R15, UNI_X86_R14, UNI_X86_R13, UNI_X86_R12,
		UNI_X86_RBP, UNI_X86_RBX, UNI_X86_R11, UNI_X86_R10, UNI_X86_R9, UNI_X86_R8,
		UNI_X86_RAX, UNI_X86_RCX, UNI_X86_RDX, UNI_X86_RSI, UNI_X86_RDI, SKIP,
		UNI_X86_RIP };
	static const uint8_t stack[] = { UNI_X86_RSP };
	struct uni_cursor c = uni_cursor_make(ctx, size);
	struct uni_regs r = { .state = UNI_VCPU_RUNNING };
	uint64_t cr[8];
	uint64_t flags;

	uni_cursor_seek(&c, 512);
	flags = uni_cursor_u64(&c);
	take_words(&c, order, sizeof(order), &r);
	uni_regs_set_sys(&r, UNI_X86_CS, uni_cursor_u64(&c) & 0xffff);
	uni_regs_set_sys(&r, UNI_X86_RFLAGS, uni_cursor_u64(&c));
	take_words(&c, stack, sizeof(stack), &r);
	uni_cursor_seek(&c, 4984);
	for (unsigned i = 0; i < 8; i++)
		cr[i] = uni_cursor_u64(&c);
	uni_cursor_seek(&c, 5144);
	uni_regs_set_sys(&r, UNI_X86_FS_BASE, uni_cursor_u64(&c));
	uni_regs_set_sys(&r, UNI_X86_GS_BASE, uni_cursor_u64(&c));
	if (c.failed || size < UNI_CORE_XEN_VCPU)
		return false;
	uni_regs_set_sys(&r, UNI_X86_CR0, pv ? cr[0] | CR0_PG | CR0_PE : cr[0]);
	uni_regs_set_sys(&r, UNI_X86_CR3, cr[3]);
	uni_regs_set_sys(&r, UNI_X86_CR4, pv ? CR4_PAE : cr[4]);
	if (pv)
		uni_regs_set_sys(&r, UNI_X86_EFER, EFER_PV);
	finish_core_regs(&r);
	if ((flags & XEN_UP) == 0)
		r.state = UNI_VCPU_OFFLINE;
	*ret = r;
	return true;
}

/* Fills in what the text lacks for x86_64: a guest with only CR3 is in 64-bit mode. */
static bool x86_64_complete(struct uni_regs *r)
{
	uint64_t cr0, v;
	bool paged = uni_regs_get_sys(r, UNI_X86_CR3, &v);

	if (!uni_regs_get_sys(r, UNI_X86_CR0, &cr0)) {
		cr0 = paged ? CR0_PE | CR0_PG : CR0_PE;
		uni_regs_set_sys(r, UNI_X86_CR0, cr0);
	}
	if (paged && !uni_regs_get_sys(r, UNI_X86_CR4, &v))
		uni_regs_set_sys(r, UNI_X86_CR4, CR4_PAE);
	r->pc_valid = uni_regs_get(r, UNI_X86_RIP, &r->pc);
	r->sp_valid = uni_regs_get(r, UNI_X86_RSP, &r->sp);
	if ((cr0 & CR0_PE) == 0 && r->pc == RESET_PC)
		r->state = UNI_VCPU_OFFLINE;
	return true;
}

const struct uni_core_arch uni_core_x86_64 = {
	.arch = &uni_arch_x86_64,
	.prstatus = x86_64_prstatus,
	.qemu = x86_64_qemu,
	.xen = x86_64_xen,
	.complete = x86_64_complete,
	.pc = "rip",
	.registers = "rip, rsp, rbp and cr3 at least, CR0, CR4 and EFER if you know them",
	.wait = "\xf4", /* hlt */
	.wait_bytes = 1,
};
