/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths of instructions in 64-bit mode: SDM volume 2, chapter 2 and appendix A. */
#include <string.h>

#include "arch/x86_64/x86_64.h"

/*
 * Each opcode has a letter for what is behind it. '.' is nothing, 'm' ModRM, 'b' 1 byte, 'w' 2.
 * 'e' is 3, and 'd' 4. 'z' is 4, or 2 after the prefix 66. 'v' is the same, or 8 after REX.W.
 * 'o' is an address, 'B' ModRM and 1 byte, 'Z' ModRM and 'z'. 'g' is 'B' for test, else 'm'.
 * 'G' is 'Z' for test, else 'm'. '!' is no instruction.
 */
static const char one_byte[] = "mmmmbz!!mmmmbz!.mmmmbz!!mmmmbz!!"
			       "mmmmbz.!mmmmbz.!mmmmbz.!mmmmbz.!"
			       "................................"
			       "!!!m....zZbB....bbbbbbbbbbbbbbbb"
			       "BZ!Bmmmmmmmmmmmm..........!....."
			       "oooo....bz......bbbbbbbbvvvvvvvv"
			       "BBw.!!BZe.w..b!.mmmm!!!.mmmmmmmm"
			       "bbbbbbbbdd!b..........gG......mm";
static const char after_0f[] = "mmmm!.....!.!m.Bmmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm........m!B!!!!!"
			       "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmmBBBBmmm.mmmmmmmm"
			       "ddddddddddddddddmmmmmmmmmmmmmmmm"
			       "...mBm!!...mBmmmmmmmmmmmmmBmmmmm"
			       "mmBmBBBm........mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

struct insn {
	const uint8_t *code;
	size_t n, at; /* `at` is behind what was read */
	bool is_short, is_wide, has_short_address;
};

static bool is_prefix(uint8_t b)
{
	return (b & 0xe7) == 0x26 || (b >= 0x64 && b <= 0x67) || b == 0xf0 || b == 0xf2 ||
	       b == 0xf3;
}

size_t uni_x86_64_prefixes(const uint8_t *code, size_t n)
{
	size_t i = 0;

	while (i < n && is_prefix(code[i]))
		i++;
	return i < n && (code[i] & 0xf0) == 0x40 ? i + 1 : i;
}

size_t uni_x86_64_modrm_size(const uint8_t *code, size_t n)
{
	unsigned mod = n >= 1 ? code[0] >> 6 : 0, rm = n >= 1 ? code[0] & 7 : 0;
	size_t size = 1;

	if (mod != 3 && rm == 4)
		size++;
	if (mod == 1)
		size++;
	else if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && n >= 2 && (code[1] & 7) == 5))))
		size += 4;
	return size <= n ? size : 0;
}

/* VEX and EVEX: the map of opcodes is in the prefix. */
static char vector_kind(struct insn *i, unsigned prefix_bytes)
{
	uint8_t map = prefix_bytes == 1 ? 1 : i->code[i->at] & 7, opcode;

	if (i->at + prefix_bytes >= i->n)
		return '!';
	i->at += prefix_bytes;
	opcode = i->code[i->at++];
	if (map == 1)
		return after_0f[opcode] == 'd' ? 'm' : after_0f[opcode];
	return map == 3 ? 'B' : map == 0 || map == 4 || map == 7 ? '!' : 'm';
}

static char kind_after_0f(struct insn *i)
{
	uint8_t opcode = i->at < i->n ? i->code[i->at++] : 0x04;

	if (opcode == 0x38 || opcode == 0x3a)
		i->at++;
	return after_0f[opcode];
}

static char kind_of(struct insn *i)
{
	uint8_t opcode = i->code[i->at++];

	switch (opcode) {
	case 0x0f:
		return kind_after_0f(i);
	case 0x62:
		return i->at < i->n ? vector_kind(i, 3) : '!';
	case 0xc4:
		return i->at < i->n ? vector_kind(i, 2) : '!';
	case 0xc5:
		return i->at < i->n ? vector_kind(i, 1) : '!';
	default:
		return one_byte[opcode];
	}
}

static size_t immediate_size(const struct insn *i, char kind)
{
	switch (kind) {
	case 'b':
	case 'B':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'd':
		return 4;
	case 'o':
		return i->has_short_address ? 4 : 8;
	case 'v':
		return i->is_wide ? 8 : i->is_short ? 2 : 4;
	case 'z':
	case 'Z':
		return i->is_short && !i->is_wide ? 2 : 4;
	default:
		return 0;
	}
}

static bool has_modrm(char kind)
{
	return kind != '\0' && strchr("mBZgG", kind) != NULL;
}

static size_t size_of(struct insn *i, char kind)
{
	size_t modrm = 0;

	if (kind == '!' || i->at > i->n)
		return 0;
	if (has_modrm(kind)) {
		modrm = uni_x86_64_modrm_size(i->code + i->at, i->n - i->at);
		if (modrm == 0)
			return 0;
		if ((kind == 'g' || kind == 'G') && (i->code[i->at] & 0x30) == 0)
			kind = kind == 'g' ? 'B' : 'Z';
	}
	i->at += modrm + immediate_size(i, kind);
	return i->at <= i->n ? i->at : 0;
}

size_t uni_x86_64_insn_size(const uint8_t *code, size_t n)
{
	struct insn i = { .code = code, .n = n, .at = uni_x86_64_prefixes(code, n) };

	if (i.at >= n)
		return 0;
	for (size_t p = 0; p < i.at; p++) {
		i.is_short |= code[p] == 0x66;
		i.has_short_address |= code[p] == 0x67;
	}
	i.is_wide = i.at != 0 && (code[i.at - 1] & 0xf8) == 0x48;
	return size_of(&i, kind_of(&i));
}
