/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of traced calls. A new row begins whenever the thread's innermost call changes. Time
 * that the thread waited off the CPU is a row without a stack and without weight. */
#include "format/rows.h"

#include "base/checked.h"
#include "profile/calls.h"

struct thread {
	size_t row; /* its newest + 1; 0: none */
	uint64_t ns;
};

struct reader {
	struct uni_rows *r;
	UNI_VEC(struct thread) threads;
};

static struct thread *thread_of(struct reader *d, uint32_t nr)
{
	size_t old = d->threads.nr;

	if (nr >= old) {
		if (!uni_vec_grow(&d->threads, (size_t)nr + 1 - old))
			return NULL;
		while (d->threads.nr <= nr)
			d->threads.v[d->threads.nr++] = (struct thread){ 0 };
	}
	return &d->threads.v[nr];
}

/* Times of a thread never decrease here: of several CPUs they may, by as much as clocks differ. */
static int add_run(void *ctx, uint32_t nr, uint64_t ns, uint32_t node)
{
	struct reader *d = ctx;
	struct uni_row row = { .node = node == UNI_NODE_NONE ? UNI_NODE_ROOT : node };
	struct thread *t = thread_of(d, nr);
	struct uni_row *last;

	if (t == NULL)
		return -UNI_ENOMEM;
	if (t->row == 0 && row.node == UNI_NODE_ROOT)
		return 0;
	row.t_ns = t->ns = uni_max(ns, t->ns);
	if (t->row != 0) {
		last = &d->r->rows.v[t->row - 1];
		if (last->t_ns == row.t_ns) {
			last->node = row.node;
			return 0;
		}
		if (last->node != UNI_NODE_ROOT)
			last->value = (double)(row.t_ns - last->t_ns);
	}
	if (uni_rows_push(d->r, row, &(struct uni_row_track){ .thread = nr + 1 }) != 0)
		return -UNI_ENOMEM;
	t->row = d->r->rows.nr;
	return 0;
}

int uni_rows_init_calls(struct uni_rows *r, const struct uni_view *v, struct uni_err *err)
{
	struct reader d = { .r = r };
	const struct uni_profile_calls_watch watch = { .ctx = &d, .runs = add_run };
	struct uni_profile_calls added;
	int rc = -UNI_ENOMEM;

	*r = (struct uni_rows){ .owned = uni_profile_create(),
		.tl = v->timeline,
		.title = v->title,
		.timed = true,
		.is_time = true,
		.unit_ns = 1.0,
		.nr_guests = 1 };
	r->p = r->owned;
	if (r->owned != NULL)
		rc = uni_profile_add_calls(r->owned, v->timeline, false, &watch, &added);
	if (rc == 0)
		rc = uni_profile_finish(r->owned);
	/* The first is the earliest, whatever the clocks of CPUs say. */
	for (size_t i = 0; i < r->rows.nr; i++)
		r->rows.v[i].t_ns = uni_max(r->rows.v[i].t_ns, r->rows.v[0].t_ns);
	uni_vec_free(&d.threads);
	return rc == 0 ? 0 : uni_err_nomem(err);
}
