/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/exits.h"

#include <stdlib.h>
#include <string.h>

#include "arch/frame.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "base/text.h"
#include "backend/exit.h"

#define MAX_ROWS 16384u /* further ones go into one row */
#define CLASSES	 256u	/* of lengths: four an octave */

/* A row being added to. */
struct sum {
	uint32_t label, function, guest; /* strings */
	uint8_t isa;
	bool halt;
	double exits, userspace, host_ns, asleep_ns, stolen_ns;
	double *length; /* exits of each class of lengths; NULL: not wanted */
};

struct uni_exit_table {
	struct uni_strtab *names;
	struct sum *sums;
	struct uni_exit_row *rows, total;
	size_t nr;
};

struct guest {
	struct uni_namer *namer;
	uint32_t name; /* string: "" if it is the only one */
};

struct builder {
	struct uni_exit_table *t;
	const struct uni_recording *rec;
	const struct uni_build_opts *opts;
	struct uni_naming naming; /* inlined functions are part of the function around them */
	struct uni_profile *frames;
	struct guest *guest;
	uint32_t *slot; /* hash of a row -> its number + 1 */
	size_t nr_slots;
	struct uni_build_read read;
};

static unsigned class_of(double ns)
{
	uint64_t v = ns >= 1.8e19 ? UINT64_MAX : (uint64_t)ns;
	unsigned log2 = 63 - (unsigned)__builtin_clzll(v | 1);

	return v < 4 ? (unsigned)v : log2 << 2 | (unsigned)(v >> (log2 - 2) & 3);
}

/* The middle of a class. */
static double class_ns(unsigned class)
{
	unsigned log2 = class >> 2;

	if (class < 8)
		return class;
	return (4.0 + (class & 3) + 0.5) * (double)(1ull << (log2 - 2));
}

static double length_quantile(const struct sum *s, double q)
{
	double left = s->exits * q;

	for (unsigned i = 0; i < CLASSES; i++) {
		left -= s->length[i];
		if (s->length[i] > 0 && left <= 0)
			return class_ns(i);
	}
	return 0;
}

static uint32_t add_name(struct builder *b, const char *s)
{
	char clean[UNI_TEXT_MAX + 1];
	size_t len = uni_text_clean(clean, sizeof(clean), s, strlen(s));

	return uni_strtab_add(b->t->names, clean, len);
}

static uint32_t function_name(struct builder *b, const struct uni_stream_exit *e)
{
	const uint32_t *frame;
	size_t nr;

	if (e->nr == 0)
		return add_name(b, "[no registers]");
	frame = uni_namer_frames(b->guest[e->guest].namer, e->pc[0], UNI_FRAME_EXACT, &nr);
	if (frame == NULL)
		return UNI_STR_NONE;
	return add_name(
		b, uni_profile_str(b->frames, uni_profile_get_frame(b->frames, *frame)->name));
}

static bool same_exit_kind(const struct sum *a, const struct sum *b)
{
	return a->label == b->label && a->function == b->function && a->guest == b->guest &&
	       a->isa == b->isa;
}

static uint64_t hash_exit_kind(const struct sum *s)
{
	return uni_hash_pair(
		(uint64_t)s->label << 32 | s->function, (uint64_t)s->guest << 8 | s->isa);
}

/* The row with key's names, made if it is missing; NULL: out of memory. */
static struct sum *find_row(struct builder *b, const struct sum *key)
{
	struct uni_exit_table *t = b->t;
	size_t mask = b->nr_slots - 1, i = (size_t)hash_exit_kind(key) & mask;
	struct sum *s;

	for (; b->slot[i] != 0; i = (i + 1) & mask) {
		if (same_exit_kind(&t->sums[b->slot[i] - 1], key))
			return &t->sums[b->slot[i] - 1];
	}
	s = &t->sums[t->nr];
	*s = *key;
	s->length = calloc(CLASSES, sizeof(*s->length));
	if (s->length == NULL)
		return NULL;
	b->slot[i] = (uint32_t)++t->nr;
	return s;
}

static void add_to(struct sum *s, const struct uni_stream_exit *e)
{
	uint64_t asleep = uni_min(e->asleep_ns, e->host_ns);
	uint64_t stolen = uni_min(e->stolen_ns, e->host_ns - asleep);
	double host_ns = (double)(e->host_ns - stolen);

	s->exits += (double)e->weight;
	s->userspace += e->userspace ? (double)e->weight : 0;
	s->host_ns += host_ns;
	s->asleep_ns += (double)asleep;
	s->stolen_ns += (double)stolen;
	if (e->weight != 0)
		s->length[class_of(host_ns / (double)e->weight)] += (double)e->weight;
}

static bool is_wanted_exit(const struct builder *b, const struct uni_stream_exit *e)
{
	const struct uni_sample s = { .t_ns = e->t_ns, .guest = e->guest, .vcpu = e->vcpu };

	return uni_sample_passes(&b->opts->filter, &s);
}

static int add_exit(void *ctx, const struct uni_stream_exit *e)
{
	struct builder *b = ctx;
	char label[UNI_EXIT_LABEL_MAX];
	struct sum key = { .isa = e->isa, .guest = b->guest[e->guest].name }, *s;

	if (__builtin_add_overflow(b->read.exits, e->weight, &b->read.exits))
		b->read.exits = UINT64_MAX;
	if (!is_wanted_exit(b, e))
		return 0;
	if (b->t->nr < MAX_ROWS - 1) {
		uni_exit_label(e, uni_recording_guest(b->rec, e->guest).meta->info.vmm, label);
		key.label = add_name(b, label);
		key.function = function_name(b, e);
		key.halt = uni_exit_is_halt(e->isa, e->reason);
	} else {
		key = (struct sum){ .label = add_name(b, "(others)"), .isa = UNI_EXIT_ISA_NR };
	}
	if (key.label == UNI_STR_NONE || key.function == UNI_STR_NONE)
		return -UNI_ENOMEM;
	s = find_row(b, &key);
	if (s == NULL)
		return -UNI_ENOMEM;
	add_to(s, e);
	return 0;
}

double uni_exit_row_cost_ns(const struct uni_exit_row *row)
{
	return row->halt ? row->host_ns - row->asleep_ns : row->host_ns;
}

static int by_cost(const void *a, const void *b)
{
	const struct uni_exit_row *x = a, *y = b;
	double cx = uni_exit_row_cost_ns(x), cy = uni_exit_row_cost_ns(y);
	int r;

	if (cx != cy)
		return cx > cy ? -1 : 1;
	if (x->exits != y->exits)
		return x->exits > y->exits ? -1 : 1;
	r = strcmp(x->label, y->label);
	if (r == 0)
		r = strcmp(x->function, y->function);
	return r != 0 ? r : strcmp(x->guest, y->guest);
}

static int by_number(const void *a, const void *b)
{
	const struct uni_exit_row *x = a, *y = b;

	return x->exits != y->exits ? (x->exits > y->exits ? -1 : 1) : by_cost(a, b);
}

/* The total's host time excludes idle time, so that it is the cost of the rows. */
static void add_row(struct uni_exit_table *t, size_t i)
{
	const struct sum *s = &t->sums[i];
	struct uni_exit_row *row = &t->rows[i];

	*row = (struct uni_exit_row){ .label = uni_strtab_get(t->names, s->label),
		.function = uni_strtab_get(t->names, s->function),
		.guest = uni_strtab_get(t->names, s->guest),
		.isa = s->isa < UNI_EXIT_ISA_NR ? uni_exit_isa_name(s->isa) : "",
		.halt = s->halt,
		.exits = s->exits,
		.userspace = s->userspace,
		.host_ns = s->host_ns,
		.asleep_ns = s->asleep_ns,
		.stolen_ns = s->stolen_ns,
		.p50_ns = length_quantile(s, 0.50),
		.p99_ns = length_quantile(s, 0.99) };
	t->total.exits += row->exits;
	t->total.userspace += row->userspace;
	t->total.host_ns += uni_exit_row_cost_ns(row);
	t->total.asleep_ns += row->asleep_ns;
	t->total.stolen_ns += row->stolen_ns;
}

static int finish_exit_rows(struct uni_exit_table *t, enum uni_build_what what)
{
	t->rows = calloc(t->nr + 1, sizeof(*t->rows));
	if (t->rows == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < t->nr; i++)
		add_row(t, i);
	qsort(t->rows, t->nr, sizeof(*t->rows), what == UNI_BUILD_EXITS ? by_number : by_cost);
	return 0;
}

static int begin_guest(struct builder *b, uint32_t number)
{
	struct uni_recorded_guest from = uni_recording_guest(b->rec, number);
	struct guest *g = &b->guest[number];
	char name[UNI_GUEST_NAME_MAX];

	g->namer = uni_namer_create(&(struct uni_namer_from){ .p = b->frames,
		.symtab = b->opts->symtab != NULL ? b->opts->symtab : from.symtab,
		.bias = from.meta->bias,
		.image = from.meta->image_path,
		.naming = &b->naming });
	if (g->namer == NULL)
		return -UNI_ENOMEM;
	if (uni_recording_nr_guests(b->rec) == 1)
		return 0;
	uni_recording_guest_name(b->rec, number, name);
	g->name = add_name(b, name);
	return g->name == UNI_STR_NONE ? -UNI_ENOMEM : 0;
}

static int begin_guests(struct builder *b)
{
	uint32_t nr = uni_recording_nr_guests(b->rec);
	int rc = 0;

	b->naming = b->opts->naming;
	b->naming.inlined = false;
	b->frames = uni_profile_create();
	b->guest = calloc(nr, sizeof(*b->guest));
	if (b->frames == NULL || b->guest == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < nr; i++)
		rc = begin_guest(b, i);
	return rc;
}

static void builder_deinit(struct builder *b)
{
	for (uint32_t i = 0; b->guest != NULL && i < uni_recording_nr_guests(b->rec); i++)
		uni_namer_destroy(b->guest[i].namer);
	uni_profile_destroy(b->frames);
	free(b->guest);
	free(b->slot);
}

static int read_exits(struct builder *b, struct uni_recording *rec, struct uni_err *err)
{
	struct uni_exit_table *t = b->t;
	int rc;

	b->nr_slots = 2ul * MAX_ROWS;
	b->slot = calloc(b->nr_slots, sizeof(*b->slot));
	t->names = uni_strtab_create();
	t->sums = calloc(MAX_ROWS, sizeof(*t->sums));
	if (b->slot == NULL || t->names == NULL || t->sums == NULL)
		return -UNI_ENOMEM;
	rc = begin_guests(b);
	if (rc == 0)
		rc = uni_recording_each_exit(rec, add_exit, b, &b->read.torn, err);
	return rc == 0 ? finish_exit_rows(t, b->opts->what) : rc;
}

int uni_exit_table_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_exit_table **ret, struct uni_build_read *read_ret, struct uni_err *err)
{
	struct builder b = { .t = calloc(1, sizeof(*b.t)), .rec = rec, .opts = opts };
	int rc = b.t != NULL ? read_exits(&b, rec, err) : -UNI_ENOMEM;

	builder_deinit(&b);
	if (rc != 0) {
		uni_exit_table_destroy(b.t);
		if (rc == -UNI_ENOMEM)
			return uni_err_set(err, UNI_ENOMEM, "out of memory adding up exits");
		return rc;
	}
	if (read_ret != NULL)
		*read_ret = b.read;
	*ret = b.t;
	return 0;
}

void uni_exit_table_destroy(struct uni_exit_table *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; t->sums != NULL && i < t->nr; i++)
		free(t->sums[i].length);
	uni_strtab_destroy(t->names);
	free(t->sums);
	free(t->rows);
	free(t);
}

size_t uni_exit_table_rows(const struct uni_exit_table *t, const struct uni_exit_row **ret)
{
	*ret = t->rows;
	return t->nr;
}

const struct uni_exit_row *uni_exit_table_sum(const struct uni_exit_table *t)
{
	return &t->total;
}
