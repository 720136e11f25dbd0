/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "annotate/annotation.h"
#include "annotate/arrows.h"
#include "base/checked.h"
#include "base/text.h"
#include "profile/text.h"

#define LINE_MAX 256

struct writer {
	const struct uni_annotation *a;
	struct uni_lines *lines;
	const struct uni_annotation_text *opts;
	struct uni_sink *out;
	struct uni_arrows arrows;
};

static double percent_of(double v, double all)
{
	return all > 0 ? 100 * v / all : 0;
}

static void put_head(const struct writer *w)
{
	const struct uni_annotation *a = w->a;
	char self[UNI_NUMBER_MAX], total[UNI_NUMBER_MAX], all[UNI_NUMBER_MAX];

	uni_text_number(self, a->self);
	uni_text_number(total, a->total);
	uni_text_number(all, a->all);
	uni_sink_printf(w->out,
		"function   %s\nimage      %s, %" PRIu64 " bytes at 0x%" PRIx64 "%s\n",
		a->code.name, a->image, a->code.size, a->code.addr,
		a->bias != 0 ? " (as linked)" : "");
	if (a->inlined[0] != '\0')
		uni_sink_printf(w->out,
			"inlined    here: %s. %.0f of its %.0f %s are here, with what it calls\n",
			a->inlined, a->inlined_here, a->inlined_all, uni_annotation_unit(a));
	if (a->part[0] != '\0')
		uni_sink_printf(w->out, "part       %s\n", a->part);
	if (a->of == UNI_ANNOTATE_CALLS)
		uni_sink_printf(w->out, "calls      %" PRIu64 ", %s ns, of which %s ns self\n",
			a->calls, total, self);
	else
		uni_sink_printf(w->out,
			"self       %s of %s %s (%.1f %%); with callees %s (%.1f %%)\n", self, all,
			uni_annotation_unit(a), percent_of(a->self, a->all), total,
			percent_of(a->total, a->all));
	if (a->of == UNI_ANNOTATE_EXACT)
		uni_sink_printf(w->out, "calls      %" PRIu64 "\n", a->calls);
}

/* The relation of the marked instructions to those that took the time. */
static void put_skid(const struct writer *w)
{
	const struct uni_annotation *a = w->a;

	if (a->of == UNI_ANNOTATE_EXACT) {
		uni_sink_puts(w->out, "skid       none: each execution was counted\n");
	} else if (a->of == UNI_ANNOTATE_CALLS) {
		uni_sink_puts(w->out, "skid       none: a trace has calls, and no time of single "
				      "instructions\n");
	} else if (a->blocks) {
		uni_sink_puts(w->out,
			"skid       the vCPU stops only where a block of code begins (TCG). Each "
			"number is at such a place: the time was spent in a block that leads "
			"there\n");
		if (a->somewhere > 0)
			uni_sink_printf(w->out,
				"somewhere  %.0f samples of it were in the function, at an unknown "
				"place\n",
				a->somewhere);
	} else {
		uni_sink_puts(w->out,
			"skid       an interrupt takes samples: the marked instruction was the "
			"next to run, and a slow one is often shown at the one behind it\n");
	}
	if (!a->code.has_lines)
		uni_sink_puts(w->out, "source     no lines: the image has no debug data (-g)\n");
	if (w->arrows.left_out != 0)
		uni_sink_printf(w->out, "jumps      %zu are not drawn: too long, or too many\n",
			w->arrows.left_out);
}

static void put_numbers(const struct writer *w, double self, double below)
{
	const char *on = "", *off = "";
	double percent = percent_of(self, w->a->self);
	char number[UNI_NUMBER_MAX] = "", more[UNI_NUMBER_MAX] = "";

	if (self > 0)
		uni_text_number(number, self);
	if (below > 0)
		uni_text_number(more, below);
	if (w->opts->colour && self > 0 && w->a->of == UNI_ANNOTATE_SAMPLES) {
		on = uni_text_heat(percent);
		off = on[0] != '\0' ? "\x1b[0m" : "";
	}
	if (w->a->of == UNI_ANNOTATE_SAMPLES && self > 0)
		uni_sink_printf(w->out, "%s%6.1f %%%s", on, percent, off);
	else if (w->a->of == UNI_ANNOTATE_SAMPLES)
		uni_sink_puts(w->out, "        ");
	if (w->a->of != UNI_ANNOTATE_CALLS)
		uni_sink_printf(w->out, " %12s", number);
	uni_sink_printf(w->out, " %12s  ", more);
}

static void put_line(const struct writer *w, const struct uni_code_line *l)
{
	const char *file = uni_code_string(&w->a->code, l->file), *slash = strrchr(file, '/');
	const char *inlined = uni_code_string(&w->a->code, l->function);
	char text[LINE_MAX];

	put_numbers(w, w->a->of == UNI_ANNOTATE_SAMPLES ? l->self : 0, 0);
	uni_sink_printf(w->out, "%s%s:%" PRIu32 "%s%s%s  %s%s\n", w->opts->colour ? "\x1b[36m" : "",
		slash != NULL ? slash + 1 : file, l->line, inlined != NULL ? " (" : "",
		inlined != NULL ? inlined : "", inlined != NULL ? ", inlined)" : "",
		uni_lines_get(w->lines, file, l->line, text, sizeof(text)),
		w->opts->colour ? "\x1b[0m" : "");
}

static void put_insn(const struct writer *w, size_t at)
{
	const struct uni_code_insn *i = &w->a->code.insns.v[at];
	const char *callee = uni_code_string(&w->a->code, i->callee);
	char arrows[UNI_ARROW_LANES + 3];

	uni_arrows_text(&w->arrows, at, arrows);
	put_numbers(w, i->self, i->below);
	uni_sink_printf(w->out, "%8" PRIx64 " %s %s", i->insn.addr, arrows, i->insn.text);
	if (callee != NULL)
		uni_sink_printf(w->out, "  <%s>", callee);
	if (i->sites != 0)
		uni_sink_printf(w->out, "  %" PRIu64 " call%s", i->calls, uni_plural(i->calls));
	if (i->sites > 1)
		uni_sink_printf(w->out, "%s %" PRIu32 " places together",
			w->a->of == UNI_ANNOTATE_EXACT ? "; below:" : " from", i->sites);
	uni_sink_putc(w->out, '\n');
}

static void put_code(const struct writer *w)
{
	static const char *const headings[] = {
		[UNI_ANNOTATE_SAMPLES] = "    SELF      SAMPLES        BELOW   ADDRESS\n",
		[UNI_ANNOTATE_EXACT] = "     EXECUTED        BELOW   ADDRESS\n",
		[UNI_ANNOTATE_CALLS] = "     BELOW ns   ADDRESS\n",
	};
	const struct uni_code *c = &w->a->code;
	uint32_t line = UNI_CODE_NONE;

	uni_sink_putc(w->out, '\n');
	uni_sink_puts(w->out, headings[w->a->of]);
	for (size_t i = 0; i < c->insns.nr; i++) {
		if (c->insns.v[i].line != line && c->insns.v[i].line != UNI_CODE_NONE)
			put_line(w, &c->lines.v[c->insns.v[i].line]);
		line = c->insns.v[i].line;
		put_insn(w, i);
	}
}

/* Calls through pointers, and by code that the compiler put elsewhere. */
static void put_other_callees(const struct writer *w)
{
	bool any = false;

	for (size_t i = 0; i < w->a->callees.nr; i++) {
		const struct uni_annotation_callee *c = &w->a->callees.v[i];
		char value[UNI_NUMBER_MAX];

		if (c->sites != 0)
			continue;
		if (!any)
			uni_sink_puts(w->out, "\nalso called, by no direct call:\n");
		any = true;
		uni_text_number(value, c->value);
		uni_sink_printf(w->out, "%12s %s  %s, %" PRIu64 " call%s\n", value,
			uni_annotation_unit(w->a), c->name, c->calls, uni_plural(c->calls));
	}
}

int uni_annotation_print(const struct uni_annotation *a, struct uni_lines *lines,
	const struct uni_annotation_text *opts, struct uni_sink *out)
{
	struct writer w = { .a = a, .lines = lines, .opts = opts, .out = out };
	bool ok = uni_arrows_draw(&a->code, &w.arrows);

	if (ok) {
		put_head(&w);
		put_skid(&w);
		put_code(&w);
		put_other_callees(&w);
	}
	uni_arrows_deinit(&w.arrows);
	return ok ? 0 : -UNI_ENOMEM;
}
