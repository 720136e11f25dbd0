/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/syscalls_exact.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/source.h"
#include "app/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "recording/exact.h"

struct answer {
	const char *call, *function; /* borrowed */
	const struct uni_exact_function *code;
	struct uni_exact_total total;
	bool of_library; /* Unikraft's C library, which the kernel calls as well */
};

struct answers {
	UNI_VEC(struct answer) all;
};

/* Functions with names; the strings are the symbols'. */
struct counted {
	const struct uni_exact_function *function;
	struct uni_exact_total *total;
	uint32_t nr;
	const struct uni_symtab *symtab;
};

bool uni_syscalls_are_counts(const char *what)
{
	return uni_exact_is_there(what, 0);
}

static const char *name_of(const struct counted *c, uint32_t i)
{
	const char *name = NULL;
	uint64_t offset = 0;

	if (c->function[i].end == 0 || c->symtab == NULL ||
		!uni_symtab_lookup(c->symtab, c->function[i].start, &name, &offset) || offset != 0)
		return NULL;
	return name;
}

static bool has_unikraft(const struct counted *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		const char *name = name_of(c, i);

		if (name != NULL && strncmp(name, "uk_syscall_r_", 13) == 0)
			return true;
	}
	return false;
}

static int more_calls_first(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;

	if (x->total.calls != y->total.calls)
		return x->total.calls < y->total.calls ? 1 : -1;
	return strcmp(x->function, y->function);
}

static int find_answers(
	const struct counted *c, const struct uni_sysc_prefixes *prefixes, struct answers *ret)
{
	const bool unikraft = has_unikraft(c);

	for (uint32_t i = 0; i < c->nr; i++) {
		const char *name = name_of(c, i);
		const struct uni_sysc_def *def;
		bool other = false;

		/* A program has functions of these names that only ask. */
		if (name == NULL || c->total[i].calls == 0 ||
			uni_exact_is_program(c->function[i].start))
			continue;
		def = uni_sysc_of_function(prefixes, name, &other);
		/* Unikraft's file systems have functions of that name, too. */
		if (def == NULL || (other && unikraft && strncmp(name, "sys_", 4) == 0))
			continue;
		if (!uni_vec_push(&ret->all, ((struct answer){ def->name, name, &c->function[i],
						     c->total[i], other && unikraft })))
			return -UNI_ENOMEM;
	}
	return 0;
}

static struct answer *answer_at(const struct answers *list, uint64_t pc)
{
	for (size_t i = 0; i < list->all.nr; i++) {
		if (pc >= list->all.v[i].code->start && pc < list->all.v[i].code->end)
			return &list->all.v[i];
	}
	return NULL;
}

/*
 * A call that one of these functions makes of another is no system call: newfstatat's jumps to
 * fstat's, and writev's calls write's. Branches by a pointer are not seen.
 */
static int take_inner(const struct answers *list, const struct uni_exact *e,
	const struct uni_image *img, uint64_t bias)
{
	const struct uni_arch *arch = uni_image_arch(img);
	_cleanup_free_ struct uni_exact_insn *insn = NULL;
	size_t nr = 0;

	if (arch == NULL || arch->branch == NULL)
		return 0;
	if (uni_exact_count_insns(e, &insn, &nr) != 0)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		uint8_t code[16];
		uint64_t svma = insn[i].addr - bias, to = 0;
		struct answer *inner;
		enum uni_branch b;

		if (answer_at(list, insn[i].addr) == NULL || insn[i].length > sizeof(code) ||
			!uni_image_bytes(img, svma, code, insn[i].length))
			continue;
		b = arch->branch(code, insn[i].length, svma, &to);
		inner = b == UNI_BRANCH_CALL || b == UNI_BRANCH_GOTO ? answer_at(list, to + bias)
								     : NULL;
		if (inner != NULL && inner->code->start == to + bias)
			inner->total.calls -= uni_min(insn[i].count, inner->total.calls);
	}
	return 0;
}

/* Takes, of two functions of one name, the one that the image's symbols name first: a static one of
 * another file is not the call's. */
static void drop_namesakes(struct answers *list, const struct uni_image *img, uint64_t bias)
{
	size_t nr = 0;

	for (size_t i = 0; i < list->all.nr; i++) {
		const struct answer *a = &list->all.v[i];
		uint64_t at, size;

		if (uni_image_find(img, a->function, &at, &size) != 0 ||
			at == a->code->start - bias)
			list->all.v[nr++] = *a;
	}
	list->all.nr = nr;
}

/* Nanos answers all calls in one function, and Unikraft those of syscall instructions. Some have a
 * number that no other function answers. */
static void note_unanswered(const struct counted *c, const struct answers *list)
{
	uint64_t answered = 0;
	const bool unikraft = has_unikraft(c);

	for (size_t i = 0; i < list->all.nr; i++) {
		if (!unikraft || strncmp(list->all.v[i].function, "uk_syscall_r_", 13) == 0)
			answered += list->all.v[i].total.calls;
	}
	for (uint32_t i = 0; i < c->nr; i++) {
		const char *name = name_of(c, i);

		if (name != NULL &&
			strcmp(name, unikraft ? "ukplat_syscall_handler" : "syscall_handler") ==
				0 &&
			c->total[i].calls > answered)
			uni_note("%s%" PRIu64 " of %" PRIu64
				 " system calls are not shown: no function that they reached has "
				 "such a call's name",
				unikraft ? "at least " : "", c->total[i].calls - answered,
				c->total[i].calls);
	}
}

static void note_library(const struct answers *list)
{
	for (size_t i = 0; i < list->all.nr; i++) {
		if (list->all.v[i].of_library && list->all.v[i].total.calls != 0) {
			uni_note(
				"functions of the C library, such as %s, are called by the program "
				"and by Unikraft itself: their rows have both",
				list->all.v[i].function);
			return;
		}
	}
}

static int put_answers(const struct answers *list, const struct uni_syscalls_args *args,
	struct uni_sink *out, struct uni_err *err)
{
	size_t nr = 0;

	if (list->all.nr != 0)
		qsort(list->all.v, list->all.nr, sizeof(list->all.v[0]), more_calls_first);
	for (size_t i = 0; i < list->all.nr; i++) {
		const struct answer *a = &list->all.v[i];

		if (a->total.calls == 0 || !uni_sysc_filter_name(args->filter, a->call))
			continue;
		if (nr++ == 0)
			uni_sink_puts(
				out, "     CALLS   INSTRUCTIONS  SYSTEM CALL          FUNCTION\n");
		uni_sink_printf(out, "%10" PRIu64 " %14" PRIu64 "  %-20s %s\n", a->total.calls,
			a->total.insns, a->call, a->function);
	}
	if (nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			list->all.nr != 0 ? "no function that answers a system call which passes "
					    "--expr was called"
					  : "no function that answers a system call was called: "
					    "--prefix says "
					    "how they are named");
	return 0;
}

static int count_answers(const struct counted *c, const struct uni_exact *e,
	const struct uni_record_meta *meta, const struct uni_syscalls_args *args,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_sysc_prefixes prefixes = uni_sysc_prefixes;
	struct answers list = { 0 };
	struct uni_image *img;
	int rc;

	if (args->prefixes.items.nr != 0) {
		prefixes.nr = args->prefixes.items.nr;
		prefixes.others = false;
		memcpy(prefixes.v, args->prefixes.items.v, prefixes.nr * sizeof(prefixes.v[0]));
	}
	rc = find_answers(c, &prefixes, &list);
	img = rc == 0 && list.all.nr != 0 ? uni_syscalls_image(args, meta,
						    "calls of one by another count, too, and so do "
						    "functions that only have a call's name")
					  : NULL;
	if (img != NULL)
		drop_namesakes(&list, img, meta->bias);
	if (img != NULL)
		rc = take_inner(&list, e, img, meta->bias);
	rc = rc == 0 ? put_answers(&list, args, out, err) : uni_err_nomem(err);
	if (img != NULL && !args->quiet && args->prefixes.items.nr == 0)
		note_unanswered(c, &list);
	if (!args->quiet)
		note_library(&list);
	uni_image_destroy(img);
	uni_vec_free(&list.all);
	return rc;
}

int uni_syscalls_put_counts(const char *session, const struct uni_syscalls_args *args,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_source_args from = { .path = session,
		.symbols = args->symbols,
		.debug_dirs = args->debug_dirs,
		.no_profile = true };
	struct counted c = { 0 };
	struct uni_exact *e = NULL;
	struct uni_source s;
	int rc;

	if (args->prefixes.items.nr > UNI_SYSC_PREFIXES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --prefix", UNI_SYSC_PREFIXES_MAX);
	rc = uni_source_open(&from, &s, err);
	if (rc != 0)
		return rc;
	c.symtab = s.symtab != NULL ? s.symtab : uni_recording_guest(s.rec, 0).symtab;
	rc = uni_exact_load(uni_recording_path(s.rec), 0, &e, err);
	if (rc == 0 && uni_exact_count_functions(e, &c.total, &c.nr) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0) {
		c.function = uni_exact_functions(e, &c.nr);
		rc = count_answers(&c, e, uni_recording_guest(s.rec, 0).meta, args, out, err);
	}
	free(c.total);
	uni_exact_destroy(e);
	uni_source_close(&s);
	return rc;
}
