/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/order.h"

#include <stdlib.h>
#include <string.h>

/* By time; records of the same time by their place in the buffer, which is the order of their
 * texts. */
static int by_time(const void *a, const void *b)
{
	const struct uni_ukt_place *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

static struct uni_ukt_reader make_reader(const struct uni_ukt_trace *t)
{
	return uni_ukt_reader_make(
		t->file->buffer, t->file->buffer_size, &t->defs, t->file->ptr_size, t->file->bias);
}

static int collect_places(struct uni_ukt_trace *t)
{
	struct uni_ukt_reader r = make_reader(t);
	struct uni_ukt_record rec;
	uint64_t last = 0;

	while (uni_ukt_next(&r, &rec)) {
		const struct uni_ukt_place place = { rec.ns,
			r.pos - rec.size - uni_ukt_head_size(t->file->ptr_size) };

		t->unordered += rec.ns < last;
		last = rec.ns;
		if (!uni_vec_push(&t->records, place))
			return -UNI_ENOMEM;
	}
	t->stats = r.stats;
	return 0;
}

int uni_ukt_trace_open(const struct uni_ukt_file *f, struct uni_ukt_trace *ret, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_ukt_trace){ .file = f };
	rc = uni_ukt_defs_parse(f->defs, f->defs_size, &ret->defs, err);
	if (rc != 0)
		return rc;
	if (collect_places(ret) != 0) {
		uni_ukt_trace_close(ret);
		return uni_err_nomem(err);
	}
	if (ret->unordered != 0)
		qsort(ret->records.v, ret->records.nr, sizeof(ret->records.v[0]), by_time);
	return 0;
}

void uni_ukt_trace_record(const struct uni_ukt_trace *t, size_t i, struct uni_ukt_record *ret)
{
	struct uni_ukt_reader r = make_reader(t);

	memset(ret, 0, sizeof(*ret));
	r.pos = t->records.v[i].at;
	(void)uni_ukt_next(&r, ret);
}

void uni_ukt_trace_close(struct uni_ukt_trace *t)
{
	uni_vec_free(&t->records);
	uni_ukt_defs_free(&t->defs);
}
