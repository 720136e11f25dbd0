/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/skids.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

bool uni_guest_is_tcg(const struct uni_guest *g)
{
	return strcmp(g->info.vmm, "qemu") == 0 && strcmp(g->info.accel, "tcg") == 0;
}

/* A QEMU that does not say what runs its guest may be TCG. */
static bool may_be_tcg(const struct uni_guest *g)
{
	return strcmp(g->info.vmm, "qemu") == 0 &&
	       (g->info.accel[0] == '\0' || uni_guest_is_tcg(g));
}

static int compare_calls(const void *a, const void *b)
{
	const struct uni_skid_call *p = a, *q = b;

	return p->ret < q->ret ? -1 : p->ret > q->ret;
}

static int compare_entries(const void *a, const void *b)
{
	const struct uni_skid_entry *p = a, *q = b;

	return p->svma < q->svma ? -1 : p->svma > q->svma;
}

static int compare_codes(const void *a, const void *b)
{
	const struct uni_skid_code *p = a, *q = b;

	return p->start < q->start ? -1 : p->start > q->start;
}

/* Room for `more` members behind nr. */
static void *grow_array(void *v, size_t nr, size_t more, size_t size)
{
	return reallocarray(v, uni_max(nr + more, (size_t)1), size);
}

static bool add_calls(struct uni_skid *to, const struct uni_skid *from, uint64_t by)
{
	struct uni_skid_call *v = grow_array(to->call, to->nr, from->nr, sizeof(*v));

	if (v == NULL)
		return false;
	to->call = v;
	for (size_t i = 0; i < from->nr; i++) {
		struct uni_skid_call c = from->call[i];

		c.ret += by;
		c.callee += c.callee != 0 ? by : 0;
		v[to->nr++] = c;
	}
	qsort(v, to->nr, sizeof(*v), compare_calls);
	return true;
}

static bool add_entries(struct uni_skid *to, const struct uni_skid *from, uint64_t by)
{
	struct uni_skid_entry *v =
		grow_array(to->entry, to->nr_entries, from->nr_entries, sizeof(*v));

	if (v == NULL)
		return false;
	to->entry = v;
	for (size_t i = 0; i < from->nr_entries; i++) {
		struct uni_skid_entry e = from->entry[i];

		e.svma += by;
		e.end += e.end != 0 && e.end != UNI_SKID_ANYWHERE ? by : 0;
		v[to->nr_entries++] = e;
	}
	qsort(v, to->nr_entries, sizeof(*v), compare_entries);
	return true;
}

static int compare_places(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return *p < *q ? -1 : *p > *q;
}

static bool add_shared(struct uni_skid *to, const struct uni_skid *from, uint64_t by)
{
	uint64_t *v = grow_array(to->shared, to->nr_shared, from->nr_shared, sizeof(*v));

	if (v == NULL)
		return false;
	to->shared = v;
	for (size_t i = 0; i < from->nr_shared; i++)
		v[to->nr_shared++] = from->shared[i] + by;
	qsort(v, to->nr_shared, sizeof(*v), compare_places);
	to->has_tail_pointers |= from->has_tail_pointers;
	return true;
}

/* Code that lies together is one member. */
static void join_codes(struct uni_guest *g)
{
	struct uni_skid_code *v = g->skid_code.v;
	size_t kept = 0;

	qsort(v, g->skid_code.nr, sizeof(*v), compare_codes);
	for (size_t i = 0; i < g->skid_code.nr; i++) {
		struct uni_skid_code *last = kept != 0 ? &v[kept - 1] : NULL;
		uint64_t off = last != NULL ? v[i].start - last->start : 0;

		if (last != NULL && off <= last->size)
			last->size = uni_max(last->size, off + v[i].size);
		else
			v[kept++] = v[i];
	}
	g->skid_code.nr = kept;
}

/* Functions alone: code without a name was not read. */
static bool add_codes(struct uni_guest *g, const struct uni_image *img, uint64_t bias)
{
	bool ok = true;

	for (size_t i = 0; ok && i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *s = uni_image_symbol(img, i);

		if (s->size != 0)
			ok = uni_vec_push(
				&g->skid_code, ((struct uni_skid_code){ s->addr + bias, s->size }));
	}
	if (g->skid_code.nr != 0)
		join_codes(g);
	return ok;
}

int uni_guest_add_skid(
	struct uni_guest *g, struct uni_image *img, uint64_t bias, struct uni_err *err)
{
	const struct uni_unwind_hints *h = NULL;
	struct uni_skid skid;
	bool ok = true;

	if (g->unwinder.skid == NULL)
		return 0;
	if (uni_image_hints(img, bias, &h, err) != 0)
		return -err->code;
	if (uni_skid_read(img, h == NULL ? NULL : h->cfi, bias, &skid) != 0)
		return uni_err_nomem(err);
	/* All are in one table, as if they were linked at their places. */
	if (skid.nr_entries != 0)
		ok = add_calls(&g->skid, &skid, bias) && add_entries(&g->skid, &skid, bias) &&
		     add_shared(&g->skid, &skid, bias) && add_codes(g, img, bias);
	uni_skid_deinit(&skid);
	g->unwinder.skid_code = g->skid_code.v;
	g->unwinder.nr_skid_code = g->skid_code.nr;
	return ok ? 0 : uni_err_nomem(err);
}

int uni_guest_use_skid(struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	int rc = 0;

	if (args->no_samples || args->once || !may_be_tcg(g))
		return 0;
	g->unwinder.skid = &g->skid;
	if (!uni_guest_is_tcg(g))
		return 0;
	if (g->image != NULL)
		rc = uni_guest_add_skid(g, g->image, g->bias, err);
	for (size_t i = 0; rc == 0 && i < g->nr_more; i++)
		rc = uni_guest_add_skid(g, g->more[i].image, g->more[i].bias, err);
	return rc;
}
