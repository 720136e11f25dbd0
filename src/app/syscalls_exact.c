/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/syscalls_exact.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/source.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "recording/exact.h"

struct answer {
	const char *call, *function; /* borrowed */
	struct uni_exact_total total;
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

static int put_answers(const struct counted *c, const struct uni_syscalls_args *args,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_sysc_prefixes prefixes = uni_sysc_prefixes;
	const bool unikraft = has_unikraft(c);
	UNI_VEC(struct answer) list = { 0 };
	int rc = 0;

	if (args->prefixes.items.nr != 0) {
		prefixes.nr = args->prefixes.items.nr;
		prefixes.others = false;
		memcpy(prefixes.v, args->prefixes.items.v, prefixes.nr * sizeof(prefixes.v[0]));
	}
	for (uint32_t i = 0; rc == 0 && i < c->nr; i++) {
		const char *name = name_of(c, i);
		const struct uni_sysc_def *def;
		bool other = false;

		/* A program has functions of these names that only ask. */
		if (name == NULL || c->total[i].calls == 0 ||
			uni_exact_is_program(c->function[i].start))
			continue;
		def = uni_sysc_of_function(&prefixes, name, &other);
		/* Unikraft's file systems have functions of that name, too. */
		if (def == NULL || (other && unikraft && strncmp(name, "sys_", 4) == 0) ||
			!uni_sysc_filter_name(args->filter, def->name))
			continue;
		if (!uni_vec_push(&list, ((struct answer){ def->name, name, c->total[i] })))
			rc = uni_err_nomem(err);
	}
	if (rc == 0 && list.nr == 0)
		rc = uni_err_set(err, UNI_ENOENT,
			"no function that answers a system call was called: --prefix says how "
			"they are named");
	if (list.nr != 0)
		qsort(list.v, list.nr, sizeof(list.v[0]), more_calls_first);
	if (rc == 0)
		uni_sink_puts(out, "     CALLS   INSTRUCTIONS  SYSTEM CALL          FUNCTION\n");
	for (size_t i = 0; rc == 0 && i < list.nr; i++)
		uni_sink_printf(out, "%10" PRIu64 " %14" PRIu64 "  %-20s %s\n",
			list.v[i].total.calls, list.v[i].total.insns, list.v[i].call,
			list.v[i].function);
	uni_vec_free(&list);
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
		rc = put_answers(&c, args, out, err);
	}
	free(c.total);
	uni_exact_destroy(e);
	uni_source_close(&s);
	return rc;
}
