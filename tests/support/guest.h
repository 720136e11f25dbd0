/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest made of one array, for tests and fuzzing; it can change under the reader's hands. */
#ifndef UNI_TESTS_GUEST_H
#define UNI_TESTS_GUEST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem/gmem.h"

struct guest {
	uint8_t *ram;
	size_t size;
	uint64_t base;	  /* address of ram[0] */
	uint64_t reads;	  /* served */
	uint64_t gone_at; /* from this read on the target is gone; 0: never */
	uint32_t mutate;  /* one byte in this many changes at each read; 0: none */
	uint64_t rng;
	struct uni_gmem *m;
};

static inline uint64_t guest_random(struct guest *g)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return g->rng;
}

static inline int guest_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct guest *g = ctx;
	uint8_t *out = buf;

	g->reads++;
	if (g->gone_at != 0 && g->reads >= g->gone_at)
		return -UNI_EGONE;
	memcpy(out, g->ram + r->cookie + offset, len);
	for (size_t i = 0; g->mutate != 0 && i < len; i++) {
		if (guest_random(g) % g->mutate == 0)
			out[i] = (uint8_t)guest_random(g);
	}
	return 0;
}

static const struct uni_gmem_ops guest_ops = { .read = guest_read };

/* False when out of memory. */
static inline _Bool guest_init(
	struct guest *g, uint64_t base, size_t size, enum uni_gmem_space space)
{
	struct uni_gmem_region r = { .start = base, .size = size };

	memset(g, 0, sizeof(*g));
	g->ram = calloc(1, size);
	g->size = size;
	g->base = base;
	g->rng = 0x9e3779b97f4a7c15ull;
	return g->ram != NULL && uni_gmem_create(&guest_ops, g, space, &r, 1, &g->m, NULL) == 0;
}

static inline void guest_deinit(struct guest *g)
{
	uni_gmem_destroy(g->m);
	free(g->ram);
}

static inline void guest_put(struct guest *g, uint64_t addr, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		g->ram[addr - g->base + i] = (uint8_t)(v >> (8 * i));
}

static inline void guest_put64(struct guest *g, uint64_t addr, uint64_t v)
{
	guest_put(g, addr, v, 8);
}

static inline void guest_copy(struct guest *g, uint64_t addr, const void *bytes, size_t len)
{
	memcpy(g->ram + (addr - g->base), bytes, len);
}

#endif
