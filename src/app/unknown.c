/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/unknown.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "app/term.h"

#define PAGE UINT64_C(4096)

static void add_unknown_pc(struct uni_unknown *u, uint64_t pc)
{
	u->low = u->nr == 0 ? pc : uni_min(u->low, pc);
	u->high = u->nr == 0 ? pc : uni_max(u->high, pc);
	u->nr++;
}

/* A table has names, but no code. */
static bool has_name(const struct uni_guest *g, uint64_t pc)
{
	const char *name;
	uint64_t off;

	return g->image == NULL && g->symtab != NULL &&
	       uni_symtab_lookup(g->symtab, pc - g->bias, &name, &off);
}

void uni_unknown_add(struct uni_unknown *u, const struct uni_guest *g, const struct uni_chain *c)
{
	for (uint16_t i = 0; i < c->nr; i++) {
		bool exact = i == 0 || (c->flags[i] & UNI_FRAME_EXACT) != 0;
		uint64_t pc = c->pc[i] - (exact ? 0 : 1);

		if ((c->flags[i] & UNI_FRAME_KERNEL) == 0 && uni_hints_of(g->hints, pc) == NULL &&
			!uni_hints_in_stubs(g->hints, pc) && !has_name(g, pc))
			add_unknown_pc(u, pc);
	}
}

void uni_unknown_say(const struct uni_unknown *u, const struct uni_guest *g)
{
	if (u->nr == 0)
		return;
	uni_note("%" PRIu64 " frame%s in code of no image that is known, at 0x%" PRIx64
		 " to 0x%" PRIx64 ": %s",
		u->nr, u->nr == 1 ? " is" : "s are", u->low & ~(PAGE - 1), u->high | (PAGE - 1),
		g->image != NULL ? "--sysroot with the guest's programs and libraries lets callers "
				   "and names be found there"
		: g->symtab != NULL
			? "give the guest's image with -e, not only a table of its symbols"
			: "give the guest's image with -e");
}

void uni_unknown_say_profile(const struct uni_profile *p)
{
	_cleanup_free_ struct uni_func_row *row = NULL;
	double self = 0, all = uni_profile_total(p);
	struct uni_unknown u = { 0 };
	size_t nr = 0;

	if (uni_profile_functions(p, &row, &nr) != 0 || all <= 0)
		return;
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, row[i].frame);

		if (f->kind != UNI_FK_UNKNOWN)
			continue;
		add_unknown_pc(&u, f->addr);
		self += row[i].self;
	}
	if (u.nr == 1)
		uni_note("0x%" PRIx64
			 " has no name, and %.1f %% of the samples end there. If it is "
			 "of another program or library, record with --sysroot; --symbols gives "
			 "names",
			u.low, 100 * self / all);
	else if (u.nr != 0)
		uni_note("%" PRIu64 " addresses, from 0x%" PRIx64 " to 0x%" PRIx64
			 ", have no name, and %.1f %% of the samples end there. "
			 "If they are of another program or library, record with "
			 "--sysroot; --symbols gives names",
			u.nr, u.low, u.high, 100 * self / all);
}
