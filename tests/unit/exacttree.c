/* SPDX-License-Identifier: BSD-2-Clause */
/* The plugin's tree of calling contexts: its limit of depth keeps pairs of caller and callee true.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "plugin/plugin.h"

#define FUNCTIONS 8u
#define NODES	  4096u

struct plugin plugin;
static uint64_t stat[UNI_EXACT_STATS];
static struct uni_exact_node out[NODES];
static struct area area;

void *area_add(struct area *a, enum uni_exact_part part, uint64_t n, uint64_t *index_ret)
{
	(void)index_ret;
	if (part != UNI_EXACT_PART_NODES || a->nr[part] + n > NODES)
		return NULL;
	a->nr[part] += n;
	return &out[a->nr[part] - n];
}

/* Functions 1, 2, ... `cycle` call each other in turn; one more leaf is called by each. */
static void deep(unsigned cycle)
{
	struct tree t = { 0 };
	struct node *n, *leaf;

	area = (struct area){ 0 };
	plugin = (struct plugin){ .stat = stat };
	stat[UNI_EXACT_FOLDED] = 0;
	assert_int_equal(tree_init(&t, &area, FUNCTIONS), 0);
	n = t.node;
	for (unsigned i = 0; i < 3 * UNI_EXACT_DEPTH; i++) {
		uint32_t before = n->function, now = 1 + i % cycle;

		n = tree_child(&t, n, now);
		assert_int_equal(n->function, now);
		if (i != 0)
			assert_int_equal(n->parent->function, before);
		leaf = tree_child(&t, n, FUNCTIONS);
		assert_int_equal(leaf->function, FUNCTIONS);
		assert_int_equal(leaf->parent->function, now);
		assert_true(leaf->depth <= UNI_EXACT_DEPTH);
	}
	assert_true(stat[UNI_EXACT_FOLDED] > 0);
	(void)munmap(t.node, UNI_EXACT_NODES * sizeof(*t.node));
	free(t.hash);
	free(t.beyond);
}

static void pairs(void **state)
{
	(void)state;
	for (unsigned cycle = 1; cycle < FUNCTIONS; cycle++)
		deep(cycle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
