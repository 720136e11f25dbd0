/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of threads and promises. There may be millions, in another order than that of memory.
 * So rows are fetched early, and numbers are formatted by hand, as printf() would. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "promise/query_priv.h"
#include "promise/text.h"

#define NAME  96
#define AHEAD 16		  /* rows */
#define EXACT (UINT64_C(1) << 50) /* ns: as a double, to a digit more than are written */

static char *put_digits(char *end, uint64_t v, unsigned nr)
{
	for (; v != 0 || nr != 0; v /= 10) {
		*--end = (char)('0' + v % 10);
		nr -= nr != 0;
	}
	return end;
}

/* "12.345 ms": ns / unit with `nr` digits after the point. For a value in the middle of two,
 * printf() goes by the bits of the double. */
static size_t put_fixed(char buf[32], uint64_t ns, uint64_t unit, unsigned nr, const char *name)
{
	uint64_t step = unit, rest, n;
	char text[32], *end = text + sizeof(text), *at;
	size_t len = strlen(name);

	for (unsigned i = 0; i < nr; i++)
		step /= 10;
	rest = ns % step;
	if (ns >= EXACT || rest * 2 == step)
		return (size_t)snprintf(
			buf, 32, "%.*f %s", (int)nr, (double)ns / (double)unit, name);
	n = ns / step + (rest * 2 > step);
	while (len != 0)
		*--end = name[--len];
	*--end = ' ';
	at = put_digits(end, n % (unit / step), nr);
	*--at = '.';
	at = put_digits(at, n / (unit / step), 1);
	len = (size_t)(text + sizeof(text) - at);
	memcpy(buf, at, len);
	return len;
}

/* At most three digits after the point, the unit by the size. */
static size_t put_duration(char buf[32], uint64_t ns)
{
	if (ns < 1000)
		return (size_t)snprintf(buf, 32, "%" PRIu64 " ns", ns);
	if (ns < 1000000)
		return put_fixed(buf, ns, 1000, 3, "us");
	return ns < 1000000000 ? put_fixed(buf, ns, 1000000, 3, "ms")
			       : put_fixed(buf, ns, 1000000000, 3, "s");
}

/* A line while it is written: its fields are of bounded width. */
struct line {
	char text[256];
	size_t len;
};

static void put_field(struct line *l, const char *text, size_t len, size_t width, bool left)
{
	size_t pad = width - uni_min(width, len);

	if (!left)
		memset(l->text + l->len, ' ', pad);
	memcpy(l->text + l->len + (left ? 0 : pad), text, len);
	if (left)
		memset(l->text + l->len + len, ' ', pad);
	l->len += len + pad;
	l->text[l->len++] = ' ';
}

static void time_field(struct line *l, uint64_t ns, size_t width)
{
	char buf[32];
	size_t len = put_duration(buf, ns);

	put_field(l, buf, len, width, false);
}

static void number_field(struct line *l, uint64_t v, size_t width)
{
	char buf[24], *at = put_digits(buf + sizeof(buf), v, 1);

	put_field(l, at, (size_t)(buf + sizeof(buf) - at), width, false);
}

static void put_text(struct uni_sink *out, const char *text)
{
	uni_sink_write(out, text, strlen(text));
}

static void put_promise_row(struct uni_sink *out, const struct uni_promise_model *m, uint32_t i)
{
	static const char *const fates[] = { "open", "resolved", "failed", "became" };
	const struct uni_promise *p = &m->all.v[i];
	const char *state =
		p->fate == UNI_FATE_OPEN && p->should_resolve ? "NEVER" : fates[p->fate];
	const char *type =
		p->type == UNI_PROMISE_TYPE_UNKNOWN ? "-" : uni_promise_type_name(p->type);
	char buf[32], name[NAME];
	struct line l = { .len = 0 };
	size_t len;

	put_field(&l, state, strlen(state), 9, true);
	if (p->id > UINT32_MAX) {
		len = (size_t)snprintf(buf, sizeof(buf), "0x%" PRIx64, p->id);
		put_field(&l, buf, len, 18, false);
	} else {
		number_field(&l, p->id, 18);
	}
	put_field(&l, type, strlen(type), 11, true);
	/* Since the trace began, to the microsecond. */
	len = put_fixed(buf, p->begin - m->begin, 1000000000, 6, "s");
	if (p->told)
		put_field(&l, "earlier", strlen("earlier"), 12, false);
	else
		put_field(&l, buf, len, 12, false);
	time_field(&l, uni_promise_life(m, p), 11);
	time_field(&l, p->run_ns, 11);
	time_field(&l, p->wait_ns, 11);
	number_field(&l, p->nr_runs, 5);
	l.text[l.len++] = ' ';
	uni_sink_write(out, l.text, l.len);
	put_text(out, uni_promise_name(m, i, name, sizeof(name)));
	if (p->fate == UNI_FATE_BECAME) {
		put_text(out, " -> ");
		put_text(out, uni_promise_name(m, p->other, name, sizeof(name)));
	} else if (p->fate != UNI_FATE_OPEN && p->resolver != UNI_PROMISE_NONE) {
		put_text(out, " (by ");
		put_text(out, uni_promise_name(m, p->resolver, name, sizeof(name)));
		uni_sink_putc(out, ')');
	}
	if (p->failure != 0) {
		put_text(out, ": ");
		put_text(out, uni_strtab_get(m->text, p->failure));
	}
	uni_sink_putc(out, '\n');
}

static void prefetch_promise(const struct uni_promise_model *m, uint32_t i)
{
	const char *p;

	if (i >= m->all.nr)
		return;
	p = (const char *)&m->all.v[i];
	for (size_t at = 0; at < sizeof(m->all.v[0]); at += 64)
		__builtin_prefetch(p + at);
}

int uni_promise_text_threads(struct uni_sink *out, const struct uni_promise_model *m,
	const struct uni_promise_list_opts *opts)
{
	struct uni_promise_rows rows = { 0 };
	int rc = uni_promise_list(m, opts, &rows);

	if (rc != 0)
		return rc;
	uni_sink_printf(out, "%-9s %18s %-11s %12s %11s %11s %11s %5s  %s\n", "STATE", "ID", "TYPE",
		"BORN", "LIFE", "RUN", "WAIT", "RUNS", "NAME");
	for (size_t k = 0; k < rows.all.nr; k++) {
		if (k + 2 * AHEAD < rows.all.nr)
			prefetch_promise(m, rows.all.v[k + 2 * AHEAD]);
		if (k + AHEAD < rows.all.nr)
			prefetch_promise(m, m->all.v[rows.all.v[k + AHEAD]].resolver);
		put_promise_row(out, m, rows.all.v[k]);
	}
	if (rows.more != 0)
		uni_sink_printf(out, "and %zu more\n", rows.more);
	if (rows.alike != 0)
		uni_sink_printf(out,
			"%zu wait%s that ended, with the name of a longer one, %s left out "
			"(`trace threads --all`)\n",
			rows.alike, uni_plural(rows.alike), rows.alike == 1 ? "is" : "are");
	if (rows.nameless != 0)
		uni_sink_printf(out,
			"%zu promise%s without a name, that nobody waits for, %s left out "
			"(`trace threads --all`)\n",
			rows.nameless, uni_plural(rows.nameless),
			rows.nameless == 1 ? "is" : "are");
	uni_vec_free(&rows.all);
	return 0;
}
