/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/import.h"

#include <string.h>

#define RATHER_SURE 70

const struct uni_importer *uni_importer_by_name(const char *name)
{
	for (size_t i = 0; uni_importers[i] != NULL; i++) {
		if (strcmp(uni_importers[i]->name, name) == 0)
			return uni_importers[i];
	}
	return NULL;
}

const struct uni_importer *uni_importer_sniff(const char *data, size_t size)
{
	const struct uni_importer *best = NULL;
	int best_score = 0;

	for (size_t i = 0; uni_importers[i] != NULL; i++) {
		const struct uni_importer *one = uni_importers[i];
		int score = 0;

		if (one->sniff != NULL && !(one->far && best_score >= RATHER_SURE))
			score = one->sniff(data, size);
		if (score > best_score) {
			best = uni_importers[i];
			best_score = score;
		}
	}
	return best;
}

bool uni_importer_is_sure(const struct uni_importer *i, const char *head, size_t have)
{
	return i->sniff != NULL && i->sniff(head, have) >= RATHER_SURE;
}

const struct uni_importer *uni_importer_of_folder(const char *path)
{
	for (size_t i = 0; uni_importers[i] != NULL; i++) {
		if (uni_importers[i]->is_folder != NULL && uni_importers[i]->is_folder(path))
			return uni_importers[i];
	}
	return NULL;
}
