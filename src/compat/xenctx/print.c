/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "compat/xenctx/xenctx.h"
#include "obj/demangle.h"

#define NONE "----------------" /* a register that this target does not show */

struct printer {
	const struct uni_guest *g;
	const struct uni_xenctx_args *args;
	FILE *out;
};

/* Return addresses are looked up at the call. */
static void put_symbol(const struct printer *p, uint64_t addr, bool exact)
{
	char text[UNI_TEXT_MAX];
	const char *name;
	uint64_t off;

	if (p->args->symtab == NULL ||
		!uni_symtab_lookup(p->args->symtab, addr - p->g->bias - !exact, &name, &off))
		return;
	off += !exact;
	(void)fprintf(p->out, " %s", uni_demangle(name, text, sizeof(text)) ? text : name);
	if (off != 0)
		(void)fprintf(p->out, "+0x%" PRIx64, off);
}

/* Could this word be a place in the guest's code? */
static bool is_code(const struct printer *p, uint64_t word)
{
	const struct uni_image *img = p->g->image;
	const char *name;
	uint64_t off;

	for (size_t i = 0; img != NULL && i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *s = uni_image_segment(img, i);

		if (s->exec && uni_range_has(s->vaddr + p->g->bias, s->mem_size, word))
			return true;
	}
	if (img != NULL)
		return false;
	if (p->args->symtab != NULL)
		return uni_symtab_lookup(p->args->symtab, word - p->g->bias, &name, &off);
	return word >= p->args->kernel_start;
}

/* By bit, the texts for clear and set. */
static const struct {
	uint8_t bit;
	const char *clear, *set;
} flag_names[] = {
	{ 21, NULL, "cid" },
	{ 20, NULL, "vip" },
	{ 19, NULL, "vif" },
	{ 18, NULL, "ac" },
	{ 17, NULL, "v86" },
	{ 16, NULL, "rf" },
	{ 14, NULL, "nt" },
	{ 11, NULL, "o" },
	{ 10, NULL, "d=b" },
	{ 9, NULL, "i" },
	{ 8, NULL, "tf" },
	{ 7, NULL, "s" },
	{ 6, "nz", "z" },
	{ 4, NULL, "a" },
	{ 2, NULL, "p" },
	{ 0, NULL, "c" },
};

static void put_flags(const struct printer *p, const struct uni_regs *regs)
{
	uint64_t flags;

	if (!uni_regs_get_sys(regs, UNI_X86_RFLAGS, &flags)) {
		(void)fputs("flags: --------\n", p->out);
		return;
	}
	(void)fprintf(p->out, "flags: %08" PRIx64, flags);
	for (size_t i = 0; i < uni_array_len(flag_names); i++) {
		bool set = (flags >> flag_names[i].bit & 1) != 0;
		const char *word = set ? flag_names[i].set : flag_names[i].clear;

		if (word != NULL)
			(void)fprintf(p->out, " %s", word);
	}
	(void)fputc('\n', p->out);
}

static void put_value(const struct printer *p, bool known, uint64_t value)
{
	if (known)
		(void)fprintf(p->out, "%016" PRIx64, value);
	else
		(void)fputs(NONE, p->out);
}

static void put_sys(
	const struct printer *p, const char *before, const struct uni_regs *regs, unsigned sys)
{
	uint64_t value = 0;
	bool known = uni_regs_get_sys(regs, sys, &value);

	(void)fputs(before, p->out);
	put_value(p, known, value);
}

static void put_more(
	const struct printer *p, const char *before, const struct uni_more_regs *m, unsigned reg)
{
	(void)fputs(before, p->out);
	put_value(p, (m->valid >> reg & 1) != 0, m->v[reg]);
}

/* Registers that a target does not read are shown as unknown, not as 0. */
static void put_selector(const struct printer *p, const char *name, bool known, uint64_t value)
{
	(void)fprintf(p->out, "%s: ", name);
	if (known)
		(void)fprintf(p->out, "%04" PRIx64, value & 0xffff);
	else
		(void)fputs("----", p->out);
}

static void put_segment(const struct printer *p, const char *name, const struct uni_regs *regs,
	const struct uni_more_regs *m, unsigned selector, unsigned base_sys)
{
	uint64_t base;

	put_selector(p, name, (m->valid >> selector & 1) != 0, m->v[selector]);
	put_sys(p, " @ ", regs, base_sys);
	if (base_sys == UNI_X86_GS_BASE)
		put_more(p, "/", m, UNI_X86_GS_BASE_OTHER);
	if (uni_regs_get_sys(regs, base_sys, &base))
		put_symbol(p, base, true);
	(void)fputc('\n', p->out);
}

static void put_segments(
	const struct printer *p, const struct uni_regs *regs, const struct uni_more_regs *m)
{
	static const struct {
		const char *name;
		unsigned reg;
	} plain[] = { { "\t ss", UNI_X86_SS }, { "\t ds", UNI_X86_DS }, { "\t es", UNI_X86_ES } };
	uint64_t cs = 0;
	bool known = uni_regs_get_sys(regs, UNI_X86_CS, &cs);

	put_selector(p, " cs", known, cs);
	for (size_t i = 0; i < uni_array_len(plain); i++)
		put_selector(
			p, plain[i].name, (m->valid >> plain[i].reg & 1) != 0, m->v[plain[i].reg]);
	(void)fputc('\n', p->out);
	put_segment(p, " fs", regs, m, UNI_X86_FS, UNI_X86_FS_BASE);
	put_segment(p, " gs", regs, m, UNI_X86_GS, UNI_X86_GS_BASE);
}

static void put_control(
	const struct printer *p, const struct uni_regs *regs, const struct uni_more_regs *m)
{
	put_sys(p, "\ncr0: ", regs, UNI_X86_CR0);
	put_more(p, "\ncr2: ", m, UNI_X86_CR2);
	put_sys(p, "\ncr3: ", regs, UNI_X86_CR3);
	put_sys(p, "\ncr4: ", regs, UNI_X86_CR4);
	(void)fputs("\n\n", p->out);
	for (unsigned i = 0; i < 8; i++) {
		if (i == 4 || i == 5)
			continue;
		(void)fprintf(p->out, "dr%u: ", i);
		put_more(p, "", m, UNI_X86_DR0 + i);
		(void)fputc('\n', p->out);
	}
	put_sys(p, "efer: ", regs, UNI_X86_EFER);
	(void)fputc('\n', p->out);
}

static void put_x86(
	const struct printer *p, const struct uni_regs *regs, const struct uni_more_regs *m)
{
	static const uint8_t order[] = { UNI_X86_RAX, UNI_X86_RCX, UNI_X86_RDX, UNI_X86_RBX,
		UNI_X86_RSI, UNI_X86_RDI, UNI_X86_RBP, UNI_X86_R8, UNI_X86_R9, UNI_X86_R10,
		UNI_X86_R11, UNI_X86_R12, UNI_X86_R13, UNI_X86_R14, UNI_X86_R15 };

	(void)fputs("rip: ", p->out);
	put_value(p, regs->pc_valid, regs->pc);
	if (regs->pc_valid)
		put_symbol(p, regs->pc, true);
	(void)fputc('\n', p->out);
	put_flags(p, regs);
	(void)fputs("rsp: ", p->out);
	put_value(p, regs->sp_valid, regs->sp);
	(void)fputc('\n', p->out);
	for (size_t i = 0; i < uni_array_len(order); i++) {
		uint64_t value = 0;
		bool known = uni_regs_get(regs, order[i], &value);

		(void)fprintf(p->out, "%3s: ", p->g->t->arch->reg_names[order[i]]);
		put_value(p, known, value);
		(void)fputc(i % 3 == 2 ? '\n' : '\t', p->out);
	}
	put_segments(p, regs, m);
	if (p->args->all_regs)
		put_control(p, regs, m);
}

static void put_generic(const struct printer *p, const struct uni_regs *regs)
{
	const struct uni_arch *arch = p->g->t->arch;
	unsigned column = 0;
	uint64_t v;

	for (unsigned r = 0; r < arch->nr_regs; r++) {
		if (uni_regs_get(regs, r, &v))
			(void)fprintf(p->out, "%5s: %016" PRIx64 "%c", arch->reg_names[r], v,
				++column % 3 == 0 ? '\n' : '\t');
	}
	for (unsigned r = 0; p->args->all_regs && r < UNI_SYS_MAX; r++) {
		if (arch->sys_names[r] != NULL && uni_regs_get_sys(regs, r, &v))
			(void)fprintf(p->out, "%5s: %016" PRIx64 "%c", arch->sys_names[r], v,
				++column % 3 == 0 ? '\n' : '\t');
	}
	if (column % 3 != 0)
		(void)fputc('\n', p->out);
}

static void put_code(const struct printer *p, uint64_t pc, const struct uni_xenctx_vcpu *v)
{
	(void)fprintf(p->out, "Code (instr addr %08" PRIx64 ")\n", pc);
	for (unsigned i = 0; i < UNI_XENCTX_CODE; i++) {
		const char *around = i == UNI_XENCTX_BEFORE ? "<>" : "";

		if (around[0] != '\0')
			(void)fputc(around[0], p->out);
		if (v->has_code[i])
			(void)fprintf(p->out, "%02x", v->code[i]);
		else
			(void)fputs("--", p->out);
		if (around[0] != '\0')
			(void)fputc(around[1], p->out);
		(void)fputc(' ', p->out);
	}
	(void)fputs("\n\n", p->out);
}

static uint64_t word_at(const struct uni_xenctx_bytes *b, size_t at)
{
	uint64_t v = 0;

	for (size_t i = UNI_XENCTX_WORD; i-- != 0;)
		v = v << 8 | b->v[at + i];
	return v;
}

static size_t shown_words(const struct uni_xenctx_bytes *b)
{
	return (size_t)(uni_min((uint64_t)b->len, b->shown) / UNI_XENCTX_WORD);
}

static void put_ascii(const struct printer *p, const uint8_t *v, size_t len)
{
	(void)fputs("  ", p->out);
	for (size_t i = 0; i < len; i++)
		(void)fputc(v[i] >= 0x20 && v[i] < 0x7f ? v[i] : '.', p->out);
}

/* Whole words, bytes_per_line in each line; unmapped memory ends it. */
static void put_lines(const struct printer *p, const struct uni_xenctx_bytes *b, uint64_t lines)
{
	size_t size = shown_words(b) * UNI_XENCTX_WORD, at = 0;
	uint64_t step = p->args->bytes_per_line, gap = b->addr;

	for (uint64_t line = 0; line < lines && at < size; line++) {
		size_t len = (size_t)uni_min(step, (uint64_t)(size - at));

		if (p->args->tagged)
			(void)fprintf(p->out, "%016" PRIx64 ":", b->addr + at);
		for (size_t i = 0; i < len; i += UNI_XENCTX_WORD)
			(void)fprintf(p->out, " %016" PRIx64, word_at(b, at + i));
		if (p->args->ascii)
			put_ascii(p, b->v + at, len);
		(void)fputc('\n', p->out);
		at += len;
	}
	gap += b->len;
	if (at == size && b->len < b->shown)
		(void)fprintf(p->out, " (nothing is mapped at %016" PRIx64 ")\n", gap);
	(void)fputc('\n', p->out);
}

static bool holds_word(const struct uni_xenctx_bytes *b, uint64_t addr, uint64_t word)
{
	return uni_range_contains(b->addr, b->len, addr, UNI_XENCTX_WORD) &&
	       word_at(b, addr - b->addr) == word;
}

/*
 * Address of the return address to frame i, in its callee's frame. It is at the upper end on x86,
 * near the lower one on aarch64. False if it is on no stack (in a register, interrupted), or was
 * not read.
 */
static bool place_of(const struct uni_xenctx_vcpu *v, size_t i, uint64_t *ret)
{
	const struct uni_chain *c = &v->chain;
	uint64_t from, words;

	if (i == 0 || c->sp[i] <= c->sp[i - 1] || (c->flags[i] & UNI_FRAME_EXACT) != 0)
		return false;
	*ret = c->sp[i] - UNI_XENCTX_WORD;
	if (holds_word(&v->stack, *ret, c->pc[i]))
		return true;
	from = c->sp[i - 1];
	words = uni_min(c->sp[i] - from, (uint64_t)v->stack.len) / UNI_XENCTX_WORD;
	for (uint64_t k = 0; k < words; k++) {
		*ret = from + k * UNI_XENCTX_WORD;
		if (holds_word(&v->stack, *ret, c->pc[i]))
			return true;
	}
	return false;
}

/* mark: precedes the frame in a stack trace. */
static void put_frame(const struct printer *p, const struct uni_xenctx_vcpu *v, size_t i, char mark)
{
	const struct uni_chain *c = &v->chain;
	uint64_t at;

	if (place_of(v, i, &at))
		(void)fprintf(p->out, "%016" PRIx64 ": %c ", at, mark);
	else
		(void)fprintf(p->out, "%19c ", mark);
	(void)fprintf(p->out, "[<%016" PRIx64 ">]", c->pc[i]);
	put_symbol(p, c->pc[i], i == 0 || (c->flags[i] & UNI_FRAME_EXACT) != 0);
	if (i == 0)
		(void)fputs(" <--", p->out);
	(void)fputs((c->flags[i] & UNI_FRAME_GUESS) != 0 ? " ?\n" : "\n", p->out);
}

static void put_end(const struct printer *p, const struct uni_chain *c)
{
	if (c->stop != UNI_STOP_ROOT)
		(void)fprintf(p->out, "%20s(cut short: %s)\n", "", uni_stop_name(c->stop));
}

static void put_trace(const struct printer *p, const struct uni_xenctx_vcpu *v)
{
	(void)fputs("Call Trace:\n", p->out);
	for (size_t i = 0; i < v->chain.nr; i++)
		put_frame(p, v, i, ' ');
	put_end(p, &v->chain);
}

/* A word that is in no chain: it may be code, and that is a guess. */
static void put_guess(const struct printer *p, uint64_t addr, uint64_t word)
{
	(void)fprintf(p->out, "%016" PRIx64 ":   [<%016" PRIx64 ">]", addr, word);
	put_symbol(p, word, false);
	(void)fputs(" ?\n", p->out);
}

/* With frame pointers a line on the left goes from frame to frame, until the last one. */
static void put_word(const struct printer *p, uint64_t addr, uint64_t word, uint64_t next_place)
{
	const char *line = "   ";

	if (p->args->frame_pointers && next_place != 0)
		line = next_place - addr == UNI_XENCTX_WORD ? "|--" : "|  ";
	else if (!p->args->frame_pointers && is_code(p, word)) {
		put_guess(p, addr, word);
		return;
	}
	(void)fprintf(p->out, "%016" PRIx64 ": %s %016" PRIx64 "\n", addr, line, word);
}

/* Every word of the stack: those of the chain as in a call trace, and others that may be code. */
static void put_stack_trace(const struct printer *p, const struct uni_xenctx_vcpu *v)
{
	const struct uni_xenctx_bytes *b = &v->stack;
	uint64_t place = 0;
	size_t frame = 1;

	(void)fputs("Stack Trace:\n", p->out);
	if (v->chain.nr != 0)
		put_frame(p, v, 0, '*');
	for (size_t i = 0; i < shown_words(b); i++) {
		uint64_t word = word_at(b, i * UNI_XENCTX_WORD);
		uint64_t addr = b->addr + i * UNI_XENCTX_WORD;

		while (frame < v->chain.nr && (!place_of(v, frame, &place) || place < addr))
			frame++; /* on no stack, or on another one */
		if (frame < v->chain.nr && place == addr)
			put_frame(p, v, frame++, p->args->frame_pointers ? '|' : ' ');
		else
			put_word(p, addr, word, frame < v->chain.nr ? place : 0);
	}
	put_end(p, &v->chain);
}

/* Memory that is taken for a stack has neither registers nor frames: what looks like code. */
static void put_dump_trace(const struct printer *p, const struct uni_xenctx_bytes *b)
{
	(void)fprintf(p->out, "%s Trace:\n", p->args->stack_trace ? "Stack" : "Call");
	for (size_t i = 0; i < shown_words(b); i++) {
		uint64_t word = word_at(b, i * UNI_XENCTX_WORD);
		uint64_t addr = b->addr + i * UNI_XENCTX_WORD;

		if (p->args->stack_trace || is_code(p, word))
			put_word(p, addr, word, 0);
	}
}

static void put_stack(const struct printer *p, const struct uni_xenctx_vcpu *v)
{
	(void)fputc('\n', p->out);
	if (p->args->lines != 0) {
		(void)fputs("Stack:\n", p->out);
		put_lines(p, &v->stack, p->args->lines);
	}
	if (p->args->has_dump)
		put_dump_trace(p, &v->stack);
	else if (p->args->stack_trace)
		put_stack_trace(p, v);
	else
		put_trace(p, v);
}

static void put_vcpu(
	const struct printer *p, const struct uni_regs *regs, const struct uni_xenctx_vcpu *v)
{
	const struct uni_xenctx_args *a = p->args;

	if (a->has_memory) {
		(void)fprintf(p->out, "Memory (address %016" PRIx64 "):\n", v->memory.addr);
		put_lines(p, &v->memory, UNI_XENCTX_LINES_ALL);
	}
	if (a->has_memory || a->has_dump) {
		if (a->has_dump)
			put_stack(p, v);
		return;
	}
	if (p->g->t->arch->elf_machine == EM_X86_64)
		put_x86(p, regs, &v->more);
	else
		put_generic(p, regs);
	if (regs->pc_valid)
		put_code(p, regs->pc, v);
	put_stack(p, v);
}

void uni_xenctx_print(const struct uni_guest *g, const struct uni_xenctx_args *args,
	const struct uni_xenctx *x, FILE *out)
{
	const struct printer p = { .g = g, .args = args, .out = out };

	for (size_t i = 0; i < x->nr; i++) {
		bool offline = x->regs[i].state == UNI_VCPU_OFFLINE;

		if (x->vcpu[i] == NULL)
			continue;
		if (offline)
			(void)fprintf(out, "vcpu%zu offline\n\n", i);
		else if (args->all_vcpus)
			(void)fprintf(out, "vcpu%zu:\n", i);
		if (offline)
			continue;
		put_vcpu(&p, &x->regs[i], x->vcpu[i]);
		if (args->all_vcpus)
			(void)fputc('\n', out);
	}
}
