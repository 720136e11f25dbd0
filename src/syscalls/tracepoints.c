/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/err.h"
#include "syscalls/flags.h"
#include "syscalls/source.h"
#include "format/uktrace/timeline.h"

#define OPEN_MAX 64 /* calls at once, of all threads */

static const char *const prefixes[] = { "trace_vfs_", "trace_posix_socket_" };

/* Calls with another name in Unikraft. */
static const struct {
	const char *tracepoint, *call;
} renamed[] = {
	{ "create", "socket" },
	{ "pread", "pread64" },
	{ "pwrite", "pwrite64" },
	{ "readdir", "getdents" },
	{ "readdir64", "getdents64" },
};

/* Calls that vfscore makes itself to answer a call, and that it also reports. */
static const struct {
	const char *call, *inner;
} within[] = {
	{ "read", "readv" },
	{ "read", "preadv" },
	{ "readv", "preadv" },
	{ "pread64", "preadv" },
	{ "write", "writev" },
	{ "write", "pwritev" },
	{ "writev", "pwritev" },
	{ "pwrite64", "pwritev" },
};

struct call {
	const struct uni_sysc_def *def;
	uint32_t entry; /* of the log; UINT32_MAX: it is not printed */
	uint32_t definition;
	uint32_t thread; /* text of the log; 0: not known yet */
};

struct reader {
	const struct uni_ukt_trace *t;
	struct uni_sysc_log *log;
	struct uni_ukt_part *part;
	struct call open[OPEN_MAX];
	size_t nr;
	uint32_t thread; /* the running thread, by the tracepoints of switches */
};

static const struct uni_sysc_def *def_of(const char *tracepoint)
{
	for (size_t i = 0; i < uni_array_len(prefixes); i++) {
		size_t len = strlen(prefixes[i]);
		const char *name = tracepoint + len;

		if (strncmp(tracepoint, prefixes[i], len) != 0)
			continue;
		for (size_t k = 0; k < uni_array_len(renamed); k++) {
			if (strcmp(name, renamed[k].tracepoint) == 0)
				name = renamed[k].call;
		}
		return uni_sysc_by_name(name, strlen(name));
	}
	return NULL;
}

/* The letter of the call's argument i, if that has named values or is a mode; else 0. */
static char kind_of(const struct uni_sysc_def *def, const struct uni_ukt_record *r, unsigned i)
{
	if (uni_sysc_nr_args(def) != r->def->nr_args ||
		strchr("fdubipszlxF", def->kinds[i]) != NULL)
		return 0;
	return def->kinds[i];
}

/* By the tracepoint's own format where the call's does not say more: vfscore's first argument may
 * be a file's address, no number. */
static void put_args(
	const struct uni_sysc_def *def, const struct uni_ukt_record *r, struct uni_strbuf *out)
{
	for (unsigned i = 0; i < r->def->nr_args; i++) {
		const struct uni_ukt_shape s = uni_ukt_shape(r->def, i);
		const struct uni_ukt_value *a = &r->arg[i];
		const char kind = kind_of(def, r, i);

		if (kind == 'o' && i != 0 && uni_sysc_no_mode(def->kinds[i - 1], r->arg[i - 1].v))
			break;
		uni_strbuf_adds(out, i != 0 ? ", " : "");
		if (kind != 0 && kind != 'o')
			uni_sysc_put_flags(kind, a->v, out);
		else if (r->def->arg[i].type == UNI_UKT_STRING)
			uni_strbuf_quote(out, a->s, a->s_len, UINT8_MAX);
		else if (s.is_signed)
			uni_strbuf_addf(out, "%" PRId64, uni_ukt_signed(r->def, i, a->v));
		else if (s.base == 10)
			uni_strbuf_addf(out, "%" PRIu64, a->v);
		else if (s.pointer && a->v == 0)
			uni_strbuf_adds(out, "NULL");
		else
			uni_strbuf_addf(out, s.base == 8 ? "%#" PRIo64 : "%#" PRIx64, a->v);
	}
}

static bool is_within(const struct call *c, const struct uni_sysc_def *def, uint32_t definition)
{
	if (c->def == NULL || def == NULL)
		return false;
	/* readdir() is getdents to the table, and what that calls. */
	if (c->def == def)
		return c->definition != definition;
	for (size_t i = 0; i < uni_array_len(within); i++) {
		if (strcmp(c->def->name, within[i].call) == 0 &&
			strcmp(def->name, within[i].inner) == 0)
			return true;
	}
	return false;
}

/*
 * Records name no threads, and there may be no tracepoint of switches. While one thread is in a
 * call, another one may begin a call. A call that cannot belong to an open one is a call of its
 * own. A call that can is an inner call, and is left out.
 */
static bool is_inner(const struct reader *r, const struct uni_sysc_def *def, uint32_t definition)
{
	for (size_t i = 0; i < r->nr; i++) {
		if (r->open[i].thread == r->thread && is_within(&r->open[i], def, definition))
			return true;
	}
	return false;
}

static void forget_open(struct reader *r, size_t i)
{
	memmove(&r->open[i], &r->open[i + 1], (r->nr - i - 1) * sizeof(r->open[0]));
	r->nr--;
}

static int add_entry_of(struct reader *r, const struct uni_ukt_record *rec,
	const struct uni_sysc_def *def, uint32_t *entry_ret)
{
	struct uni_sysc_entry e = { .begin_ns = rec->ns,
		.end_ns = rec->ns,
		.end = UNI_SYSC_OPEN,
		.shown = uni_sysc_result_kind(def),
		.thread = r->thread,
		.timed = true,
		.has_duration = true };
	struct uni_strbuf args;
	int rc;

	uni_strbuf_init(&args);
	put_args(def, rec, &args);
	e.name = uni_sysc_log_text(r->log, def->name, strlen(def->name));
	e.args = uni_sysc_log_text(r->log, args.s, args.len);
	rc = uni_strbuf_failed(&args) ? -UNI_ENOMEM : uni_sysc_log_put(r->log, &e, entry_ret);
	uni_strbuf_deinit(&args);
	return rc;
}

static int begin_traced(struct reader *r, const struct uni_ukt_record *rec, uint32_t definition)
{
	const struct uni_sysc_def *def = def_of(rec->def->name);
	struct call c = { def, UINT32_MAX, definition, r->thread };
	int rc = 0;

	if (def != NULL && !is_inner(r, def, definition))
		rc = add_entry_of(r, rec, def, &c.entry);
	/* A call that has been open for so long will not end. */
	if (r->nr == OPEN_MAX)
		forget_open(r, 0);
	r->open[r->nr++] = c;
	return rc;
}

/* The newest call of that definition and thread; r->nr: there is none. */
static size_t find_of(const struct reader *r, uint32_t definition, uint32_t thread)
{
	for (size_t i = r->nr; i-- != 0;) {
		if (r->open[i].definition == definition && r->open[i].thread == thread)
			return i;
	}
	return r->nr;
}

/* Or one that began before the first switch. */
static size_t find_open(const struct reader *r, uint32_t definition)
{
	size_t i = find_of(r, definition, r->thread);

	return i == r->nr ? find_of(r, definition, 0) : i;
}

static int switch_to(struct reader *r, const struct uni_ukt_record *rec)
{
	struct uni_ukt_who who;
	char text[sizeof(who.name) + 24];

	uni_ukt_who(rec, &who);
	if (!who.has_id)
		(void)snprintf(text, sizeof(text), "%s", who.name);
	else if (who.name[0] == '\0')
		(void)snprintf(text, sizeof(text), "pid %" PRIu64, who.id);
	else
		(void)snprintf(text, sizeof(text), "%s %" PRIu64, who.name, who.id);
	r->thread = uni_sysc_log_text(r->log, text, strlen(text));
	return r->thread == UNI_STR_NONE ? -UNI_ENOMEM : 0;
}

static void end_traced(
	struct reader *r, const struct uni_ukt_record *rec, const struct uni_ukt_part *part)
{
	size_t i = find_open(r, part->call);
	struct uni_sysc_entry *e;
	uint32_t entry;

	if (i == r->nr && part->other != UINT32_MAX)
		i = find_open(r, part->other);
	if (i == r->nr) {
		r->log->unknown++;
		return;
	}
	entry = r->open[i].entry;
	forget_open(r, i);
	if (entry == UINT32_MAX)
		return;
	e = &r->log->all.v[entry];
	e->end_ns = rec->ns;
	e->end = part->failed ? UNI_SYSC_FAILED : UNI_SYSC_OK;
	/* Without an argument it is 0: the tracepoint means success. */
	e->value = rec->def->nr_args != 0 ? uni_ukt_signed(rec->def, 0, rec->arg[0].v) : 0;
	if (part->failed && e->value < 0)
		e->value = -e->value;
}

static int take_tracepoint(struct reader *r, const struct uni_ukt_record *rec)
{
	uint32_t i;

	if (rec->def == NULL)
		return 0;
	i = (uint32_t)(rec->def - r->t->defs.all.v);
	if (r->part[i].role == UNI_UKT_CALL)
		return begin_traced(r, rec, i);
	if (r->part[i].role == UNI_UKT_SWITCH)
		return switch_to(r, rec);
	if (r->part[i].role == UNI_UKT_RETURN)
		end_traced(r, rec, &r->part[i]);
	return 0;
}

int uni_sysc_from_tracepoints(const struct uni_ukt_trace *t, struct uni_sysc_log *log)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct uni_ukt_record rec;
	int rc = 0;

	if (r == NULL)
		return -UNI_ENOMEM;
	r->t = t;
	r->log = log;
	r->part = uni_ukt_parts(&t->defs);
	if (r->part == NULL)
		rc = -UNI_ENOMEM;
	for (size_t i = 0; rc == 0 && i < t->records.nr; i++) {
		uni_ukt_trace_record(t, i, &rec);
		rc = take_tracepoint(r, &rec);
	}
	free(r->part);
	free(r);
	return rc;
}
