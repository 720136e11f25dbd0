/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/watches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_WATCH_BYTES (1u << 20)

/* To an address and a size. */
static int parse_watch(
	const struct uni_guest *g, const char *text, struct uni_watch *w, struct uni_err *err)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);
	uint64_t addr, size;

	memset(w, 0, sizeof(*w));
	if (g->image == NULL)
		return uni_err_set(err, UNI_EUSAGE, "--watch needs an image (-e) to find %s", text);
	if (len >= sizeof(w->name))
		return uni_err_set(err, UNI_EUSAGE, "--watch %s: the name is too long", text);
	memcpy(w->name, text, len);
	if (uni_image_find(g->image, w->name, &addr, &size) != 0)
		return uni_err_set(err, UNI_ENOENT, "--watch: %s has no symbol %s",
			uni_image_symbol_path(g->image), w->name);
	if (colon != NULL && !uni_parse_size(colon + 1, &size))
		return uni_err_set(err, UNI_EUSAGE, "--watch %s: not a number of bytes", text);
	if (size == 0 || size > MAX_WATCH_BYTES)
		return uni_err_set(err, UNI_EUSAGE,
			"--watch %s: %" PRIu64 " bytes; give 1 to %u as SYMBOL:BYTES", text, size,
			MAX_WATCH_BYTES);
	w->gva = addr + g->bias;
	w->size = (uint32_t)size;
	return 0;
}

int uni_watches_find(const struct uni_guest *g, const struct uni_opt_list *words,
	struct uni_watches *ret, struct uni_err *err)
{
	int rc = 0;

	if (words->items.nr > UNI_WATCHES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --watch", UNI_WATCHES_MAX);
	for (size_t i = 0; rc == 0 && i < words->items.nr; i++)
		rc = parse_watch(g, words->items.v[i], &ret->watch[i], err);
	if (rc == 0)
		ret->nr = words->items.nr;
	return rc;
}

void uni_watches_deinit(struct uni_watches *w)
{
	for (size_t i = 0; i < w->nr; i++) {
		free(w->watch[i].first);
		free(w->watch[i].last);
	}
	w->nr = 0;
}
