/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "app/attach.h"
#include "app/cmd.h"
#include "app/exact.h"
#include "app/images.h"
#include "app/symbols.h"
#include "app/term.h"
#include "app/threads.h"
#include "app/unknown.h"
#include "obj/demangle.h"
#include "obj/usym.h"
#include "sampling/threads.h"

#define LOOKS_MAX 4 /* until all threads are had */

static struct {
	const char *qmp, *unwind;
	struct uni_opt_list images, debug_dirs, sysroot;
	struct uni_naming naming;
	bool json, registers, threads, no_pause, accept_image;
} o;

static const struct uni_opt *list_stacks_options(void)
{
	static const struct uni_opt table[] = {
		UNI_IMAGE_OPTION(o.images, UNI_IMAGE_RUNNING),
		UNI_SYSROOT_OPTION(o.sysroot),
		UNI_DEBUG_DIR_OPTION(o.debug_dirs),
		UNI_NAMING_OPTIONS(o.naming),
		UNI_UNWIND_OPTION(o.unwind),
		UNI_ACCEPT_IMAGE_OPTION(o.accept_image),
		{ 'r', "registers", UNI_OPT_FLAG, &o.registers, NULL,
			"also print the registers of each vCPU", NULL, NULL },
		{ 0, "threads", UNI_OPT_FLAG, &o.threads, NULL,
			"print the chain of every thread of the guest, running "
			"or not, instead of every vCPU",
			NULL, NULL, 't' },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_NO_PAUSE_OPTION(o.no_pause),
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .naming.inlined = true };
	return table;
}

/* One stack to print, under one head. */
struct stack {
	const struct uni_chain *chain;
	const struct uni_regs *regs;
	const struct uni_guest_thread *thread; /* NULL: it is a vCPU's */
	size_t vcpu;			       /* of a thread that is on none: SIZE_MAX */
};

struct shot {
	size_t nr_vcpus;
	struct uni_regs *regs; /* of all vCPUs, as the next */
	struct uni_chain *chain;
	struct uni_guest_symbols symbols;
	uint64_t bias;
	const struct uni_arch *arch;
	const struct uni_guest *g;
	struct uni_model *model;     /* NULL: threads are not asked for */
	struct uni_threads *threads; /* likewise */
	size_t nr;
	struct stack *stack; /* of these, and of threads that are on none */
};

static int find_symbols(const struct uni_guest *g, struct shot *shot, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.debug_dirs);

	return uni_guest_symbols_load(g, &search, &o.naming, &shot->symbols, err);
}

/* Nothing but reading happens while the guest is held; names come afterwards. */
static int hold_and_read(
	struct uni_guest *g, struct shot *shot, struct uni_as *as, struct uni_err *err)
{
	size_t nr = shot->nr_vcpus;
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)nr);
	struct uni_pause pause;
	int rc = uni_guest_hold(g, &pause, &all, shot->regs, err);

	for (size_t i = 0; rc == 0 && i < nr; i++)
		uni_unwind(&g->unwinder, as, &shot->regs[i], &shot->chain[i]);
	if (rc == 0 && shot->threads != NULL)
		uni_threads_take(shot->threads, shot->regs, (uint32_t)nr);
	(void)uni_pause_end(&pause);
	return rc;
}

/* Again, if there was not room for all threads, or not enough was read of some stack. */
static int read_guest(
	struct uni_guest *g, struct shot *shot, struct uni_as *as, struct uni_err *err)
{
	int rc = hold_and_read(g, shot, as, err);

	for (unsigned i = 0; rc == 0 && shot->threads != NULL && i < LOOKS_MAX; i++) {
		bool again = uni_threads_unwind(shot->threads);

		again |= uni_threads_list(shot->threads)->cut == UNI_THREADS_MORE;
		if (!again || i + 1 == LOOKS_MAX)
			break;
		uni_threads_prepare(shot->threads);
		rc = hold_and_read(g, shot, as, err);
	}
	return rc;
}

static void list_vcpu(struct shot *shot, size_t v, const struct uni_guest_thread *t)
{
	shot->stack[shot->nr++] = (struct stack){
		.chain = &shot->chain[v], .regs = &shot->regs[v], .thread = t, .vcpu = v
	};
}

/* Only a list that was read to its end is empty. */
static void say_threads(const struct shot *shot, const struct uni_thread_list *list)
{
	const char *cut = uni_threads_cut_text(list->cut);

	if (cut != NULL && list->nr == 0)
		uni_note("no thread was read, so these are the vCPUs: %s", cut);
	else if (cut != NULL)
		uni_note(
			"%s: there may be more than the %" PRIu32 " that were read", cut, list->nr);
	else if (list->nr == 0)
		uni_note("no threads: the list in which %s keeps them is empty, so these are the "
			 "vCPUs",
			uni_model_name(shot->g->image));
}

/* Threads in the guest's order; then vCPUs that have none. */
static void list_threads(struct shot *shot)
{
	static const struct uni_chain none = { .stop = UNI_STOP_NOREGS };
	const struct uni_thread_list *list = uni_threads_list(shot->threads);
	struct uni_vcpuset has_thread = { 0 };

	for (uint32_t i = 0; i < list->nr; i++) {
		const struct uni_guest_thread *t = &list->v[i];
		const struct uni_chain *c = uni_threads_chain(shot->threads, i);

		if (t->vcpu >= 0) {
			list_vcpu(shot, (size_t)t->vcpu, t);
			uni_vcpuset_add(&has_thread, (uint32_t)t->vcpu);
			continue;
		}
		shot->stack[shot->nr++] = (struct stack){ .chain = c != NULL ? c : &none,
			.regs = &t->regs,
			.thread = t,
			.vcpu = SIZE_MAX };
	}
	for (size_t v = 0; v < shot->nr_vcpus; v++) {
		if (!uni_vcpuset_has(&has_thread, (uint32_t)v))
			list_vcpu(shot, v, NULL);
	}
	say_threads(shot, list);
}

static int open_threads(struct uni_guest *g, struct shot *shot, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.debug_dirs);
	uint64_t pause_ns = uni_threads_one_look_ns(g->t);
	int rc = uni_guest_model(g, &search, &shot->model, err);

	return rc == 0 ? uni_threads_create(
				 g->t, &g->unwinder, shot->model, pause_ns, &shot->threads, err)
		       : rc;
}

static int make_room(struct shot *shot, size_t nr_vcpus, struct uni_err *err)
{
	shot->nr_vcpus = nr_vcpus;
	shot->regs = calloc(nr_vcpus, sizeof(*shot->regs));
	shot->chain = calloc(nr_vcpus, sizeof(*shot->chain));
	shot->stack = calloc(nr_vcpus + UNI_THREADS_MAX, sizeof(*shot->stack));
	if (shot->regs == NULL || shot->chain == NULL || shot->stack == NULL)
		return uni_err_nomem(err);
	return 0;
}

static int take_shot(struct uni_guest *g, struct shot *shot, struct uni_err *err)
{
	struct uni_as *as = NULL;
	int rc = make_room(shot, (size_t)g->t->ops->nr_vcpus(g->t), err);

	if (rc == 0 && o.threads)
		rc = open_threads(g, shot, err);
	shot->bias = g->bias;
	shot->arch = g->t->arch;
	shot->g = g;
	if (rc == 0)
		rc = uni_as_create(g->t->ops->gmem(g->t), &uni_as_budget_once, &as, err);
	if (rc == 0)
		rc = read_guest(g, shot, as, err);
	uni_as_destroy(as);
	if (rc != 0)
		return rc;
	if (o.threads)
		list_threads(shot);
	else
		for (size_t v = 0; v < shot->nr_vcpus; v++)
			list_vcpu(shot, v, NULL);
	return find_symbols(g, shot, err);
}

static void shot_free(struct shot *shot)
{
	uni_guest_symbols_free(&shot->symbols);
	uni_threads_destroy(shot->threads);
	uni_model_close(shot->model);
	free(shot->regs);
	free(shot->chain);
	free(shot->stack);
	free(shot);
}

/* Names for one entry of a chain: the function with that code, and the inlined ones. */
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
static void look_up_frame(
	const struct shot *shot, const struct uni_chain *c, size_t i, struct named *ret)
{
	bool exact = i == 0 || (c->flags[i] & UNI_FRAME_EXACT) != 0;
	uint64_t svma = c->pc[i] - shot->bias - (exact ? 0 : 1);

	ret->name = NULL;
	ret->nr = 0;
	if (shot->symbols.symtab == NULL)
		return;
	if (uni_naming_wants_places(&o.naming))
		ret->nr = uni_symtab_places(shot->symbols.symtab, svma, ret->place);
	if (!uni_symtab_lookup(shot->symbols.symtab, svma, &ret->name, &ret->off)) {
		/* No call before it: a signal handler's return address, put there by the kernel. */
		ret->name = NULL;
		if (exact ||
			!uni_symtab_lookup(shot->symbols.symtab, ++svma, &ret->name, &ret->off) ||
			ret->off != 0) {
			ret->name = NULL;
			return;
		}
		exact = true;
	}
	if (ret->nr != 0 && ret->place[ret->nr - 1].function != NULL &&
		strcmp(ret->place[ret->nr - 1].function, ret->name) != 0 &&
		uni_symtab_is_guess(shot->symbols.symtab, svma)) {
		ret->name = NULL;
		return;
	}
	ret->name = shown_name(ret->name, ret->text);
	ret->off += exact ? 0 : 1;
}

static void print_registers(const struct shot *shot, const struct uni_regs *regs)
{
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

/* The kernel below a process; where in it is not known. */
static bool is_kernel(const struct uni_chain *c, size_t i)
{
	return (c->flags[i] & UNI_FRAME_KERNEL) != 0 && c->pc[i] == 0;
}

static void print_frame(const struct shot *shot, const struct uni_chain *c, size_t i)
{
	uint64_t pc = c->pc[i];
	struct named n;
	char text[UNI_TEXT_MAX];

	if (is_kernel(c, i)) {
		(void)printf("  #%-3zu %16s  [kernel]\n", i, "");
		return;
	}
	look_up_frame(shot, c, i, &n);
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
	if (uni_frame_is_interrupted(c->flags, i))
		(void)fputs(" [interrupted]", stdout);
	if ((c->flags[i] & UNI_FRAME_GAP) != 0)
		(void)fputs(" [frames left out]", stdout);
	(void)puts((c->flags[i] & UNI_FRAME_GUESS) != 0 && !o.naming.unmarked ? " ?" : "");
}

/* In a guest that is stopped as a whole no vCPU runs; one that waited for something still does
 * so. */
static const char *state_name(const struct shot *shot, const struct stack *k)
{
	const char *rest = shot->g->info.rest;
	bool dead = (shot->g->t->ops->caps(shot->g->t) & UNI_CAP_DEAD) != 0;
	unsigned state = k->regs->state;

	if (shot->g->info.stopped)
		return "stopped by a signal";
	if (rest[0] != '\0' && (state == UNI_VCPU_RUNNING || (dead && state == UNI_VCPU_HALTED)))
		return rest;
	return uni_vcpu_state_name(state);
}

static bool has_twin(const struct shot *shot, const struct uni_guest_thread *t)
{
	const struct uni_thread_list *list = uni_threads_list(shot->threads);

	for (uint32_t i = 0; i < list->nr; i++) {
		if (&list->v[i] != t && strcmp(list->v[i].name, t->name) == 0)
			return true;
	}
	return false;
}

static void print_head(const struct shot *shot, const struct stack *k)
{
	bool colour = uni_term_colour(stdout);
	const char *on = colour ? "\033[1m" : "", *off = colour ? "\033[0m" : "";
	const struct uni_guest_thread *t = k->thread;
	char says[256], number[32] = "";

	if (t == NULL) {
		(void)printf("%svCPU %zu%s (%s)\n", on, k->vcpu, off, state_name(shot, k));
		return;
	}
	uni_thread_say(shot->g, t, says, sizeof(says));
	if (t->has_number)
		(void)snprintf(number, sizeof(number), " %" PRIu64, t->number);
	else if (t->name[0] == '\0' || has_twin(shot, t))
		(void)snprintf(number, sizeof(number), " 0x%" PRIx64, t->object);
	(void)printf("%sthread%s%s%s%s (%s)\n", on, number, t->name[0] != '\0' ? " " : "", t->name,
		off, says);
}

/* A promise has none. */
static bool has_stack(const struct shot *shot, const struct stack *k)
{
	return k->thread == NULL || uni_model_has_stacks(shot->model);
}

static void print_text(const struct shot *shot)
{
	for (size_t k = 0; k < shot->nr; k++) {
		const struct uni_chain *c = shot->stack[k].chain;

		print_head(shot, &shot->stack[k]);
		if (o.registers)
			print_registers(shot, shot->stack[k].regs);
		for (size_t i = 0; i < c->nr; i++)
			print_frame(shot, c, i);
		if (c->stop != UNI_STOP_ROOT && has_stack(shot, &shot->stack[k]))
			(void)printf("  (cut short: %s)\n", uni_stop_name(c->stop));
		if (k + 1 < shot->nr)
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

static void json_frame(
	struct uni_json *j, const struct shot *shot, const struct uni_chain *c, size_t i)
{
	struct named n;
	char text[UNI_TEXT_MAX];

	if (is_kernel(c, i)) {
		uni_json_object(j);
		uni_json_kv(hex, j, "pc", c->pc[i]);
		uni_json_kv(str, j, "name", "[kernel]");
		uni_json_object_end(j);
		return;
	}
	look_up_frame(shot, c, i, &n);
	for (size_t k = 0; o.naming.inlined && k + 1 < n.nr; k++) {
		uni_json_object(j);
		uni_json_kv(hex, j, "pc", c->pc[i]);
		if (n.place[k].function != NULL)
			uni_json_kv(str, j, "name", shown_name(n.place[k].function, text));
		uni_json_kv(bool, j, "inlined", true);
		json_line(j, &n.place[k]);
		uni_json_object_end(j);
	}
	uni_json_object(j);
	uni_json_kv(hex, j, "pc", c->pc[i]);
	if ((c->flags[i] & UNI_FRAME_GUESS) != 0)
		uni_json_kv(bool, j, "guess", true);
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

static void json_thread(
	struct uni_json *j, const struct shot *shot, const struct uni_guest_thread *t)
{
	char what[160];

	uni_thread_waits_for(shot->g, t, what, sizeof(what));
	uni_json_kv(hex, j, "thread", t->object);
	if (t->has_number)
		uni_json_kv(u64, j, "number", t->number);
	uni_json_kv(str, j, "name", t->name);
	uni_json_kv(str, j, "state", uni_thread_state_name(t->state));
	if (what[0] != '\0')
		uni_json_kv(str, j, "waits_for", what);
}

static void json_registers(struct uni_json *j, const struct shot *shot, const struct uni_regs *regs)
{
	uint64_t val;

	uni_json_key(j, "registers");
	uni_json_object(j);
	for (unsigned r = 0; r < shot->arch->nr_regs; r++) {
		if (uni_regs_get(regs, r, &val))
			uni_json_kv(hex, j, shot->arch->reg_names[r], val);
	}
	for (unsigned r = 0; r < UNI_SYS_MAX; r++) {
		if (shot->arch->sys_names[r] != NULL && uni_regs_get_sys(regs, r, &val))
			uni_json_kv(hex, j, shot->arch->sys_names[r], val);
	}
	uni_json_object_end(j);
}

static void json_stack(struct uni_json *j, const struct shot *shot, const struct stack *k)
{
	uni_json_object(j);
	if (k->thread != NULL)
		json_thread(j, shot, k->thread);
	if (k->vcpu != SIZE_MAX)
		uni_json_kv(u64, j, "vcpu", k->vcpu);
	if (k->thread == NULL)
		uni_json_kv(str, j, "state", state_name(shot, k));
	uni_json_kv(str, j, "stop", uni_stop_name(k->chain->stop));
	if (o.registers)
		json_registers(j, shot, k->regs);
	uni_json_key(j, "frames");
	uni_json_array(j);
	for (size_t i = 0; i < k->chain->nr; i++)
		json_frame(j, shot, k->chain, i);
	uni_json_array_end(j);
	uni_json_object_end(j);
}

static int print_json(const struct shot *shot, struct uni_err *err)
{
	struct uni_sink *out;
	struct uni_json j;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-stacks");
	uni_json_kv(u64, &j, "version", 1);
	if (shot->threads != NULL &&
		uni_threads_cut_text(uni_threads_list(shot->threads)->cut) != NULL)
		uni_json_kv(str, &j, "threads_cut",
			uni_threads_cut_text(uni_threads_list(shot->threads)->cut));
	uni_json_key(&j, "stacks");
	uni_json_array(&j);
	for (size_t k = 0; k < shot->nr; k++)
		json_stack(&j, shot, &shot->stack[k]);
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	return uni_sink_close(out, err);
}

static int run_stacks(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_attach_args args = { .target = ctx->operands[0],
		.image = uni_images_first(&o.images),
		.qmp = o.qmp,
		.no_image_ok = true,
		.no_pause = o.no_pause,
		.once = true,
		.search = uni_search_of(&o.debug_dirs),
		.sysroot = &o.sysroot,
		.accept_image = o.accept_image,
		.unwind = o.unwind };
	struct shot *shot = calloc(1, sizeof(*shot));
	struct uni_unknown unknown = { 0 };
	struct uni_guest g;
	int rc = uni_images_others(&o.images, &o.sysroot, err);

	if (rc == 0)
		rc = shot == NULL ? uni_err_nomem(err) : uni_guest_open_only(&g, &args, err);
	if (rc != 0) {
		free(shot);
		return uni_exit_of(rc);
	}
	uni_exact_note_counts(&g.info);
	/* Prints the file's note: its contents and gaps. */
	if ((g.t->ops->caps(g.t) & UNI_CAP_DEAD) != 0)
		(void)fprintf(stderr, "uniscope: %s\n", g.info.note);
	rc = take_shot(&g, shot, err);
	if (rc == 0 && o.json)
		rc = print_json(shot, err);
	else if (rc == 0)
		print_text(shot);
	for (size_t k = 0; rc == 0 && k < shot->nr; k++) {
		if (shot->stack[k].regs->state != UNI_VCPU_OFFLINE)
			uni_unknown_add(&unknown, &g, shot->stack[k].chain);
	}
	uni_unknown_say(&unknown, &g);
	shot_free(shot);
	uni_guest_close(&g);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_stacks = {
	.name = "stacks",
	.operands = "TARGET",
	.summary = "print the call chain of every vCPU, or thread, now",
	.details = "Holds the guest only while it reads, and with --no-pause not at all. "
		   "For a dead guest\n"
		   "(core:) it prints the chains in the file.",
	.examples = "  uniscope stacks kvm:pid=4121\n"
		    "  uniscope stacks --threads web1\n"
		    "  uniscope stacks --registers gdb:tcp=127.0.0.1:1234 -e app.elf\n"
		    "  uniscope stacks core:file=vm.core -e app.elf",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_stacks_options,
	.run = run_stacks,
};
