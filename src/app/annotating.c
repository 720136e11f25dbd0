/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/annotating.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/inlined.h"
#include "app/symbols.h"
#include "app/term.h"
#include "app/trace_open.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "obj/demangle.h"
#include "recording/exact.h"
#include "trace/tree.h"

/* An image of a guest. */
struct place {
	const char *path, *id;
	uint64_t bias;
};

struct finder {
	const struct uni_annotating_args *args;
	struct uni_image_search search;
	struct uni_annotating *x;
	const struct uni_symbol *sym; /* of x->image; NULL: not found yet */
	bool has_addr;		      /* it is looked for, and not the name */
	bool linked;		      /* the address is one of the file: as it is linked */
	uint64_t addr;
	bool loaded;	    /* some image was */
	struct uni_err why; /* the first one was not */
};

static struct place place_of(const struct uni_record_meta *m, uint32_t i)
{
	return i == 0 ? (struct place){ m->image_path, m->image_id, m->bias }
		      : (struct place){ m->more[i - 1].path, m->more[i - 1].id,
				m->more[i - 1].bias };
}

static int choose_symbol(struct finder *f, const struct place *p, struct uni_err *err)
{
	if (!f->has_addr)
		return uni_code_choose(f->x->image, f->args->function, p->bias, &f->sym, err);
	if (!f->linked || p->bias != 0)
		f->sym = uni_image_lookup(f->x->image, f->linked ? f->addr : f->addr - p->bias);
	return 0;
}

int uni_annotating_load(const char *path, const char *id, const struct uni_image_search *search,
	struct uni_image **ret, struct uni_err *err)
{
	int rc = uni_image_load_from(path, search, ret, err);

	if (rc != 0 || id[0] == '\0' || strcmp(uni_image_id(*ret), id) == 0)
		return rc;
	rc = uni_err_set(err, UNI_EMISMATCH,
		"%s is another build than the one that was recorded (build-id %s, not %s)", path,
		uni_image_id(*ret), id);
	uni_image_destroy(uni_take(*ret));
	return rc;
}

static int look_in_image(struct finder *f, const struct place *p, struct uni_err *err)
{
	const char *path = f->args->image != NULL ? f->args->image : p->path;
	struct uni_err why = { 0 };
	int rc = uni_annotating_load(path, p->id, &f->search, &f->x->image, &why);

	if (rc == 0) {
		f->loaded = true;
		rc = choose_symbol(f, p, err);
		if (rc != 0 || f->sym != NULL)
			return rc;
	} else if (f->why.code == 0) {
		f->why = why;
	}
	uni_image_destroy(uni_take(f->x->image));
	return 0;
}

/* Looks through the images of the chosen guests. */
static int find_in_images(struct finder *f, struct uni_err *err)
{
	const struct uni_recording *rec = f->x->s.rec;
	struct uni_only only = f->args->src.build.filter.guest;

	for (uint32_t g = 0; g < uni_recording_nr_guests(rec); g++) {
		const struct uni_record_meta *m = uni_recording_guest(rec, g).meta;

		if (m->aggregate && !uni_exact_is_there(uni_recording_path(rec), g))
			return uni_err_set(err, UNI_ENOTSUP,
				"%s was imported, and has no addresses of instructions",
				f->args->src.path);
		for (uint32_t i = 0; uni_only_passes(only, g) && i <= m->nr_more; i++) {
			const struct place p = place_of(m, i);
			bool is_file = p.path[0] != '\0' && p.path[0] != '[';
			int rc = is_file || (i == 0 && f->args->image != NULL)
					 ? look_in_image(f, &p, err)
					 : 0;

			if (rc != 0)
				return rc;
			if (f->sym == NULL)
				continue;
			f->x->a.guest = g;
			f->x->a.bias = p.bias;
			return 0;
		}
	}
	return 0;
}

static const char *found_name(const struct finder *f)
{
	return uni_image_sym_name(f->x->image, f->sym);
}

/*
 * objdump and annotate itself show addresses of the file. The running guest's differ by the bias,
 * and are those of a recording: if both are possible, they are taken.
 */
static int find_linked(struct finder *f, struct uni_err *err)
{
	struct uni_annotating other = { .s = f->x->s };
	struct finder linked = { .args = f->args,
		.search = f->search,
		.x = &other,
		.has_addr = true,
		.linked = true,
		.addr = f->addr };
	const char *given = f->args->function;
	int rc = find_in_images(&linked, err);

	if (rc != 0 || linked.sym == NULL)
		return rc;
	if (f->sym != NULL) {
		uni_note("%s is in %s of the running guest, which is shown, and as the image is "
			 "linked in %s",
			given, found_name(f), found_name(&linked));
		uni_image_destroy(other.image);
		return 0;
	}
	uni_note("%s is taken as the image is linked: in the running guest it is 0x%" PRIx64, given,
		linked.sym->addr + other.a.bias);
	f->x->image = other.image;
	f->x->a.guest = other.a.guest;
	f->x->a.bias = other.a.bias;
	f->sym = linked.sym;
	f->loaded = true;
	return 0;
}

/* "", or what an address looks like, if a name that does not exist may be one. */
static const char *address_hint(const char *name)
{
	bool digits = strspn(name, "0123456789abcdefABCDEF") == strlen(name);

	if (strncmp(name, "0x", 2) == 0)
		return " (an address is one of the running guest, or of the image as objdump shows "
		       "it)";
	return digits ? " (an address begins with 0x)" : "";
}

/* An inlined function has no code of its own: that of the function around it. */
static int find_around(struct finder *f, struct uni_err *err)
{
	struct uni_inlined in;
	int rc = uni_inlined_find(f->x->s.rec, &f->args->src.build, f->args->function, &in, err);

	if (rc != 0 || in.addr == 0)
		return rc;
	f->has_addr = true;
	f->addr = in.addr;
	memcpy(f->x->a.inlined, in.name, sizeof(in.name));
	f->x->a.inlined_here = in.here;
	f->x->a.inlined_all = in.samples;
	return find_in_images(f, err);
}

static int find_function(struct finder *f, struct uni_err *err)
{
	int rc;

	f->has_addr = uni_parse_u64(f->args->function, &f->addr);
	rc = find_in_images(f, err);
	if (rc == 0 && f->has_addr)
		rc = find_linked(f, err);
	else if (rc == 0 && f->sym == NULL && f->loaded)
		rc = find_around(f, err);
	if (rc != 0 || f->sym != NULL)
		return rc;
	if (f->why.code != 0 && (!f->loaded || f->args->image == NULL))
		return uni_err_set(err, UNI_ENOENT,
			"instructions are in the image: %s (--image names it, if it was moved)",
			f->why.msg);
	if (!f->loaded)
		return uni_err_set(err, UNI_ENOENT, "%s names no image: give it by --image",
			f->args->src.path);
	return uni_err_set(err, UNI_ENOENT,
		"no function %s in the image%s: `uniscope report %s` lists them", f->args->function,
		address_hint(f->args->function), f->args->src.path);
}

static int count_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	(void)node;
	uni_annotation_add(ctx, s);
	return 0;
}

static int add_samples(
	const struct uni_annotating_args *args, struct uni_annotating *x, struct uni_err *err)
{
	const struct uni_record_meta *m = uni_recording_guest(x->s.rec, x->a.guest).meta;
	const struct uni_build_watch watch = { .ctx = &x->a, .sample = count_sample };
	struct uni_build_opts opts = args->src.build;
	struct uni_build_read read = { 0 };
	struct uni_profile *p = NULL;
	int rc;

	x->a.blocks = strcmp(m->info.accel, "tcg") == 0;
	opts.watch = &watch;
	opts.naming.addresses = true;
	rc = uni_profile_build(x->s.rec, &opts, &p, &read, err);
	if (rc == 0)
		uni_source_note_damage(&args->src, &x->s, &read);
	uni_profile_destroy(p);
	return rc;
}

static void name_at(const struct uni_image *img, uint64_t svma, char *ret, size_t cap)
{
	const struct uni_symbol *sym = uni_image_lookup(img, svma);
	const char *name = sym != NULL ? uni_image_sym_name(img, sym) : "[unknown]";

	if (sym == NULL || !uni_demangle(name, ret, cap))
		(void)snprintf(ret, cap, "%s", name);
}

/* A function's callers and callees, whatever counted them. A parent comes before its children. */
struct call {
	uint64_t addr; /* SVMA */
	uint32_t parent;
	bool within; /* it is the function, or below it */
	uint64_t calls;
	double self, total;
};

static bool add_tree(struct uni_annotating *x, struct call *v, size_t nr)
{
	char name[256];

	for (size_t i = 1; i < nr; i++) {
		struct call *c = &v[i];
		bool it = uni_range_has(x->a.code.addr, x->a.code.size, c->addr);
		bool parent = uni_range_has(x->a.code.addr, x->a.code.size, v[c->parent].addr);

		c->within = it || v[c->parent].within;
		if (it) {
			x->a.calls += c->calls;
			x->a.self += c->self;
			x->a.total += v[c->parent].within ? 0 : c->total;
		}
		if (!parent || c->calls == 0)
			continue;
		name_at(x->image, c->addr, name, sizeof(name));
		if (!uni_annotation_add_call(&x->a, c->addr, name, c->calls, c->total))
			return false;
	}
	return true;
}

static int add_trace(
	const struct uni_annotating_args *args, struct uni_annotating *x, struct uni_err *err)
{
	struct uni_trace_args targs = { .guest = args->src.guest, .part = args->src.part };
	_cleanup_free_ struct call *v = NULL;
	struct uni_call_tree tree = { 0 };
	struct uni_trace_open t;
	size_t nr;
	int rc = 0;

	if (args->src.thread != NULL && !uni_vec_push(&targs.threads.items, args->src.thread))
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = uni_trace_open(args->src.path, &targs, &t, err);
	uni_vec_free(&targs.threads.items);
	if (rc != 0)
		return rc;
	rc = uni_call_tree_make(t.in, &t.filter, t.funcs, &tree, err);
	nr = tree.node.nr;
	if (rc == 0 && (v = calloc(nr + 1, sizeof(*v))) == NULL)
		rc = uni_err_nomem(err);
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		const struct uni_call_node *n = &tree.node.v[i];

		v[i] = (struct call){ .addr = uni_funcs_address(t.funcs, n->func) - x->a.bias,
			.parent = n->parent,
			.calls = n->calls,
			.self = (double)n->self,
			.total = (double)n->total };
	}
	if (rc == 0) {
		uni_trace_note(&t, args->src.path, &tree.stats);
		x->a.of = UNI_ANNOTATE_CALLS;
		rc = add_tree(x, v, nr) ? 0 : uni_err_nomem(err);
	}
	uni_call_tree_deinit(&tree);
	uni_trace_close(&t);
	return rc;
}

static int add_exact_calls(struct uni_annotating *x, const struct uni_exact *e)
{
	uint32_t nr, nr_functions;
	const struct uni_exact_node *node = uni_exact_nodes(e, &nr);
	const struct uni_exact_function *function = uni_exact_functions(e, &nr_functions);
	_cleanup_free_ struct call *v = calloc(nr + 1ull, sizeof(*v));
	bool ok;

	if (v == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		v[i] = (struct call){ .addr = function[node[i].function].start - x->a.bias,
			.parent = node[i].parent,
			.calls = node[i].calls,
			.self = (double)node[i].insns,
			.total = (double)node[i].insns };
	for (uint32_t i = nr; i-- > 1;)
		v[node[i].parent].total += v[i].total;
	ok = add_tree(x, v, nr);
	return ok ? 0 : -UNI_ENOMEM;
}

static int add_exact(
	const struct uni_annotating_args *args, struct uni_annotating *x, struct uni_err *err)
{
	_cleanup_free_ struct uni_exact_insn *insn = NULL;
	struct uni_exact *e = NULL;
	size_t nr = 0;
	int rc;

	if (args->src.part.vcpu_given)
		return uni_err_set(err, UNI_EUSAGE, "exact counts are those of all vCPUs together");
	rc = uni_exact_load(uni_recording_path(x->s.rec), x->a.guest, &e, err);
	if (rc != 0)
		return rc;
	x->a.of = UNI_ANNOTATE_EXACT;
	x->a.all = (double)uni_exact_insns(e);
	if (uni_exact_count_insns(e, &insn, &nr) != 0 || add_exact_calls(x, e) != 0)
		rc = uni_err_nomem(err);
	x->a.self = 0;
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		struct uni_code_insn *at = uni_code_at(&x->a.code, insn[i].addr - x->a.bias);

		if (at == NULL)
			continue;
		at->self += (double)insn[i].count;
		x->a.self += (double)insn[i].count;
		if (at == x->a.code.insns.v && uni_exact_mode(e) == UNI_EXACT_COUNTS)
			x->a.calls = insn[i].count;
	}
	x->a.total = x->a.total < x->a.self ? x->a.self : x->a.total;
	uni_exact_destroy(e);
	return rc;
}

static int add_numbers(
	const struct uni_annotating_args *args, struct uni_annotating *x, struct uni_err *err)
{
	int rc;

	if (uni_exact_is_there(uni_recording_path(x->s.rec), x->a.guest))
		rc = add_exact(args, x, err);
	else if (uni_source_is_trace(&x->s))
		rc = add_trace(args, x, err);
	else
		rc = add_samples(args, x, err);
	if (rc == 0)
		uni_annotation_finish(&x->a);
	return rc;
}

/* A function without a sample may have them where it is inlined. */
static int note_copies(
	const struct uni_annotating_args *args, const struct uni_annotating *x, struct uni_err *err)
{
	struct uni_inlined in;
	int rc = uni_inlined_find(x->s.rec, &args->src.build, args->function, &in, err);

	if (rc == 0 && in.addr != 0)
		uni_note("%s is inlined elsewhere, and has %.0f samples there: annotate "
			 "0x%" PRIx64 " shows %.0f of them",
			in.name, in.samples, in.addr, in.here);
	return rc;
}

static int open_session(
	struct uni_annotating_args *args, struct uni_annotating *x, struct uni_err *err)
{
	struct finder f = { .args = args, .search = uni_search_of(&args->src.debug_dirs), .x = x };
	struct uni_err no_debug = { 0 };
	int rc;

	if (x->s.rec == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"%s is no session: other formats have no addresses of instructions",
			args->src.path);
	rc = find_function(&f, err);
	if (rc != 0)
		return rc;
	x->a.image = uni_image_path(x->image);
	if (uni_source_part(&args->src, &x->a.only))
		uni_part_text(x->a.part, &x->a.only);
	(void)uni_debug_of_image(x->image, &f.search, &x->debug, &no_debug);
	rc = uni_code_read(x->image, f.sym, x->debug, &x->a.code, err);
	if (rc == 0)
		rc = add_numbers(args, x, err);
	return rc == 0 && !f.has_addr && x->a.of == UNI_ANNOTATE_SAMPLES && !(x->a.total > 0)
		       ? note_copies(args, x, err)
		       : rc;
}

int uni_annotating_open(
	struct uni_annotating_args *args, struct uni_annotating *x, struct uni_err *err)
{
	int rc;

	*x = (struct uni_annotating){ 0 };
	args->src.no_profile = true;
	args->src.calls_too = true;
	rc = uni_source_open(&args->src, &x->s, err);
	if (rc != 0)
		return rc;
	rc = open_session(args, x, err);
	if (rc != 0)
		uni_annotating_close(x);
	return rc;
}

void uni_annotating_close(struct uni_annotating *x)
{
	uni_annotation_deinit(&x->a);
	uni_debug_destroy(x->debug);
	uni_image_destroy(x->image);
	uni_source_close(&x->s);
}
