/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotate/annotation.h"
#include "annotate/arrows.h"
#include "base/json.h"

#define LINE_MAX 1024

static const char *const kinds[] = {
	[UNI_INSN_OTHER] = "other",
	[UNI_INSN_JUMP] = "jump",
	[UNI_INSN_CALL] = "call",
	[UNI_INSN_RETURN] = "return",
	[UNI_INSN_BAD] = "bad",
};

static const char *skid_of(const struct uni_annotation *a)
{
	return a->of != UNI_ANNOTATE_SAMPLES ? "none" : a->blocks ? "block" : "next";
}

static void put_insn(
	const struct uni_annotation *a, const struct uni_code_insn *i, struct uni_json *j)
{
	uni_json_object(j);
	uni_json_kv(hex, j, "address", i->insn.addr);
	uni_json_kv(u64, j, "size", i->insn.size);
	uni_json_kv(str, j, "text", i->insn.text);
	uni_json_kv(str, j, "kind", kinds[i->insn.kind]);
	uni_json_kv(double, j, "self", i->self);
	uni_json_kv(double, j, "below", i->below);
	if (i->line != UNI_CODE_NONE)
		uni_json_kv(u64, j, "line", i->line);
	if (i->insn.target != 0)
		uni_json_kv(hex, j, "target", i->insn.target);
	if (i->callee != 0)
		uni_json_kv(str, j, "callee", uni_code_string(&a->code, i->callee));
	if (i->sites != 0) {
		uni_json_kv(u64, j, "calls", i->calls);
		uni_json_kv(u64, j, "sites", i->sites);
	}
	uni_json_object_end(j);
}

static void put_line(const struct uni_annotation *a, const struct uni_code_line *l,
	struct uni_lines *lines, struct uni_json *j)
{
	const char *file = uni_code_string(&a->code, l->file);
	char text[LINE_MAX];

	uni_json_object(j);
	uni_json_kv(str, j, "file", file);
	uni_json_kv(u64, j, "line", l->line);
	if (l->function != 0)
		uni_json_kv(str, j, "inlined", uni_code_string(&a->code, l->function));
	uni_json_kv(double, j, "self", l->self);
	if (uni_lines_get(lines, file, l->line, text, sizeof(text))[0] != '\0')
		uni_json_kv(str, j, "text", text);
	uni_json_object_end(j);
}

static void put_callee(const struct uni_annotation_callee *c, struct uni_json *j)
{
	uni_json_object(j);
	uni_json_kv(str, j, "name", c->name);
	uni_json_kv(hex, j, "address", c->addr);
	uni_json_kv(u64, j, "calls", c->calls);
	uni_json_kv(double, j, "value", c->value);
	uni_json_kv(u64, j, "sites", c->sites);
	uni_json_object_end(j);
}

static void put_head(const struct uni_annotation *a, struct uni_json *j)
{
	uni_json_kv(str, j, "format", "uniscope-annotate");
	uni_json_kv(u64, j, "version", 1);
	uni_json_kv(str, j, "function", a->code.name);
	if (a->inlined[0] != '\0') {
		uni_json_kv(str, j, "inlined", a->inlined);
		uni_json_kv(double, j, "inlined_here", a->inlined_here);
		uni_json_kv(double, j, "inlined_all", a->inlined_all);
	}
	uni_json_kv(str, j, "image", a->image);
	uni_json_kv(hex, j, "address", a->code.addr);
	uni_json_kv(u64, j, "size", a->code.size);
	uni_json_kv(hex, j, "bias", a->bias);
	uni_record_part_json(j, a->part[0] != '\0' ? &a->only : NULL);
	uni_json_kv(str, j, "unit", uni_annotation_unit(a));
	uni_json_kv(double, j, "self", a->self);
	uni_json_kv(double, j, "total", a->total);
	uni_json_kv(double, j, "all", a->all);
	uni_json_kv(str, j, "skid", skid_of(a));
	uni_json_kv(double, j, "somewhere", a->somewhere);
	if (a->of != UNI_ANNOTATE_SAMPLES)
		uni_json_kv(u64, j, "calls", a->calls);
}

static void put_annotation(const struct uni_annotation *a, struct uni_lines *lines,
	const struct uni_arrows *arrows, struct uni_json *j)
{
	char drawn[UNI_ARROW_LANES + 3];

	uni_json_object(j);
	put_head(a, j);
	uni_json_key(j, "instructions");
	uni_json_array(j);
	for (size_t i = 0; i < a->code.insns.nr; i++)
		put_insn(a, &a->code.insns.v[i], j);
	uni_json_array_end(j);
	uni_json_key(j, "lines");
	uni_json_array(j);
	for (size_t i = 0; i < a->code.lines.nr; i++)
		put_line(a, &a->code.lines.v[i], lines, j);
	uni_json_array_end(j);
	uni_json_key(j, "callees");
	uni_json_array(j);
	for (size_t i = 0; i < a->callees.nr; i++)
		put_callee(&a->callees.v[i], j);
	uni_json_array_end(j);
	if (arrows != NULL) {
		uni_json_key(j, "arrows");
		uni_json_array(j);
		for (size_t i = 0; i < a->code.insns.nr; i++) {
			uni_arrows_text(arrows, i, drawn);
			uni_json_str(j, drawn);
		}
		uni_json_array_end(j);
	}
	uni_json_object_end(j);
}

void uni_annotation_json(
	const struct uni_annotation *a, struct uni_lines *lines, struct uni_sink *out)
{
	struct uni_json j;

	uni_json_init(&j, out, true);
	put_annotation(a, lines, NULL, &j);
	uni_sink_putc(out, '\n');
}

bool uni_annotation_drawn(
	const struct uni_annotation *a, struct uni_lines *lines, struct uni_json *j)
{
	struct uni_arrows arrows = { 0 };
	bool ok = uni_arrows_draw(&a->code, &arrows);

	if (ok)
		put_annotation(a, lines, &arrows, j);
	uni_arrows_deinit(&arrows);
	return ok;
}
