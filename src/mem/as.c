/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two caches, both for one sample. One has translations by 4 KiB page; the other has copies of
 * guest memory by granule (see gmem.h). Stack words, code bytes and table entries are all read
 * through the second cache. A generation number empties the caches without touching them.
 */
#include "mem/as.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "mem/walk.h"

#define PAGE	    UNI_AS_PAGE
#define TLB_NR	    64u
#define CACHE_BYTES (256u * 1024)
#define WAYS	    4u
#define HABITS	    24u
#define CLOCK_READS 16u
#define HABIT_AGE   64u /* samples after which a granule is not prefetched any more */

struct tlb_entry {
	uint64_t page;	    /* GVA / PAGE */
	uint64_t gpa;	    /* of that page */
	uint64_t leaf_size; /* bytes */
	uint32_t gen;
	bool no_exec;
};

struct line {
	uint64_t base; /* GPA, a multiple of the granule */
	uint32_t gen;
	bool noted; /* as needed by this sample */
};

/* A granule that a sample needed, and the generation of the last sample that needed it. */
struct habit {
	uint64_t base;
	uint32_t gen; /* 0: none */
};

struct uni_as {
	struct uni_gmem *m; /* borrowed */
	struct uni_as_budget budget;
	struct uni_as_stats stats;
	struct uni_pt_root root; /* geometry NULL: GVA == GPA */
	uint64_t begin_ns;
	size_t granule;
	unsigned granule_shift, set_bits;
	uint32_t gen; /* entries of other generations are empty */
	unsigned next_way;
	struct tlb_entry tlb[TLB_NR];
	bool sealed, missed;
	bool spent;  /* the budget has refused a read */
	bool direct; /* copies are cheap */
	bool habits; /* the target can fetch many granules at once, so habits are noted */
	/* The granule that the last word was read from: mostly, the next word is in it, too. */
	uint64_t hot_va;
	const uint8_t *hot;
	uint32_t hot_gen;
	struct habit habit[HABITS];
	struct line *line; /* CACHE_BYTES / granule lines, in sets of WAYS */
	uint8_t *data;	   /* CACHE_BYTES; line i has its granule at i * granule */
};

const struct uni_as_budget uni_as_budget_default = {
	.bytes = 1024u * 1024,
	.table_loads = 4096,
	.wall_ns = 20 * UNI_NSEC_PER_MSEC,
};

const struct uni_as_budget uni_as_budget_once = {
	.bytes = 256u * 1024,
	.table_loads = 4096,
	.cpu_ns = UNI_NSEC_PER_SEC,
};

static uint64_t limit_of(const struct uni_as *as)
{
	return as->budget.cpu_ns != 0 ? as->budget.cpu_ns : as->budget.wall_ns;
}

static uint64_t read_clock(const struct uni_as *as)
{
	return as->budget.cpu_ns != 0 ? uni_thread_ns() : uni_now_ns();
}

int uni_as_create(struct uni_gmem *m, const struct uni_as_budget *budget, struct uni_as **ret,
	struct uni_err *err)
{
	struct uni_as *as = calloc(1, sizeof(*as));

	if (as == NULL)
		return uni_err_set(err, UNI_ENOMEM, "no memory for an address space");
	as->m = m;
	as->budget = budget != NULL ? *budget : uni_as_budget_default;
	as->direct = uni_gmem_is_direct(m);
	as->habits = uni_gmem_can_read_many(m);
	as->granule = uni_gmem_granule(m);
	as->granule_shift = (unsigned)__builtin_ctzl(as->granule);
	as->set_bits = (unsigned)__builtin_ctzl(CACHE_BYTES / as->granule / WAYS);
	as->line = calloc(CACHE_BYTES / as->granule, sizeof(*as->line));
	as->data = malloc(CACHE_BYTES);
	if (as->line == NULL || as->data == NULL) {
		uni_as_destroy(as);
		return uni_err_set(err, UNI_ENOMEM, "no memory for an address space");
	}
	uni_as_begin(as, NULL);
	*ret = as;
	return 0;
}

void uni_as_destroy(struct uni_as *as)
{
	if (as == NULL)
		return;
	free(as->line);
	free(as->data);
	free(as);
}

struct uni_gmem *uni_as_gmem(struct uni_as *as)
{
	return as->m;
}

void uni_as_begin(struct uni_as *as, const struct uni_pt_root *root)
{
	if (root != NULL && uni_gmem_space(as->m) == UNI_GMEM_PHYSICAL)
		as->root = *root;
	else
		memset(&as->root, 0, sizeof(as->root));
	memset(&as->stats, 0, sizeof(as->stats));
	as->sealed = as->missed = as->spent = false;
	as->begin_ns = limit_of(as) != 0 && !as->direct ? read_clock(as) : 0;
	if (++as->gen == 0) { /* after 2^32 samples: old entries would become valid again */
		memset(as->tlb, 0, sizeof(as->tlb));
		memset(as->line, 0, CACHE_BYTES / as->granule * sizeof(*as->line));
		memset(as->habit, 0, sizeof(as->habit));
		as->gen = 1;
	}
}

const struct uni_as_stats *uni_as_stats(const struct uni_as *as)
{
	return &as->stats;
}

bool uni_as_is_spent(const struct uni_as *as)
{
	return as->spent;
}

static int refuse_read(struct uni_as *as)
{
	as->spent = true;
	return -UNI_EBUDGET;
}

/* A clock that costs as much as a copy is read only now and then: that of CPU time is a system
 * call. */
static bool is_late(struct uni_as *as)
{
	bool rarely = as->direct || as->budget.cpu_ns != 0;
	uint64_t now_ns;

	if (rarely && as->stats.reads % CLOCK_READS != CLOCK_READS - 1)
		return false;
	now_ns = read_clock(as);
	if (as->begin_ns == 0)
		as->begin_ns = now_ns;
	return now_ns - as->begin_ns > limit_of(as);
}

/* One copy from the target. The budget pays for it first. */
static int fetch_physical(struct uni_as *as, uint64_t gpa, void *buf, size_t len)
{
	int rc;

	if (as->sealed) {
		as->missed = true;
		return -UNI_EFAULT;
	}
	if (len > as->budget.bytes - as->stats.bytes)
		return refuse_read(as);
	if (as->budget.reads != 0 && as->stats.reads >= as->budget.reads)
		return refuse_read(as);
	if (limit_of(as) != 0 && is_late(as))
		return refuse_read(as);
	as->stats.bytes += (uint32_t)len;
	as->stats.reads++;
	rc = uni_gmem_read(as->m, uni_gpa_of(gpa), buf, len);
	/* Nothing was copied. A granule that is there in part fails each time it is asked for. */
	if (rc == -UNI_EFAULT || rc == -UNI_ERANGE)
		as->stats.bytes -= (uint32_t)len;
	return rc == -UNI_ERANGE ? -UNI_EFAULT : rc;
}

/* This sample needs the granule; the next samples will need it, too. */
static void note_granule(struct uni_as *as, struct line *l)
{
	struct habit *oldest = &as->habit[0];

	l->noted = true;
	for (size_t i = 0; i < HABITS; i++) {
		struct habit *h = &as->habit[i];

		if (h->gen != 0 && h->base == l->base) {
			h->gen = as->gen;
			return;
		}
		if (h->gen < oldest->gen)
			oldest = h;
	}
	*oldest = (struct habit){ .base = l->base, .gen = as->gen };
}

/* The set of lines in which a granule is looked for. */
static size_t set_of(const struct uni_as *as, uint64_t base)
{
	uint64_t hash = (base >> as->granule_shift) * 0x9e3779b97f4a7c15ull;

	return (size_t)(hash >> (64 - as->set_bits)) * WAYS;
}

/* The way that holds the granule (true), or a way for it: WAYS if none is free. */
static bool find_way(const struct uni_as *as, uint64_t base, size_t set, size_t *ret)
{
	*ret = WAYS;
	for (size_t way = 0; way < WAYS; way++) {
		const struct line *l = &as->line[set + way];

		if (l->gen == as->gen && l->base == base) {
			*ret = way;
			return true;
		}
		if (l->gen != as->gen && *ret == WAYS)
			*ret = way;
	}
	return false;
}

/* Makes room for a granule and fetches it into line set + *way_ret. */
static int fill_line(struct uni_as *as, uint64_t base, size_t set, size_t *way_ret)
{
	size_t way = *way_ret;
	struct line *l;
	int rc;

	if (way == WAYS)
		way = as->next_way++ % WAYS;
	l = &as->line[set + way];
	l->gen = as->gen - 1;
	as->hot_gen = as->gen - 1; /* this line may have been the hot granule */
	rc = fetch_physical(as, base, as->data + (set + way) * as->granule, as->granule);
	if (rc == 0)
		*l = (struct line){ .base = base, .gen = as->gen };
	*way_ret = way;
	return rc;
}

/* Copies [gpa, gpa + len), which lies in one granule. */
static int read_in_granule(struct uni_as *as, uint64_t gpa, void *buf, size_t len)
{
	uint64_t base = gpa & ~(uint64_t)(as->granule - 1);
	size_t set = set_of(as, base), way;
	const uint8_t *at;
	struct line *l;
	int rc;

	if (!find_way(as, base, set, &way)) {
		rc = fill_line(as, base, set, &way);
		/* A region may begin or end inside the granule. */
		if (rc == -UNI_EFAULT && len < as->granule)
			return fetch_physical(as, gpa, buf, len);
		if (rc != 0)
			return rc;
	}
	l = &as->line[set + way];
	if (as->habits && !l->noted)
		note_granule(as, l);
	at = as->data + (set + way) * as->granule + (gpa - base);
	if (len == sizeof(uint64_t)) /* nearly always, and known to the compiler here */
		memcpy(buf, at, sizeof(uint64_t));
	else
		memcpy(buf, at, len);
	return 0;
}

void uni_as_prefetch(struct uni_as *as)
{
	size_t room = (as->budget.bytes - as->stats.bytes) / as->granule;
	size_t line[HABITS], nr = 0, done;
	uni_gpa gpa[HABITS];
	void *buf[HABITS];

	if (!uni_gmem_can_read_many(as->m))
		return;
	for (size_t i = 0; i < HABITS && nr < room; i++) {
		const struct habit *h = &as->habit[i];
		size_t set = set_of(as, h->base), way;

		if (h->gen == 0 || as->gen - h->gen > HABIT_AGE ||
			find_way(as, h->base, set, &way) || way == WAYS)
			continue;
		/* Taken before it is filled, so that another habit does not get the same line. */
		as->line[set + way] = (struct line){ .base = h->base, .gen = as->gen };
		line[nr] = set + way;
		gpa[nr].v = h->base;
		buf[nr++] = as->data + (set + way) * as->granule;
	}
	done = uni_gmem_read_many(as->m, gpa, buf, as->granule, nr);
	as->stats.bytes += (uint32_t)(done * as->granule);
	as->stats.reads += nr != 0;
	for (size_t i = done; i < nr; i++)
		as->line[line[i]].gen = as->gen - 1;
}

void uni_as_touch(struct uni_as *as, uni_gva va, size_t len)
{
	for (size_t done = 0; done < len && done <= UINT64_MAX - va.v;) {
		uint8_t byte;
		uint64_t at = va.v + done;

		(void)uni_as_read(as, uni_gva_of(at), &byte, 1);
		done += as->granule - (size_t)(at & (as->granule - 1));
	}
}

void uni_as_seal(struct uni_as *as)
{
	as->sealed = true;
}

bool uni_as_missed(const struct uni_as *as)
{
	return as->missed;
}

/* Copies [gpa, gpa + len), which lies in one page. */
static int read_in_page(struct uni_as *as, uint64_t gpa, uint8_t *buf, size_t len)
{
	while (len > 0) {
		size_t room = as->granule - (size_t)(gpa & (as->granule - 1));
		size_t n = uni_min(len, room);
		int rc = read_in_granule(as, gpa, buf, n);

		if (rc != 0)
			return rc;
		gpa += n;
		buf += n;
		len -= n;
	}
	return 0;
}

const struct uni_pt_root *uni_as_root(const struct uni_as *as)
{
	return &as->root;
}

int uni_as_load_entry(struct uni_as *as, uint64_t gpa, size_t size, uint64_t *ret)
{
	uint8_t raw[8] = { 0 };
	int rc;

	if (as->stats.table_loads >= as->budget.table_loads)
		return refuse_read(as);
	as->stats.table_loads++;
	if (as->stats.table_loads % UNI_AS_ASK == 0 && as->budget.over != NULL &&
		as->budget.over(as->budget.ctx))
		return refuse_read(as);
	/* A table may be anywhere, as the guest says, but its entries are nearly always aligned. */
	if (as->direct)
		rc = fetch_physical(as, gpa, raw, size);
	else if ((gpa & 7) == 0)
		rc = read_in_granule(as, gpa, raw, size);
	else
		rc = read_in_page(as, gpa, raw, size);
	if (rc != 0)
		return rc;
	*ret = uni_le64(raw);
	return 0;
}

/* Fills e for the page that holds va. */
static int fill_tlb(struct uni_as *as, uint64_t va, struct tlb_entry *e)
{
	struct uni_walked w;
	int rc = uni_as_walk(as, va, &w);

	e->gpa = w.gpa;
	e->leaf_size = w.span;
	e->no_exec = w.no_exec;
	return rc;
}

/* The entry of the page that holds va, which must be in page tables. */
static int look_up(struct uni_as *as, uint64_t va, const struct tlb_entry **ret)
{
	uint64_t page = va / PAGE;
	struct tlb_entry *e = &as->tlb[(page ^ page >> 9) % TLB_NR];

	if (e->gen != as->gen || e->page != page) {
		struct tlb_entry found = { .page = page, .gen = as->gen };
		int rc = fill_tlb(as, va, &found);

		if (rc != 0)
			return rc;
		*e = found;
	}
	*ret = e;
	return 0;
}

int uni_as_translate(struct uni_as *as, uni_gva va, uni_gpa *ret, uint64_t *page_size_ret)
{
	static const struct tlb_entry flat = { .leaf_size = PAGE };
	const struct tlb_entry *e = &flat;
	int rc = as->root.geometry == NULL ? 0 : look_up(as, va.v, &e);

	if (rc != 0)
		return rc;
	ret->v = e == &flat ? va.v : e->gpa | (va.v & (PAGE - 1));
	if (page_size_ret != NULL)
		*page_size_ret = e->leaf_size;
	return 0;
}

int uni_as_check_exec(struct uni_as *as, uni_gva va)
{
	const struct tlb_entry *e;
	int rc;

	/* A process has no page tables here, and no code outside of its half. */
	if (as->root.geometry == NULL)
		return uni_gmem_space(as->m) != UNI_GMEM_VIRTUAL ||
				       uni_gmem_may_be_code(as->m, uni_gpa_of(va.v))
			       ? 0
			       : -UNI_EFAULT;
	rc = look_up(as, va.v, &e);
	if (rc != 0)
		return rc;
	return e->no_exec ? -UNI_EFAULT : 0;
}

/* The part of [va, va + len) that lies in va's page. */
static size_t in_page(uint64_t va, size_t len)
{
	size_t room = PAGE - (size_t)(va & (PAGE - 1));

	return uni_min(len, room);
}

int uni_as_read(struct uni_as *as, uni_gva va, void *buf, size_t len)
{
	uint8_t *out = buf;

	if (!uni_range_ok(va.v, len))
		return -UNI_EFAULT;
	while (len > 0) {
		size_t n = in_page(va.v, len);
		uni_gpa gpa;
		int rc = uni_as_translate(as, va, &gpa, NULL);

		if (rc == 0)
			rc = read_in_page(as, gpa.v, out, n);
		if (rc != 0)
			return rc;
		va.v += n;
		out += n;
		len -= n;
	}
	return 0;
}

/* Remembers the granule that was just read: its next words are found without a search. */
static void remember_granule(struct uni_as *as, uint64_t va, uint64_t gpa)
{
	uint64_t mask = as->granule - 1, base = gpa & ~mask;
	size_t set = set_of(as, base), way;

	if (!find_way(as, base, set, &way))
		return;
	as->hot_va = va & ~mask;
	as->hot = as->data + (set + way) * as->granule;
	as->hot_gen = as->gen;
}

static __attribute__((noinline)) int read_u64_cold(struct uni_as *as, uni_gva va, uint64_t *ret)
{
	uint8_t b[8];
	uni_gpa gpa;
	int rc;

	if (in_page(va.v, sizeof(b)) < sizeof(b)) {
		rc = uni_as_read(as, va, b, sizeof(b));
		if (rc == 0)
			*ret = uni_le64(b);
		return rc;
	}
	rc = uni_as_translate(as, va, &gpa, NULL);
	if (rc == 0)
		rc = read_in_page(as, gpa.v, b, sizeof(b));
	if (rc != 0)
		return rc;
	*ret = uni_le64(b);
	remember_granule(as, va.v, gpa.v);
	return 0;
}

int uni_as_read_u64(struct uni_as *as, uni_gva va, uint64_t *ret)
{
	uint64_t offset = va.v - as->hot_va;

	if (as->hot_gen != as->gen || offset > as->granule - sizeof(*ret))
		return read_u64_cold(as, va, ret);
	*ret = uni_le64(as->hot + offset);
	return 0;
}

void uni_as_look(const struct uni_as *as, struct uni_as_window *ret)
{
	bool any = as->hot_gen == as->gen;

	ret->va = as->hot_va;
	ret->bytes = as->hot;
	ret->words = any ? as->granule - sizeof(uint64_t) + 1 : 0;
}

size_t uni_as_read_some(struct uni_as *as, uni_gva va, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t n = in_page(va.v, len - done);

		if (uni_as_read(as, va, (uint8_t *)buf + done, n) != 0)
			break;
		done += n;
		va.v += n;
		if (va.v == 0) /* the end of the space */
			break;
	}
	return done;
}
