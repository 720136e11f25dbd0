/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_load.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define ANY_TEXT (1u << 20)
#define OVERHEAD sizeof(size_t) /* of the allocator, for each piece */

/* For the text that this thread reads now. */
static _Thread_local struct {
	size_t left;
	bool reads, spent;
} budget;

static size_t size_of(void *piece)
{
	return piece != NULL ? malloc_usable_size(piece) + OVERHEAD : 0;
}

static void *take_piece(size_t size)
{
	void *piece;

	if (!budget.reads)
		return malloc(size);
	piece = size < budget.left ? malloc(size) : NULL;
	if (size_of(piece) > budget.left) {
		free(piece);
		piece = NULL;
	}
	budget.spent = budget.spent || piece == NULL;
	budget.left -= size_of(piece);
	return piece;
}

static void free_piece(void *piece)
{
	if (budget.reads)
		budget.left += size_of(piece);
	free(piece);
}

static void set_allocator(void)
{
	json_set_alloc_funcs(take_piece, free_piece);
}

json_t *uni_json_load(
	const void *data, size_t size, size_t flags, unsigned times, struct uni_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	json_error_t why;
	json_t *root;

	(void)pthread_once(&once, set_allocator);
	budget.left = size < (SIZE_MAX - ANY_TEXT) / times ? ANY_TEXT + size * times : SIZE_MAX / 2;
	budget.spent = false;
	budget.reads = true;
	root = json_loadb(data, size, flags, &why);
	budget.reads = false;
	if (root == NULL && budget.spent)
		(void)uni_err_set(err, UNI_EFORMAT,
			"in memory, its values take more than 1 MB and %u bytes for each of its "
			"bytes: it is no file that a tool wrote",
			times);
	else if (root == NULL)
		(void)uni_err_set(err, UNI_EFORMAT, "line %d: %s", why.line, why.text);
	return root;
}
