/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "syscalls/source.h"

#define NONE	  UINT32_MAX
#define TEXTS_MAX 65536 /* of a log that is printed while it grows */

const struct uni_sysc_prefixes uni_sysc_prefixes = {
	.v = { "__uk_syscall_r_", "uk_syscall_r_", "uk_syscall_e_", "__uk_syscall_e_" },
	.nr = 4,
	.others = true,
};

static const char sys[] = "sys_";

/* Nanos' functions that have the names of the C library's. */
static const struct {
	const char *function, *call;
} renamed[] = {
	{ "pread", "pread64" },
	{ "pwrite", "pwrite64" },
	{ "pselect", "pselect6" },
};

/* "open.part.0" is open's, too, but not its beginning. */
static const struct uni_sysc_def *def_behind_prefix(const char *function, const char *prefix)
{
	size_t len = strlen(prefix);
	const char *name = function + len;

	if (strncmp(function, prefix, len) != 0)
		return NULL;
	for (size_t i = 0; i < uni_array_len(renamed); i++) {
		if (strcmp(name, renamed[i].function) == 0)
			name = renamed[i].call;
	}
	return uni_sysc_by_name(name, strlen(name));
}

const struct uni_sysc_def *uni_sysc_of_function(
	const struct uni_sysc_prefixes *p, const char *function, bool *other_ret)
{
	const struct uni_sysc_def *def;

	*other_ret = false;
	for (size_t i = 0; i < p->nr; i++) {
		def = def_behind_prefix(function, p->v[i]);
		if (def != NULL)
			return def;
	}
	if (!p->others)
		return NULL;
	*other_ret = true;
	def = def_behind_prefix(function, sys);
	return def != NULL ? def : def_behind_prefix(function, "");
}

/* Facts about a function: looked up once. */
struct known {
	bool looked;
	const struct uni_sysc_def *def;
	uint32_t name; /* text of the log */
	bool by_errno; /* returns -1, and the number is in errno: uk_syscall_e_*, a C library's */
	bool other;    /* counts only with its arguments */
};

struct thread {
	uint32_t name; /* text of the log */
	bool named;
	uint32_t entry; /* the open one in the log; NONE: none, or it is not printed */
	bool open;
	const struct uni_sysc_def *def;
	uint32_t depth; /* of the call that is open */
	bool by_errno;
	bool has_args, has_value, has_inner;
	uint64_t arg[UNI_SYSC_ARGS_MAX], value;
	int64_t inner; /* result of an inner call of the same name */
};

struct uni_sysc_reader {
	const struct uni_timeline *tl;
	const struct uni_sysc_prefixes *prefixes;
	const struct uni_sysc_memory *memory;
	struct uni_sysc_log *log;
	const struct uni_sysc_told *told; /* NULL: the log is read when it is whole */
	struct uni_strbuf args;
	/* Texts of the newest entry with arguments, in its words. Its call is the next event. */
	struct uni_trace_copied copied[UNI_TRACE_ARGS];
	UNI_VEC(struct known) known;
	UNI_VEC(struct thread) threads;
};

static struct known *known_function(struct uni_sysc_reader *r, uint32_t func)
{
	struct known *k;
	const char *name;

	while (r->known.nr <= func) {
		if (!uni_vec_push(&r->known, (struct known){ 0 }))
			return NULL;
	}
	k = &r->known.v[func];
	if (k->looked)
		return k;
	name = r->tl->func(r->tl->ctx, func);
	k->looked = true;
	k->def = uni_sysc_of_function(r->prefixes, name, &k->other);
	k->by_errno = strstr(name, "uk_syscall_e_") != NULL ||
		      (k->other && strncmp(name, sys, sizeof(sys) - 1) != 0);
	if (k->def != NULL)
		k->name = uni_sysc_log_text(r->log, k->def->name, strlen(k->def->name));
	return k->name == UNI_STR_NONE ? NULL : k;
}

static struct thread *thread_of(struct uni_sysc_reader *r, uint32_t i)
{
	char text[96];
	struct thread *t;
	const char *name;
	uint64_t number;
	int n;

	while (r->threads.nr <= i) {
		if (!uni_vec_push(&r->threads, (struct thread){ .entry = NONE }))
			return NULL;
	}
	t = &r->threads.v[i];
	if (t->named)
		return t;
	name = r->tl->thread(r->tl->ctx, i, &number);
	n = strcmp(name, "tid") == 0 ? snprintf(text, sizeof(text), "pid %5" PRIu64, number)
				     : snprintf(text, sizeof(text), "%.64s", name);
	t->name = uni_sysc_log_text(r->log, text, (size_t)n);
	t->named = true;
	return t->name == UNI_STR_NONE ? NULL : t;
}

static void take_words(struct uni_sysc_reader *r, struct thread *t, const struct uni_call_event *e)
{
	const uint64_t *w = r->tl->words != NULL ? r->tl->words(r->tl->ctx, e) : NULL;

	if (w == NULL)
		return;
	if (e->cls == UNI_TRACE_CLASS_ENTRY_ARGS && e->nr >= UNI_SYSC_ARGS_MAX) {
		memcpy(t->arg, w, sizeof(t->arg));
		uni_trace_copied(w, e->nr, r->copied);
		t->has_args = true;
	} else if (e->cls == UNI_TRACE_CLASS_EXIT_VALUE && e->nr != 0) {
		t->value = w[0];
		t->has_value = true;
	}
}

static int begin_syscall(struct uni_sysc_reader *r, struct thread *t, const struct known *k,
	const struct uni_call_event *e)
{
	struct uni_sysc_entry entry = { .begin_ns = e->ns,
		.end_ns = e->ns,
		.name = k->name,
		.thread = t->name,
		.end = UNI_SYSC_OPEN,
		.shown = uni_sysc_result_kind(k->def),
		.timed = true,
		.has_duration = true };
	int rc;

	uni_strbuf_reset(&r->args);
	if (t->has_args)
		uni_sysc_args(k->def, t->arg, UNI_SYSC_ARGS_MAX, r->copied, r->memory, &r->args);
	else
		uni_strbuf_adds(&r->args, "...");
	if (uni_strbuf_failed(&r->args))
		return -UNI_ENOMEM;
	entry.args = uni_sysc_log_text(r->log, r->args.s, r->args.len);
	rc = uni_sysc_log_put(r->log, &entry, &t->entry);
	t->open = true;
	t->def = k->def;
	t->depth = e->depth;
	t->by_errno = k->by_errno;
	t->has_inner = false;
	if (r->told != NULL && t->entry != NONE)
		r->told->fn(r->told->ctx, t->entry, false);
	return rc;
}

static void set_result(struct uni_sysc_entry *e, const struct thread *t, int64_t result)
{
	int error = 0;

	if (t->by_errno && result == -1) {
		e->end = UNI_SYSC_FAILED;
		if (t->has_inner && uni_sysc_is_error(t->inner, &error))
			e->value = error;
	} else if (uni_sysc_is_error(result, &error)) {
		e->end = UNI_SYSC_FAILED;
		e->value = error;
	} else {
		e->end = UNI_SYSC_OK;
		e->value = result;
	}
}

/* The call that is open returns; one that was left otherwise has no result. */
static int end_syscall(struct uni_sysc_reader *r, struct thread *t, const struct uni_call_event *e)
{
	struct uni_sysc_entry *entry = t->entry != NONE ? &r->log->all.v[t->entry] : NULL;

	t->open = false;
	if (entry == NULL)
		return 0;
	entry->end_ns = e->ns;
	if ((e->flags & UNI_CALL_CUT) != 0)
		entry->end = (e->flags & UNI_CALL_OPEN) != 0 ? UNI_SYSC_OPEN : UNI_SYSC_NO_RESULT;
	else if (t->has_value)
		set_result(entry, t, uni_sysc_result(t->def, t->value));
	else
		entry->end = UNI_SYSC_NO_RESULT;
	if (r->told == NULL)
		return 0;
	r->told->fn(r->told->ctx, t->entry, true);
	return uni_sysc_log_forget(r->log, t->entry);
}

/* Calls within a system call are not reported. If an inner call has the same name (Unikraft has two
 * or three functions for one call), its result may be more exact. */
static int enter_answer(struct uni_sysc_reader *r, struct thread *t, const struct uni_call_event *e)
{
	const struct known *k = known_function(r, e->func);
	int rc = 0;

	if (k == NULL)
		return -UNI_ENOMEM;
	if (k->def != NULL && !t->open && (!k->other || t->has_args))
		rc = begin_syscall(r, t, k, e);
	t->has_args = t->has_value = false;
	return rc;
}

static int leave_answer(struct uni_sysc_reader *r, struct thread *t, const struct uni_call_event *e)
{
	const struct known *k = known_function(r, e->func);
	int rc = 0;

	if (k == NULL)
		return -UNI_ENOMEM;
	if (t->open && e->depth <= t->depth) {
		rc = end_syscall(r, t, e);
	} else if (t->open && k->def == t->def && t->has_value && !k->by_errno) {
		t->inner = uni_sysc_result(t->def, t->value);
		t->has_inner = true;
	}
	t->has_args = t->has_value = false;
	return rc;
}

static int take_syscall_event(struct uni_sysc_reader *r, const struct uni_call_event *e)
{
	struct thread *t = thread_of(r, e->thread);

	if (t == NULL)
		return -UNI_ENOMEM;
	switch (e->type) {
	case UNI_CALL_EXT:
		take_words(r, t, e);
		return 0;
	case UNI_CALL_ENTER:
		return enter_answer(r, t, e);
	case UNI_CALL_LEAVE:
		return leave_answer(r, t, e);
	default:
		return 0;
	}
}

static int read_all(struct uni_sysc_reader *r)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	while ((rc = r->tl->read(r->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; rc == 1 && i < nr; i++)
			rc = take_syscall_event(r, &e[i]) == 0 ? 1 : -UNI_ENOMEM;
		if (rc != 1)
			break;
	}
	return rc;
}

int uni_sysc_from_calls(const struct uni_timeline *tl, const struct uni_sysc_prefixes *prefixes,
	const struct uni_sysc_memory *memory, struct uni_sysc_log *log)
{
	struct uni_sysc_reader *r = uni_sysc_reader_create(tl, prefixes, memory, log, NULL);
	int rc = r != NULL ? read_all(r) : -UNI_ENOMEM;

	uni_sysc_reader_destroy(r);
	return rc;
}

struct uni_sysc_reader *uni_sysc_reader_create(const struct uni_timeline *tl,
	const struct uni_sysc_prefixes *prefixes, const struct uni_sysc_memory *memory,
	struct uni_sysc_log *log, const struct uni_sysc_told *told)
{
	struct uni_sysc_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	*r = (struct uni_sysc_reader){
		.tl = tl, .prefixes = prefixes, .memory = memory, .log = log, .told = told
	};
	uni_strbuf_init(&r->args);
	return r;
}

void uni_sysc_reader_destroy(struct uni_sysc_reader *r)
{
	if (r == NULL)
		return;
	uni_strbuf_deinit(&r->args);
	uni_vec_free(&r->known);
	uni_vec_free(&r->threads);
	free(r);
}

/* Texts of printed calls are not kept; names are looked up again. */
static int tidy_texts(struct uni_sysc_reader *r)
{
	if (uni_strtab_nr(r->log->text) < TEXTS_MAX)
		return 0;
	for (size_t i = 0; i < r->known.nr; i++)
		r->known.v[i].looked = false;
	for (size_t i = 0; i < r->threads.nr; i++)
		r->threads.v[i].named = false;
	return uni_sysc_log_shrink(r->log);
}

int uni_sysc_reader_read(struct uni_sysc_reader *r)
{
	int rc = read_all(r);

	return rc == 0 ? tidy_texts(r) : rc;
}
