/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks which of the guest's memory the host of a stream may read and write. */
#include "stream_memory.h"

#include "uniscope/trace.h"

#include "ring.h"

#define SITE	    5
#define CONTROL_END __builtin_offsetof(struct uni_trace_control, reserved)
#define ROOM_END    __builtin_offsetof(struct uni_trace_text_rules, nr) /* of both tables */

static int same(const void *a, const void *b, unsigned size)
{
	return uni_stream_same(a, b, size);
}

static int within(uint64_t start, uint64_t size, uint64_t at, uint64_t len)
{
	return at >= start && len <= size && at - start <= size - len;
}

/* --- what the host may read ------------------------------------------------------------------- */

static int in_rings(uint64_t va, uint64_t size)
{
	const struct uni_trace_head *h = &uni_trace_head;
	const struct uni_trace_ring *r = (const struct uni_trace_ring *)h->rings;

	for (unsigned i = 0; i < h->nr_cpus; i++) {
		if (within(r[i].cpu, sizeof(struct uni_trace_cpu), va, size) ||
			within(r[i].base, r[i].nr_subs * UNI_TRACE_SUB_SIZE, va, size))
			return 1;
	}
	return 0;
}

static uint64_t promises_size(const struct uni_trace_head *h)
{
	const struct uni_trace_promises *t = (const struct uni_trace_promises *)h->promises;

	return sizeof(*t) + t->room * sizeof(struct uni_trace_promise);
}

/* The tables that the host writes: their room and number, then that many entries of `size` bytes.
 * May it reach this from the byte `skip` on? */
static int in_table(uint64_t table, uint64_t each, uint64_t skip, uint64_t va, uint64_t size)
{
	const struct uni_trace_text_rules *t = (const struct uni_trace_text_rules *)table;

	return t && within(table + skip, sizeof(*t) + t->room * each - skip, va, size);
}

static int in_tables(uint64_t skip, uint64_t va, uint64_t size)
{
	const struct uni_trace_head *h = &uni_trace_head;

	return in_table(h->text_rules, sizeof(struct uni_trace_text_rule), skip, va, size) ||
	       in_table(h->conditions, sizeof(struct uni_trace_condition), skip, va, size);
}

static int may_read(const struct uni_stream *s, uint64_t va, uint64_t size)
{
	const struct uni_trace_head *h = &uni_trace_head;
	const struct uni_stream_config *c = &s->config;

	if (within((uint64_t)h, sizeof(*h), va, size))
		return 1;
	if (!h->rings) /* it was never set up */
		return 0;
	return within(h->rings, h->nr_cpus * sizeof(struct uni_trace_ring), va, size) ||
	       within(h->hooks, sizeof(struct uni_trace_hooks), va, size) ||
	       (h->promises && within(h->promises, promises_size(h), va, size)) ||
	       in_tables(0, va, size) || in_table(h->reads, 0, 0, va, size) ||
	       (h->samplers && within(h->samplers, h->nr_cpus * sizeof(struct uni_trace_sampler),
				       va, size)) ||
	       within(c->text_start, c->text_end - c->text_start, va, size) || in_rings(va, size);
}

unsigned uni_stream_on_read(struct uni_stream *s, uint32_t size, uint32_t *size_ret)
{
	const struct uni_stream_read *r = (const struct uni_stream_read *)uni_stream_body_in(s);
	uint32_t nr = size / sizeof(*r), total = 0;

	if (!nr || size % sizeof(*r) || nr > UNI_STREAM_READ_MAX)
		return UNI_STREAM_UNKNOWN;
	for (uint32_t i = 0; i < nr; i++) {
		if (!r[i].size || r[i].size > UNI_STREAM_BODY_MAX - UNI_STREAM_MAC_BYTES - total ||
			!may_read(s, r[i].va, r[i].size))
			return UNI_STREAM_NOT_HERE;
		total += r[i].size;
	}
	for (uint32_t i = 0; i < nr; i++) {
		uni_stream_copy(
			uni_stream_body_out(s) + *size_ret, (const void *)r[i].va, r[i].size);
		*size_ret += r[i].size;
	}
	return UNI_STREAM_OK;
}

/* --- what it may write ------------------------------------------------------------------------ */

/* The kind of a site: at an entry, or at an exit of a function. */
enum {
	NO_SITE,
	AT_ENTRY,
	AT_EXIT,
};

/* The kind of site for a five-byte instruction at va that goes to one of the tracer's hooks. */
static int kind_of_hook(const uint8_t *bytes, uint64_t va)
{
	const struct uni_trace_hooks *h = (const struct uni_trace_hooks *)uni_trace_head.hooks;
	uint32_t rel = bytes[1] | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3] << 16 |
		       (uint32_t)bytes[4] << 24;
	uint64_t to = va + SITE + (uint64_t)(int64_t)(int32_t)rel;

	if (!h || !to)
		return NO_SITE;
	if (to == h->entry || to == h->entry_any || to == h->entry_args || to == h->entry_start ||
		to == h->entry_stop || to == h->entry_freeze || to == h->entry_return ||
		to == h->entry_only || to == h->entry_text || to == h->entry_caller)
		return AT_ENTRY;
	if (to == h->exit || to == h->exit_lite || to == h->exit_min || to == h->exit_any ||
		to == h->exit_value || to == h->plain_exit)
		return AT_EXIT;
	return NO_SITE;
}

/* A site holds one of these, never anything else: nop or call of a hook, ret or jmp to a hook. */
static int kind_of_site(const uint8_t *bytes, uint64_t va)
{
	static const uint8_t nop[SITE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
			     ret[SITE] = { 0xc3, 0xcc, 0xcc, 0xcc, 0xcc };

	if (same(bytes, nop, SITE) || (bytes[0] == 0xe8 && kind_of_hook(bytes, va) == AT_ENTRY))
		return AT_ENTRY;
	if (same(bytes, ret, SITE) || (bytes[0] == 0xe9 && kind_of_hook(bytes, va) == AT_EXIT))
		return AT_EXIT;
	return NO_SITE;
}

/* A nop of five bytes may also be there to align something. An entry is at the place itself, or
 * behind an endbr64 of four bytes, as compilers differ. */
static int is_entry(const struct uni_stream_config *c, uint64_t va)
{
	for (uint64_t i = 0; i < c->nr_entries; i++) {
		if (c->entries[i] == va || c->entries[i] + 4 == va)
			return 1;
	}
	return c->nr_entries == 0;
}

static int is_word(const struct uni_stream_patch *p)
{
	uint64_t control = (uint64_t)&uni_trace_head.control;

	return p->len == 4 && p->va % 4 == 0 &&
	       (p->va == (uint64_t)&uni_trace_head.frozen ||
		       within(control, CONTROL_END, p->va, 4) || in_tables(ROOM_END, p->va, 4));
}

static int is_code(const struct uni_stream *s, const struct uni_stream_patch *p)
{
	const struct uni_stream_config *c = &s->config;
	int kind = kind_of_site(p->new_bytes, p->va);

	return p->len == SITE && c->patch &&
	       within(c->text_start, c->text_end - c->text_start, p->va, SITE) && kind != NO_SITE &&
	       kind == kind_of_site(p->old_bytes, p->va) &&
	       (kind != AT_ENTRY || is_entry(c, p->va));
}

/* 1: to be written; 0: it holds the new bytes; -1: neither. */
static int look(const struct uni_stream_patch *p)
{
	uint8_t now[8];

	uni_stream_copy(now, (const void *)p->va, p->len);
	if (same(now, p->new_bytes, p->len))
		return 0;
	return same(now, p->old_bytes, p->len) ? 1 : -1;
}

static unsigned check_patches(
	const struct uni_stream *s, const struct uni_stream_patch *p, uint32_t nr, uint32_t *bad)
{
	for (*bad = 0; *bad < nr; ++*bad) {
		const struct uni_stream_patch *one = &p[*bad];

		if (one->len == SITE && !s->config.patch)
			return UNI_STREAM_CANNOT;
		if (!is_word(one) && !is_code(s, one))
			return UNI_STREAM_NOT_HERE;
		if (look(one) < 0)
			return UNI_STREAM_DIFFERS;
	}
	return UNI_STREAM_OK;
}

static void write_word(struct uni_stream *s, const struct uni_stream_patch *p)
{
	uint32_t value = p->new_bytes[0] | (uint32_t)p->new_bytes[1] << 8 |
			 (uint32_t)p->new_bytes[2] << 16 | (uint32_t)p->new_bytes[3] << 24;

	*(volatile uint32_t *)p->va = value;
	if (p->va == (uint64_t)&uni_trace_head.control.gaps ||
		p->va == (uint64_t)&uni_trace_head.control.session)
		uni_trace_ask_all();
	if (p->va == (uint64_t)&uni_trace_head.control.sample_hz)
		s->sampling = value != 0;
}

unsigned uni_stream_on_patch(struct uni_stream *s, uint32_t size, uint32_t *size_ret)
{
	struct uni_stream_patch *p = (struct uni_stream_patch *)uni_stream_body_in(s);
	uint32_t nr = size / sizeof(*p), sites = 0;
	struct uni_stream_patched done = { 0, 0 };
	unsigned status;

	if (!nr || size % sizeof(*p))
		return UNI_STREAM_UNKNOWN;
	status = check_patches(s, p, nr, &done.bad);
	for (uint32_t i = 0; status == UNI_STREAM_OK && i < nr; i++) {
		if (look(&p[i]) == 0)
			continue;
		done.nr_written++;
		if (p[i].len == SITE)
			p[sites++] = p[i];
		else
			write_word(s, &p[i]);
	}
	if (sites)
		s->config.patch(s->config.ctx, p, sites);
	uni_stream_copy(uni_stream_body_out(s), &done, sizeof(done));
	*size_ret = sizeof(done);
	return status;
}
