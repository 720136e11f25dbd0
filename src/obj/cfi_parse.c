/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of .eh_frame (Linux Standard Base, 10.6) and .debug_frame (DWARF 5, 6.4.1).
 *
 *   length      4 bytes, or ffffffff and 8 bytes (64-bit DWARF); 0 ends an .eh_frame.
 *   id          CIE: 0 in .eh_frame, all ones in .debug_frame;
 *               FDE: bytes back to the CIE in .eh_frame, the CIE's offset in .debug_frame.
 *   CIE         version, augmentation, [address and segment size,] alignments,
 *               return address column, [augmentation data,] initial instructions.
 *   FDE         start, size, [augmentation data,] instructions.
 */
#include <dwarf.h>

#include "base/checked.h"
#include "obj/cfi_priv.h"

uint64_t uni_cfi_uleb(struct uni_cursor *c)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = uni_cursor_u8(c);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift = uni_min(shift + 7, 64u);
	} while ((b & 0x80) != 0);
	return v;
}

int64_t uni_cfi_sleb(struct uni_cursor *c)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = uni_cursor_u8(c);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift = uni_min(shift + 7, 64u);
	} while ((b & 0x80) != 0);
	if ((b & 0x40) != 0 && shift < 64)
		v |= UINT64_MAX << shift;
	return (int64_t)v;
}

/* A number in one of the formats (low 4 bits of an encoding). */
static bool read_value(struct uni_cursor *c, uint8_t format, unsigned addr_size, uint64_t *ret)
{
	switch (format) {
	case DW_EH_PE_absptr:
		*ret = addr_size == 8 ? uni_cursor_u64(c) : uni_cursor_u32(c);
		break;
	case DW_EH_PE_uleb128:
		*ret = uni_cfi_uleb(c);
		break;
	case DW_EH_PE_udata2:
		*ret = uni_cursor_u16(c);
		break;
	case DW_EH_PE_udata4:
		*ret = uni_cursor_u32(c);
		break;
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*ret = uni_cursor_u64(c);
		break;
	case DW_EH_PE_sleb128:
		*ret = (uint64_t)uni_cfi_sleb(c);
		break;
	case DW_EH_PE_sdata2:
		*ret = (uint64_t)(int64_t)(int16_t)uni_cursor_u16(c);
		break;
	case DW_EH_PE_sdata4:
		*ret = (uint64_t)(int64_t)(int32_t)uni_cursor_u32(c);
		break;
	default:
		return false;
	}
	return !c->failed;
}

bool uni_cfi_address(struct uni_cursor *c, uint8_t encoding, unsigned addr_size, uint64_t at,
	uint64_t func, uint64_t *ret)
{
	uint64_t base = 0, pos = at + c->pos;

	if (encoding == DW_EH_PE_omit || (encoding & DW_EH_PE_indirect) != 0)
		return false;
	if (encoding == DW_EH_PE_aligned) {
		uint64_t pad = (0 - pos) & (addr_size - 1);

		if (uni_cursor_take(c, pad) == NULL)
			return false;
		return read_value(c, DW_EH_PE_absptr, addr_size, ret);
	}
	switch (encoding & 0x70) {
	case 0:
		break;
	case DW_EH_PE_pcrel:
		base = pos;
		break;
	case DW_EH_PE_funcrel:
		base = func;
		break;
	default: /* relative to text or data: no compiler makes those for x86_64 or aarch64 */
		return false;
	}
	if (!read_value(c, encoding & 0x0f, addr_size, ret))
		return false;
	*ret += base;
	if (addr_size == 4)
		*ret &= UINT32_MAX;
	return true;
}

/* An entry: the offsets at which its content begins and ends, and its kind. */
struct entry {
	size_t at, next; /* offsets of this entry and the next one */
	bool is_cie;
	uint64_t cie_at; /* for an FDE */
	struct uni_cursor body;
};

/* False at the end of the section, or if the rest is malformed. */
static bool next_entry(const struct uni_cfi_section *s, size_t at, struct entry *ret)
{
	struct uni_cursor c = uni_cursor_make(s->data, s->size);
	uint64_t len, id, id_at;
	bool wide;

	if (at >= s->size)
		return false;
	uni_cursor_seek(&c, at);
	len = uni_cursor_u32(&c);
	wide = len == UINT32_MAX;
	if (wide)
		len = uni_cursor_u64(&c);
	if (c.failed || len == 0 || len > uni_cursor_left(&c))
		return false;
	*ret = (struct entry){ .at = at, .next = c.pos + (size_t)len };
	ret->body = uni_cursor_make(s->data, ret->next);
	id_at = c.pos;
	uni_cursor_seek(&ret->body, c.pos);
	id = wide && !s->eh ? uni_cursor_u64(&ret->body) : uni_cursor_u32(&ret->body);
	if (s->eh) {
		ret->is_cie = id == 0;
		ret->cie_at = id_at - id;
	} else {
		ret->is_cie = id == (wide ? UINT64_MAX : UINT32_MAX);
		ret->cie_at = id;
	}
	return true;
}

/* Reads the letters after 'z'. False if the encoding of addresses is unknown. */
static bool read_augmentation(
	struct uni_cursor *c, const char *letters, struct uni_cfi_cie *cie, uint64_t at)
{
	uint64_t skipped;
	uint8_t encoding;

	for (; *letters != '\0'; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = uni_cursor_u8(c);
			break;
		case 'P':
			encoding = uni_cursor_u8(c) & (uint8_t)~DW_EH_PE_indirect;
			/* Only the length matters here, not whether it is relative. */
			if (encoding != DW_EH_PE_aligned)
				encoding &= 0x0f;
			if (!uni_cfi_address(c, encoding, cie->addr_size, at, 0, &skipped))
				return false;
			break;
		case 'L':
			(void)uni_cursor_u8(c);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* aarch64: return addresses are signed with key B; they are stripped
			     anyway */
		case 'G': /* aarch64: memory tagging */
			break;
		default:
			return false;
		}
	}
	return !c->failed;
}

static bool read_cie(const struct uni_cfi_section *s, const struct entry *e, unsigned word,
	struct uni_cfi_cie *ret)
{
	struct uni_cursor c = e->body, augmentation;
	const char *letters = (const char *)c.data + c.pos + 1;
	uint8_t version = uni_cursor_u8(&c);
	uint64_t len = 0, ra;

	*ret = (struct uni_cfi_cie){ .at = e->at, .addr_size = (uint8_t)word };
	if (version != 1 && version != 3 && version != 4)
		return false;
	while (uni_cursor_u8(&c) != 0) {
	}
	if (c.failed)
		return false;
	if (version == 4) {
		ret->addr_size = uni_cursor_u8(&c);
		if ((ret->addr_size != 4 && ret->addr_size != 8) || uni_cursor_u8(&c) != 0)
			return false;
	}
	ret->code_align = uni_cfi_uleb(&c);
	ret->data_align = uni_cfi_sleb(&c);
	ra = version == 1 ? uni_cursor_u8(&c) : uni_cfi_uleb(&c);
	ret->sized_augmentation = letters[0] == 'z';
	if (ret->sized_augmentation)
		len = uni_cfi_uleb(&c);
	augmentation = c;
	if (c.failed || ra >= UNI_REG_MAX || uni_cursor_take(&c, len) == NULL)
		return false;
	if (ret->sized_augmentation)
		augmentation.size = c.pos;
	if (letters[0] != '\0' && (!ret->sized_augmentation || !read_augmentation(&augmentation,
								       letters + 1, ret, s->addr)))
		return false;
	ret->ra = (uint32_t)ra;
	ret->insn = c.pos;
	ret->insn_size = uni_cursor_left(&c);
	return true;
}

static const struct uni_cfi_cie *find_cie(
	const struct uni_cfi_entries *e, uint32_t section, uint64_t at)
{
	size_t lo = 0, hi = e->cie.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct uni_cfi_cie *c = &e->cie.v[mid];

		if (c->section < section || (c->section == section && c->at < at))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == e->cie.nr || e->cie.v[lo].section != section || e->cie.v[lo].at != at)
		return NULL;
	return &e->cie.v[lo];
}

static bool read_fde(const struct uni_cfi_section *s, const struct entry *e,
	const struct uni_cfi_cie *cie, struct uni_cfi_fde *ret)
{
	struct uni_cursor c = e->body;
	uint64_t len;

	*ret = (struct uni_cfi_fde){ 0 };
	if (!uni_cfi_address(&c, cie->encoding, cie->addr_size, s->addr, 0, &ret->start))
		return false;
	/* The size has the format of the address, but is never relative. */
	if (cie->encoding != DW_EH_PE_aligned) {
		if (!read_value(&c, cie->encoding & 0x0f, cie->addr_size, &ret->size))
			return false;
	} else if (!read_value(&c, DW_EH_PE_absptr, cie->addr_size, &ret->size)) {
		return false;
	}
	if (cie->sized_augmentation) {
		len = uni_cfi_uleb(&c);
		if (c.failed || uni_cursor_take(&c, len) == NULL)
			return false;
	}
	ret->insn = c.pos;
	ret->insn_size = uni_cursor_left(&c);
	return ret->size != 0 && uni_range_ok(ret->start, ret->size);
}

bool uni_cfi_parse(
	const struct uni_cfi_section *s, uint32_t index, unsigned word, struct uni_cfi_entries *ret)
{
	struct uni_cfi_cie cie;
	struct uni_cfi_fde fde;
	struct entry e;

	/* An FDE of .debug_frame may come before its CIE. */
	for (size_t at = 0; next_entry(s, at, &e); at = e.next) {
		if (!e.is_cie || !read_cie(s, &e, word, &cie))
			continue;
		cie.section = index;
		if (!uni_vec_push(&ret->cie, cie))
			return false;
	}
	for (size_t at = 0; next_entry(s, at, &e); at = e.next) {
		const struct uni_cfi_cie *c = e.is_cie ? NULL : find_cie(ret, index, e.cie_at);

		if (c == NULL || !read_fde(s, &e, c, &fde))
			continue;
		fde.cie = (uint32_t)(c - ret->cie.v);
		fde.at = at;
		if (!uni_vec_push(&ret->fde, fde))
			return false;
	}
	return true;
}
