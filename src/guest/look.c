/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a guest's structures. */
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "guest/model.h"

static bool read_le(struct uni_look *look, uint64_t at, size_t size, uint64_t *ret)
{
	uint8_t b[8];

	if (size == 0 || size > sizeof(b) || uni_as_read(look->as, uni_gva_of(at), b, size) != 0)
		return false;
	*ret = 0;
	for (size_t i = 0; i < size; i++)
		*ret |= (uint64_t)b[i] << 8 * i;
	return true;
}

bool uni_look_u64(struct uni_look *look, uint64_t at, uint64_t *ret)
{
	return read_le(look, at, 8, ret);
}

uint64_t uni_look_at(const struct uni_look *look, uint64_t at, unsigned member)
{
	uint64_t sum;

	return __builtin_add_overflow(at, look->m->member[member].offset, &sum) ? 0 : sum;
}

bool uni_look_member(struct uni_look *look, uint64_t at, unsigned member, uint64_t *ret)
{
	const struct uni_member *m = &look->m->member[member];
	uint64_t address = uni_look_at(look, at, member);

	return m->found && address != 0 && read_le(look, address, (size_t)uni_min(m->size, 9), ret);
}

void uni_look_text(struct uni_look *look, uint64_t at, size_t max, char *ret, size_t cap)
{
	char raw[UNI_THREAD_NAME_MAX];
	size_t n = uni_as_read_some(look->as, uni_gva_of(at), raw, uni_min(max, sizeof(raw)));

	(void)uni_text_clean(ret, cap, raw, strnlen(raw, n));
}

void uni_look_blank(const struct uni_look *look, struct uni_guest_thread *t)
{
	struct uni_regs *r = &t->regs;

	memset(r, 0, sizeof(*r));
	for (uint32_t v = 0; v < look->nr_vcpus; v++) {
		const struct uni_regs *of = &look->regs[v];

		if (!of->pc_valid)
			continue;
		memcpy(r->sys, of->sys, sizeof(r->sys));
		r->sys_valid = of->sys_valid;
		return;
	}
}

void uni_look_saved(struct uni_look *look, uint64_t pc, uint64_t sp, struct uni_guest_thread *t)
{
	const struct uni_arch *arch = look->m->arch;

	uni_look_blank(look, t);
	t->regs.pc = pc;
	t->regs.sp = sp;
	t->regs.pc_valid = t->regs.sp_valid = true;
	uni_regs_set(&t->regs, arch->sp_reg, sp);
	/* If the code cannot be read, the chain ends here. The list is still good. */
	if (arch->restore != NULL)
		(void)arch->restore(look->as, &t->regs);
}
