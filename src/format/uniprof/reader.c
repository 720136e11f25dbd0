/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uniprof's output, raw or after symbolize: '#' lines, then the samples. A sample has a line for
 * each frame, leaf first ("0x1f3c" or "name+0x10"), then a count and a blank line. The count is "1"
 * (a whole stack), "0" (the walk met an unmapped page) or another number. The old pipeline lost
 * stacks that end in "0", or joined them to the next one. Here each is a stack of its own, marked
 * [truncated].
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "format/stack.h"
#include "obj/demangle.h"

#define SNIFF_LINES 64

enum kind { BLANK, COMMENT, COUNT, ADDRESS, MISSED, FAILED, NAME };

struct parsed {
	enum kind kind;
	double count;
	uint64_t addr;
	struct uni_line name; /* without its offset */
	bool had_offset;
};

/* "0x" and 1 to 16 digits, nothing else. */
static bool parse_hex(const char *s, size_t len, uint64_t *ret)
{
	uint64_t v = 0;

	if (len < 3 || len > 18 || s[0] != '0' || s[1] != 'x')
		return false;
	for (size_t i = 2; i < len; i++) {
		int d = uni_hex_digit(s[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint64_t)d;
	}
	*ret = v;
	return true;
}

static bool starts_with(const struct uni_line *l, const char *prefix)
{
	size_t n = strlen(prefix);

	return l->len >= n && memcmp(l->s, prefix, n) == 0;
}

static bool parse_missed(const struct uni_line *l, double *ret)
{
	const size_t pre = strlen("Missed "), post = strlen(" deadlines");

	return starts_with(l, "Missed ") && l->len > pre + post &&
	       memcmp(l->s + l->len - post, " deadlines", post) == 0 &&
	       uni_parse_count(l->s + pre, l->len - pre - post, ret);
}

/* The offset after the last '+', if it is one: names such as operator+ have that sign, too. */
static void cut_offset(struct parsed *p)
{
	for (size_t i = p->name.len; i-- > 1;) {
		size_t len = p->name.len - i - 1;
		uint64_t off;

		if (p->name.s[i] != '+')
			continue;
		if (parse_hex(p->name.s + i + 1, len, &off) ||
			(len == 1 && p->name.s[i + 1] == '0')) {
			p->name.len = i;
			p->had_offset = true;
		}
		return;
	}
}

static struct parsed parse_line(struct uni_line l)
{
	struct parsed p = { .kind = NAME };

	while (l.len != 0 && (l.s[l.len - 1] == ' ' || l.s[l.len - 1] == '\t'))
		l.len--;
	while (l.len != 0 && (l.s[0] == ' ' || l.s[0] == '\t')) {
		l.s++;
		l.len--;
	}
	p.name = l;
	if (l.len == 0)
		p.kind = BLANK;
	else if (l.s[0] == '#')
		p.kind = COMMENT;
	else if (parse_hex(l.s, l.len, &p.addr))
		p.kind = ADDRESS;
	else if (memchr(l.s, '.', l.len) == NULL && uni_parse_count(l.s, l.len, &p.count))
		p.kind = COUNT;
	else if (parse_missed(&l, &p.count))
		p.kind = MISSED;
	else if (starts_with(&l, "Failed to get context for VCPU"))
		p.kind = FAILED;
	else
		cut_offset(&p);
	return p;
}

static int sniff_uniprof(const char *data, size_t size)
{
	size_t pos = 0, lines = 0, frames = 0, counts = 0;
	struct uni_line l;

	while (lines++ < SNIFF_LINES && uni_line_next(data, size, &pos, &l)) {
		struct parsed p;

		if (lines == 1 && starts_with(&l, "#unikernel stack tracer"))
			return 100;
		p = parse_line(l);
		frames += p.kind == ADDRESS || (p.kind == NAME && p.had_offset);
		counts += p.kind == COUNT;
		if (p.kind == NAME && !p.had_offset && memchr(l.s, ';', l.len) != NULL)
			return 0;
	}
	return frames != 0 && counts != 0 ? 80 : 0;
}

struct reader {
	struct uni_stack stack;
	const struct uni_import_opts *opts;
	struct uni_import_stats stats;
	uint64_t line, terminated;
	bool cut; /* the current stack is deeper than is kept: its root is lost */
};

static uint32_t symbol_frame(struct reader *r, const char *name)
{
	char text[UNI_TEXT_MAX];

	if (!r->opts->mangled && uni_demangle(name, text, sizeof(text)))
		name = text;
	return uni_stack_name(&r->stack, name, strlen(name));
}

/* Callers are return addresses: the call is the instruction before. */
static uint32_t address_frame(struct reader *r, uint64_t addr)
{
	const char *name;
	uint64_t offset, at = r->stack.frames.nr != 0 && addr != 0 ? addr - 1 : addr;
	char text[32];
	struct uni_frame f = { .addr = addr, .kind = UNI_FK_UNKNOWN };
	int n;

	if (r->opts->symtab != NULL && uni_symtab_lookup(r->opts->symtab, at, &name, &offset))
		return symbol_frame(r, name);
	n = snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	f.name = uni_strtab_add(uni_profile_strings(r->stack.p), text, (size_t)n);
	return f.name != UNI_STR_NONE ? uni_profile_frame(r->stack.p, &f) : UNI_NODE_NONE;
}

static int end_stack(struct reader *r, bool truncated, double count)
{
	uni_stack_reverse(&r->stack);
	truncated = truncated || r->cut;
	if (r->cut)
		uni_stats_cut(&r->stats, r->stats.stacks);
	r->cut = false;
	return uni_stack_flush(&r->stack, truncated, count, 0.0, &r->stats);
}

static int read_line(struct reader *r, struct uni_line l)
{
	struct parsed p = parse_line(l);

	switch (p.kind) {
	case BLANK: /* without a terminator: the vCPU failed, or symbolize ate a "0" */
		return r->stack.frames.nr != 0 ? end_stack(r, true, 1.0) : 0;
	case COUNT:
		r->terminated++;
		return end_stack(r, p.count == 0.0, p.count == 0.0 ? 1.0 : p.count);
	case ADDRESS:
	case NAME:
		if (r->stack.frames.nr + 2 > UNI_IMPORT_DEPTH)
			r->cut = true;
		else if (p.kind == ADDRESS)
			uni_stack_push(&r->stack, address_frame(r, p.addr));
		else
			uni_stack_push(&r->stack, uni_stack_name(&r->stack, p.name.s, p.name.len));
		break;
	case MISSED:
		r->stats.missed += (uint64_t)p.count;
		break;
	case FAILED:
		uni_stats_bad_line(&r->stats, r->line);
		break;
	case COMMENT:
		break;
	}
	return r->stack.oom ? -UNI_ENOMEM : 0;
}

static int read_uniprof(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct reader r = { .opts = opts };
	struct uni_line l;
	size_t pos = 0;
	int rc = 0;

	if (!uni_stack_init(&r.stack, p))
		rc = -UNI_ENOMEM;
	while (rc == 0 && uni_line_next(data, size, &pos, &l)) {
		r.line++;
		rc = read_line(&r, l);
	}
	if (rc == 0 && r.stack.frames.nr != 0) /* the file ends in the middle of a stack */
		rc = end_stack(&r, true, 1.0);
	uni_stack_deinit(&r.stack);
	if (rc != 0)
		return uni_err_set(
			err, UNI_ENOMEM, "out of memory after %" PRIu64 " stacks", r.stats.stacks);
	if (r.terminated == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"not one stack that ends in a line \"1\" or \"0\": this is no uniprof "
			"text");
	*stats_ret = r.stats;
	return 0;
}

const struct uni_importer uni_importer_uniprof = {
	.name = "uniprof",
	.summary = "uniprof's stack traces, raw addresses or after symbolize",
	.sniff = sniff_uniprof,
	.read = read_uniprof,
};
