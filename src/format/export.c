/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/export.h"

#include <string.h>

const struct uni_exporter *uni_exporter_by_name(const char *name)
{
	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		if (strcmp(uni_exporters[i]->name, name) == 0)
			return uni_exporters[i];
	}
	return NULL;
}
