/* SPDX-License-Identifier: BSD-2-Clause */
/* A core that a test makes and parses: what the tests of all architectures share. */
#ifndef UNI_TESTS_SUPPORT_CORE_CASE_H
#define UNI_TESTS_SUPPORT_CORE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/checked.h"
#include "core_file.h"
#include "backend/core/file.h"

#define PAGES 16u

struct made {
	struct uni_strbuf file;
	uint8_t memory[PAGES * 4096];
	struct uni_core_src src;
	struct uni_core_file core;
	const struct uni_arch *arch; /* of raw memory */
	struct uni_err err;
};

static inline int set_up(void **state)
{
	struct made *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	uni_strbuf_init(&m->file);
	for (size_t i = 0; i < sizeof(m->memory); i++)
		m->memory[i] = (uint8_t)(i / 4096 * 16 + i % 13);
	*state = m;
	return 0;
}

static inline int tear_down(void **state)
{
	struct made *m = *state;

	uni_core_file_deinit(&m->core);
	uni_strbuf_deinit(&m->file);
	free(m);
	return 0;
}

/* The first `size` bytes of what was made. */
static inline int parse_cut(struct made *m, size_t size)
{
	uni_core_file_deinit(&m->core);
	memset(&m->core, 0, sizeof(m->core));
	m->err = (struct uni_err){ 0 };
	m->src = uni_core_src_memory(m->file.s, size);
	return uni_core_file_elf(&m->core, &m->src, &m->err);
}

static inline void parse(struct made *m)
{
	if (parse_cut(m, m->file.len) != 0)
		fail_msg("%s", m->err.msg);
}

/* The byte of guest memory at addr, or -1. */
static inline int byte_at(const struct made *m, uint64_t addr)
{
	for (size_t i = 0; i < m->core.region.nr; i++) {
		const struct uni_gmem_region *r = &m->core.region.v[i];
		uint8_t b;

		if (!uni_range_has(r->start, r->size, addr))
			continue;
		assert_int_equal(
			uni_core_src_read(&m->src, r->cookie + (addr - r->start), &b, 1), 0);
		return b;
	}
	return -1;
}

#endif
