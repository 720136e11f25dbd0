/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uniprof/symbolize.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "format/stack.h"

struct translator {
	const struct uni_symtab *symtab;
	bool as_is;
	struct uni_sink *out;
	struct uni_symbolize_stats *stats;
	uint64_t frames; /* of the current trace so far */
};

/* 1 to 16 digits, "0x" before them or not. */
static bool parse_address(struct uni_line l, uint64_t *ret)
{
	uint64_t v = 0;

	if (l.len > 2 && l.s[0] == '0' && (l.s[1] == 'x' || l.s[1] == 'X')) {
		l.s += 2;
		l.len -= 2;
	}
	if (l.len == 0 || l.len > 16)
		return false;
	for (size_t i = 0; i < l.len; i++) {
		int d = uni_hex_digit(l.s[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint64_t)d;
	}
	*ret = v;
	return true;
}

/* Count of a trace: uniprof itself writes "1"; "0" means that the trace is cut off. */
static bool parse_number(struct uni_line l, double *ret)
{
	return memchr(l.s, '.', l.len) == NULL && uni_parse_count(l.s, l.len, ret);
}

static bool starts_with(struct uni_line l, const char *prefix)
{
	size_t n = strlen(prefix);

	return l.len >= n && memcmp(l.s, prefix, n) == 0;
}

static bool parse_missed(struct uni_line l, uint64_t *ret)
{
	const size_t pre = strlen("Missed "), post = strlen(" deadlines");
	double count;

	if (!starts_with(l, "Missed ") || l.len <= pre + post ||
		memcmp(l.s + l.len - post, " deadlines", post) != 0 ||
		!uni_parse_count(l.s + pre, l.len - pre - post, &count))
		return false;
	*ret = (uint64_t)count;
	return true;
}

/* The next line, cleaned and without blanks around it. */
static bool next_line(
	const char *data, size_t size, size_t *pos, char clean[UNI_TEXT_MAX], struct uni_line *ret)
{
	struct uni_line raw;

	if (!uni_line_next(data, size, pos, &raw))
		return false;
	ret->s = clean;
	ret->len = uni_text_clean(clean, UNI_TEXT_MAX, raw.s, raw.len);
	while (ret->len != 0 && ret->s[ret->len - 1] == ' ')
		ret->len--;
	while (ret->len != 0 && ret->s[0] == ' ') {
		ret->s++;
		ret->len--;
	}
	return true;
}

static void copy_line(struct translator *t, struct uni_line l)
{
	uni_sink_write(t->out, l.s, l.len);
	uni_sink_putc(t->out, '\n');
}

/* 0 bytes into a symbol: `bare` leaves that out, unless digits alone would look like a count. */
static bool put_frame(
	const struct uni_symtab *symtab, uint64_t svma, bool exact, bool bare, struct uni_sink *out)
{
	const char *name;
	uint64_t off;

	if (!uni_symtab_lookup(symtab, svma - !exact, &name, &off))
		return false;
	off += !exact;
	uni_sink_puts(out, name);
	if (off != 0 || !bare || (name[0] >= '0' && name[0] <= '9'))
		uni_sink_printf(out, "+0x%" PRIx64, off);
	uni_sink_putc(out, '\n');
	return true;
}

static void put_unknown(uint64_t addr, struct uni_sink *out)
{
	uni_sink_printf(out, "[unknown]+0x%" PRIx64 "\n", addr);
}

bool uni_symbolize_frame(const struct uni_symtab *symtab, uint64_t bias, uint64_t addr, bool exact,
	struct uni_sink *out)
{
	if (put_frame(symtab, addr - bias, exact || addr == bias, false, out))
		return true;
	put_unknown(addr, out);
	return false;
}

/* A return address may be the first byte of the next function, so the byte before it counts. */
static void put_address(struct translator *t, uint64_t addr)
{
	bool exact = t->as_is || t->frames == 0 || addr == 0;

	t->frames++;
	if (put_frame(t->symtab, addr, exact, true, t->out))
		return;
	t->stats->unknown++;
	put_unknown(addr, t->out);
}

static void end_trace(struct translator *t, bool broken)
{
	t->stats->traces++;
	t->frames = 0;
	if (!broken)
		return;
	t->stats->broken++;
	uni_sink_puts(t->out, UNI_SYMBOLIZE_TRUNCATED "\n1\n");
}

/* "0" ends a broken trace; inside a trace it is a return address that is zero. */
static bool ends_here(const char *data, size_t size, size_t pos)
{
	char clean[UNI_TEXT_MAX];
	struct uni_line next;

	return !next_line(data, size, &pos, clean, &next) || next.len == 0 || next.s[0] == '#';
}

static void translate_line(
	struct translator *t, struct uni_line l, const char *data, size_t size, size_t pos)
{
	double count = 1.0;
	uint64_t number;

	if (l.len == 0) {
		if (t->frames != 0)
			end_trace(t, true);
		uni_sink_putc(t->out, '\n');
	} else if (l.s[0] == '#') {
		copy_line(t, l);
	} else if (parse_number(l, &count) && count != 0.0) {
		end_trace(t, false);
		copy_line(t, l);
	} else if (count == 0.0 && ends_here(data, size, pos)) {
		end_trace(t, true);
	} else if (parse_address(l, &number)) {
		put_address(t, number);
	} else if (parse_missed(l, &number)) {
		t->stats->missed += number;
	} else if (starts_with(l, "Failed to get context for VCPU")) {
		t->stats->failed++;
	} else {
		t->frames++;
		copy_line(t, l);
	}
}

void uni_symbolize(const struct uni_symtab *symtab, bool as_is, const char *data, size_t size,
	struct uni_sink *out, struct uni_symbolize_stats *ret)
{
	struct translator t = { .symtab = symtab, .as_is = as_is, .out = out, .stats = ret };
	char clean[UNI_TEXT_MAX];
	struct uni_line l;
	size_t pos = 0;

	*ret = (struct uni_symbolize_stats){ 0 };
	while (next_line(data, size, &pos, clean, &l))
		translate_line(&t, l, data, size, pos);
	if (t.frames != 0)
		end_trace(&t, true);
}
