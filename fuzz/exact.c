/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact counts: what is taken can be walked without leaving it, and adds up. */
#include <stdlib.h>

#include "recording/exact.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct uni_exact_function *function;
	const struct uni_exact_node *node;
	struct uni_exact *e = NULL;
	struct uni_err err = { 0 };
	uint32_t nr_functions, nr_nodes;
	uint64_t sum = 0;

	if (uni_exact_parse(data, size, &e, &err) != 0) {
		told_text(err.msg);
		return 0;
	}
	function = uni_exact_functions(e, &nr_functions);
	node = uni_exact_nodes(e, &nr_nodes);
	require(nr_functions != 0 && nr_nodes != 0);
	for (uint32_t i = 1; i < nr_nodes; i++) {
		require(node[i].parent < i && node[i].function < nr_functions);
		require(function[node[i].function].end == 0 ||
			function[node[i].function].end > function[node[i].function].start);
		sum += node[i].insns;
		told_u64(node[i].parent);
		told_u64(function[node[i].function].start);
		told_u64(function[node[i].function].end);
		told_u64(node[i].insns);
	}
	require(sum == uni_exact_insns(e) && sum <= INT64_MAX);
	uni_exact_destroy(e);
	return 0;
}
