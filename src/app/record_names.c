/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of sessions and their guests. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/door.h"
#include "app/record.h"

char *uni_session_name(const char *base)
{
	char name[128], path[160];
	size_t len;

	(void)snprintf(name, sizeof(name), "%s", base[0] != '\0' ? base : "guest");
	for (char *p = name; *p != '\0'; p++) {
		if (*p == '/' || *p == ' ')
			*p = '_';
	}
	len = strlen(name);
	if (len > 4 && strcmp(name + len - 4, ".elf") == 0)
		name[len - 4] = '\0';
	(void)snprintf(path, sizeof(path), "%s.uniscope", name);
	for (unsigned n = 2; uni_door_access(path, F_OK) == 0 && n < 100000; n++)
		(void)snprintf(path, sizeof(path), "%s-%u.uniscope", name, n);
	return strdup(path);
}

char *uni_record_default_output(const struct uni_guest *g, size_t nr)
{
	const char *base = nr == 1 ? g->info.name : "guests";

	if (base[0] == '\0' && g->image != NULL) {
		const char *slash = strrchr(uni_image_path(g->image), '/');

		base = slash != NULL ? slash + 1 : uni_image_path(g->image);
	}
	return uni_session_name(base);
}

void uni_record_name_guest(
	struct uni_guest *const *g, size_t nr, size_t i, char ret[UNI_GUEST_NAME_MAX])
{
	bool alone = true;

	uni_guest_name(&g[i]->info, ret);
	for (size_t k = 0; alone && k < nr; k++) {
		char other[UNI_GUEST_NAME_MAX];

		uni_guest_name(&g[k]->info, other);
		alone = k == i || strcmp(ret, other) != 0;
	}
	if (ret[0] == '\0' || !alone)
		(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%.120s", g[i]->spec.text);
}
