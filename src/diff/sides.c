/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/sides.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "obj/demangle.h"
#include "profile/copy.h"

#define UNKNOWN "[unknown]"

/* Cells of a function's calls, behind those of its values. */
#define CALLS UNI_COLUMNS
#define CELLS (UNI_COLUMNS + 1)

#define BLOCK_SAMPLES_MIN 4 /* or there are fewer blocks */

/* With fewer calls or blocks of them, a mean per call says nothing of its spread. */
#define CALLS_MIN	30
#define CALL_BLOCKS_MIN 8

/* A row of cells for each function: block by block, self and total apart. */
struct side {
	size_t nr_runs, nr_added, per_run, nr_blocks;
	double *n;
	double *work; /* units, times the value of one before; all 0: it is not known */
	double units;
	uint32_t *run;
	UNI_VEC(double) cells[CELLS];
	UNI_VEC(double) few_x, few_n; /* blocks with calls, of the function asked for last */
	UNI_VEC(uint32_t) few_run;
	double samples;
	bool independent, unknown; /* no times; the number of samples is not known */
};

struct function {
	bool synthetic;
	bool inlined[UNI_SIDES], plain[UNI_SIDES]; /* frames of that kind were seen */
	size_t renamed;				   /* function + 1 that it is after; 0: none */
	size_t part_of;				   /* function + 1 that it became; 0: itself */
};

struct uni_diff_sides {
	struct uni_strtab *names;
	UNI_VEC(struct function) functions; /* by the number of their name */
	struct side side[UNI_SIDES];
	bool of_runs, has_work, each;
	double work_value;
};

struct uni_diff_sides *uni_diff_create(const size_t nr_runs[UNI_SIDES])
{
	struct uni_diff_sides *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->names = uni_strtab_create();
	d->of_runs = true;
	for (int s = 0; s < UNI_SIDES; s++) {
		d->side[s].nr_runs = nr_runs[s];
		d->of_runs = d->of_runs && nr_runs[s] >= UNI_DIFF_RUNS_MIN;
	}
	if (d->names == NULL) {
		free(d);
		return NULL;
	}
	return d;
}

void uni_diff_destroy(struct uni_diff_sides *d)
{
	if (d == NULL)
		return;
	for (int s = 0; s < UNI_SIDES; s++) {
		free(d->side[s].n);
		free(d->side[s].work);
		free(d->side[s].run);
		uni_vec_free(&d->side[s].few_x);
		uni_vec_free(&d->side[s].few_n);
		uni_vec_free(&d->side[s].few_run);
		for (int c = 0; c < CELLS; c++)
			uni_vec_free(&d->side[s].cells[c]);
	}
	uni_vec_free(&d->functions);
	uni_strtab_destroy(d->names);
	free(d);
}

/* All functions have cells in all blocks. */
static bool side_grow(struct side *s, size_t nr_functions)
{
	for (int c = 0; c < CELLS; c++) {
		size_t want, have = s->cells[c].nr;

		if (__builtin_mul_overflow(nr_functions, s->nr_blocks, &want))
			return false;
		if (want <= have)
			continue;
		if (!uni_vec_grow(&s->cells[c], want - have))
			return false;
		memset(s->cells[c].v + have, 0, (want - have) * sizeof(double));
		s->cells[c].nr = want;
	}
	return true;
}

static const char *function_name(const struct uni_profile *p, uint32_t frame, size_t *len_ret)
{
	const struct uni_frame *f = uni_profile_get_frame(p, frame);
	const char *name = f->kind == UNI_FK_UNKNOWN
				   ? UNKNOWN
				   : uni_profile_str(p, f->plain != 0 ? f->plain : f->name);

	*len_ret = uni_demangle_source_len(name, strlen(name));
	return name;
}

size_t uni_diff_function_of(
	const struct uni_diff_sides *d, const struct uni_profile *p, uint32_t frame)
{
	size_t len;
	const char *name = function_name(p, frame, &len);
	uint32_t number = uni_strtab_find(d->names, name, len);

	if (number == UNI_STR_NONE || number >= d->functions.nr)
		return d->functions.nr;
	return d->functions.v[number].part_of != 0 ? d->functions.v[number].part_of - 1 : number;
}

static uint32_t function_add(
	struct uni_diff_sides *d, const struct uni_profile *p, uint32_t frame, enum uni_side side)
{
	const struct uni_frame *f = uni_profile_get_frame(p, frame);
	const struct function none = { 0 };
	size_t len;
	const char *name = function_name(p, frame, &len);
	uint32_t number = uni_strtab_add(d->names, name, len);
	struct function *one;

	if (number == UNI_STR_NONE)
		return UNI_STR_NONE;
	while (d->functions.nr <= number) {
		if (!uni_vec_push(&d->functions, none))
			return UNI_STR_NONE;
	}
	one = &d->functions.v[number];
	one->synthetic = f->kind == UNI_FK_SYNTHETIC;
	one->inlined[side] = one->inlined[side] || f->kind == UNI_FK_INLINED;
	one->plain[side] = one->plain[side] || f->kind != UNI_FK_INLINED;
	return side_grow(&d->side[side], d->functions.nr) ? number : UNI_STR_NONE;
}

/* While a run is added: its frames' functions, and for each function the last entry counted. */
struct adding {
	struct uni_diff_sides *d;
	struct side *s;
	const struct uni_profile *p;
	uint32_t *function;
	UNI_VEC(size_t) counted;
	size_t nr_entries;
};

/* Once for the leaf, and once for each function on the way up, however often it is there. */
static void entry_add(struct adding *a, uint32_t node, double value, size_t block)
{
	size_t nr = a->s->nr_blocks;
	bool leaf = true;

	a->nr_entries++;
	a->s->n[block] += value;
	for (; node != UNI_NODE_ROOT; node = uni_profile_node(a->p, node)->parent) {
		uint32_t f = a->function[uni_profile_node(a->p, node)->frame];

		if (leaf) {
			a->s->cells[UNI_SELF].v[f * nr + block] += value;
			a->s->cells[CALLS].v[f * nr + block]++;
		}
		leaf = false;
		if (a->counted.v[f] == a->nr_entries)
			continue;
		a->counted.v[f] = a->nr_entries;
		a->s->cells[UNI_TOTAL].v[f * nr + block] += value;
	}
}

static bool side_begin(
	const struct uni_diff_sides *d, struct side *s, const struct uni_diff_run *run)
{
	if (s->nr_blocks != 0)
		return true;
	s->per_run = 1;
	if (!d->of_runs && run->entry != NULL) {
		bool few = d->each || run->nr < BLOCK_SAMPLES_MIN * (size_t)UNI_DIFF_BLOCKS;

		s->per_run =
			(few ? UNI_DIFF_FEW : UNI_DIFF_BLOCKS) / uni_max(s->nr_runs, (size_t)1);
		s->per_run = uni_max(s->per_run, (size_t)8);
	}
	s->nr_blocks = s->per_run * s->nr_runs;
	s->n = calloc(s->nr_blocks, sizeof(*s->n));
	s->work = calloc(s->nr_blocks, sizeof(*s->work));
	s->run = calloc(s->nr_blocks, sizeof(*s->run));
	for (size_t i = 0; s->run != NULL && i < s->nr_blocks; i++)
		s->run[i] = (uint32_t)(i / s->per_run);
	return s->n != NULL && s->work != NULL && s->run != NULL;
}

static bool adding_begin(struct adding *a, enum uni_side side)
{
	size_t nr = uni_profile_nr_frames(a->p);

	a->function = calloc(nr + 1, sizeof(*a->function));
	if (a->function == NULL)
		return false;
	for (size_t i = 0; i < nr; i++) {
		a->function[i] = function_add(a->d, a->p, (uint32_t)i, side);
		if (a->function[i] == UNI_STR_NONE)
			return false;
	}
	if (!uni_vec_grow(&a->counted, a->d->functions.nr + 1) || a->counted.v == NULL)
		return false;
	memset(a->counted.v, 0, (a->d->functions.nr + 1) * sizeof(a->counted.v[0]));
	return true;
}

static size_t block_of(const struct adding *a, const struct uni_diff_run *run, size_t entry)
{
	return (size_t)((unsigned __int128)entry * a->s->per_run / run->nr);
}

/* The work of a block is that until the first entry of the next one. */
static void add_work(struct adding *a, const struct uni_diff_run *run, size_t first)
{
	size_t entry = 0, block = 0;

	for (size_t i = 0; i < run->nr_work; i++) {
		while (run->entry != NULL && entry < run->nr &&
			run->entry[entry].t_ns <= run->work[i].t_ns)
			block = block_of(a, run, entry++);
		a->s->work[first + block] += run->work[i].units;
		a->s->units += run->work[i].units;
	}
}

static void add_run(struct adding *a, const struct uni_diff_run *run)
{
	size_t first = a->s->nr_added * a->s->per_run;
	double scale = run->scale > 0 ? run->scale : 1;

	for (size_t i = 0; run->entry != NULL && i < run->nr; i++)
		entry_add(a, run->entry[i].node, run->entry[i].value * scale,
			first + block_of(a, run, i));
	add_work(a, run, first);
	for (size_t i = 0; run->entry == NULL && i < uni_profile_nr_nodes(a->p); i++) {
		double value = uni_profile_node(a->p, (uint32_t)i)->self;

		if (value != 0)
			entry_add(a, (uint32_t)i, value * scale, first);
	}
}

/* All runs are there: from now on work is measured in what it took before. */
static void scale_work(struct uni_diff_sides *d)
{
	double values = 0;

	for (size_t i = 0; i < d->side[UNI_BEFORE].nr_blocks; i++)
		values += d->side[UNI_BEFORE].n[i];
	if (!(d->side[UNI_BEFORE].units > 0) || !(d->side[UNI_AFTER].units > 0))
		return;
	d->has_work = true;
	d->work_value = values / d->side[UNI_BEFORE].units;
	for (int s = 0; s < UNI_SIDES; s++) {
		for (size_t i = 0; i < d->side[s].nr_blocks; i++)
			d->side[s].work[i] *= d->work_value;
	}
}

int uni_diff_add(struct uni_diff_sides *d, enum uni_side side, const struct uni_diff_run *run)
{
	struct side *s = &d->side[side];
	struct adding a = { .d = d, .s = s, .p = run->p };
	bool ok;

	d->each = run->each;
	ok = s->nr_added < s->nr_runs && side_begin(d, s, run) && adding_begin(&a, side);

	if (ok) {
		add_run(&a, run);
		s->nr_added++;
		s->samples += run->samples;
		s->unknown = s->unknown || !(run->samples > 0);
		s->independent = s->independent || (run->entry == NULL && !d->of_runs);
	}
	free(a.function);
	uni_vec_free(&a.counted);
	if (ok && d->side[UNI_BEFORE].nr_added == d->side[UNI_BEFORE].nr_runs &&
		d->side[UNI_AFTER].nr_added == d->side[UNI_AFTER].nr_runs)
		scale_work(d);
	return ok ? 0 : -UNI_ENOMEM;
}

size_t uni_diff_nr_functions(const struct uni_diff_sides *d)
{
	return d->functions.nr;
}

const char *uni_diff_name(const struct uni_diff_sides *d, size_t function)
{
	return uni_strtab_get(d->names, (uint32_t)function);
}

bool uni_diff_is_synthetic(const struct uni_diff_sides *d, size_t function)
{
	return d->functions.v[function].synthetic;
}

bool uni_diff_has(const struct uni_diff_sides *d, size_t function, enum uni_side side)
{
	const struct side *s = &d->side[side];

	for (size_t i = function * s->nr_blocks;
		i < (function + 1) * s->nr_blocks && i < s->cells[UNI_TOTAL].nr; i++) {
		if (s->cells[UNI_TOTAL].v[i] != 0)
			return true;
	}
	return false;
}

void uni_diff_rename(struct uni_diff_sides *d, size_t before, size_t after)
{
	struct side *s = &d->side[UNI_AFTER];

	/* It may have come with the other side alone. */
	if (!side_grow(s, d->functions.nr))
		return;
	for (int c = 0; c < CELLS; c++) {
		for (size_t i = 0; i < s->nr_blocks; i++) {
			s->cells[c].v[before * s->nr_blocks + i] +=
				s->cells[c].v[after * s->nr_blocks + i];
			s->cells[c].v[after * s->nr_blocks + i] = 0;
		}
	}
	d->functions.v[before].inlined[UNI_AFTER] = d->functions.v[after].inlined[UNI_AFTER];
	d->functions.v[before].plain[UNI_AFTER] = d->functions.v[after].plain[UNI_AFTER];
	d->functions.v[before].renamed = after + 1;
	d->functions.v[after].part_of = before + 1;
}

const char *uni_diff_new_name(const struct uni_diff_sides *d, size_t function)
{
	size_t renamed = d->functions.v[function].renamed;

	return renamed != 0 ? uni_diff_name(d, renamed - 1) : NULL;
}

int uni_diff_join_renamed(
	const struct uni_diff_sides *d, const struct uni_profile *p, struct uni_profile **ret)
{
	size_t nr = uni_profile_nr_frames(p), joined = 0;
	_cleanup_free_ uint32_t *now = calloc(d->functions.nr + 1, sizeof(*now));
	_cleanup_free_ uint32_t *same = calloc(nr + 1, sizeof(*same));

	*ret = NULL;
	if (now == NULL || same == NULL)
		return -UNI_ENOMEM;
	memset(now, 0xff, (d->functions.nr + 1) * sizeof(*now));
	/* The frame that a renamed function has after. */
	for (uint32_t i = 0; i < nr; i++) {
		size_t f = uni_diff_function_of(d, p, i), len;
		const char *name = function_name(p, i, &len);

		if (f < d->functions.nr && d->functions.v[f].renamed != 0 &&
			uni_strtab_find(d->names, name, len) == d->functions.v[f].renamed - 1)
			now[f] = i;
	}
	for (uint32_t i = 0; i < nr; i++) {
		size_t f = uni_diff_function_of(d, p, i);

		same[i] = f < d->functions.nr && now[f] != UINT32_MAX ? now[f] : i;
		joined += same[i] != i;
	}
	return joined != 0 ? uni_profile_join(p, same, ret) : 0;
}

bool uni_diff_was_inlined(const struct uni_diff_sides *d, size_t function, enum uni_side side)
{
	const struct function *f = &d->functions.v[function];

	return f->inlined[side] && !f->plain[side];
}

static struct uni_blocks blocks_of(
	const struct uni_diff_sides *d, enum uni_side side, const double *x)
{
	const struct side *s = &d->side[side];
	struct uni_blocks b = { .x = x,
		.n = d->has_work ? s->work : s->n,
		.run = s->run,
		.nr = s->independent ? 0 : s->nr_blocks,
		.samples = s->samples };

	for (size_t i = 0; i < s->nr_blocks; i++) {
		b.sum_n += b.n[i];
		b.sum_all += s->n[i];
		b.sum_x += x != NULL ? x[i] : 0;
	}
	return b;
}

/* Those with calls; all that has calls in too few of them is nothing. */
static struct uni_blocks blocks_of_calls(
	const struct uni_diff_sides *d, enum uni_side side, const double *x, const double *calls)
{
	/* The blocks are made when they are asked for. */
	struct side *s = &((struct uni_diff_sides *)(uintptr_t)d)->side[side];
	struct uni_blocks b = { 0 };

	s->few_x.nr = s->few_n.nr = s->few_run.nr = 0;
	for (size_t i = 0; x != NULL && i < s->nr_blocks; i++) {
		if (calls[i] == 0)
			continue;
		if (!uni_vec_push(&s->few_x, x[i]) || !uni_vec_push(&s->few_n, calls[i]) ||
			!uni_vec_push(&s->few_run, s->run[i]))
			return b;
		b.sum_x += x[i];
		b.sum_n += calls[i];
	}
	if (b.sum_n < CALLS_MIN || s->few_n.nr < (d->of_runs ? UNI_DIFF_RUNS_MIN : CALL_BLOCKS_MIN))
		return (struct uni_blocks){ .sum_x = b.sum_x, .sum_n = b.sum_n };
	b.x = s->few_x.v;
	b.n = s->few_n.v;
	b.run = s->few_run.v;
	b.nr = s->few_n.nr;
	return b;
}

struct uni_blocks uni_diff_blocks(
	const struct uni_diff_sides *d, size_t function, enum uni_side side, enum uni_column column)
{
	const struct side *s = &d->side[side];
	size_t first = function * s->nr_blocks;

	/* It may have come with the other side, and not be in this one. */
	const double *x =
		first + s->nr_blocks > s->cells[column].nr ? NULL : s->cells[column].v + first;

	return d->each ? blocks_of_calls(d, side, x, x != NULL ? s->cells[CALLS].v + first : NULL)
		       : blocks_of(d, side, x);
}

struct uni_blocks uni_diff_whole(const struct uni_diff_sides *d, enum uni_side side)
{
	return blocks_of(d, side, d->side[side].n);
}

bool uni_diff_has_work(const struct uni_diff_sides *d)
{
	return d->has_work;
}

double uni_diff_work_value(const struct uni_diff_sides *d)
{
	return d->work_value;
}

double uni_diff_work_units(const struct uni_diff_sides *d, enum uni_side side)
{
	return d->side[side].units;
}

bool uni_diff_is_each(const struct uni_diff_sides *d)
{
	return d->each;
}

bool uni_diff_of_runs(const struct uni_diff_sides *d)
{
	return d->of_runs;
}

bool uni_diff_knows_samples(const struct uni_diff_sides *d, enum uni_side side)
{
	return !d->side[side].unknown;
}

bool uni_diff_is_independent(const struct uni_diff_sides *d, enum uni_side side)
{
	return d->side[side].independent;
}
