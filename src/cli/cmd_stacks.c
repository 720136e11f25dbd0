/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/attach.h"
#include "cli/cmd.h"
#include "cli/images.h"
#include "cli/symbols.h"
#include "cli/term.h"
#include "obj/demangle.h"
#include "obj/usym.h"

static struct {
	const char *image, *qmp, *unwind;
	struct uni_opt_list debug_dirs, sysroot;
	struct uni_naming naming;
	bool json, registers;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 'e', "image", UNI_OPT_STR, &o.image, "ELF",
			"the image that the guest runs, with symbols, or only these as nm prints "
			"them (default: from the VMM's command line, and its .dbg sibling)",
			"FILE", NULL },
		UNI_SYSROOT_OPTION(o.sysroot),
		UNI_DEBUG_DIR_OPTION(o.debug_dirs),
		UNI_NAMING_OPTIONS(o.naming),
		UNI_UNWIND_OPTION(o.unwind),
		{ 'r', "registers", UNI_OPT_FLAG, &o.registers, NULL,
			"also print the registers of each vCPU", NULL, NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

struct shot {
	struct uni_regs regs[UNI_VCPU_MAX];
	struct uni_chain chain[UNI_VCPU_MAX];
	size_t nr;
	struct uni_guest_symbols symbols;
	uint64_t bias;
	const struct uni_arch *arch;
};

static int find_symbols(const struct uni_guest *g, struct shot *shot, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.debug_dirs);

	return uni_guest_symbols_load(
		g, &search, o.naming.inlined || o.naming.lines, &shot->symbols, err);
}

/* Nothing but reading happens while the guest is held; names come afterwards. */
static int take(struct uni_guest *g, struct shot *shot, struct uni_err *err)
{
	struct uni_pause pause;
	struct uni_as *as = NULL;
	uint64_t mask;
	int rc;

	shot->nr = (size_t)g->t->ops->nr_vcpus(g->t);
	shot->bias = g->bias;
	shot->arch = g->t->arch;
	mask = shot->nr >= 64 ? UINT64_MAX : (1ull << shot->nr) - 1;
	rc = uni_as_create(g->t->ops->gmem(g->t), NULL, &as, err);
	if (rc != 0)
		return rc;
	rc = uni_guest_hold(g, &pause, mask, shot->regs, err);
	for (size_t i = 0; rc == 0 && i < shot->nr; i++)
		uni_unwind(&g->unwinder, as, &shot->regs[i], &shot->chain[i]);
	(void)uni_pause_end(&pause);
	uni_as_destroy(as);
	if (rc != 0)
		return rc;
	return find_symbols(g, shot, err);
}

/* What is printed of one entry of a chain: the function that has the code, and those inlined. */
struct named {
	const char *name; /* NULL: unknown */
	uint64_t off;
	size_t nr; /* places, the last one is of `name` itself; 0: not known or not asked for */
	struct uni_place place[UNI_INLINE_MAX];
	char text[UNI_TEXT_MAX];
};

static const char *shown_name(const char *name, char text[UNI_TEXT_MAX])
{
	return !o.naming.mangled && uni_demangle(name, text, UNI_TEXT_MAX) ? text : name;
}

/* A return address is looked up one byte back: the call may be the last instruction. */
static void lookup(const struct shot *shot, size_t vcpu, size_t i, struct named *ret)
{
	const struct uni_chain *c = &shot->chain[vcpu];
	bool exact = i == 0 || (c->flags[i] & UNI_FRAME_EXACT) != 0;
	uint64_t svma = c->pc[i] - shot->bias - (exact ? 0 : 1);

	ret->name = NULL;
	ret->nr = 0;
	if (shot->symbols.symtab == NULL)
		return;
	if (o.naming.inlined || o.naming.lines)
		ret->nr = uni_symtab_places(shot->symbols.symtab, svma, ret->place);
	if (!uni_symtab_lookup(shot->symbols.symtab, svma, &ret->name, &ret->off))
		return;
	if (ret->nr != 0 && ret->place[ret->nr - 1].function != NULL &&
		strcmp(ret->place[ret->nr - 1].function, ret->name) != 0 &&
		uni_symtab_is_guess(shot->symbols.symtab, svma)) {
		ret->name = NULL;
		return;
	}
	ret->name = shown_name(ret->name, ret->text);
	ret->off += exact ? 0 : 1;
}

static void print_registers(const struct shot *shot, size_t vcpu)
{
	const struct uni_regs *regs = &shot->regs[vcpu];
	unsigned column = 0;
	uint64_t v;

	for (unsigned r = 0; r < shot->arch->nr_regs; r++) {
		if (!uni_regs_get(regs, r, &v))
			continue;
		(void)printf("  %-6s %016" PRIx64 "%s", shot->arch->reg_names[r], v,
			++column % 3 == 0 ? "\n" : "");
	}
	for (unsigned r = 0; r < UNI_SYS_MAX; r++) {
		if (shot->arch->sys_names[r] == NULL || !uni_regs_get_sys(regs, r, &v))
			continue;
		(void)printf("  %-6s %016" PRIx64 "%s", shot->arch->sys_names[r], v,
			++column % 3 == 0 ? "\n" : "");
	}
	if (column % 3 != 0)
		(void)putchar('\n');
}

static void print_line(const struct uni_place *p)
{
	if (o.naming.lines && p->file != NULL)
		(void)printf(" (%s:%" PRIu32 ")", p->file, p->line);
}

static void print_frame(const struct shot *shot, size_t vcpu, size_t i)
{
	uint64_t pc = shot->chain[vcpu].pc[i];
	struct named n;
	char text[UNI_TEXT_MAX];

	lookup(shot, vcpu, i, &n);
	for (size_t k = 0; o.naming.inlined && k + 1 < n.nr; k++) {
		const char *name = n.place[k].function;

		(void)printf("  #%-3zu %016" PRIx64 "  %s", i, pc,
			name != NULL ? shown_name(name, text) : "[unknown]");
		print_line(&n.place[k]);
		(void)puts(" [inlined]");
	}
	(void)printf("  #%-3zu %016" PRIx64 "  ", i, pc);
	if (n.name != NULL)
		(void)printf("%s+0x%" PRIx64, n.name, n.off);
	else if (n.nr != 0 && n.place[n.nr - 1].function != NULL)
		(void)fputs(shown_name(n.place[n.nr - 1].function, text), stdout);
	else
		(void)fputs("[unknown]", stdout);
	if (n.nr != 0)
		print_line(&n.place[n.nr - 1]);
	(void)putchar('\n');
}

static void print_text(const struct shot *shot)
{
	bool colour = uni_term_colour(stdout);

	for (size_t v = 0; v < shot->nr; v++) {
		const struct uni_chain *c = &shot->chain[v];

		(void)printf("%svCPU %zu%s (%s)\n", colour ? "\033[1m" : "", v,
			colour ? "\033[0m" : "", uni_vcpu_state_name(shot->regs[v].state));
		if (o.registers)
			print_registers(shot, v);
		for (size_t i = 0; i < c->nr; i++)
			print_frame(shot, v, i);
		if (c->stop != UNI_STOP_ROOT)
			(void)printf("  (cut short: %s)\n", uni_stop_name(c->stop));
		if (v + 1 < shot->nr)
			(void)putchar('\n');
	}
}

static void json_line(struct uni_json *j, const struct uni_place *p)
{
	if (!o.naming.lines || p->file == NULL)
		return;
	uni_json_kv(str, j, "file", p->file);
	uni_json_kv(u64, j, "line", p->line);
}

static void json_frame(struct uni_json *j, const struct shot *shot, size_t v, size_t i)
{
	struct named n;
	char text[UNI_TEXT_MAX];

	lookup(shot, v, i, &n);
	for (size_t k = 0; o.naming.inlined && k + 1 < n.nr; k++) {
		uni_json_object(j);
		uni_json_kv(hex, j, "pc", shot->chain[v].pc[i]);
		if (n.place[k].function != NULL)
			uni_json_kv(str, j, "name", shown_name(n.place[k].function, text));
		uni_json_kv(bool, j, "inlined", true);
		json_line(j, &n.place[k]);
		uni_json_object_end(j);
	}
	uni_json_object(j);
	uni_json_kv(hex, j, "pc", shot->chain[v].pc[i]);
	if (n.name != NULL) {
		uni_json_kv(str, j, "name", n.name);
		uni_json_kv(u64, j, "offset", n.off);
	} else if (n.nr != 0 && n.place[n.nr - 1].function != NULL) {
		uni_json_kv(str, j, "name", shown_name(n.place[n.nr - 1].function, text));
	}
	if (n.nr != 0)
		json_line(j, &n.place[n.nr - 1]);
	uni_json_object_end(j);
}

static int print_json(const struct shot *shot, struct uni_err *err)
{
	struct uni_sink *out;
	struct uni_json j;
	uint64_t val;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_array(&j);
	for (size_t v = 0; v < shot->nr; v++) {
		uni_json_object(&j);
		uni_json_kv(u64, &j, "vcpu", v);
		uni_json_kv(str, &j, "state", uni_vcpu_state_name(shot->regs[v].state));
		uni_json_kv(str, &j, "stop", uni_stop_name(shot->chain[v].stop));
		if (o.registers) {
			uni_json_key(&j, "registers");
			uni_json_object(&j);
			for (unsigned r = 0; r < shot->arch->nr_regs; r++) {
				if (uni_regs_get(&shot->regs[v], r, &val))
					uni_json_kv(hex, &j, shot->arch->reg_names[r], val);
			}
			uni_json_object_end(&j);
		}
		uni_json_key(&j, "frames");
		uni_json_array(&j);
		for (size_t i = 0; i < shot->chain[v].nr; i++)
			json_frame(&j, shot, v, i);
		uni_json_array_end(&j);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	return uni_sink_close(out, err);
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_attach_args args = { .target = ctx->operands[0],
		.image = o.image,
		.qmp = o.qmp,
		.no_image_ok = true,
		.search = uni_search_of(&o.debug_dirs),
		.sysroot = &o.sysroot,
		.unwind = o.unwind };
	_cleanup_free_ struct shot *shot = calloc(1, sizeof(*shot));
	struct uni_guest g;
	int rc = shot == NULL ? uni_err_set(err, UNI_ENOMEM, "out of memory")
			      : uni_guest_open(&g, &args, err);

	if (rc != 0)
		return uni_exit_of(rc);
	/* What a file holds, and what it lacks. */
	if ((g.t->ops->caps(g.t) & UNI_CAP_DEAD) != 0)
		(void)fprintf(stderr, "uniscope: %s\n", g.info.note);
	rc = take(&g, shot, err);
	if (rc == 0 && o.json)
		rc = print_json(shot, err);
	else if (rc == 0)
		print_text(shot);
	uni_guest_symbols_free(&shot->symbols);
	uni_guest_close(&g);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_stacks = {
	.name = "stacks",
	.operands = "TARGET",
	.summary = "print the call chain of every vCPU now",
	.details = "Holds the guest for the moment of reading, never longer. Of a dead guest "
		   "(core:) it "
		   "prints what the file holds.",
	.examples = "  uniscope stacks kvm:pid=4121\n"
		    "  uniscope stacks --registers gdb:tcp=127.0.0.1:1234 -e app.elf\n"
		    "  uniscope stacks core:file=vm.core -e app.elf",
	.min_operands = 1,
	.max_operands = 1,
	.options = options,
	.run = run,
};
