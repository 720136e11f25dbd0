/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's own books; see lab_truth.h for the layout and the rules. */
#include "lab.h"

struct lab_truth lab_truth;

extern struct lab_fn lab_fns_start[], lab_fns_end[];

static void name_copy(char *dst, const char *src)
{
	size_t i = 0;

	for (; src[i] && i + 1 < LAB_FN_NAME_SIZE; i++)
		dst[i] = src[i];
	dst[i] = '\0';
}

void lab_truth_init(void)
{
	struct lab_truth *t = &lab_truth;

	t->version = LAB_TRUTH_VERSION;
	t->header_size = offsetof(struct lab_truth, fn_name);
	t->total_size = sizeof(struct lab_truth);
	t->cpu_size = sizeof(struct lab_cpu_truth);
	t->fn_size = sizeof(struct lab_fn_truth);
	t->nr_cpus = 1;
	name_copy(t->fn_name[0], "(root)");
	t->nr_fns = 1;
	for (struct lab_fn *fn = lab_fns_start; fn < lab_fns_end; fn++) {
		if (t->nr_fns == LAB_MAX_FNS)
			lab_fail("too many functions");
		fn->index = t->nr_fns;
		name_copy(t->fn_name[t->nr_fns++], fn->name);
	}
	LAB_BARRIER();
	t->magic = LAB_TRUTH_MAGIC; /* last: whoever sees it may trust the rest */
}

static inline struct lab_cpu_truth *my_books(void)
{
	return &lab_truth.cpu[lab_cpu_id()];
}

void lab_heartbeat(void)
{
	my_books()->heartbeat++;
	__atomic_fetch_add(&lab_truth.heartbeat, 1, __ATOMIC_RELAXED);
}

static inline uint64_t books_open(struct lab_cpu_truth *c)
{
	uint64_t now;

	c->seq++;
	LAB_BARRIER();
	now = lab_tsc();
	c->fn[c->current].self_cycles += now - c->last_tsc;
	c->last_tsc = now;
	return now;
}

static inline void books_shut(struct lab_cpu_truth *c)
{
	LAB_BARRIER();
	c->seq++;
	lab_heartbeat();
}

void lab_truth_start(void)
{
	struct lab_cpu_truth *c = my_books();

	c->seq++;
	LAB_BARRIER();
	c->online = 1;
	c->start_tsc = c->last_tsc = lab_tsc();
	c->fn[0].since_tsc = c->start_tsc;
	c->fn[0].calls = c->fn[0].active = 1;
	books_shut(c);
}

LAB_FUNC void lab_enter(unsigned fn)
{
	struct lab_cpu_truth *c = my_books();
	struct lab_fn_truth *f = &c->fn[fn];
	uint64_t now = books_open(c);

	if (c->depth < LAB_SHADOW_DEPTH)
		c->shadow[c->depth] = (uint16_t)c->current;
	c->depth++;
	c->current = fn;
	f->calls++;
	if (f->active++ == 0)
		f->since_tsc = now;
	books_shut(c);
}

LAB_FUNC void lab_leave(unsigned fn)
{
	struct lab_cpu_truth *c = my_books();
	struct lab_fn_truth *f = &c->fn[fn];
	uint64_t now = books_open(c);

	if (c->current != fn || !c->depth)
		lab_fail("LAB_LEAVE does not match LAB_ENTER");
	if (--f->active == 0)
		f->total_cycles += now - f->since_tsc;
	c->depth--;
	/* Too deep to have been kept: only recursion gets there, so the caller is fn again. */
	c->current = c->depth < LAB_SHADOW_DEPTH ? c->shadow[c->depth] : fn;
	books_shut(c);
}

void lab_count(unsigned fn, uint64_t n)
{
	my_books()->fn[fn].calls += n;
}

void lab_truth_close(void)
{
	struct lab_cpu_truth *c = my_books();
	uint64_t now = books_open(c);

	c->fn[0].total_cycles = now - c->start_tsc;
	c->fn[0].active = 0;
	books_shut(c);
}

void lab_truth_print(void)
{
	for (unsigned i = 0; i < lab_truth.nr_fns; i++) {
		uint64_t calls = 0, self = 0, total = 0;

		for (unsigned cpu = 0; cpu < lab_truth.nr_cpus; cpu++) {
			const struct lab_fn_truth *f = &lab_truth.cpu[cpu].fn[i];

			calls += f->calls;
			self += f->self_cycles;
			total += f->total_cycles;
		}
		lab_printf("truth %s %lu %lu %lu\n", lab_truth.fn_name[i], calls, self, total);
	}
}
