/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "page/blob.h"
#include "page/store_priv.h"

#define BLOCKS_MAX (1u << 18) /* in a reply: with very many rows, each row is coarser */

struct adder {
	const struct uni_page_store *s;
	struct uni_column *gap, *dur, *node, *nr;
	uint64_t at, blocks;
};

static uint32_t node_of(const struct uni_page_store *s, uint32_t node)
{
	return s->map != NULL && node < s->nr_nodes ? s->map[node] : node;
}

static int add_lod_span(void *ctx, const struct uni_lod_span *c)
{
	struct adder *a = ctx;

	uni_column_put(a->gap, c->start - a->at);
	uni_column_put(a->dur, c->dur);
	uni_column_put(a->node, node_of(a->s, c->id));
	uni_column_put(a->nr, c->nr);
	a->at = c->start + c->dur;
	a->blocks++;
	return 0;
}

void uni_page_store_put_rows(const struct uni_page_store *s, struct uni_blob *b, uint64_t t0,
	uint64_t t1, uint32_t px, uint32_t first, uint32_t nr)
{
	struct uni_column *thread = uni_blob_column(b, "r.thread");
	struct uni_column *depth = uni_blob_column(b, "r.depth");
	struct uni_column *cpu = uni_blob_column(b, "r.cpu");
	struct uni_column *blocks = uni_blob_column(b, "r.nr");
	struct adder a = { .s = s,
		.gap = uni_blob_column(b, "c.gap"),
		.dur = uni_blob_column(b, "c.dur"),
		.node = uni_blob_column(b, "c.node"),
		.nr = uni_blob_column(b, "c.nr") };
	uint32_t end;

	first = uni_min(first, (uint32_t)s->rows.nr);
	nr = uni_min(nr, (uint32_t)s->rows.nr - first);
	end = first + nr;
	px = uni_max(uni_min(px, BLOCKS_MAX / 2 / uni_max(nr, 1u)), 1u);
	t0 = uni_min(t0, UINT64_MAX - s->begin);
	t1 = uni_min(t1, UINT64_MAX - s->begin);
	for (uint32_t r = first; r < end; r++) {
		const struct uni_store_row *row = &s->rows.v[r];

		a.at = s->begin;
		a.blocks = 0;
		if (t0 < t1)
			(void)uni_lod_view(
				row->l, s->begin + t0, s->begin + t1, px, add_lod_span, &a);
		uni_column_put(thread, row->thread);
		uni_column_put(depth, row->depth);
		uni_column_put(cpu, row->cpu);
		uni_column_put(blocks, a.blocks);
	}
}

/* Writes magic, length of the header, header, columns: as a page's data, but not compressed. */
static int put_reply(struct uni_blob *b, struct uni_strbuf *ret)
{
	_cleanup_strbuf_ struct uni_strbuf head;
	unsigned char size[4];
	struct uni_sink *out;
	struct uni_json j;

	uni_strbuf_init(&head);
	if (uni_blob_failed(b) || uni_sink_open_strbuf(&head, &out) != 0)
		return -UNI_ENOMEM;
	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-page");
	uni_json_kv(u64, &j, "version", 1);
	uni_blob_describe(b, &j);
	uni_json_object_end(&j);
	if (uni_sink_close(out, NULL) != 0)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < sizeof(size); i++)
		size[i] = (unsigned char)(head.len >> 8 * i);
	uni_strbuf_add(ret, "UPG1", 4);
	uni_strbuf_add(ret, size, sizeof(size));
	uni_strbuf_add(ret, head.s, head.len);
	for (size_t i = 0; i < b->columns.nr; i++)
		uni_strbuf_add(ret, b->columns.v[i]->bytes.s, b->columns.v[i]->bytes.len);
	return uni_strbuf_failed(ret) ? -UNI_ENOMEM : 0;
}

int uni_page_store_reply_rows(const struct uni_page_store *s, uint64_t t0, uint64_t t1, uint32_t px,
	uint32_t first, uint32_t nr, struct uni_strbuf *ret)
{
	struct uni_blob b = { 0 };
	int rc;

	uni_page_store_put_rows(s, &b, t0, t1, px, first, nr);
	rc = put_reply(&b, ret);
	uni_blob_deinit(&b);
	return rc;
}

/* The sums by node numbers of the replies; NULL: out of memory. */
static uint64_t *to_mapped(const struct uni_page_store *s, const uint64_t *self)
{
	uint64_t *ret = calloc((size_t)s->nr_mapped + 1, sizeof(*ret));

	for (uint32_t i = 0; ret != NULL && i < s->nr_nodes; i++)
		ret[s->map[i]] += self[i];
	return ret;
}

static void put_self(struct uni_blob *b, const uint64_t *self, uint32_t nr)
{
	struct uni_column *gap = uni_blob_column(b, "n.gap"), *sum = uni_blob_column(b, "n.self");
	uint32_t last = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (self[i] == 0)
			continue;
		uni_column_put(gap, i - last);
		uni_column_put(sum, self[i]);
		last = i;
	}
}

int uni_page_store_put_sums(const struct uni_page_store *s, struct uni_blob *b, uint64_t t0,
	uint64_t t1, struct uni_page_who who)
{
	_cleanup_free_ uint64_t *self = calloc((size_t)s->nr_nodes + 1, sizeof(*self));
	_cleanup_free_ uint64_t *mapped = NULL;
	int rc = self != NULL ? uni_page_store_sums(s, t0, t1, who, self) : -UNI_ENOMEM;

	if (rc == 0 && s->map != NULL) {
		mapped = to_mapped(s, self);
		rc = mapped != NULL ? 0 : -UNI_ENOMEM;
	}
	if (rc == 0)
		put_self(b, mapped != NULL ? mapped : self,
			mapped != NULL ? s->nr_mapped : s->nr_nodes);
	return rc;
}

int uni_page_store_reply_sums(const struct uni_page_store *s, uint64_t t0, uint64_t t1,
	struct uni_page_who who, struct uni_strbuf *ret)
{
	struct uni_blob b = { 0 };
	int rc = uni_page_store_put_sums(s, &b, t0, t1 != 0 ? t1 : UINT64_MAX, who);

	if (rc == 0)
		rc = put_reply(&b, ret);
	uni_blob_deinit(&b);
	return rc;
}
