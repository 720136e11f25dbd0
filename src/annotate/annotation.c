/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotate/annotation.h"

#include <stdio.h>
#include <stdlib.h>

#include "profile/build.h"

void uni_annotation_deinit(struct uni_annotation *a)
{
	uni_code_deinit(&a->code);
	uni_vec_free(&a->callees);
}

const char *uni_annotation_unit(const struct uni_annotation *a)
{
	return a->of == UNI_ANNOTATE_SAMPLES ? "samples"
	       : a->of == UNI_ANNOTATE_EXACT ? "instructions"
					     : "ns";
}

/* A return address is behind its call. */
static struct uni_code_insn *find_insn(
	struct uni_annotation *a, const struct uni_sample *s, size_t frame)
{
	bool exact = frame == 0 || (s->flags[frame] & UNI_FRAME_EXACT) != 0;

	if ((s->flags[frame] & UNI_FRAME_KERNEL) != 0)
		return NULL;
	return uni_code_at(&a->code, s->pc[frame] - a->bias - !exact);
}

/* The block that ran is known to be in this function, its place is not (arch/skid.h). */
static bool is_somewhere(const struct uni_annotation *a, const struct uni_sample *s)
{
	return (s->flags[0] & UNI_FRAME_MOVED) != 0 && s->pc[0] - a->bias == a->code.addr;
}

void uni_annotation_clear(struct uni_annotation *a)
{
	a->self = a->total = a->all = a->somewhere = 0;
	uni_vec_foreach (i, &a->code.insns)
		i->self = i->below = 0;
	uni_vec_foreach (l, &a->code.lines)
		l->self = 0;
}

void uni_annotation_add(struct uni_annotation *a, const struct uni_sample *s)
{
	double w = (double)s->weight;
	bool in = false;

	if (s->guest != a->guest)
		return;
	a->all += w;
	a->serial++;
	for (size_t i = 0; i < s->nr; i++) {
		struct uni_code_insn *insn = find_insn(a, s, i);

		if (insn == NULL)
			continue;
		in = true;
		if (i == 0 && uni_state_frame(s->state) == NULL) {
			a->self += w;
			*(is_somewhere(a, s) ? &a->somewhere : &insn->self) += w;
		} else if (insn->serial != a->serial) {
			insn->below += w;
		}
		insn->serial = a->serial;
	}
	if (in)
		a->total += w;
}

bool uni_annotation_add_call(
	struct uni_annotation *a, uint64_t addr, const char *name, uint64_t calls, double value)
{
	struct uni_annotation_callee new = { .addr = addr, .calls = calls, .value = value };

	(void)snprintf(new.name, sizeof(new.name), "%s", name);
	return uni_vec_push(&a->callees, new);
}

static int by_address(const void *a, const void *b)
{
	const struct uni_annotation_callee *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Each callee once. */
static void merge_callees(struct uni_annotation *a)
{
	struct uni_annotation_callee *v = a->callees.v;
	size_t n = 0;

	if (a->callees.nr != 0)
		qsort(v, a->callees.nr, sizeof(*v), by_address);
	for (size_t i = 0; i < a->callees.nr; i++) {
		if (n == 0 || v[n - 1].addr != v[i].addr) {
			v[n++] = v[i];
			continue;
		}
		v[n - 1].calls += v[i].calls;
		v[n - 1].value += v[i].value;
	}
	a->callees.nr = n;
}

static struct uni_annotation_callee *callee_of(
	struct uni_annotation *a, const struct uni_code_insn *i)
{
	const struct uni_annotation_callee key = { .addr = i->insn.target };

	return i->callee != 0 && a->callees.nr != 0
		       ? bsearch(&key, a->callees.v, a->callees.nr, sizeof(key), by_address)
		       : NULL;
}

void uni_annotation_finish(struct uni_annotation *a)
{
	struct uni_annotation_callee *c;

	merge_callees(a);
	uni_vec_foreach (i, &a->code.insns) {
		if ((c = callee_of(a, i)) != NULL)
			c->sites++;
	}
	uni_vec_foreach (i, &a->code.insns) {
		if ((c = callee_of(a, i)) == NULL)
			continue;
		i->sites = c->sites;
		/* Exact counts have those of each place. */
		i->calls =
			a->of == UNI_ANNOTATE_EXACT && c->sites > 1 ? (uint64_t)i->self : c->calls;
		i->below = c->value;
	}
	uni_code_sum_lines(&a->code);
}
