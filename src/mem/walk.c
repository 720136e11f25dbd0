/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/walk.h"

/* The part of the root that translates an address: the geometry, the first table and its level. */
struct half {
	const struct uni_pt_geometry *g;
	uint64_t table, va; /* va: without the bits above the space */
	unsigned bits, first;
};

/* False if the address cannot exist. */
static bool pick_half(const struct uni_pt_root *r, uint64_t va, struct half *ret)
{
	bool high = r->geometry_high != NULL && (va >> 55 & 1) != 0;
	uint64_t above = high ? UINT64_MAX : 0;

	*ret = (struct half){ .g = high ? r->geometry_high : r->geometry,
		.table = high ? r->root_high.v : r->root.v,
		.va = va,
		.bits = high ? r->va_bits_high : r->va_bits };
	if (ret->bits == 0)
		ret->bits = ret->g->va_bits != 0 ? ret->g->va_bits : 32;
	if (ret->g->canonical) {
		va >>= ret->bits - 1; /* with the top bit of the space itself */
		return va == 0 || va == UINT64_MAX >> (ret->bits - 1);
	}
	if (high ? r->ignore_top_high : r->ignore_top)
		va = (va & (UINT64_MAX >> 8)) | (above & ~(UINT64_MAX >> 8));
	ret->va = va & ~(UINT64_MAX << ret->bits);
	while (ret->first + 1u < ret->g->nr_levels && ret->g->level[ret->first].shift >= ret->bits)
		ret->first++;
	return va >> ret->bits == above >> ret->bits;
}

/* The part of an entry that is an address. */
static uint64_t address_of(uint64_t entry, uint64_t mask, uint64_t high, unsigned shift)
{
	return (entry & mask) | (entry & high) << shift;
}

int uni_as_walk(struct uni_as *as, uint64_t va, struct uni_walked *ret)
{
	const struct uni_pt_geometry *g;
	const struct uni_pt_root *root = uni_as_root(as);
	uint64_t table, entry, addr;
	struct half h;

	*ret = (struct uni_walked){ .span = UNI_AS_PAGE };
	if (!pick_half(root, va, &h))
		return -UNI_EFAULT;
	g = h.g;
	table = h.table;
	if (g->nr_levels == 0) {
		ret->gpa = va & ~(uint64_t)(UNI_AS_PAGE - 1);
		return 0;
	}
	for (unsigned i = h.first; i < g->nr_levels; i++) {
		const struct uni_pt_level *l = &g->level[i];
		uint64_t index = h.va >> l->shift & ((1ull << l->bits) - 1);
		int rc =
			uni_as_load_entry(as, table + index * g->entry_size, g->entry_size, &entry);
		bool leaf;

		ret->span = 1ull << l->shift;
		if (rc != 0)
			return rc;
		if ((entry & g->present_mask) != g->present_value)
			return -UNI_EFAULT;
		leaf = l->leaf_allowed && (entry & l->leaf_mask) == l->leaf_value;
		if ((entry & (root->reserved | (leaf ? l->reserved_leaf : l->reserved_table))) != 0)
			return -UNI_EFAULT;
		if ((entry & (g->no_exec | (leaf ? g->no_exec_leaf : g->no_exec_table))) != 0)
			ret->no_exec = true;
		if (leaf) {
			addr = address_of(entry, g->leaf_addr & ~(ret->span - 1), l->leaf_high,
				l->leaf_high_shift);
			ret->gpa = addr | (va & (ret->span - 1) & ~(uint64_t)(UNI_AS_PAGE - 1));
			return (addr & ~root->phys_mask) == 0 ? 0 : -UNI_EFAULT;
		}
		table = address_of(entry, g->table_addr, g->table_high, g->table_high_shift);
		if ((table & ~root->phys_mask) != 0)
			return -UNI_EFAULT;
	}
	return -UNI_EFAULT;
}

/* The first address above the impossible ones; 0 if all above are impossible. */
static uint64_t high_half(const struct uni_pt_root *r)
{
	const struct uni_pt_geometry *g = r->geometry_high;

	if (g != NULL && r->va_bits_high != 0)
		return ~0ull << r->va_bits_high;
	if (g != NULL && g->va_bits != 0)
		return ~0ull << g->va_bits;
	g = r->geometry;
	return g->canonical && g->va_bits != 0 ? ~0ull << (g->va_bits - 1) : 0;
}

int uni_as_next(struct uni_as *as, uni_gva from, struct uni_mapping *ret)
{
	const struct uni_pt_root *root = uni_as_root(as);
	uint64_t va = from.v & ~(uint64_t)(UNI_AS_PAGE - 1);
	struct half h;

	if (root->geometry == NULL || root->geometry->nr_levels == 0)
		return -UNI_ENOENT;
	do {
		struct uni_walked w;
		int rc;

		if (!pick_half(root, va, &h)) {
			if (va >= high_half(root))
				return -UNI_ENOENT;
			va = high_half(root);
		}
		rc = uni_as_walk(as, va, &w);
		if (rc == 0) {
			*ret = (struct uni_mapping){ .gva = uni_gva_of(va),
				.gpa = uni_gpa_of(w.gpa),
				.size = w.span - (va & (w.span - 1)),
				.exec = !w.no_exec };
			return 0;
		}
		if (rc != -UNI_EFAULT)
			return rc;
		va = (va | (w.span - 1)) + 1;
	} while (va != 0);
	return -UNI_ENOENT;
}
