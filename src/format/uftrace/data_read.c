/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uftrace/data_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/text.h"

#define MAGIC	     5
#define SYM_REL_ADDR (1u << 5)
#define DEPTH_MAX    65536
#define CLASS_64     2
#define ORDER_LITTLE 1
#define RECORD_BYTES 16

enum type { ENTRY, EXIT, LOST, EVENT };

bool uni_uftrace_syms_init(struct uni_uftrace_syms *s)
{
	memset(s, 0, sizeof(*s));
	s->strings = uni_strtab_create();
	return s->strings != NULL;
}

void uni_uftrace_syms_deinit(struct uni_uftrace_syms *s)
{
	uni_strtab_destroy(s->strings);
	uni_vec_free(&s->maps);
	uni_vec_free(&s->all);
}

/* Magic, u32 version, u16 size of this, u8 byte order, u8 word size, u64 features, ... */
bool uni_uftrace_info(const char *data, size_t size, struct uni_uftrace_syms *s)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	char magic[8];
	uint8_t order, word;

	uni_cursor_copy(&c, magic, sizeof(magic));
	(void)uni_cursor_u32(&c);
	(void)uni_cursor_u16(&c);
	order = uni_cursor_u8(&c);
	word = uni_cursor_u8(&c);
	s->relative = (uni_cursor_u64(&c) & SYM_REL_ADDR) != 0;
	return !c.failed && memcmp(magic, "Ftrace!", sizeof(magic)) == 0 && order == ORDER_LITTLE &&
	       word == CLASS_64;
}

static bool take_hex(struct uni_line *l, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < l->len && n < 16; n++) {
		const char *digits = "0123456789abcdef";
		const char *d = l->s[n] != '\0' ? strchr(digits, l->s[n]) : NULL;

		if (d == NULL)
			break;
		v = v << 4 | (uint64_t)(d - digits);
	}
	l->s += n;
	l->len -= n;
	*ret = v;
	return n != 0;
}

static void skip_blanks(struct uni_line *l, bool blanks)
{
	while (l->len != 0 && (l->s[0] == ' ' || l->s[0] == '\t') == blanks) {
		l->s++;
		l->len--;
	}
}

/* "400000-401000 r-xp 00000000 08:02 393 /bin/app": the lowest of each file is its base. */
static bool map_line(struct uni_uftrace_syms *s, struct uni_line l)
{
	static const char build_id[] = " build-id:"; /* what uftrace adds to such lines */
	struct uni_uftrace_map m;
	const char *id;
	uint64_t end;

	if (!take_hex(&l, &m.start) || l.len == 0 || l.s[0] != '-')
		return true;
	l.s++;
	l.len--;
	if (!take_hex(&l, &end) || end <= m.start)
		return true;
	m.size = end - m.start;
	for (unsigned i = 0; i < 4; i++) {
		skip_blanks(&l, true);
		skip_blanks(&l, false);
	}
	skip_blanks(&l, true);
	if (l.len == 0 || l.s[0] != '/')
		return true;
	id = memmem(l.s, l.len, build_id, strlen(build_id));
	if (id != NULL)
		l.len = (size_t)(id - l.s);
	m.path = uni_strtab_add(s->strings, l.s, l.len);
	return m.path != UNI_STR_NONE && uni_vec_push(&s->maps, m);
}

bool uni_uftrace_map(struct uni_uftrace_syms *s, const char *data, size_t size)
{
	struct uni_line l;
	size_t pos = 0;
	bool ok = true;

	while (ok && uni_line_next(data, size, &pos, &l))
		ok = map_line(s, l);
	return ok;
}

bool uni_uftrace_sym(struct uni_uftrace_syms *s, uint64_t base, const char *data, size_t size)
{
	struct uni_uftrace_symbol sym;
	struct uni_line l;
	size_t pos = 0;
	char type;

	while (uni_line_next(data, size, &pos, &l)) {
		if (l.len == 0 || l.s[0] == '#' || !take_hex(&l, &sym.addr))
			continue;
		skip_blanks(&l, true);
		type = l.len != 0 ? l.s[0] : '?';
		skip_blanks(&l, false);
		skip_blanks(&l, true);
		if (l.len == 0 || type == '?')
			continue;
		sym.addr += s->relative ? base : 0;
		sym.name = uni_strtab_add(s->strings, l.s, l.len);
		if (sym.name == UNI_STR_NONE || !uni_vec_push(&s->all, sym))
			return false;
	}
	return true;
}

static int sym_order(const void *a, const void *b)
{
	const struct uni_uftrace_symbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void uni_uftrace_syms_sort(struct uni_uftrace_syms *s)
{
	if (s->all.nr != 0)
		qsort(s->all.v, s->all.nr, sizeof(s->all.v[0]), sym_order);
}

/* The newest symbol at or below the address. Only the address' lower 48 bits are known. */
static const struct uni_uftrace_symbol *find_symbol_at(
	const struct uni_uftrace_syms *s, uint64_t addr)
{
	size_t lo = 0, hi = s->all.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if ((s->all.v[mid].addr & 0xffffffffffff) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo != 0 ? &s->all.v[lo - 1] : NULL;
}

static uint32_t frame_of(struct uni_stack *stack, const struct uni_uftrace_syms *s, uint64_t addr)
{
	const struct uni_uftrace_symbol *sym = find_symbol_at(s, addr);
	char text[32];
	int n;

	if (sym != NULL)
		return uni_stack_name(stack, uni_strtab_get(s->strings, sym->name),
			uni_strtab_len(s->strings, sym->name));
	n = snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	return uni_stack_name(stack, text, (size_t)n);
}

struct calls {
	const struct uni_uftrace_thread *thread;
	struct uni_stack *stack;
	struct uni_import_stats *stats;
	UNI_VEC(uint32_t) open; /* frames, outermost first */
	uint64_t since_ns;
	size_t next_event;
	bool entered;		   /* calls that were open when the records began are in `open` */
	enum uni_uftrace_what out; /* UNI_UFTRACE_IN: the thread runs */
};

static void push_schedule(struct calls *c)
{
	/* As `uftrace report` calls them. */
	const char *name =
		c->out == UNI_UFTRACE_OUT ? "linux:schedule" : "linux:schedule (pre-empted)";

	uni_stack_push(c->stack, uni_stack_name(c->stack, name, strlen(name)));
}

/* Adds the time since the record before to the innermost open call. */
static int pass_time(struct calls *c, uint64_t ns)
{
	uint64_t took = ns > c->since_ns ? ns - c->since_ns : 0;

	c->since_ns = ns;
	if (c->open.nr == 0 || took == 0)
		return 0;
	for (size_t i = 0; i < c->open.nr && i <= UNI_IMPORT_DEPTH; i++)
		uni_stack_push(c->stack, c->open.v[i]);
	if (c->out != UNI_UFTRACE_IN)
		push_schedule(c);
	return uni_stack_flush(c->stack, false, (double)took, 0.0, c->stats);
}

/* Applies the kernel's events of the thread before that time. */
static int pass_events(struct calls *c, uint64_t before_ns)
{
	const struct uni_uftrace_events *events = c->thread->events;
	int rc = 0;

	for (; rc == 0 && c->next_event < events->all.nr; c->next_event++) {
		const struct uni_uftrace_event *e = &events->all.v[c->next_event];

		if (e->tid != c->thread->tid || e->ns >= before_ns)
			break;
		rc = pass_time(c, e->ns);
		if (e->what != UNI_UFTRACE_ALIVE)
			c->out = c->open.nr != 0 ? e->what : UNI_UFTRACE_IN;
	}
	return rc;
}

static bool next_record(struct uni_cursor *in, uint64_t *ns_ret, uint64_t *what_ret)
{
	*ns_ret = uni_cursor_u64(in);
	*what_ret = uni_cursor_u64(in);
	/* With `more`, arguments follow, and only a description has their number of bytes. */
	return (*what_ret >> 3 & 7) == MAGIC && (*what_ret & 4) == 0;
}

/*
 * A child of fork() returns from functions that its parent called. So does a thread that was traced
 * from the middle on, or lost records. A function that is left without being entered was open at
 * the beginning, innermost first.
 */
static int enter_open(struct calls *c, struct uni_cursor in)
{
	size_t below = 0;
	uint64_t ns, what;

	c->entered = true;
	while (uni_cursor_left(&in) >= RECORD_BYTES && next_record(&in, &ns, &what) &&
		(what & 3) != LOST) {
		if ((what & 3) == ENTRY)
			below++;
		else if ((what & 3) == EXIT && below != 0)
			below--;
		else if ((what & 3) == EXIT && c->open.nr < DEPTH_MAX &&
			 !uni_vec_push(&c->open, frame_of(c->stack, c->thread->syms, what >> 16)))
			return -UNI_ENOMEM;
	}
	for (size_t i = 0, j = c->open.nr; i + 1 < j; i++) {
		uint32_t f = c->open.v[i];

		c->open.v[i] = c->open.v[--j];
		c->open.v[j] = f;
	}
	return c->stack->oom ? -UNI_ENOMEM : 0;
}

static int enter_or_leave(struct calls *c, uint64_t what)
{
	c->out = UNI_UFTRACE_IN; /* it runs, even if the event for that was lost */
	if ((what & 3) == ENTRY && c->open.nr < DEPTH_MAX) {
		if (!uni_vec_push(&c->open, frame_of(c->stack, c->thread->syms, what >> 16)))
			return -UNI_ENOMEM;
	} else if ((what & 3) == EXIT && c->open.nr != 0) {
		c->open.nr--;
	} else if ((what & 3) == LOST) {
		c->open.nr = 0;
		c->entered = false;
		c->stats->truncated++;
	}
	return c->stack->oom ? -UNI_ENOMEM : 0;
}

int uni_uftrace_dat(struct uni_stack *stack, const struct uni_uftrace_thread *thread,
	const char *data, size_t size, struct uni_import_stats *stats, size_t *at_ret)
{
	struct uni_cursor in = uni_cursor_make(data, size);
	struct calls c = {
		.thread = thread, .stack = stack, .stats = stats, .out = UNI_UFTRACE_IN
	};
	int rc = 0;

	c.next_event = uni_uftrace_events_of(thread->events, thread->tid);
	while (rc == 0 && uni_cursor_left(&in) >= RECORD_BYTES) {
		struct uni_cursor here = in;
		uint64_t ns, what;

		*at_ret = in.pos;
		if (!next_record(&in, &ns, &what)) {
			rc = -UNI_EFORMAT;
			break;
		}
		rc = pass_events(&c, ns);
		if (rc == 0)
			rc = pass_time(&c, ns);
		if (rc == 0 && !c.entered)
			rc = enter_open(&c, here);
		if (rc == 0)
			rc = enter_or_leave(&c, what);
	}
	/* Calls that did not return, as by exit(), last as long as the thread. */
	if (rc == 0)
		rc = pass_events(&c, UINT64_MAX);
	uni_vec_free(&c.open);
	return rc;
}
