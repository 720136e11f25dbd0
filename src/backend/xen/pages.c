/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/xen/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"

#define CHUNKS	4096u /* maximum numbers of mappings, and of frames in all of them */
#define SLOTS	8192u /* of the table: twice the frames in all mappings, a power of two */
#define RECENT	16u
#define NOWHERE UINT64_MAX

/* One mapping: made by one call, undone by one call. */
struct chunk {
	const uint8_t *at; /* NULL: free */
	uint32_t nr;
};

struct slot {
	uint64_t frame; /* NOWHERE: empty */
	const uint8_t *at;
};

struct uni_xen_pages {
	struct uni_xen_call *x;
	uint32_t domid;
	bool sealed;
	uint32_t nr_chunks, mapped;
	struct slot recent[RECENT]; /* by frame: most reads are of the same few frames */
	struct chunk chunk[CHUNKS];
	struct slot slot[SLOTS];
};

static void forget_pages(struct uni_xen_pages *p)
{
	p->nr_chunks = p->mapped = 0;
	for (size_t i = 0; i < RECENT; i++)
		p->recent[i].frame = NOWHERE;
	for (size_t i = 0; i < SLOTS; i++)
		p->slot[i].frame = NOWHERE;
}

int uni_xen_pages_create(
	struct uni_xen_call *x, uint32_t domid, struct uni_xen_pages **ret, struct uni_err *err)
{
	struct uni_xen_pages *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return uni_err_nomem(err);
	p->x = x;
	p->domid = domid;
	forget_pages(p);
	*ret = p;
	return 0;
}

void uni_xen_pages_drop(struct uni_xen_pages *p)
{
	const struct uni_xen_module *m = uni_xen_call_module(p->x);

	if (p->nr_chunks == 0)
		return;
	for (uint32_t i = 0; i < p->nr_chunks; i++)
		m->unmap(uni_xen_call_conn(p->x), p->chunk[i].at, p->chunk[i].nr);
	forget_pages(p);
}

void uni_xen_pages_seal(struct uni_xen_pages *p)
{
	uni_xen_pages_drop(p);
	p->sealed = true;
}

void uni_xen_pages_destroy(struct uni_xen_pages *p)
{
	if (p == NULL)
		return;
	uni_xen_pages_drop(p);
	free(p);
}

/* Maps the frames of a longer read in few calls. */
static void map_run(struct uni_xen_pages *p, uint64_t addr, size_t len)
{
	uint64_t frame[UNI_XEN_BATCH], first = addr / UNI_XEN_PAGE;
	size_t nr = (size_t)((addr + len - 1) / UNI_XEN_PAGE - first) + 1;

	nr = uni_min(nr, (size_t)UNI_XEN_BATCH);
	for (size_t i = 0; i < nr; i++)
		frame[i] = first + i;
	uni_xen_pages_map(p, frame, nr);
}

/* The frame's slot, or the empty slot for it. The table is never full. */
static struct slot *find_slot(struct uni_xen_pages *p, uint64_t frame)
{
	size_t i = (size_t)uni_hash_pair(frame, 0);

	for (;; i++) {
		struct slot *s = &p->slot[i % SLOTS];

		if (s->frame == frame || s->frame == NOWHERE)
			return s;
	}
}

void uni_xen_pages_map(struct uni_xen_pages *p, const uint64_t *frame, size_t nr)
{
	uint64_t want[UNI_XEN_BATCH];
	int why[UNI_XEN_BATCH];
	struct chunk *c;
	size_t n = 0;

	for (size_t i = 0; i < nr && n < UNI_XEN_BATCH; i++) {
		bool twice = false;

		for (size_t k = 0; k < n; k++)
			twice = twice || want[k] == frame[i];
		if (!twice && frame[i] != NOWHERE && find_slot(p, frame[i])->frame == NOWHERE)
			want[n++] = frame[i];
	}
	if (n == 0 || p->sealed)
		return;
	if (p->nr_chunks == CHUNKS || p->mapped + n > CHUNKS)
		uni_xen_pages_drop(p);
	c = &p->chunk[p->nr_chunks];
	c->at = uni_xen_call_module(p->x)->map(uni_xen_call_conn(p->x), p->domid, want, n, why);
	if (c->at == NULL)
		return;
	c->nr = (uint32_t)n;
	p->nr_chunks++;
	for (size_t i = 0; i < n; i++) {
		if (why[i] != 0)
			continue;
		*find_slot(p, want[i]) = (struct slot){ want[i], c->at + i * UNI_XEN_PAGE };
		p->mapped++;
	}
}

static const uint8_t *frame_at(struct uni_xen_pages *p, uint64_t frame)
{
	struct slot *recent = &p->recent[frame % RECENT];
	const struct slot *s;

	if (recent->frame == frame)
		return recent->at;
	s = find_slot(p, frame);
	if (s->frame == NOWHERE) {
		uni_xen_pages_map(p, &frame, 1);
		s = find_slot(p, frame); /* making room may have moved all slots */
	}
	if (s->frame == NOWHERE)
		return NULL;
	*recent = *s;
	return s->at;
}

int uni_xen_pages_read(struct uni_xen_pages *p, uint64_t addr, void *buf, size_t len)
{
	uint8_t *out = buf;

	while (len > 0) {
		size_t offset = (size_t)(addr % UNI_XEN_PAGE);
		size_t n = uni_min(len, UNI_XEN_PAGE - offset);
		const uint8_t *at;

		if (len > n && find_slot(p, addr / UNI_XEN_PAGE)->frame == NOWHERE)
			map_run(p, addr, len);
		at = frame_at(p, addr / UNI_XEN_PAGE);
		if (at == NULL)
			return -UNI_EFAULT;
		if (n == sizeof(uint64_t)) /* a page table's entry: the compiler knows this size */
			memcpy(out, at + offset, sizeof(uint64_t));
		else
			memcpy(out, at + offset, n);
		addr += n;
		out += n;
		len -= n;
	}
	return 0;
}
