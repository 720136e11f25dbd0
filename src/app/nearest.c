/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/nearest.h"

#include <string.h>

#include "base/checked.h"

#define LONGEST 32

struct uni_nearest uni_nearest_begin(const char *word, size_t len)
{
	return (struct uni_nearest){ .word = word, .len = len, .distance = 1 + len / 4 };
}

/* Letters added, left out, changed, or two neighbours exchanged: how many of these there are. */
static size_t count_edits(const char *a, size_t nr_a, const char *b, size_t nr_b)
{
	size_t row[3][LONGEST + 1];

	for (size_t j = 0; j <= nr_b; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= nr_a; i++) {
		const size_t *up = row[(i - 1) % 3], *up2 = row[(i + 1) % 3];
		size_t *now = row[i % 3];

		now[0] = i;
		for (size_t j = 1; j <= nr_b; j++) {
			size_t change = up[j - 1] + (a[i - 1] != b[j - 1]);

			now[j] = uni_min(uni_min(up[j], now[j - 1]) + 1, change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = uni_min(now[j], up2[j - 2] + 1);
		}
	}
	return row[nr_a % 3][nr_b];
}

void uni_nearest_try(struct uni_nearest *n, const char *name)
{
	size_t len = strlen(name), edits;

	if (n->len > LONGEST || len > LONGEST)
		return;
	/* A word that is but begun needs no more letters. */
	edits = n->len >= 3 && strncmp(n->word, name, n->len) == 0
			? 1
			: count_edits(n->word, n->len, name, len);
	if (edits < n->distance || (edits == n->distance && n->name == NULL)) {
		n->distance = edits;
		n->name = name;
	}
}
